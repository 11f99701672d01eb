//! Realistic samples, the same for every measured store: deterministic by seed, and cheap enough to be generated while they are
//! sent.
//!
//! A synthetic series may compress well where a real one does not, so each part follows what the kernel counts: percentages are
//! quotients of clock ticks, load averages are damped, memory comes in pages, counters are constant most of the time, and
//! related values move together.

mod activity;
mod batch;
mod cpu;
mod disk;
mod flat;
mod machine;
mod memory;
mod network;
mod produce;

use signalbox_protocol::Timestamp;

pub use self::batch::Batches;
pub use self::flat::{Name, names, values, visit};
pub use self::machine::Machine;
pub use self::produce::produce;

/// The samples of some servers over some time. Every server has the same number of them.
#[derive(Debug, Clone)]
pub struct Dataset {
    pub seed: u64,
    pub servers: usize,
    /// No sample is earlier, and the first of each server is less than an interval later.
    pub first: Timestamp,
    pub interval_ms: i64,
    /// Of each server.
    pub samples: u64,
}

impl Dataset {
    /// `days` of samples that end at `end`.
    pub fn ending_at(end: Timestamp, seed: u64, servers: usize, days: f64, interval_ms: i64) -> Self {
        let samples = (days * 86_400_000.0 / interval_ms as f64).round() as u64;
        Self { seed, servers, first: end.plus_millis(-interval_ms * samples as i64), interval_ms, samples }
    }

    /// Later than every sample.
    pub fn end(&self) -> Timestamp {
        self.first.plus_millis(self.interval_ms * self.samples as i64)
    }

    /// One of the servers, at its first sample.
    pub fn machine(&self, number: usize) -> Machine {
        Machine::new(self.seed, number, self.first, self.interval_ms)
    }

    /// One server more, which has kept its samples of a second for almost two weeks: to be handed over while something
    /// else is measured.
    pub fn old(&self) -> Self {
        const SECONDS: u64 = 13 * 86_400;

        let first = self.end().plus_millis(-1000 * SECONDS as i64);
        Self { seed: self.seed.wrapping_add(1), servers: 1, first, interval_ms: 1000, samples: SECONDS }
    }

    /// Samples of all servers.
    pub fn all_samples(&self) -> u64 {
        self.samples * self.servers as u64
    }

    /// Numbers in the samples of all servers.
    pub fn all_values(&self) -> u64 {
        self.all_samples() * self.values_a_sample()
    }

    /// Numbers in one sample, its time not counted.
    pub fn values_a_sample(&self) -> u64 {
        names(&self.machine(0).blank()).len() as u64
    }
}

/// The name of a server in every store.
pub fn server_name(number: usize) -> String {
    format!("server-{number:05}")
}

/// The hour that `time` lies in begins here.
pub fn hour_of(time: Timestamp) -> Timestamp {
    const HOUR_MS: i64 = 3_600_000;

    Timestamp::from_millis(time.as_millis().div_euclid(HOUR_MS) * HOUR_MS)
}

/// Rounds to hundredths, like percentages and loads.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
