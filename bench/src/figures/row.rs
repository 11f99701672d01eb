//! Every row of the table: the scenario that measures it, its name and its aim.
//!
//! Aims are only here. `bench/README.md` says how each row is measured.

use serde::{Deserialize, Serialize};

use crate::report::Aim;
use crate::report::Aim::{AtLeast, AtMost, Below};

/// The direction in which a figure improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Lower,
    Higher,
}

/// What is known of a row before the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Its name in files.
    pub id: &'static str,
    /// The name in `bench/run` of the scenario that measures it.
    pub scenario: &'static str,
    pub text: &'static str,
    pub unit: &'static str,
    pub better: Better,
    /// None: it is only shown.
    pub aim: Option<Aim>,
}

macro_rules! rows {
    ($($row:ident, $id:literal, $scenario:literal, $better:ident, $aim:expr, $text:literal, $unit:literal;)*) => {
        /// A row of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Row {
            $($row,)*
        }

        impl Row {
            /// In the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$row,)*];

            pub fn facts(self) -> Facts {
                match self {
                    $(Self::$row => Facts {
                        id: $id,
                        scenario: $scenario,
                        text: $text,
                        unit: $unit,
                        better: Better::$better,
                        aim: $aim,
                    },)*
                }
            }
        }
    };
}

