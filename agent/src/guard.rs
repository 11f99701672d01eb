//! For the guard of instruction counts: an agent that samples and sends nothing.

use crate::backlog::Backlog;
use crate::collector::Machine;
use crate::config::Config;
use crate::docker::RunningContainers;
use crate::sampler;
use crate::source::Source;

/// A machine, and the memory that stores its samples.
pub struct Sampling {
    machine: Machine,
    backlog: Backlog,
    encoded: Vec<u8>,
}

impl Sampling {
    /// None where samples cannot be stored.
    pub fn new(config: &Config) -> Option<Self> {
        let machine = Machine::new(config, RunningContainers::default());
        let backlog = Backlog::open(config, None, machine.catalog()).ok()?;
        Some(Self { machine, backlog, encoded: Vec::new() })
    }

    /// Does the work of one tick of the sampler. Returns whether there was a sample.
    pub async fn tick(&mut self) -> bool {
        let Some(sample) = self.machine.sample().await else { return false };
        sampler::keep(sample, &self.backlog, &mut self.encoded);
        true
    }
}
