//! Memory, swap and processes.

use fastrand::Rng;
use signalbox_protocol::Sample;

use super::activity::Demand;
use super::hundredths;

pub const PAGE_BYTES: i64 = 4096;
const GIB_PAGES: i64 = 1 << 18;
const MIB_PAGES: i64 = 1 << 8;

/// All in pages.
#[derive(Debug, Clone)]
pub struct Memory {
    total: i64,
    /// The use without any work.
    resting: i64,
    used: i64,
    swap_used: i64,
    usual_processes: i64,
    processes: i64,
}

impl Memory {
    pub fn new(rng: &mut Rng) -> Self {
        // Firmware and kernel reserve a little.
        let total = rng.choice([8, 16, 32, 64]).unwrap_or(16) * GIB_PAGES - rng.i64(40_000..90_000);
        let resting = total / 10 + rng.i64(0..total / 3);
        let usual_processes = rng.i64(150..420);
        let swap_used = if rng.bool() { 0 } else { rng.i64(0..100_000) };
        Self { total, resting, used: resting, swap_used, usual_processes, processes: usual_processes }
    }

    pub fn step(&mut self, rng: &mut Rng, demand: Demand, sample: &mut Sample) {
        if demand.is_time_for(rng, 3_600_000.0) {
            // A program starts, ends, or is deployed in another version.
            let jump = rng.i64(-600 * MIB_PAGES..700 * MIB_PAGES);
            self.resting = (self.resting + jump).clamp(self.total / 12, self.total * 3 / 5);
        }
        let wanted = self.resting + (demand.level * 0.2 * self.total as f64) as i64;
        self.used += ((wanted - self.used) as f64 * demand.approach(40.0)) as i64;
        // Even at rest buffers come and go.
        self.used += rng.i64(-24..=24) + (demand.level * rng.i64(-4000..=4000) as f64) as i64;
        self.used = self.used.clamp(self.total / 20, self.total * 95 / 100);
        if self.swap_used > 0 && demand.is_time_for(rng, 14_400_000.0) {
            self.swap_used = (self.swap_used + rng.i64(-3000..=5000)).clamp(1, 200_000);
        }
        let restless = if rng.f64() < 0.25 { rng.i64(-3..=3) } else { 0 };
        let back = if rng.f64() < 0.1 { (self.usual_processes - self.processes).signum() } else { 0 };
        self.processes = (self.processes + restless + back).max(60);

        sample.memory_total = bytes(self.total);
        sample.memory_used = bytes(self.used);
        sample.memory_percent = hundredths(self.used as f64 * 100.0 / self.total as f64);
        sample.swap_total = bytes(2 * GIB_PAGES);
        sample.swap_used = bytes(self.swap_used);
        sample.process_count = self.processes.unsigned_abs();
    }
}

fn bytes(pages: i64) -> u64 {
    (pages * PAGE_BYTES).unsigned_abs()
}
