//! This machine as a source of samples: asks every collector, and leaves out what did not answer in time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use signalbox_protocol::{Sample, Timestamp};

use super::Collector;
use super::containers::Containers;
use super::cpu::Cpu;
use super::disk_io::DiskIo;
use super::disk_usage::MountUsage;
use super::lane::{Finished, Lane, Outcome, Stuck};
use super::load::Load;
use super::memory::Memory;
use super::mounts::{Mount, MountTable};
use super::network::Network;
use super::processes::Processes;
use super::temperature::Temperature;
use super::top_processes::TopProcesses;
use crate::config::Config;
use crate::docker::RunningContainers;
use crate::policy::{DockerAccess, Switch};
use crate::source::Source;

/// Usage is the difference of two readings; the first sample's are this far apart, so that it is there within a second
/// and still spans twenty clock ticks.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Collectors that hang for the first time delay a sample, each by its deadline. After so many of them the rest wait for
/// the next sample.
const STUCK_AT_ONCE: usize = 3;

pub struct Machine {
    deadline: Duration,
    mounts: MountTable,
    /// The mounts that are to be shown, with the names of their collectors.
    shown: Vec<(String, Mount)>,
    /// In the order of their turns: what may hang comes last.
    collectors: VecDeque<Box<dyn Collector>>,
    stuck: Vec<Stuck>,
    lane: Option<Lane>,
    is_first: bool,
}

impl Machine {
    /// Reads where the configuration's roots lie, and what its policy allows; of containers, those that `running` holds
    /// at the time.
    pub fn new(config: &Config, running: RunningContainers) -> Self {
        let roots = &config.roots;
        let collectors: [Box<dyn Collector>; 7] = [
            Box::new(Cpu::new(roots)),
            Box::new(Memory::new(roots)),
            Box::new(Load::new(roots)),
            Box::new(Processes::new(roots)),
            Box::new(DiskIo::new(roots)),
            Box::new(Network::new(roots)),
            Box::new(Temperature::new(roots)),
        ];
        let mut collectors = VecDeque::from(collectors);
        if config.policy.processes == Switch::On {
            collectors.push_back(Box::new(TopProcesses::new(roots)));
        }
        if config.policy.docker >= DockerAccess::Read {
            collectors.push_back(Box::new(Containers::new(roots, running)));
        }
        Self::with_collectors(MountTable::new(roots), collectors, config.timing.collector)
    }

    fn with_collectors(mounts: MountTable, collectors: VecDeque<Box<dyn Collector>>, deadline: Duration) -> Self {
        Self { deadline, mounts, shown: Vec::new(), collectors, stuck: Vec::new(), lane: None, is_first: true }
    }

    /// Reads every collector once and puts together what they found.
    async fn read(&mut self) -> Option<Sample> {
        self.welcome_back();
        self.follow_mounts();
        let mut sample = Sample { timestamp: Timestamp::now(), ..Sample::default() };
        let mut has_essentials = 0;
        let mut waiting = std::mem::take(&mut self.collectors);
        for _ in 0..STUCK_AT_ONCE {
            let outcome = self.read_on_lane(waiting).await;
            for finished in outcome.finished {
                let is_essential = matches!(finished.collector.name(), "cpu" | "memory");
                let is_filled = fill(&finished, &mut sample);
                has_essentials += usize::from(is_essential && is_filled);
                self.collectors.push_back(finished.collector);
            }
            waiting = outcome.waiting;
            if waiting.is_empty() {
                break;
            }
        }
        self.collectors.append(&mut waiting);
        sample.disk_usage.sort_by(|one, other| one.path.cmp(&other.path));
        // A sample must say how busy processors and memory are: zero would be a lie.
        (has_essentials == 2).then_some(sample)
    }

    async fn read_on_lane(&mut self, collectors: VecDeque<Box<dyn Collector>>) -> Outcome {
        let lane = match self.lane.take().map_or_else(Lane::start, Ok) {
            Ok(lane) => lane,
            Err(error) => {
                tracing::warn!(%error, "cannot start the collectors' thread");
                return Outcome { finished: Vec::new(), waiting: collectors, stuck: None };
            }
        };
        let mut outcome = lane.read(collectors, self.deadline).await;
        match outcome.stuck.take() {
            Some(stuck) => {
                tracing::warn!(collector.name = stuck.name, "a collector hangs: its part is left out until it is back");
                self.stuck.push(stuck);
            }
            None if outcome.waiting.is_empty() => self.lane = Some(lane),
            None => {}
        }
        outcome
    }

    fn welcome_back(&mut self) {
        let Self { stuck, collectors, .. } = self;
        stuck.retain(|stuck| {
            let Some(collector) = stuck.returned() else { return true };
            tracing::info!(collector.name = stuck.name, "a collector that hung is back");
            collectors.push_back(collector);
            false
        });
    }

    /// Adds collectors for new mounts and removes those of mounts that are gone.
    fn follow_mounts(&mut self) {
        match self.mounts.changed() {
            Ok(Some(mounts)) => {
                self.shown = mounts.into_iter().map(|mount| (MountUsage::name_of(&mount), mount)).collect();
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "cannot read the mount table"),
        }
        let shown = &self.shown;
        self.collectors.retain(|collector| {
            !collector.name().starts_with("disk_usage") || shown.iter().any(|(name, _)| name == collector.name())
        });
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
}

/// Whether there was something to fill in.
fn fill(finished: &Finished, sample: &mut Sample) -> bool {
    match &finished.outcome {
        Ok(()) => {
            finished.collector.fill(sample);
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
