//! Every metric, from the sample to the step, at and next to every bound.

use signalbox_protocol::sample::{DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};

use super::super::*;
use crate::alert_words::MetricType;
use crate::alerts::measurement::{PreviousSample, read};

const LIMIT: f64 = 50.0;
const CLEAR_BY: f64 = 10.0;
/// The precision of a rate over five seconds.
const A_LITTLE: f64 = 0.2;

/// Which of just under, equal and just over the threshold crosses.
const CROSSES: [(Comparison, [bool; 3]); 4] = [
    (Comparison::Gt, [false, false, true]),
    (Comparison::Gte, [false, true, true]),
    (Comparison::Lt, [true, false, false]),
    (Comparison::Lte, [true, true, false]),
];

/// A server that measures one thing, and the rule on it.
struct Server {
    metric: MetricType,
    rule: Rule,
    state: State,
    at: i64,
    bytes: u64,
    before: Option<(Sample, i64)>,
}

impl Server {
    /// Has measured once, so that the next sample has a rate.
    fn new(metric: MetricType, rule: Rule) -> Self {
        let mut server = Self { metric, rule, state: State::default(), at: 0, bytes: 1_000_000, before: None };
        server.read(5, 0.0);
        server
    }

    fn sample(&self, value: f64) -> Sample {
        let disk = DiskUsage { path: "/".into(), total: 1, percent: value, ..DiskUsage::default() };
        let network =
            NetworkUsage { interface: "eth0".into(), bytes_sent: self.bytes, bytes_recv: self.bytes, in_total: None };
        Sample {
            timestamp: Timestamp::from_millis(self.at),
            cpu_percent: value,
            memory_percent: value,
            swap_total: 10_000,
            swap_used: (value * 100.0).round() as u64,
            load_average: [value, 0.0, 0.0],
            disk_usage: vec![disk],
            network: vec![network],
            temperatures: vec![Temperature { label: "core".into(), celsius: value }],
            ..Sample::default()
        }
    }

    fn read(&mut self, seconds: i64, value: f64) -> Option<f64> {
        self.at += seconds * 1000;
        self.bytes += (value * seconds as f64).round() as u64;
        let now = self.sample(value);
        let before =
            self.before.as_ref().map(|(sample, elapsed_ms)| PreviousSample { sample, elapsed_ms: *elapsed_ms });
        let reading = match self.metric {
            MetricType::Offline | MetricType::ContainerState | MetricType::Reboot | MetricType::Series => Some(value),
            metric => read(metric, None, self.rule.comparison, &now, before).map(|reading| reading.value),
        };
        self.before = Some((now, seconds * 1000));
        reading
    }

    /// Measures a value this many seconds later.
    fn measures(&mut self, seconds: i64, value: f64) -> Step {
        match self.read(seconds, value) {
            Some(value) => self.state.live(&self.rule, self.at, value),
            None => Step::Nothing,
        }
    }
}

/// Runs the test for every metric and comparison, with values on either side of the threshold.
fn for_every(clear: bool, duration_s: i64, test: impl Fn(Server, &dyn Fn(f64) -> f64)) {
    for metric in MetricType::ALL {
        for (comparison, _) in CROSSES {
            let worse = if comparison.is_upper() { 1.0 } else { -1.0 };
            let clear = clear.then_some(LIMIT - worse * CLEAR_BY);
            let rule = Rule { comparison, threshold: LIMIT, clear, duration_ms: duration_s * 1000 };
            test(Server::new(*metric, rule), &|by| LIMIT + worse * by);
        }
    }
}

fn fires_at_once(server: &Server) -> Step {
    Step::Fires { since: server.at }
}

#[test]
fn the_comparison_decides_whether_the_threshold_itself_crosses() {
    for metric in MetricType::ALL {
        for (comparison, crosses) in CROSSES {
            for (by, crosses) in [-A_LITTLE, 0.0, A_LITTLE].into_iter().zip(crosses) {
                for clear in [None, Some(LIMIT)] {
                    let rule = Rule { comparison, threshold: LIMIT, clear, duration_ms: 0 };
                    let mut server = Server::new(*metric, rule);

                    let step = server.measures(5, LIMIT + by);

                    let expected = if crosses { fires_at_once(&server) } else { Step::Nothing };
                    assert_eq!(step, expected, "{metric:?} {comparison:?} {by}");
                }
            }
        }
    }
}

