//! How busy each block device was since the last reading, from `/proc/diskstats` (the kernel's iostats.rst).

use std::collections::HashMap;
use std::time::Instant;

use signalbox_protocol::series::Unit;

use crate::catalog::{Metric, Values};

const BUSY: Metric<'_> = Metric::gauge(
    "disk_busy",
    Unit::Percent,
    "Share of the time in which a device had requests; an SSD may take more at 100.",
);
const AWAIT: Metric<'_> = Metric::gauge(
    "disk_await",
    Unit::Milliseconds,
    "Mean time from a request of a device to its end, the wait in its queue included.",
);
const QUEUE: Metric<'_> =
    Metric::gauge("disk_queue", Unit::Count, "Mean number of requests that a device had under way or waiting.");

#[derive(Debug, Default)]
pub struct DiskActivity {
    devices: HashMap<String, Device>,
    /// Counts readings, to recognise devices that are gone.
    reading: u64,
}

#[derive(Debug)]
struct Device {
    counters: Counters,
    at: Instant,
    seen: u64,
    usage: Option<Usage>,
}

/// Since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    /// Reads and writes that completed.
    requests: u64,
    /// Their total time.
    requests_ms: u64,
    /// The time with at least one request.
    busy_ms: u64,
    /// The time, multiplied by the number of requests.
    weighted_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Usage {
    busy_percent: f64,
    await_ms: f64,
    queue: f64,
}

impl DiskActivity {
    /// Reads the lines of the devices that `is_whole` says are whole.
    pub fn read(&mut self, diskstats: &str, is_whole: &HashMap<String, bool>, now: Instant) {
        self.reading += 1;
        let seen = self.reading;
        for (name, counters) in diskstats.lines().filter_map(parse) {
            if is_whole.get(name) != Some(&true) {
                continue;
            }
            match self.devices.get_mut(name) {
                Some(device) => {
                    let elapsed_ms = now.saturating_duration_since(device.at).as_secs_f64() * 1000.0;
                    let usage = usage(device.counters, counters, elapsed_ms);
                    *device = Device { counters, at: now, seen, usage };
                }
                None => {
                    self.devices.insert(name.to_owned(), Device { counters, at: now, seen, usage: None });
                }
            }
        }
        self.devices.retain(|_, device| device.seen == seen);
    }

    pub fn values(&self, values: &mut Values<'_>) {
        for (name, device) in &self.devices {
            if let Some(Usage { busy_percent, await_ms, queue }) = device.usage {
                values.push(BUSY, Some(name), busy_percent);
                values.push(AWAIT, Some(name), await_ms);
                values.push(QUEUE, Some(name), queue);
            }
        }
    }
}

/// None where a counter decreased: the device is another one, or the counter began again.
fn usage(before: Counters, after: Counters, elapsed_ms: f64) -> Option<Usage> {
    let requests = after.requests.checked_sub(before.requests)?;
    let requests_ms = after.requests_ms.checked_sub(before.requests_ms)? as f64;
    let busy_ms = after.busy_ms.checked_sub(before.busy_ms)? as f64;
    let weighted_ms = after.weighted_ms.checked_sub(before.weighted_ms)? as f64;
    (elapsed_ms > 0.0).then(|| Usage {
        busy_percent: (busy_ms / elapsed_ms * 100.0).min(100.0),
        await_ms: if requests > 0 { requests_ms / requests as f64 } else { 0.0 },
        queue: weighted_ms / elapsed_ms,
    })
}

/// The columns after major, minor and name are: reads, merged, sectors, milliseconds; the same of writes; requests in flight,
/// milliseconds with requests, and weighted ones.
fn parse(line: &str) -> Option<(&str, Counters)> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let name = words.next()?;
    let mut fields = [0_u64; 11];
    for field in &mut fields {
        *field = words.next()?.parse().ok()?;
    }
    let [reads, _, _, reads_ms, writes, _, _, writes_ms, _, busy_ms, weighted_ms] = fields;
    let requests = reads.saturating_add(writes);
    Some((name, Counters { requests, requests_ms: reads_ms.saturating_add(writes_ms), busy_ms, weighted_ms }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::collector::fixture::{named, values_of};

    fn read(activity: &mut DiskActivity, lines: &str, now: Instant) -> Vec<(String, f64)> {
        let is_whole = [("sda", true), ("sda1", false), ("sdb", true)];
        let is_whole = is_whole.map(|(name, is_whole)| (name.to_owned(), is_whole)).into();
        activity.read(lines, &is_whole, now);
        let mut values = values_of(|values| activity.values(values));
        values.sort_by(|one, other| one.0.cmp(&other.0));
        values
    }

    #[test]
    fn whole_devices_are_busy_for_a_share_of_the_time() {
        let (mut activity, start) = (DiskActivity::default(), Instant::now());
        let before = "8 0 sda 100 0 0 500 50 0 0 500 0 1000 2000 0 0 0 0\n8 1 sda1 9 9 9 9 9 9 9 9 9 9 9\n";
        let after = "8 0 sda 110 0 0 600 60 0 0 700 3 2250 4500 0 0 0 0\n8 1 sda1 99 9 9 9 9 9 9 9 9 9 9\n";

        let first = read(&mut activity, before, start);
        let second = read(&mut activity, after, start + Duration::from_secs(5));
        let idle = read(&mut activity, after, start + Duration::from_secs(10));

        assert_eq!(first, []);
        let expected = [("disk_await:sda", 15.0), ("disk_busy:sda", 25.0), ("disk_queue:sda", 0.5)];
        assert_eq!(second, named(expected));
        assert_eq!(idle, named([("disk_await:sda", 0.0), ("disk_busy:sda", 0.0), ("disk_queue:sda", 0.0)]));
    }

    #[test]
    fn a_missing_exchanged_or_truncated_device_has_no_values() {
        let (mut activity, start) = (DiskActivity::default(), Instant::now());
        let line = |name: &str, count: u64| format!("8 0 {name} {count} 0 0 0 0 0 0 0 0 0 0\n");
        read(&mut activity, &[line("sda", 9), line("sdb", 9)].concat(), start);

        let fewer = read(&mut activity, &line("sda", 8), start + Duration::from_secs(5));
        let short = read(&mut activity, "8 0 sda 1 2 3\n", start + Duration::from_secs(10));

        assert_eq!((fewer, short), (vec![], vec![]));
        assert!(activity.devices.is_empty());
    }
}
