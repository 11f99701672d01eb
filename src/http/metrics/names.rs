//! The series of a server, as a list that is serialized while it is sent.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};
use bytes::Bytes;
use deserr::Deserr;
use futures_util::stream;
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use serde::Serialize;
use serde_json::json;
use signalbox_history::metric;
use signalbox_protocol::series::SeriesKind;
use uuid::Uuid;

use super::combined::{Filter, ServerIds};
use super::range::{check_range, range_of};
use crate::http::error::ApiError;
use crate::http::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use crate::http::extract::fault::Faults;
use crate::http::extract::field::described;
use crate::http::extract::param::{SearchText, TimeParam, Whole};
use crate::http::extract::{Checked, OnServer, See, SignedIn};
use crate::metrics::query::catalog::{MAX_NAMES, Names, SeriesName};

/// The default range of the list: the default retention of minutes.
const NAMES_RANGE_MS: i64 = 90 * 24 * 3_600_000;

/// Servers whose help texts are read for the list of all: agents of one version describe their series alike.
const HELP_FROM: usize = 8;

/// Names that are serialized at once: some 50 KB.
const AT_ONCE: usize = 500;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct NamesQuery {
    /// The start of the range. Defaults to 90 days before the end.
    #[deserr(default)]
    start: Option<TimeParam>,
    /// The end of the range. Defaults to now.
    #[deserr(default)]
    end: Option<TimeParam>,
    /// Only names with this text. Ignores case.
    #[deserr(default)]
    q: Option<SearchText>,
    /// Maximum number of names. Defaults to 5000.
    #[deserr(default)]
    limit: Option<Whole<1, { MAX_NAMES as u64 }>>,
}

impl CrossCheck for NamesQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_range(fields.sound("start"), fields.sound("end"))
    }
}

/// List the series of a server
///
/// The names that the parameter `names` of the series accepts, with unit, kind and help, sorted by name. At most 5000:
/// `truncated` says whether there are more, and `q` finds them. If there are too many, the machine's own series come
/// first, then those of its cores, disks, devices, interfaces, sensors and containers, then open series, which only the
/// agent knows; within each group, recent series come before older ones.
#[api_v2_operation(tags(Metrics), operation_id = "list_metrics_names")]
pub async fn names(ask: Checked<OnServer<See>, CrossChecked<NamesQuery>>) -> Result<NameList, ApiError> {
    let CrossChecked(NamesQuery { start, end, q, limit }) = ask.query;
    let range = range_of(start, end, NAMES_RANGE_MS);
    let limit = limit.map_or(MAX_NAMES, |Whole(limit)| limit as usize);
    let part = q.as_ref().map(|SearchText(part)| part.as_str());
    let history = ask.state.metrics.history.read_by(ask.subject.actor.user_id);
    let server_id = ask.subject.access.server_id();
    let names = history.names(server_id, range, part, limit).await?;
    let has_open = names.names.iter().any(|series| series.is_open);
    let help = if has_open { ask.state.store.series_help(server_id).await? } else { HashMap::new() };
    Ok(NameList(NamesOut::new(names, &help)))
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct PresentNamesQuery {
    /// Only names with this text. Ignores case.
    #[deserr(default)]
    q: Option<SearchText>,
    /// Only of these servers, at most 100.
    #[deserr(default)]
    server: Option<ServerIds>,
    /// Only of servers with this tag.
    #[deserr(default)]
    tag: Option<SearchText>,
    /// Maximum number of names. Defaults to 5000.
    #[deserr(default)]
    limit: Option<Whole<1, { MAX_NAMES as u64 }>>,
}

/// List the present series of all servers that you can see
///
/// The names in the latest samples of all servers, each once, as `GET /metrics/{server_id}/names` lists those of one. At most
/// 1000 servers.
#[api_v2_operation(tags(Metrics), operation_id = "list_fleet_names")]
pub async fn present_names(ask: Checked<SignedIn, PresentNamesQuery>) -> Result<NameList, ApiError> {
    let PresentNamesQuery { q, server, tag, limit } = ask.query;
    let caller = ask.subject.caller;
    let filter = Filter { ids: server, status: None, tag, text: None };
    let servers = filter.servers(&ask.state, &caller).await?;
    let ids: Vec<Uuid> = servers.iter().map(|server| server.record.id).collect();
    let limit = limit.map_or(MAX_NAMES, |Whole(limit)| limit as usize);
    let part = q.map(|SearchText(part)| part);
    let history = ask.state.metrics.history.read_by(Some(caller.user_id));
    let names = history.present_names(&ids, part, limit).await?;
    // An open series has its help text from any server that describes it.
    let mut help = HashMap::new();
    if names.names.iter().any(|series| series.is_open) {
        for id in ids.iter().take(HELP_FROM) {
            help.extend(ask.state.store.series_help(*id).await?);
        }
    }
    Ok(NameList(NamesOut::new(names, &help)))
}

/// The series of a server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct NamesOut {
    names: Vec<SeriesNameOut>,
    /// Whether there are more names.
    truncated: bool,
}