#[test]
fn without_a_clear_value_it_recovers_when_it_does_not_cross() {
    for metric in MetricType::ALL {
        for (comparison, crosses) in CROSSES {
            for (by, crosses) in [-A_LITTLE, 0.0, A_LITTLE].into_iter().zip(crosses) {
                let rule = Rule { comparison, threshold: LIMIT, clear: None, duration_ms: 0 };
                let mut server = Server::new(*metric, rule);
                let worse = if comparison.is_upper() { 20.0 } else { -20.0 };
                server.measures(5, LIMIT + worse);

                let step = server.measures(5, LIMIT + by);

                let expected = if crosses { Step::GoesOn } else { Step::Recovers };
                assert_eq!(step, expected, "{metric:?} {comparison:?} {by}");
            }
        }
    }
}

#[test]
fn with_a_clear_value_it_recovers_at_that_value() {
    for_every(true, 0, |mut server, worse| {
        let (metric, comparison) = (server.metric, server.rule.comparison);
        server.measures(5, worse(20.0));

        let steps = [0.0, A_LITTLE - CLEAR_BY, -CLEAR_BY, -CLEAR_BY - A_LITTLE].map(|by| {
            let mut server = Server { before: server.before.clone(), state: server.state.clone(), ..server };
            server.measures(5, worse(by))
        });

        let at_clear = match comparison {
            Comparison::Gt | Comparison::Lt => Step::Recovers,
            Comparison::Gte | Comparison::Lte => Step::GoesOn,
        };
        assert_eq!(steps, [Step::GoesOn, Step::GoesOn, at_clear, Step::Recovers], "{metric:?} {comparison:?}");
    });
}

#[test]
fn a_value_between_threshold_and_clear_value_does_not_fire() {
    for_every(true, 0, |mut server, worse| {
        server.measures(5, worse(20.0));
        server.measures(5, worse(-20.0));

        assert_eq!(server.measures(5, worse(-A_LITTLE)), Step::Nothing);
        assert!(matches!(server.measures(5, worse(A_LITTLE)), Step::Fires { .. }));
    });
}

#[test]
fn it_fires_after_the_duration_and_not_before() {
    for clear in [false, true] {
        for_every(clear, 60, |mut server, worse| {
            let since = server.at + 5_000;
            for _ in 0..12 {
                assert_eq!(server.measures(5, worse(A_LITTLE)), Step::Nothing);
            }

            assert_eq!(server.measures(5, worse(A_LITTLE)), Step::Fires { since }, "{:?}", server.metric);
        });
    }
}

#[test]
fn one_sample_that_does_not_cross_restarts_the_duration() {
    for clear in [false, true] {
        for_every(clear, 60, |mut server, worse| {
            for by in [[20.0; 12], [-A_LITTLE; 12]].concat().into_iter().take(13) {
                assert_eq!(server.measures(5, worse(by)), Step::Nothing);
            }

            let since = server.at + 5_000;
            for _ in 0..12 {
                assert_eq!(server.measures(5, worse(20.0)), Step::Nothing);
            }
            assert_eq!(server.measures(5, worse(20.0)), Step::Fires { since });
        });
    }
}

#[test]
fn a_gap_restarts_the_duration() {
    for clear in [false, true] {
        for_every(clear, 60, |mut server, worse| {
            for _ in 0..12 {
                assert_eq!(server.measures(5, worse(20.0)), Step::Nothing);
            }

            // The second sample after the gap is the first with a rate.
            let is_rate = matches!(server.metric, MetricType::NetworkIn | MetricType::NetworkOut);
            assert_eq!(server.measures(301, worse(20.0)), Step::Nothing);
            let since = if is_rate { server.at + 5_000 } else { server.at };
            for _ in 0..if is_rate { 12 } else { 11 } {
                assert_eq!(server.measures(5, worse(20.0)), Step::Nothing);
            }
            assert_eq!(server.measures(5, worse(20.0)), Step::Fires { since }, "{:?}", server.metric);
        });
    }
}

#[test]
fn a_gap_is_not_a_recovery() {
    for_every(false, 0, |mut server, worse| {
        server.measures(5, worse(20.0));
        server.measures(100_000, worse(20.0));

        assert_eq!(server.measures(5, worse(20.0)), Step::GoesOn);
    });
}

#[test]
fn a_counter_reset_has_no_value() {
    for_every(false, 10, |mut server, worse| {
        if !matches!(server.metric, MetricType::NetworkIn | MetricType::NetworkOut) {
            return;
        }
        let since = server.at + 5_000;
        assert_eq!(server.measures(5, worse(20.0)), Step::Nothing);
        server.bytes = 0;

        assert_eq!(server.measures(5, worse(-20.0)), Step::Nothing, "neither crossing nor not");
        assert_eq!(server.measures(5, worse(20.0)), Step::Fires { since });

        server.bytes = 0;
        assert_eq!(server.measures(5, worse(-20.0)), Step::Nothing, "no recovery");
        assert_eq!(server.measures(5, worse(20.0)), Step::GoesOn);
    });
}
