//! The history of series of a server.

use chrono::{DateTime, SecondsFormat};
use clap::Args;
use serde_json::Value;
use signalbox_protocol::Timestamp;

use super::Call;
use crate::api::parsed;
use crate::api::types::{Columns, Series, SeriesName, SeriesNames, Server};
use crate::error::Failure;
use crate::output::table::{Cell, Table};
use crate::output::text::{clean, value_in};
use crate::output::time::{age, parse_moment};
use crate::output::{self, Format, spark};

/// Show the history of metrics, or list their names
///
/// In a terminal as a sparkline with minimum, mean, maximum and the last value. For programs use --output csv or json.
#[derive(Debug, Args)]
pub struct Metrics {
    /// Name or id of the server
    #[arg(value_name = "SERVER")]
    server: String,
    /// Names of series, such as cpu_percent or disk_percent:/ (none: list them)
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The beginning: a duration ago such as 1d, or a time
    #[arg(long, value_name = "TIME", value_parser = parse_moment, default_value = "1h")]
    since: Timestamp,
    /// The end; defaults to now
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<Timestamp>,
    /// At most this many points
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    points: u32,
    /// Without NAME: only names with this text
    #[arg(short, long, value_name = "TEXT", conflicts_with = "names")]
    query: Option<String>,
}

/// More lines of sparks are not for people, and the address of a request is bounded.
const MAX_NAMES: usize = 50;
const SPARK_COLUMNS: usize = 60;

