//! This machine as a source of samples. It reads every collector, and omits those that do not answer in time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use signalbox_protocol::sample::{MAX_LIST, Unread};
use signalbox_protocol::series::{SeriesDescription, UNREAD_LIST};
use signalbox_protocol::{Sample, Timestamp};

use super::Collector;
use super::battery::Battery;
use super::containers::Containers;
use super::cpu::Cpu;
use super::disk_io::DiskIo;
use super::disk_usage::{self, MountUsage};
use super::fans::Fans;
use super::kernel_limits::KernelLimits;
use super::live::LiveCollectors;
use super::load::Load;
use super::memory::Memory;
use super::mounts::{Mount, MountTable};
use super::network::Network;
use super::pressure::Pressure;
use super::processes::Processes;
use super::sockets::Sockets;
use super::temperature::{self, Temperature};
use super::top_processes::TopProcesses;
use super::worker::{Finished, Outcome, Stuck, Worker};
use super::zfs_arc::ZfsArc;
use crate::catalog::{Catalog, Values};
use crate::config::Config;
use crate::docker::RunningContainers;
use crate::policy::{DockerAccess, Switch};
use crate::source::Source;

/// Usage is the difference between two readings. Those of the first sample are this far apart, so that it is ready within a
/// second and still spans twenty clock ticks.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Collectors that hang for the first time each delay a sample by their deadline. After this many of them the others wait for
/// the next sample.
const STUCK_AT_ONCE: usize = 3;
/// Where more series than this cannot be read, they are not named one by one.
const MAX_UNREAD_SERIES: usize = 256;

pub struct Machine {
    deadline: Duration,
    mounts: MountTable,
    /// The mounts to show, with the names of their collectors.
    shown: Vec<(String, Mount)>,
    /// In the order of their turns: those that may hang come last.
    collectors: VecDeque<Box<dyn Collector>>,
    stuck: Vec<Stuck>,
    /// By collector, how many readings in a row took longer than the deadline.
    late: HashMap<String, u32>,
    worker: Option<Worker>,
    is_first: bool,
    catalog: Catalog,
    /// The open series of each collector's last reading.
    measured: HashMap<String, Vec<u16>>,
    live: LiveCollectors,
}

impl Machine {
    /// A source that reads below the configuration's roots what its policy allows; of containers, those in `running` at the
    /// time.
    pub fn new(config: &Config, running: RunningContainers) -> Self {
        let roots = &config.roots;
        let collectors: [Box<dyn Collector>; 13] = [
            Box::new(Cpu::new(roots)),
            Box::new(Memory::new(roots)),
            Box::new(Load::new(roots)),
            Box::new(Processes::new(roots)),
            Box::new(DiskIo::new(roots)),
            Box::new(Network::new(roots)),
            Box::new(Pressure::new(roots)),
            Box::new(Sockets::new(roots)),
            Box::new(KernelLimits::new(roots)),
            Box::new(ZfsArc::new(roots)),
            Box::new(Temperature::new(roots)),
            Box::new(Fans::new(roots)),
            Box::new(Battery::new(roots)),
        ];
        let mut collectors = VecDeque::from(collectors);
        if config.policy.processes == Switch::On {
            collectors.push_back(Box::new(TopProcesses::new(roots)));
        }
        let containers = (config.policy.docker.grade >= DockerAccess::Read).then_some(running);
        if let Some(running) = containers.clone() {
            collectors.push_back(Box::new(Containers::new(roots, running)));
        }
        let machine = Self::with_collectors(MountTable::new(roots), collectors, config.timing.collector);
        Self { live: LiveCollectors::new(roots, containers), ..machine }
    }

    fn with_collectors(mounts: MountTable, collectors: VecDeque<Box<dyn Collector>>, deadline: Duration) -> Self {
        Self {
            deadline,
            mounts,
            shown: Vec::new(),
            collectors,
            stuck: Vec::new(),
            late: HashMap::new(),
            worker: None,
            is_first: true,
            catalog: Catalog::default(),
            measured: HashMap::new(),
            live: LiveCollectors::default(),
        }
    }

