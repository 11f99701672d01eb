//! What the processes hold at some moments of the run: medians of the minute before, because a single reading says little about
//! pools that grow and shrink.

use std::collections::{BTreeMap, VecDeque};

use super::note_growth;
use crate::fixture::Fixture;
use crate::process::{Memory, open_files, threads};
use crate::real_agent::RealAgent;
use crate::report::{Report, megabytes, rounded};

/// Readings of a minute, one per second.
const LOOKS: usize = 60;
/// The service's own gauges. Its tasks are in no metric of the runtime; their purposes are in these.
const GAUGES: &[&str] = &["signalbox_agents_connected", "signalbox_dashboards_connected"];
/// Every so many readings the service is asked for these.
const GAUGES_EVERY: usize = 10;

#[derive(Debug, Clone, Copy)]
struct ProcessUsage {
    rss: u64,
    files: usize,
    threads: usize,
}

impl ProcessUsage {
    fn of(pid: u32) -> anyhow::Result<Self> {
        Ok(Self { rss: Memory::of(pid)?.rss, files: open_files(pid)?, threads: threads(pid)? })
    }

    /// The median of each figure.
    fn median<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        Self {
            rss: median(all.clone().map(|held| held.rss)),
            files: median(all.clone().map(|held| held.files)),
            threads: median(all.map(|held| held.threads)),
        }
    }
}

fn median<T: Ord + Copy + Default>(all: impl Iterator<Item = T>) -> T {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// One reading.
#[derive(Debug)]
struct Look {
    service: ProcessUsage,
    /// The one that takes the most memory.
    agent: ProcessUsage,
}

/// The figures of one moment.
#[derive(Debug)]
struct UsageSnapshot {
    name: &'static str,
    service: ProcessUsage,
    agent: ProcessUsage,
    gauges: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Default)]
pub struct Figures {
    moments: Vec<UsageSnapshot>,
    looks: VecDeque<Look>,
    looked: usize,
    gauges: BTreeMap<&'static str, f64>,
    most_threads: usize,
}

impl Figures {
    pub async fn look(&mut self, fixture: &Fixture, agents: &[RealAgent]) -> anyhow::Result<()> {
        let service = ProcessUsage::of(fixture.service.pid())?;
        let agents = agents.iter().map(|agent| ProcessUsage::of(agent.pid())).collect::<anyhow::Result<Vec<_>>>()?;
        let Some(agent) = agents.into_iter().max_by_key(|agent| agent.rss) else { return Ok(()) };
        self.most_threads = self.most_threads.max(service.threads);
        self.looks.push_back(Look { service, agent });
        if self.looks.len() > LOOKS {
            self.looks.pop_front();
        }
        if self.looked.is_multiple_of(GAUGES_EVERY) {
            for name in GAUGES {
                // Right after a restart it may have no value yet.
                if let Ok(Some(value)) = fixture.rest.own_metric(name).await {
                    self.gauges.insert(name, value);
                }
            }
        }
        self.looked += 1;
        Ok(())
    }

    pub fn take(&mut self, name: &'static str) {
        self.moments.push(UsageSnapshot {
            name,
            service: ProcessUsage::median(self.looks.iter().map(|look| &look.service)),
            agent: ProcessUsage::median(self.looks.iter().map(|look| &look.agent)),
            gauges: self.gauges.clone(),
        });
    }

    pub fn note(&self, report: &mut Report, most_growth: f64) {
        for UsageSnapshot { name, service, agent, gauges } in &self.moments {
            report.note(
                format!("service at the {name}: RSS MB, files, threads"),
                format!("{}, {}, {}", rounded(megabytes(service.rss)), service.files, service.threads),
            );
            report.note(
                format!("largest real agent at the {name}: RSS MB, files, threads"),
                format!("{}, {}, {}", rounded(megabytes(agent.rss)), agent.files, agent.threads),
            );
            for (gauge, value) in gauges {
                report.note(format!("{gauge} at the {name}"), value);
            }
        }
        report.note("most threads of the service at any time", self.most_threads);
        let (Some(first), Some(last)) = (self.moments.first(), self.moments.last()) else { return };
        for (what, of) in OF_SERVICE {
            note_growth(report, what, of(&first.service), of(&last.service), most_growth);
        }
        note_growth(report, "RSS of the agent", first.agent.rss as f64, last.agent.rss as f64, most_growth);
        for gauge in GAUGES {
            let of = |moment: &UsageSnapshot| moment.gauges.get(gauge).copied().unwrap_or_default();
            note_growth(report, gauge, of(first), of(last), most_growth);
        }
    }
}

type Figure = fn(&ProcessUsage) -> f64;

const OF_SERVICE: [(&str, Figure); 3] = [
    ("RSS of the service", |held| held.rss as f64),
    ("open files of the service", |held| held.files as f64),
    ("threads of the service", |held| held.threads as f64),
];