impl NamesOut {
    /// Adds the agent's descriptions of its open series, by the part of their names before the colon.
    pub fn new(Names { names, truncated }: Names, open: &HashMap<String, String>) -> Self {
        Self { names: names.into_iter().map(|series| SeriesNameOut::new(series, open)).collect(), truncated }
    }
}

/// A series.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SeriesNameOut {
    /// The name; for an open series with a target, its name, a colon and the target.
    name: String,
    /// `percent`, `bytes`, `bytes_per_second`, `seconds`, `milliseconds`, `celsius`, `count`, `per_second`, `ratio`,
    /// `volts`, `watts`, `rpm`, `bool` or `days`. For an open counter, the unit of the counter; its values are per
    /// second.
    unit: String,
    kind: SeriesKindOut,
    /// A description for people. Null if the agent sends none.
    help: Option<String>,
}

/// How many values become one.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct SeriesKindOut(&'static str);

described!(SeriesKindOut, json!({ "type": "string", "enum": SeriesKind::ALL.map(SeriesKind::as_str) }));

impl SeriesNameOut {
    fn new(SeriesName { name, unit, kind, is_open }: SeriesName, open: &HashMap<String, String>) -> Self {
        let base = name.split_once(':').map_or(name.as_str(), |(base, _)| base);
        let help =
            if is_open { open.get(base).cloned() } else { metric::find_series(base).map(|it| it.help.to_owned()) };
        Self { unit: unit.into_owned(), kind: SeriesKindOut(kind.word()), help, name }
    }
}

/// The list, serialized part by part.
pub struct NameList(NamesOut);

impl Responder for NameList {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response.content_type("application/json");
        // A short list is sent in one piece, with its length.
        if self.0.names.len() <= AT_ONCE {
            return response.json(self.0);
        }
        response.streaming(stream::iter(chunks(self.0).map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk)))))
    }
}

fn chunks(list: NamesOut) -> impl Iterator<Item = Vec<u8>> {
    let (mut names, mut is_first) = (list.names.into_iter(), true);
    let parts = std::iter::from_fn(move || {
        let mut out = Vec::new();
        for name in names.by_ref().take(AT_ONCE) {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            // Writing text to memory does not fail.
            _ = serde_json::to_writer(&mut out, &name);
        }
        (!out.is_empty()).then_some(out)
    });
    let end = format!("],\"truncated\":{}}}", list.truncated);
    std::iter::once(b"{\"names\":[".to_vec()).chain(parts).chain(std::iter::once(end.into_bytes()))
}

impl paperclip::v2::schema::Apiv2Schema for NameList {}

impl OperationModifier for NameList {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<NamesOut> as OperationModifier>::update_response(op);
    }

    fn update_definitions(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        <actix_web::web::Json<NamesOut> as OperationModifier>::update_definitions(map);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_parts_is_the_list() {
        for count in [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE] {
            let name = |number| SeriesNameOut {
                name: format!("temperature:\"{number}\""),
                unit: "celsius".to_owned(),
                kind: SeriesKindOut("gauge"),
                help: (number % 2 == 0).then(|| "What a sensor measures.".to_owned()),
            };
            let list = || NamesOut { names: (0..count).map(name).collect(), truncated: count > 1 };

            let written = chunks(list()).flatten().collect::<Vec<u8>>();

            assert_eq!(String::from_utf8(written).unwrap(), serde_json::to_string(&list()).unwrap(), "{count}");
        }
    }
}