    /// Reads every collector once and combines their results.
    async fn read(&mut self) -> Option<Sample> {
        self.follow_mounts();
        let mut ready = self.welcome_back();
        let mut sample = Sample { timestamp: Timestamp::now(), ..Sample::default() };
        let catalog = self.catalog.clone();
        let mut values = Values::new(&catalog);
        let (mut has_essentials, mut read) = (0, HashSet::new());
        let mut waiting = std::mem::take(&mut self.collectors);
        for _ in 0..STUCK_AT_ONCE {
            let outcome = self.read_on_lane(waiting).await;
            ready.extend(outcome.finished);
            for finished in ready.drain(..) {
                let is_essential = matches!(finished.collector.name(), "cpu" | "memory");
                let known = values.count();
                let is_filled = fill(&finished, &mut sample, &mut values);
                has_essentials += usize::from(is_essential && is_filled);
                if is_filled {
                    let name = finished.collector.name();
                    read.insert(name.to_owned());
                    self.note_measured(name, values.ids_behind(known));
                }
                self.collectors.push_back(finished.collector);
            }
            waiting = outcome.waiting;
            if waiting.is_empty() {
                break;
            }
        }
        self.collectors.append(&mut waiting);
        sample.values = values.finish();
        sample.disk_usage.sort_by(|one, other| one.path.cmp(&other.path));
        self.tell_unread(&read, &mut sample);
        // A sample must have the usage of processors and memory: zero would be wrong.
        (has_essentials == 2).then_some(sample)
    }

    /// Lists what exists and is missing in the sample: what hangs, failed or had no turn.
    fn tell_unread(&self, read: &HashSet<String>, sample: &mut Sample) {
        let mounts = self.shown.iter().filter(|(name, _)| !read.contains(name)).map(|(_, mount)| Unread {
            list: disk_usage::LIST.to_owned(),
            name: Some(mount.path.to_string_lossy().into_owned()),
        });
        let known = self.collectors.iter().map(|collector| collector.name());
        let known = known.chain(self.stuck.iter().map(|stuck| stuck.name.as_str()));
        let lists = known.filter(|name| !read.contains(*name)).filter_map(list_of);
        sample.unread.extend(mounts.chain(lists.map(|list| Unread { list: list.to_owned(), name: None })));
        sample.unread.extend(self.unread_series(read));
        sample.unread.truncate(MAX_LIST);
    }

    fn note_measured(&mut self, collector: &str, series: Vec<u16>) {
        match self.measured.get_mut(collector) {
            Some(known) => *known = series,
            None if series.is_empty() => {}
            None => _ = self.measured.insert(collector.to_owned(), series),
        }
    }

    /// The open series that collectors without an answer measured before: each one, or all together where they are many.
    fn unread_series(&self, read: &HashSet<String>) -> Vec<Unread> {
        let collectors = self.collectors.iter().map(|collector| collector.name());
        let missing = collectors.chain(self.stuck.iter().map(|stuck| stuck.name.as_str()));
        let missing = missing.filter(|name| !read.contains(*name)).filter_map(|name| self.measured.get(name));
        let ids: Vec<u16> = missing.flatten().copied().collect();
        let unread = |name| Unread { list: UNREAD_LIST.to_owned(), name };
        if ids.len() > MAX_UNREAD_SERIES {
            return vec![unread(None)];
        }
        let name = |series: SeriesDescription| match series.target {
            Some(target) => format!("{}:{target}", series.name),
            None => series.name,
        };
        self.catalog.describe(&ids).into_iter().map(|series| unread(Some(name(series)))).collect()
    }

    async fn read_on_lane(&mut self, collectors: VecDeque<Box<dyn Collector>>) -> Outcome {
        let mut outcome = self.read_on_worker(collectors).await;
        for finished in &outcome.finished {
            let name = finished.collector.name();
            if self.late.remove(name).is_some() {
                tracing::info!(collector.name = name, "a collector that hung is back");
            }
        }
        if let Some(stuck) = outcome.stuck.take() {
            let name = &stuck.name;
            let late = self.late.entry(name.clone()).or_default();
            *late += 1;
            match *late {
                1 => tracing::warn!(collector.name = name, "a collector hangs: its part is left out until it is back"),
                2 => tracing::warn!(collector.name = name, "a collector is slow: its part is not in every sample"),
                _ => {}
            }
            self.stuck.push(stuck);
        }
        outcome
    }

