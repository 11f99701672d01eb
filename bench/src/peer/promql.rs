//! The queries in the language of Prometheus, which VictoriaMetrics also speaks, and the comparison of the answers.

use std::collections::BTreeSet;

use anyhow::Context;
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use signalbox_protocol::Timestamp;

use crate::data::{Dataset, names, server_name, visit};
use crate::question::{Kind, Question};
use crate::store::{Checked, Fed};

/// The range before the end of the data that is compared value by value, and its series.
const COMPARED_SECONDS: i64 = 600;
const COMPARED_METRICS: [&str; 4] = ["cpu_percent", "load_15", "memory_used", "uptime_seconds"];
const COMPARED_SERVERS: usize = 3;

/// A request for a range, to which parameters may be added.
pub fn request(client: &Client, base: &str, question: &Question) -> RequestBuilder {
    let instance = server_name(question.server);
    let step = question.step_seconds();
    let (query, step) = match question.kind {
        Kind::OneSeries => (format!("avg_over_time(cpu_percent{{instance=\"{instance}\"}}[1m])"), 60),
        Kind::TenSeries => {
            let of = |metric: &str| format!("max_over_time({metric}{{instance=\"{instance}\"}}[1m])");
            (format!("{} or {}", of("cpu_core"), of("temperature")), 60)
        }
        // The newest value at each step: a mean over series of several metrics is impossible, because it drops their names and
        // then considers them equal.
        Kind::EverySeries | Kind::EverySeriesOverAll => (format!("{{instance=\"{instance}\"}}"), step),
        Kind::OneSeriesOverAll => (format!("avg_over_time(cpu_percent{{instance=\"{instance}\"}}[{step}s])"), step),
    };
    client.get(format!("{base}/api/v1/query_range")).query(&[
        ("query", query),
        ("start", question.start.as_seconds().to_string()),
        ("end", question.end.as_seconds().to_string()),
        ("step", step.to_string()),
    ])
}

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Found>,
}

/// One value or several, each with its time in seconds.
#[derive(Deserialize)]
struct Found {
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// Counts every sample of every metric, and compares some values and their times with the generator's.
pub async fn check(client: &Client, base: &str, data: &Dataset, fed: &Fed) -> anyhow::Result<Checked> {
    let mut checked = Checked::default();
    let of_each_series = fed.samples / data.servers as u64;
    let span = data.end().millis_since(fed.first) / 1000 + 1;
    let blank = data.machine(0).blank();
    let metrics: BTreeSet<&str> = names(&blank).iter().map(|name| name.metric).collect();
    for metric in metrics {
        let series = names(&blank).iter().filter(|name| name.metric == metric).count() as u64;
        let due = of_each_series * series * data.servers as u64;
        let query = format!("sum(count_over_time({metric}{{instance=~\"server-.*\"}}[{span}s]))");
        let found = instant(client, base, &query, data.end()).await?;
        let count = found.first().and_then(|found| found.value.as_ref()?.1.parse::<f64>().ok()).unwrap_or(0.0);
        checked.expect(count == due as f64, || format!("{metric}: {count} samples instead of {due}"));
    }
    for server in 0..COMPARED_SERVERS.min(data.servers) {
        compare(client, base, data, server, &mut checked).await?;
    }
    Ok(checked)
}

/// Compares the newest samples of a server to the bit.
async fn compare(
    client: &Client,
    base: &str,
    data: &Dataset,
    server: usize,
    checked: &mut Checked,
) -> anyhow::Result<()> {
    let since = data.end().plus_millis(-COMPARED_SECONDS * 1000);
    let mut machine = data.machine(server);
    let mut sample = machine.blank();
    let mut due: Vec<(&str, i64, f64)> = Vec::new();
    for _ in 0..data.samples {
        machine.fill(&mut sample);
        if sample.timestamp > since {
            let at = sample.timestamp.as_millis();
            visit(&sample, |metric, _, value| due.push((metric, at, value)));
        }
    }
    for metric in COMPARED_METRICS {
        let query = format!("{metric}{{instance=\"{}\"}}[{COMPARED_SECONDS}s]", server_name(server));
        let found = instant(client, base, &query, data.end()).await?;
        let values = found.into_iter().flat_map(|found| found.values);
        let stored: Vec<(i64, f64)> = values
            .map(|(at, value)| Ok(((at * 1000.0).round() as i64, value.parse::<f64>()?)))
            .filter(|point: &anyhow::Result<(i64, f64)>| point.as_ref().map_or(true, |(at, _)| *at > since.as_millis()))
            .collect::<anyhow::Result<_>>()?;
        let due: Vec<(i64, f64)> =
            due.iter().filter(|(name, ..)| *name == metric).map(|(_, at, value)| (*at, *value)).collect();
        checked.expect(stored.len() == due.len(), || {
            format!("{metric} of {}: {} values instead of {}", server_name(server), stored.len(), due.len())
        });
        for (stored, due) in stored.iter().zip(&due) {
            checked.expect(stored == due, || format!("{metric} of {}: {stored:?}, not {due:?}", server_name(server)));
        }
    }
    Ok(())
}

async fn instant(client: &Client, base: &str, query: &str, at: Timestamp) -> anyhow::Result<Vec<Found>> {
    let parameters = [("query", query.to_owned()), ("time", at.as_seconds().to_string())];
    let answer = client.get(format!("{base}/api/v1/query")).query(&parameters).send().await?;
    let status = answer.status();
    let body = answer.bytes().await?;
    anyhow::ensure!(status.is_success(), "{query} was answered with {status}: {}", String::from_utf8_lossy(&body));
    let answer: Answer = serde_json::from_slice(&body).with_context(|| format!("{query}: another shape"))?;
    Ok(answer.data.result)
}
