//! File systems and the devices below them.

use fastrand::Rng;
use signalbox_protocol::Sample;

use super::activity::Demand;
use super::hundredths;
use super::memory::PAGE_BYTES;

const SECTOR_BYTES: i64 = 512;

/// `/` and separate file systems; `/boot` never changes. Sizes in pages, counters in bytes.
#[derive(Debug, Clone)]
pub struct Disks {
    file_systems: [FileSystem; 3],
    devices: [Device; 2],
}

#[derive(Debug, Clone)]
struct FileSystem {
    total: i64,
    used: i64,
    /// How often something is written to it, at rest; none: never.
    every_ms: Option<f64>,
}

#[derive(Debug, Clone, Default)]
struct Device {
    read_bytes: i64,
    write_bytes: i64,
    /// How often it writes and reads at rest.
    write_every_ms: f64,
    read_every_ms: f64,
    /// Pages a second in a full burst.
    speed: f64,
}

impl Disks {
    pub fn new(rng: &mut Rng) -> Self {
        let mut file_system =
            |total: i64, every_ms| FileSystem { total, used: total / 10 + rng.i64(0..total / 2), every_ms };
        Self {
            file_systems: [
                file_system(25_656_558, Some(20_000.0)),
                file_system(249_192, None),
                file_system(122_096_646, Some(1_800_000.0)),
            ],
            devices: [
                Device { write_every_ms: 9_000.0, read_every_ms: 180_000.0, speed: 3000.0, ..Device::default() },
                Device { write_every_ms: 600_000.0, read_every_ms: 900_000.0, speed: 20_000.0, ..Device::default() },
            ],
        }
    }

    /// Counters begin again at a boot.
    pub fn boot(&mut self) {
        for device in &mut self.devices {
            device.read_bytes = 0;
            device.write_bytes = 0;
        }
    }

    pub fn step(&mut self, rng: &mut Rng, demand: Demand, sample: &mut Sample) {
        for (file_system, told) in self.file_systems.iter_mut().zip(&mut sample.disk_usage) {
            file_system.step(rng, demand);
            // ext4 reserves a twentieth for root.
            let free = file_system.total - file_system.total / 20 - file_system.used;
            told.total = (file_system.total * PAGE_BYTES).unsigned_abs();
            told.used = (file_system.used * PAGE_BYTES).unsigned_abs();
            told.free = (free * PAGE_BYTES).unsigned_abs();
            told.percent = hundredths(file_system.used as f64 * 100.0 / (file_system.used + free) as f64);
        }
        for (device, told) in self.devices.iter_mut().zip(&mut sample.disk_io) {
            device.step(rng, demand);
            told.read_bytes = device.read_bytes.unsigned_abs();
            told.write_bytes = device.write_bytes.unsigned_abs();
        }
    }
}

impl FileSystem {
    fn step(&mut self, rng: &mut Rng, demand: Demand) {
        let Some(every_ms) = self.every_ms else { return };
        if demand.is_time_for(rng, every_ms / (1.0 + 4.0 * demand.level)) {
            self.used += rng.i64(-2..=9);
        }
        // Logs are rotated, old releases removed.
        let most = self.total * 9 / 10;
        if self.used > most || demand.is_time_for(rng, 86_400_000.0) {
            self.used -= self.used / 100;
        }
        self.used = self.used.clamp(self.total / 20, most);
    }
}

impl Device {
    fn step(&mut self, rng: &mut Rng, demand: Demand) {
        if demand.is_time_for(rng, self.write_every_ms) {
            // The journal's next commit.
            self.write_bytes += PAGE_BYTES * rng.i64(1..40);
        }
        if demand.is_time_for(rng, self.read_every_ms) {
            self.read_bytes += SECTOR_BYTES * rng.i64(8..512);
        }
        // Not everything that keeps the cores busy touches a disk.
        if demand.burst > 0.4 && rng.f64() < 0.6 {
            let pages = self.speed * demand.burst * rng.f64() * demand.elapsed_ms as f64 / 1000.0;
            self.write_bytes += PAGE_BYTES * pages as i64;
            self.read_bytes += SECTOR_BYTES * 2 * (pages * rng.f64()) as i64;
        }
    }
}