    /// One round, on the thread of the round before unless that hangs.
    async fn read_on_worker(&mut self, collectors: VecDeque<Box<dyn Collector>>) -> Outcome {
        let worker = match self.worker.take().map_or_else(Worker::start, Ok) {
            Ok(worker) => worker,
            Err(error) => {
                tracing::warn!(%error, "cannot start the collectors' thread");
                return Outcome { finished: Vec::new(), waiting: collectors, stuck: None };
            }
        };
        let outcome = worker.read(collectors, self.deadline).await;
        if outcome.stuck.is_none() && outcome.waiting.is_empty() {
            self.worker = Some(worker);
        }
        outcome
    }

    /// Takes back the collectors that hung, to be read again. Returns those that were late before, too: they would be late again,
    /// and what they have read since the last sample is the newest that there is.
    fn welcome_back(&mut self) -> Vec<Finished> {
        let mut slow = Vec::new();
        let Self { stuck, late, collectors, shown, .. } = self;
        stuck.retain(|stuck| {
            let Some(finished) = stuck.returned() else { return true };
            if is_gone(&stuck.name, shown) {
                return false;
            }
            match late.get(&stuck.name) {
                Some(2..) => slow.push(finished),
                _ => collectors.push_back(finished.collector),
            }
            false
        });
        slow
    }

    /// Adds collectors for new mounts and removes those of missing mounts.
    fn follow_mounts(&mut self) {
        match self.mounts.changed() {
            Ok(Some(mounts)) => {
                self.shown = mounts.into_iter().map(|mount| (MountUsage::name_of(&mount), mount)).collect();
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "cannot read the mount table"),
        }
        let shown = &self.shown;
        self.measured.retain(|name, _| !is_gone(name, shown));
        self.late.retain(|name, _| !is_gone(name, shown));
        self.collectors.retain(|collector| !is_gone(collector.name(), shown));
        for (name, mount) in shown {
            let is_known = self.collectors.iter().any(|collector| collector.name() == name)
                || self.stuck.iter().any(|stuck| stuck.name == *name);
            if !is_known {
                self.collectors.push_back(Box::new(MountUsage::new(mount)));
            }
        }
    }
}

impl Source for Machine {
    async fn sample(&mut self) -> Option<Sample> {
        if std::mem::take(&mut self.is_first) {
            let started = Instant::now();
            self.read().await;
            tokio::time::sleep(FIRST_PAUSE.saturating_sub(started.elapsed())).await;
        }
        self.read().await
    }

    async fn live(&mut self, latest: &Sample) -> Option<Sample> {
        let collectors = self.live.take();
        let outcome = self.read_on_worker(collectors).await;
        self.live.finish(outcome, latest, &self.catalog)
    }

    fn catalog(&self) -> Catalog {
        self.catalog.clone()
    }
}

/// Whether this is the collector of a mount that is not shown.
fn is_gone(collector: &str, shown: &[(String, Mount)]) -> bool {
    collector.starts_with(disk_usage::LIST) && !shown.iter().any(|(name, _)| name == collector)
}

/// The list of a sample that one collector fills alone, for lists whose entries have alerts that wait for their return.
fn list_of(collector: &str) -> Option<&'static str> {
    match collector {
        "network" => Some("network"),
        "temperature" => Some(temperature::LIST),
        _ => None,
    }
}

/// Returns whether there was anything to fill in.
fn fill(finished: &Finished, sample: &mut Sample, values: &mut Values<'_>) -> bool {
    match &finished.outcome {
        Ok(()) => {
            finished.collector.fill(sample);
            finished.collector.values(values);
            true
        }
        Err(error) => {
            tracing::debug!(%error, collector.name = finished.collector.name(), "a collector failed");
            false
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
