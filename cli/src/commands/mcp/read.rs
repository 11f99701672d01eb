//! Tools that change nothing.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::answer::{Answer, Keep};
use super::arguments::{self, ListAlerts, ListContainers, ListServers, ProcessesAt, ReadLogs, ReadMetrics};
use crate::api::types::{Columns, Series};
use crate::api::{Api, parsed, text_of};
use crate::commands::containers;
use crate::commands::logs::source::{Kind, Source};
use crate::error::Failure;

const LISTED_SERVERS: usize = 100;
const LISTED_ALERTS: usize = 50;
/// The service takes at most one more.
const MAX_LISTED: usize = 499;
const LOG_LINES: u32 = 100;
const POINTS: u32 = 30;
const MAX_POINTS: u32 = 200;
const MAX_SERIES: usize = 8;
const MAX_NAMES: u32 = 200;

/// An answer, and how to get what it leaves out.
pub type Found = (Answer, String);

/// A page of a list. One more than asked for says whether there are more.
struct Page {
    entries: Vec<Value>,
    more: bool,
    rest: String,
}

async fn page(
    api: &Api,
    path: &str,
    mut query: Vec<(&str, String)>,
    limit: usize,
    offset: usize,
) -> Result<Page, Failure> {
    let limit = limit.clamp(1, MAX_LISTED);
    query.extend([("limit", (limit + 1).to_string()), ("offset", offset.to_string())]);
    let mut entries: Vec<Value> = parsed(api.get(path, &query).await?)?;
    let more = entries.len() > limit;
    entries.truncate(limit);
    let rest = format!("Call again with offset {offset} plus as many as are shown, or filter.");
    Ok(Page { entries, more, rest })
}

/// Only these fields, where they have a value.
fn picked(value: &Value, fields: &[&str]) -> Value {
    let found = fields.iter().filter_map(|field| Some(((*field).to_owned(), value.get(field)?.clone())));
    Value::Object(found.filter(|(_, value)| !value.is_null()).collect())
}