impl Metrics {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        if self.names.len() > MAX_NAMES {
            return Err(Failure::usage(format!("at most {MAX_NAMES} series at a time")));
        }
        let server = call.api.server(&self.server).await?;
        if self.names.is_empty() { self.list(call, &server).await } else { self.show(call, &server).await }
    }

    fn range(&self) -> Vec<(&'static str, String)> {
        let mut range = vec![("start", self.since.to_string())];
        range.extend(self.until.map(|until| ("end", until.to_string())));
        range
    }

    async fn list(&self, call: &Call, server: &Server) -> Result<(), Failure> {
        let mut query = self.range();
        query.extend(self.query.clone().map(|text| ("q", text)));
        let answer = call.api.get(&format!("/metrics/{}/names", server.id), &query).await?;
        let values: Vec<Value> = answer.get("names").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut table = Table::new(["NAME", "UNIT", "HELP"]);
        for value in &values {
            let series: SeriesName = parsed(value.clone())?;
            table.row([series.name.into(), series.unit.into(), series.help.unwrap_or_default().into()]);
        }
        call.out.list(&table, &values)?;
        if answer.get("truncated") == Some(&Value::Bool(true)) {
            output::complain("there are more: choose with --query");
        }
        Ok(())
    }

    async fn show(&self, call: &Call, server: &Server) -> Result<(), Failure> {
        let mut query = self.range();
        // Each alone: a name may have commas.
        query.extend(self.names.iter().map(|name| ("names", name.clone())));
        query.push(("max_points", self.points.to_string()));
        let value = call.api.get(&format!("/metrics/{}/series", server.id), &query).await?;
        let series: Series = parsed(value.clone())?;
        for name in &self.names {
            if !series.series.contains_key(name) {
                return Err(self.unknown(call, server, name).await?);
            }
        }
        match call.out.format {
            Format::Json => call.out.json(&value),
            Format::Csv => call.out.list(&self.rows(&series), &[]),
            Format::Table => self.sparks(call, server, &series).await,
        }
    }

    /// Names that are similar, because those of disks and interfaces are hard to guess.
    async fn unknown(&self, call: &Call, server: &Server, name: &str) -> Result<Failure, Failure> {
        let stem: String = name.split(':').next().unwrap_or_default().chars().take(200).collect();
        let query = [("q", stem), ("limit", "8".to_owned())];
        let similar: SeriesNames = parsed(call.api.get(&format!("/metrics/{}/names", server.id), &query).await?)?;
        let names: Vec<String> = similar.names.iter().map(|series| clean(&series.name)).collect();
        let advice = if names.iter().any(|similar| similar == name) {
            "it has values at another time: see --since".to_owned()
        } else if names.is_empty() {
            format!("`signalboxctl metrics {}` lists all", self.server)
        } else {
            format!("there is {}{}", names.join(", "), if similar.truncated { ", ..." } else { "" })
        };
        Ok(Failure::failed(format!("{} has no series {name:?} in this time: {advice}", clean(&server.name))))
    }

    /// One row a point and series.
    fn rows(&self, series: &Series) -> Table {
        let mut table = Table::new(["TIME", "SERIES", "MEAN", "MIN", "MAX"]);
        for name in &self.names {
            let Some(columns) = series.series.get(name) else { continue };
            let values = columns.avg.iter().zip(&columns.min).zip(&columns.max);
            for (timestamp, ((mean, min), max)) in series.timestamps.iter().zip(values) {
                // A gap has no row.
                if let (Some(mean), Some(min), Some(max)) = (mean, min, max) {
                    let time = DateTime::from_timestamp(*timestamp, 0).unwrap_or_default();
                    let number = |value: &f64| Cell::number(value.to_string());
                    let time = time.to_rfc3339_opts(SecondsFormat::Secs, true);
                    table.row([time.into(), name.as_str().into(), number(mean), number(min), number(max)]);
                }
            }
        }
        table
    }

    async fn sparks(&self, call: &Call, server: &Server, series: &Series) -> Result<(), Failure> {
        let mut table = Table::new(["SERIES", "MIN", "MEAN", "MAX", "LAST", ""]);
        for name in &self.names {
            let Some(columns) = series.series.get(name) else { continue };
            let unit = unit_of(call, server, name).await?;
            let text =
                |value: Option<f64>| Cell::number(value.map_or_else(|| "-".to_owned(), |value| value_in(value, &unit)));
            let (min, mean, max, last) = summary(columns);
            let line = if call.out.is_terminal { spark::line(&columns.avg, SPARK_COLUMNS) } else { String::new() };
            table.row([name.as_str().into(), text(min), text(mean), text(max), text(last), line.into()]);
        }
        call.out.list(&table, &[])?;
        if call.out.is_terminal {
            output::note(&format!("one point every {}", age(series.resolution_seconds)));
        }
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss)]
fn summary(columns: &Columns) -> (Option<f64>, Option<f64>, Option<f64>, Option<f64>) {
    let known: Vec<f64> = columns.avg.iter().flatten().copied().collect();
    let mean = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
    let min = columns.min.iter().flatten().copied().reduce(f64::min);
    let max = columns.max.iter().flatten().copied().reduce(f64::max);
    (min, mean, max, known.last().copied())
}

/// For a counter the API names the unit of the counter, and its values are per second.
async fn unit_of(call: &Call, server: &Server, name: &str) -> Result<String, Failure> {
    let query = [("q", name.chars().take(200).collect())];
    let answer = call.api.get(&format!("/metrics/{}/names", server.id), &query).await?;
    let names: SeriesNames = parsed(answer)?;
    let Some(found) = names.names.into_iter().find(|series| series.name == name) else { return Ok(String::new()) };
    let is_counter = found.kind == "counter";
    Ok(match found.unit.as_str() {
        "bytes" if is_counter => "bytes_per_second".to_owned(),
        "count" if is_counter => "per_second".to_owned(),
        unit => unit.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_leaves_gaps_out() {
        let columns = Columns {
            avg: vec![Some(1.0), None, Some(3.0)],
            min: vec![Some(0.5), None, Some(2.0)],
            max: vec![Some(1.5), None, Some(9.0)],
        };
        let nothing = Columns { avg: vec![None], min: vec![None], max: vec![None] };

        assert_eq!(summary(&columns), (Some(0.5), Some(2.0), Some(9.0), Some(3.0)));
        assert_eq!(summary(&nothing), (None, None, None, None));
    }
}