rows! {
    SteadyCpu, "steady-cpu", "steady", Lower, Some(AtMost(10.0)), "10,000 agents at 5 s, recorded: CPU", "% of a core";
    SteadyRss, "steady-rss", "steady", Lower, Some(AtMost(250.0)), "10,000 agents at 5 s, recorded: RSS", "MB";
    SteadyDashboard, "steady-dashboard", "steady", Lower, Some(Below(20.0)), "the same, sample to dashboard p99", "ms";
    IdleConnection, "idle-connection", "idle", Lower, Some(AtMost(12.0)), "idle agent connection", "KB";
    IdleGivenBack, "idle-given-back", "idle", Higher, Some(AtLeast(80.0)),
        "memory given back 30 s after 10,000 agents left", "% of what it grew by";
    Burst, "burst", "burst", Higher, Some(AtLeast(150_000.0)), "burst, samples acknowledged", "a second and core";
    IngestPerCore, "ingest-per-core", "ingest", Higher, Some(AtLeast(500_000.0)),
        "values made durable while agents catch up", "a second and core";
    IngestFlat, "ingest-flat", "ingest", Lower, Some(AtMost(1.1)),
        "CPU a sample at 10,000 servers, by that at 100", "times";
    Fanout500, "fanout-500x10", "fanout", Lower, Some(AtMost(7.0)),
        "fan-out to 500 dashboards, 10 samples/s", "CPU s per million";
    Fanout100, "fanout-100x200", "fanout", Lower, Some(AtMost(4.0)),
        "fan-out to 100 dashboards, 200 samples/s", "CPU s per million";
    RestOfHello, "rest-of-hello", "rest", Higher, Some(AtLeast(70.0)), "`GET /metrics/{id}`", "% of hello";
    RestRequests, "rest-requests", "rest", Higher, None, "`GET /metrics/{id}`", "requests/s";
    CommandP50BySh, "command-p50-by-sh", "command", Lower, Some(AtMost(2.0)),
        "`true` over REST, p50, by that of `sh -c true`", "times";
    CommandP99BySh, "command-p99-by-sh", "command", Lower, Some(AtMost(1.5)),
        "`true` over REST, p99, by that of `sh -c true`", "times";
    CommandP50, "command-p50", "command", Lower, None, "`true` over REST, p50", "ms";
    CommandP99, "command-p99", "command", Lower, None, "`true` over REST, p99", "ms";
    ShP50, "sh-p50", "command", Lower, None, "`sh -c true` in the same run, p50", "ms";
    ShP99, "sh-p99", "command", Lower, None, "`sh -c true` in the same run, p99", "ms";
    SignedByUnsigned, "signed-by-unsigned", "signed", Lower, None,
        "a signed `true` over REST, p50, by that of an unsigned one", "times";
    SignedProgramBySsh, "signed-program-by-ssh", "signed", Lower, None,
        "`signalboxctl exec --sign`, p50, by that of `ssh` with the same key", "times";
    FleetCommand, "fleet-command", "fleet-command", Lower, Some(Below(2.0)),
        "one command on 1,000 agents, all succeeded", "s";
    HistorySeriesDay, "history-series-day", "history", Lower, Some(AtMost(1.13)),
        "one series, a day in minutes, 50 servers, p50 warm", "ms";
    HistorySeriesDayFed, "history-series-day-fed", "history", Lower, Some(AtMost(1.3)),
        "the same while samples come in", "ms";
    HistoryAllDay, "history-all-day", "history", Lower, Some(AtMost(10.0)),
        "every series, a day at 1,000 points, p99 warm", "ms";
    HistorySeriesYear, "history-series-year", "history", Lower, Some(AtMost(20.0)),
        "one series, a year at 1,000 points, p99 warm", "ms";
    HistoryAllYear, "history-all-year", "history", Lower, Some(AtMost(20.0)),
        "every series, a year at 1,000 points, p99 warm", "ms";
    HistoryRaw, "history-raw", "history", Lower, Some(AtMost(0.6)), "raw samples of a week", "bytes a value";
    HistoryBytes, "history-bytes", "history", Lower, Some(AtMost(0.997)),
        "everything on disk of a week", "bytes a value";
    StormKill, "storm-kill", "storm", Lower, Some(AtMost(10.0)), "5,000 agents back after kill -9", "s";
    StormTerminate, "storm-terminate", "storm", Lower, Some(AtMost(10.0)), "5,000 agents back after SIGTERM", "s";
    AgentCpu, "agent-cpu", "agents", Lower, Some(AtMost(0.5)), "real agent at 5 s: CPU", "s/hour";
    AgentRss, "agent-rss", "agents", Lower, Some(AtMost(5.0)), "real agent at 5 s: RSS", "MB";
    ContainersAgent, "containers-agent", "containers", Lower, Some(AtMost(2.0)),
        "real agent at 5 s with 10 containers: CPU", "s/hour";
    ContainersEngine, "containers-engine", "containers", Lower, Some(AtMost(1.0)),
        "engine beyond idle with 10 containers: CPU", "s/hour";
    PostgresInstance, "postgres-instance", "instances", Lower, Some(AtMost(0.0575)),
        "on PostgreSQL, 1,000 samples of a fleet at 5 s: CPU of the instance", "s";
    PostgresDatabase, "postgres-database", "instances", Lower, Some(AtMost(0.075)),
        "on PostgreSQL, 1,000 samples of a fleet at 5 s: CPU of the database", "s";
    InstancesTwo, "instances-two", "instances", Higher, None, "samples/s of two instances, by those of one", "times";
    InstancesThree, "instances-three", "instances", Higher, None,
        "samples/s of three instances, by those of one", "times";
    AcrossCommand, "across-command", "across", Lower, Some(AtMost(0.5)),
        "a command through another instance, real agent, p50 added", "ms";
    AcrossCommandP99, "across-command-p99", "across", Lower, None, "the same, p99 added", "ms";
    AcrossContainers, "across-containers", "across", Lower, Some(AtMost(1.0)),
        "a list of containers through another instance, p50 added", "ms";
    AcrossUnwatched, "across-unwatched", "across", Lower, Some(Below(1.0)),
        "over NATS for a sample that nobody watches", "bytes";
    AcrossKill, "across-kill", "across", Lower, Some(AtMost(10.0)),
        "kill -9 of an instance: its agents acknowledged at others", "s";
    InterfaceCards, "interface-cards", "interface", Lower, Some(AtMost(4.0)),
        "interface, main thread for an update of 200 servers: cards", "ms";
    InterfaceTable, "interface-table", "interface", Lower, Some(AtMost(4.0)),
        "interface, main thread for an update of 200 servers: table", "ms";
    InterfaceWall, "interface-wall", "interface", Lower, Some(AtMost(4.0)),
        "interface, main thread for an update of 200 servers: wall", "ms";
    AlertBurstSocket, "alert-burst-socket", "alert-burst", Lower, Some(AtMost(2.0)),
        "1,000 servers cross within a second: last alert on the socket", "s";
    AlertBurstWebhook, "alert-burst-webhook", "alert-burst", Lower, Some(AtMost(2.0)),
        "1,000 servers cross within a second: last message", "s";
    AlertBurstMessages, "alert-burst-messages", "alert-burst", Lower, Some(AtMost(3.0)),
        "1,000 servers cross within a second", "messages";
    AlertServer, "alert-server", "alert", Lower, Some(AtMost(10.0)),
        "crossing sample to alert at `/ws/metrics/{id}`, p99", "ms";
    AlertAll, "alert-all", "alert", Lower, Some(AtMost(10.0)), "crossing sample to alert at `/ws/alerts`, p99", "ms";
    AlertWebhook, "alert-webhook", "alert", Lower, Some(AtMost(50.0)), "crossing sample to a webhook, p99", "ms";
    ThresholdsCost, "thresholds-cost", "thresholds", Lower, Some(AtMost(5.0)),
        "a threshold on each of 10,000 servers: CPU a sample", "µs";
    ThresholdsMemory, "thresholds-memory", "thresholds", Lower, None, "ten thresholds on a server: memory", "KB";
    LogsLines, "logs-lines", "logs", Higher, None, "log lines from one agent to each of 10 dashboards", "lines/s";
    LogsFollowed, "logs-followed", "logs", Lower, Some(AtMost(50.0)),
        "sample to dashboard p99 while a log is followed", "ms";
    LogsFlooded, "logs-flooded", "logs", Lower, Some(AtMost(50.0)),
        "sample to dashboard p99 while a log floods", "ms";
    MachineHello, "machine-hello", "machine", Higher, None, "hello, the machine's yardstick", "requests/s";
}

impl Row {
    /// The row of this name in files.
    pub fn named(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|row| row.facts().id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_by_its_name_alone() {
        for row in Row::ALL {
            assert_eq!(Row::named(row.facts().id), Some(*row));
        }
        assert_eq!(Row::named("steady"), None);
    }

    #[test]
    fn an_aim_is_on_the_side_that_is_better() {
        for row in Row::ALL {
            let Facts { id, better, aim, .. } = row.facts();
            match aim {
                Some(AtLeast(_)) => assert_eq!(better, Better::Higher, "{id}"),
                Some(AtMost(_) | Below(_)) => assert_eq!(better, Better::Lower, "{id}"),
                None => {}
            }
        }
    }

    #[test]
    fn the_readme_explains_every_row() {
        const README: &str = include_str!("../../README.md");

        let missing: Vec<&str> =
            Row::ALL.iter().map(|row| row.facts().id).filter(|id| !README.contains(&format!("`{id}`"))).collect();

        assert!(missing.is_empty(), "bench/README.md says nothing of {missing:?}");
    }
}
