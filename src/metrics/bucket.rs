//! The mean of several samples. Pure.
//!
//! Gauges are averaged, counters and totals keep their last value. A disk, interface, sensor or container that is
//! there in only some of the samples is averaged over those.

use std::collections::HashMap;

use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};

/// Gathers the samples of one span of time.
pub struct Bucket {
    start: Timestamp,
    last: Sample,
    count: f64,
    /// Of [`scalars`].
    sums: [f64; SCALARS],
    cores: Vec<(f64, f64)>,
    disks: Union<DiskUsage>,
    disk_io: Union<DiskIo>,
    network: Union<NetworkUsage>,
    temperatures: Union<Temperature>,
    containers: Union<ContainerUsage>,
}

const SCALARS: usize = 8;

/// The gauges that every sample has.
fn scalars(sample: &Sample) -> [f64; SCALARS] {
    let [one, five, fifteen] = sample.load_average;
    [
        sample.cpu_percent,
        sample.memory_percent,
        sample.memory_used as f64,
        sample.swap_used as f64,
        one,
        five,
        fifteen,
        sample.process_count as f64,
    ]
}

impl Bucket {
    /// A bucket that begins at `start` with its first sample.
    pub fn new(start: Timestamp, first: Sample) -> Self {
        let mut bucket = Self {
            start,
            last: Sample::default(),
            count: 0.0,
            sums: [0.0; SCALARS],
            cores: Vec::new(),
            disks: Union::default(),
            disk_io: Union::default(),
            network: Union::default(),
            temperatures: Union::default(),
            containers: Union::default(),
        };
        bucket.add(first);
        bucket
    }

    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// Adds a sample that is not older than those before.
    pub fn add(&mut self, mut sample: Sample) {
        self.count += 1.0;
        for (sum, value) in self.sums.iter_mut().zip(scalars(&sample)) {
            *sum += value;
        }
        self.cores.resize(self.cores.len().max(sample.cpu_per_core.len()), (0.0, 0.0));
        for ((sum, count), value) in self.cores.iter_mut().zip(&sample.cpu_per_core) {
            *sum += value;
            *count += 1.0;
        }
        self.disks.add(std::mem::take(&mut sample.disk_usage));
        self.disk_io.add(std::mem::take(&mut sample.disk_io));
        self.network.add(std::mem::take(&mut sample.network));
        self.temperatures.add(std::mem::take(&mut sample.temperatures));
        self.containers.add(std::mem::take(&mut sample.containers));
        self.last = sample;
    }

    /// The mean, at the bucket's start.
    pub fn finish(self) -> Sample {
        let [cpu, memory, memory_used, swap_used, one, five, fifteen, processes] =
            self.sums.map(|sum| sum / self.count);
        let mut mean = Sample {
            timestamp: self.start,
            cpu_percent: cpu,
            memory_percent: memory,
            memory_used: memory_used.round() as u64,
            swap_used: swap_used.round() as u64,
            load_average: [one, five, fifteen],
            process_count: processes.round() as u64,
            cpu_per_core: self.cores.into_iter().map(|(sum, count)| sum / count).collect(),
            disk_usage: self.disks.finish(),
            disk_io: self.disk_io.finish(),
            network: self.network.finish(),
            temperatures: self.temperatures.finish(),
            containers: self.containers.finish(),
            ..self.last
        };
        mean.round();
        mean
    }
}

/// Entries of a list by name, each with the sums of its gauges.
struct Union<T> {
    entries: Vec<(T, [f64; 3], f64)>,
    /// Where each entry is, by its key.
    places: HashMap<String, usize>,
}

impl<T> Default for Union<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Averaged> Union<T> {
    fn add(&mut self, items: Vec<T>) {
        for item in items {
            let gauges = item.gauges();
            let known = self.places.get(item.key()).and_then(|place| self.entries.get_mut(*place));
            let Some((last, sums, count)) = known else {
                self.places.insert(item.key().to_owned(), self.entries.len());
                self.entries.push((item, gauges, 1.0));
                continue;
            };
            sums.iter_mut().zip(gauges).for_each(|(sum, gauge)| *sum += gauge);
            *count += 1.0;
            *last = item;
        }
    }

