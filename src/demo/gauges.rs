//! The open series of simulated servers: what their programs would tell an agent. Pure.

use std::sync::Arc;

use signalbox_history::metric::{Kind, Series};
use signalbox_history::open::Open;
use signalbox_protocol::agent::AgentMessage;
use signalbox_protocol::series::{SeriesDescription, SeriesKind, Unit};

use super::cast::{Machine, Role};
use super::course::Course;
use super::noise::smooth;

/// An open series.
#[derive(Debug, Clone, Copy)]
pub struct Gauge {
    pub name: &'static str,
    pub unit: Unit,
    pub help: &'static str,
    /// The value at the quietest time, and by how much it rises with the load.
    range: (f64, f64),
    /// What errors add.
    errors: f64,
    /// Smaller values have decimals.
    is_whole: bool,
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str, range: (f64, f64)) -> Gauge {
    Gauge { name, unit, help, range, errors: 0.0, is_whole: false }
}

const REQUESTS: Gauge = gauge("http_requests", Unit::PerSecond, "Requests that were answered.", (22.0, 410.0));
const ERRORS: Gauge =
    Gauge { errors: 64.0, ..gauge("http_errors", Unit::PerSecond, "Requests that failed with a 5xx.", (0.02, 0.4)) };
const LATENCY: Gauge = Gauge {
    errors: 780.0,
    ..gauge("http_latency", Unit::Milliseconds, "The time in which 95 % of the requests were answered.", (34.0, 58.0))
};
const WEB: [Gauge; 3] = [REQUESTS, ERRORS, LATENCY];
const DATABASE: [Gauge; 2] = [
    Gauge { is_whole: true, ..gauge("postgres_connections", Unit::Count, "Open connections.", (18.0, 140.0)) },
    gauge("replication_lag", Unit::Seconds, "How far the replica is behind.", (0.02, 0.6)),
];
const QUEUE: [Gauge; 1] =
    [Gauge { is_whole: true, ..gauge("queue_depth", Unit::Count, "Messages that wait.", (2.0, 180.0)) }];
const CACHE: [Gauge; 1] = [gauge("cache_hits", Unit::Percent, "Reads that the cache answered.", (97.5, -6.0))];

/// The open series of a server.
pub fn gauges(machine: &Machine) -> &'static [Gauge] {
    match machine.role {
        Role::Web | Role::App | Role::Proxy => &WEB,
        Role::Database => &DATABASE,
        Role::Queue => &QUEUE,
        Role::Cache => &CACHE,
        Role::Logs
        | Role::Storage
        | Role::Backup
        | Role::Ci
        | Role::Mail
        | Role::Search
        | Role::Monitor
        | Role::Edge => &[],
    }
}

/// Their values at a time, by their ids.
pub fn values(course: Course, machine: &Machine, at_ms: i64) -> Vec<(u16, f64)> {
    let (load, has_errors) = course.demand(machine, at_ms);
    let value = |(id, gauge): (u16, &Gauge)| {
        let noise = 1.0 + 0.06 * smooth(machine.seed ^ u64::from(id + 80), at_ms as f64 / 1_000.0, 12.0);
        let (least, rise) = gauge.range;
        let value = (least + rise * load) * noise + if has_errors { gauge.errors * noise } else { 0.0 };
        let value = if gauge.unit == Unit::Percent { value.clamp(0.0, 100.0) } else { value };
        (id, if gauge.is_whole { value.round() } else { (value * 100.0).round() / 100.0 })
    };
    (0_u16..).zip(gauges(machine)).map(value).collect()
}

/// The message that describes them; none without any.
pub fn described(machine: &Machine) -> Option<AgentMessage> {
    let describe = |(id, gauge): (u16, &Gauge)| SeriesDescription {
        id,
        name: gauge.name.to_owned(),
        unit: gauge.unit,
        kind: SeriesKind::Gauge,
        target: None,
        help: gauge.help.to_owned(),
    };
    let series: Vec<_> = (0_u16..).zip(gauges(machine)).map(describe).collect();
    (!series.is_empty()).then_some(AgentMessage::Series { series })
}

/// The series as the history names them.
pub fn series(machine: &Machine) -> Vec<Arc<Series>> {
    let of = |gauge: &Gauge| Series {
        name: gauge.name.to_owned(),
        unit: gauge.unit.as_str().to_owned(),
        kind: Kind::Gauge,
        target: None,
    };
    gauges(machine).iter().map(|gauge| Arc::new(of(gauge))).collect()
}

/// The values of these series as the history stores them.
pub fn open(series: &[Arc<Series>], values: &[(u16, f64)]) -> Open {
    Open::new(series.iter().cloned().zip(values.iter().map(|(_, value)| *value)).collect())
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::series::is_series_name;

    use super::super::cast::fleet;
    use super::super::incidents::DEPLOYED;
    use super::*;

    const COURSE: Course = Course { began_ms: 1_800_000_000_000 };

    #[test]
    fn a_bad_release_shows_in_the_errors() {
        let fleet = fleet(1);
        let errors = |hours: f64| values(COURSE, &fleet[0], COURSE.at(hours).as_millis())[1].1;

        assert!(errors(DEPLOYED + 0.05) > 50.0);
        assert!(errors(DEPLOYED - 0.05) < 1.0);
    }

    #[test]
    fn every_series_can_be_described() {
        for machine in fleet(24) {
            assert!(gauges(&machine).iter().all(|gauge| is_series_name(gauge.name)));
            assert_eq!(described(&machine).is_some(), !gauges(&machine).is_empty());
            assert_eq!(series(&machine).len(), values(COURSE, &machine, COURSE.began_ms).len());
        }
    }
}