fn given(query: &mut Vec<(&'static str, String)>, name: &'static str, value: Option<String>) {
    query.extend(value.map(|value| (name, value)));
}

pub async fn servers(api: &Api, wanted: ListServers) -> Result<Found, Failure> {
    let mut query = Vec::new();
    given(&mut query, "tag", wanted.tag);
    given(&mut query, "status", wanted.status);
    given(&mut query, "q", wanted.search);
    let page = page(api, "/servers", query, wanted.limit.unwrap_or(LISTED_SERVERS), wanted.offset).await?;
    let fields = ["name", "id", "status", "host", "tags", "description", "last_seen_at", "role", "rights"];
    let shown = page.entries.iter().map(|server| {
        let mut shown = picked(server, &fields);
        if let (Some(fields), Some(agent)) = (shown.as_object_mut(), server.get("agent").filter(|it| it.is_object())) {
            fields.insert("system".to_owned(), picked(agent, &["os", "kernel", "arch", "cpu_count", "capabilities"]));
        }
        shown
    });
    Ok((Answer::new("servers", shown.collect()).about("more", page.more), page.rest))
}

pub async fn alerts(api: &Api, wanted: ListAlerts) -> Result<Found, Failure> {
    let status = wanted.status.unwrap_or_else(|| "active".to_owned());
    let mut query = Vec::new();
    given(&mut query, "status", (status != "all").then_some(status));
    given(&mut query, "severity", wanted.severity);
    if let Some(server) = wanted.server {
        query.push(("server_id", api.server(&server).await?.id.to_string()));
    }
    let page = page(api, "/alerts", query, wanted.limit.unwrap_or(LISTED_ALERTS), wanted.offset).await?;
    let fields = [
        "id",
        "server_id",
        "severity",
        "status",
        "message",
        "metric_type",
        "target",
        "value",
        "peak_value",
        "threshold_value",
        "triggered_at",
        "acknowledged_at",
        "resolved_at",
    ];
    let shown = page.entries.iter().map(|alert| picked(alert, &fields)).collect();
    Ok((Answer::new("alerts", shown).about("more", page.more), page.rest))
}

pub async fn metrics(api: &Api, wanted: ReadMetrics) -> Result<Found, Failure> {
    let server = api.server(&wanted.server).await?;
    let path = format!("/metrics/{}", server.id);
    let (since, until) = range(wanted.since.as_deref(), wanted.until.as_deref())?;
    let mut query = Vec::new();
    given(&mut query, "start", since);
    given(&mut query, "end", until);
    if let Some(search) = wanted.search {
        query.extend([("q", search), ("limit", MAX_NAMES.to_string())]);
        let found = api.get(&format!("{path}/names"), &query).await?;
        let names: Vec<Value> = found.get("names").and_then(Value::as_array).cloned().unwrap_or_default();
        let more = found.get("truncated").cloned().unwrap_or_default();
        let answer = Answer::new("series", names).about("server", server.name).about("more", more);
        return Ok((answer, "Search for a longer text.".to_owned()));
    }
    if wanted.names.is_empty() {
        let snapshot = api.get(&path, &[]).await?;
        let answer = Answer::fields("latest", snapshot).about("server", server.name);
        return Ok((answer, "Search for the name of a series and read it, or use list_containers.".to_owned()));
    }
    if wanted.names.len() > MAX_SERIES {
        return Err(Failure::usage(format!("at most {MAX_SERIES} series at once")));
    }
    let points = wanted.points.unwrap_or(POINTS).clamp(1, MAX_POINTS);
    // Each alone: a name may have commas.
    query.extend(wanted.names.iter().map(|name| ("names", name.clone())));
    query.push(("max_points", points.to_string()));
    let series: Series = parsed(api.get(&format!("{path}/series"), &query).await?)?;
    let missing: Vec<String> = wanted.names.iter().filter(|name| !series.series.contains_key(*name)).cloned().collect();
    let shown = series.series.iter().map(|(name, columns)| points_of(name, columns, &series.timestamps)).collect();
    let answer = Answer::new("series", shown)
        .about("server", server.name)
        .about("resolution_seconds", series.resolution_seconds)
        .about("without_values", missing);
    Ok((answer, "Ask for fewer series or points.".to_owned()))
}

fn range(since: Option<&str>, until: Option<&str>) -> Result<(Option<String>, Option<String>), Failure> {
    let text = |moment: Timestamp| moment.to_string();
    Ok((arguments::moment(since)?.map(text), arguments::moment(until)?.map(text)))
}

/// Of a series: its extremes, its last value, and the mean at each time that has one.
fn points_of(name: &str, columns: &Columns, timestamps: &[i64]) -> Value {
    let known = || columns.avg.iter().flatten().copied();
    let points: Vec<Value> = timestamps
        .iter()
        .zip(&columns.avg)
        .filter_map(|(time, mean)| {
            Some(json!([Timestamp::from_millis(time.saturating_mul(1000)).to_string(), (*mean)?]))
        })
        .collect();
    json!({"name": name, "min": columns.min.iter().flatten().copied().reduce(f64::min),
        "max": columns.max.iter().flatten().copied().reduce(f64::max), "last": known().last(), "points": points})
}

pub async fn logs(api: &Api, wanted: ReadLogs) -> Result<Found, Failure> {
    let kind = match (wanted.container, wanted.file) {
        (None, None) => Kind::System,
        (Some(container), None) => Kind::Container(container),
        (None, Some(file)) => Kind::File(file),
        (Some(_), Some(_)) => return Err(Failure::usage("name a container or a file, not both")),
    };
    let source = Source { server: api.server(&wanted.server).await?, kind };
    let (since, until) = range(wanted.since.as_deref(), wanted.until.as_deref())?;
    let mut query = source.query();
    given(&mut query, "since", since);
    given(&mut query, "until", until);
    if let Some(search) = wanted.search {
        query.extend([("q", search), ("regex", wanted.regex.to_string())]);
    }
    query.push(("tail", wanted.lines.unwrap_or(LOG_LINES).to_string()));
    let answer = api.get(&format!("/logs/{}", source.server.id), &query).await;
    let answer = answer.map_err(|failure| source.explained(failure, &api.service()))?;
    let lines: Vec<Value> = answer.get("lines").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_incomplete = answer.get("truncated").cloned().unwrap_or_default();
    let found = Answer::new("lines", lines).keeping(Keep::Last);
    let found = found.about("log", source.label()).about("search_took_too_long", is_incomplete);
    let rest =
        "For older lines call again with `until` set to the time of the first line shown; for fewer, use `search`.";
    Ok((found, rest.to_owned()))
}

pub async fn containers(api: &Api, wanted: ListContainers) -> Result<Found, Failure> {
    let server = api.server(&wanted.server).await?;
    let mut containers = containers::all(api, &server, wanted.running).await?;
    if let Some(search) = wanted.search {
        containers
            .retain(|container| ["name", "image"].iter().any(|field| text_of(container, field).contains(&search)));
    }
    let fields = ["name", "id", "image", "state", "status", "created_at", "ports"];
    let shown = containers.iter().map(|container| picked(container, &fields)).collect();
    Ok((Answer::new("containers", shown).about("server", server.name), "Use `search` or `running`.".to_owned()))
}

pub async fn processes(api: &Api, wanted: ProcessesAt) -> Result<Found, Failure> {
    let server = api.server(&wanted.server).await?;
    let mut query = Vec::new();
    given(&mut query, "at", arguments::moment(wanted.at.as_deref())?.map(|at| at.to_string()));
    let answer = api.get(&format!("/metrics/{}/processes", server.id), &query).await?;
    Ok((Answer::fields("processes", answer).about("server", server.name), String::new()))
}