    fn finish(self) -> Vec<T> {
        let entries = self.entries.into_iter();
        entries.map(|(last, sums, count)| last.with_gauges(sums.map(|sum| sum / count))).collect()
    }
}

/// An entry of a list: what tells it from others, and which of its values are averaged.
trait Averaged {
    fn key(&self) -> &str;
    fn gauges(&self) -> [f64; 3];
    fn with_gauges(self, gauges: [f64; 3]) -> Self;
}

impl Averaged for DiskUsage {
    fn key(&self) -> &str {
        &self.path
    }

    fn gauges(&self) -> [f64; 3] {
        [self.used as f64, self.free as f64, self.percent]
    }

    fn with_gauges(self, [used, free, percent]: [f64; 3]) -> Self {
        Self { used: used.round() as u64, free: free.round() as u64, percent, ..self }
    }
}

impl Averaged for DiskIo {
    fn key(&self) -> &str {
        &self.device
    }

    fn gauges(&self) -> [f64; 3] {
        [0.0; 3]
    }

    fn with_gauges(self, _: [f64; 3]) -> Self {
        self
    }
}

impl Averaged for NetworkUsage {
    fn key(&self) -> &str {
        &self.interface
    }

    fn gauges(&self) -> [f64; 3] {
        [0.0; 3]
    }

    fn with_gauges(self, _: [f64; 3]) -> Self {
        self
    }
}

impl Averaged for Temperature {
    fn key(&self) -> &str {
        &self.label
    }

    fn gauges(&self) -> [f64; 3] {
        [self.celsius, 0.0, 0.0]
    }

    fn with_gauges(self, [celsius, ..]: [f64; 3]) -> Self {
        Self { celsius, ..self }
    }
}

impl Averaged for ContainerUsage {
    fn key(&self) -> &str {
        &self.id
    }

    fn gauges(&self) -> [f64; 3] {
        [self.cpu_percent, self.memory_bytes as f64, 0.0]
    }

    fn with_gauges(self, [cpu_percent, memory, _]: [f64; 3]) -> Self {
        Self { cpu_percent, memory_bytes: memory.round() as u64, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu_percent: f64, bytes_recv: u64, disks: &[(&str, f64)]) -> Sample {
        Sample {
            cpu_percent,
            cpu_per_core: vec![cpu_percent; 2],
            network: vec![NetworkUsage { interface: "eth0".into(), bytes_sent: 0, bytes_recv }],
            disk_usage: disks
                .iter()
                .map(|(path, percent)| DiskUsage { path: (*path).into(), percent: *percent, ..DiskUsage::default() })
                .collect(),
            ..Sample::default()
        }
    }

    #[test]
    fn gauges_are_averaged_and_counters_keep_their_last_value() {
        let mut bucket = Bucket::new(Timestamp::from_millis(60_000), sample(10.0, 500, &[]));
        bucket.add(sample(20.0, 900, &[]));

        let mean = bucket.finish();

        assert_eq!(mean.timestamp, Timestamp::from_millis(60_000));
        assert_eq!(mean.cpu_percent, 15.0);
        assert_eq!(mean.cpu_per_core, [15.0, 15.0]);
        assert_eq!(mean.network.first().map(|net| net.bytes_recv), Some(900));
    }

    #[test]
    fn what_comes_and_goes_is_averaged_over_when_it_was_there() {
        let mut bucket = Bucket::new(Timestamp::default(), sample(0.0, 0, &[("/", 10.0), ("/usb", 50.0)]));
        bucket.add(sample(0.0, 0, &[("/", 30.0)]));

        let disks: Vec<_> = bucket.finish().disk_usage.into_iter().map(|disk| (disk.path, disk.percent)).collect();

        assert_eq!(disks, [("/".to_owned(), 20.0), ("/usb".to_owned(), 50.0)]);
    }
}
