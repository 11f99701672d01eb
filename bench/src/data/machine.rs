//! One server and its samples, one after the other.

use fastrand::Rng;
use signalbox_protocol::sample::{DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};

use super::activity::{Activity, Kind};
use super::cpu::{CORES, Cpu};
use super::disk::Disks;
use super::memory::Memory;
use super::network::Network;

/// Between two boots, on average.
const UPTIME_MS: f64 = 45.0 * 86_400_000.0;
/// How late a sample is taken on average, and how rarely it is delayed for long.
const USUAL_DELAY_MS: f64 = 1.3;
const HELD_UP_ONE_OF: u32 = 400;
const HELD_UP_MS: f64 = 150.0;

/// The state of a server. The same seed and number give the same samples.
#[derive(Debug, Clone)]
pub struct Machine {
    rng: Rng,
    activity: Activity,
    cpu: Cpu,
    memory: Memory,
    disks: Disks,
    network: Network,
    boot: Timestamp,
    /// When the next sample is due, and when the last one was taken.
    due: Timestamp,
    last: Timestamp,
    interval_ms: i64,
}

impl Machine {
    pub fn new(seed: u64, number: usize, first: Timestamp, interval_ms: i64) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let due = first.plus_millis(rng.i64(0..(interval_ms / 2).max(1)));
        Self {
            activity: Activity::new(Kind::of(number), &mut rng),
            cpu: Cpu::new(&mut rng),
            memory: Memory::new(&mut rng),
            disks: Disks::new(&mut rng),
            network: Network::default(),
            boot: first.plus_millis(-rng.i64(3_600_000..4_000_000_000)),
            due,
            last: due.plus_millis(-interval_ms),
            interval_ms,
            rng,
        }
    }

    /// A sample with every name and no value, to be filled again and again.
    pub fn blank(&self) -> Sample {
        let disk = |path: &str| DiskUsage { path: path.to_owned(), ..DiskUsage::default() };
        let device = |name: &str| DiskIo { device: name.to_owned(), ..DiskIo::default() };
        let interface = |name: &str| NetworkUsage { interface: name.to_owned(), ..NetworkUsage::default() };
        let sensor = |label: &str| Temperature { label: label.to_owned(), ..Temperature::default() };
        Sample {
            cpu_per_core: vec![0.0; CORES],
            disk_usage: vec![disk("/"), disk("/boot"), disk("/srv")],
            disk_io: vec![device("sda"), device("nvme0n1")],
            network: vec![interface("eth0"), interface("wg0")],
            temperatures: vec![sensor("Package id 0"), sensor("Composite")],
            ..Sample::default()
        }
    }

    /// The next sample, an interval after the one before but for some milliseconds.
    pub fn fill(&mut self, sample: &mut Sample) {
        let mut late = -(1.0 - self.rng.f64()).ln() * USUAL_DELAY_MS;
        if self.rng.u32(0..HELD_UP_ONE_OF) == 0 {
            late += self.rng.f64() * HELD_UP_MS;
        }
        // The phase of a server takes the first half of the interval.
        let late = (late as i64).min(self.interval_ms / 2 - 1).max(0);
        let at = self.due.plus_millis(late);
        self.due = self.due.plus_millis(self.interval_ms);
        self.fill_at(at, sample);
    }

    /// A sample taken at `at`, which is later than the one before.
    pub fn fill_at(&mut self, at: Timestamp, sample: &mut Sample) {
        let Self { rng, .. } = self;
        let elapsed_ms = at.millis_since(self.last).max(1);
        self.last = at;
        let demand = self.activity.step(rng, at, elapsed_ms);
        if demand.is_time_for(rng, UPTIME_MS) {
            self.boot = at.plus_millis(-rng.i64(1000..5000));
            self.disks.boot();
            self.network.boot();
        }
        sample.timestamp = at;
        sample.uptime_seconds = at.millis_since(self.boot).unsigned_abs() / 1000;
        self.cpu.step(rng, demand, sample);
        self.memory.step(rng, demand, sample);
        self.disks.step(rng, demand, sample);
        self.network.step(rng, demand, sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::hundredths;

    const FIRST_MS: i64 = 1_795_000_000_000;

    fn samples(number: usize, count: usize) -> Vec<Sample> {
        let mut machine = Machine::new(7, number, Timestamp::from_millis(FIRST_MS), 5000);
        let mut sample = machine.blank();
        let mut next = || {
            machine.fill(&mut sample);
            sample.clone()
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_samples() {
        assert_eq!(samples(4, 2000), samples(4, 2000));
        assert_ne!(samples(4, 10), samples(5, 10));
    }

    #[test]
    fn every_sample_is_valid_and_rounded() {
        for sample in (0..10).flat_map(|number| samples(number, 3000)) {
            let mut rounded = sample.clone();
            rounded.round();

            assert_eq!(sample.validate(), Ok(()));
            assert_eq!(rounded, sample);
        }
    }

    #[test]
    fn what_belongs_together_agrees() {
        for sample in samples(9, 3000) {
            let mean = sample.cpu_per_core.iter().sum::<f64>() / sample.cpu_per_core.len() as f64;
            let percent = sample.memory_used as f64 * 100.0 / sample.memory_total as f64;

            assert!((mean - sample.cpu_percent).abs() < 0.5, "{mean} {}", sample.cpu_percent);
            assert_eq!(sample.memory_percent, hundredths(percent));
            assert_eq!(sample.memory_used % 4096, 0);
            for disk in &sample.disk_usage {
                let percent = disk.used as f64 * 100.0 / (disk.used + disk.free) as f64;
                assert_eq!(disk.percent, hundredths(percent));
            }
        }
    }

    #[test]
    fn samples_are_an_interval_apart_but_for_some_milliseconds() {
        let all = samples(1, 5000);
        let steps: Vec<i64> = all.windows(2).map(|pair| pair[1].timestamp.millis_since(pair[0].timestamp)).collect();

        assert!(steps.iter().all(|step| (4800..5200).contains(step)));
        assert!(steps.iter().any(|step| *step != 5000));
        assert!((FIRST_MS..FIRST_MS + 5000).contains(&all[0].timestamp.as_millis()));
    }
}
