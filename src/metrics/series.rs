//! The history as columns, for charts.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use signalbox_protocol::{Sample, Timestamp};

use super::query::{HistoryError, Reader, bucket_start};

/// Columns over one list of times.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Series {
    pub resolution_seconds: i64,
    /// Seconds since the epoch, ascending.
    pub timestamps: Vec<i64>,
    pub series: BTreeMap<String, Column>,
}

/// The values of one name, one for each time; none where there is nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Column {
    pub avg: Vec<Option<f64>>,
    pub min: Vec<Option<f64>>,
    pub max: Vec<Option<f64>>,
}

/// Raw samples further apart than this many times their usual distance have a gap between them.
const GAP_FACTOR: i64 = 3;

/// Values that one answer may hold, some 100 MB: a hundred series at 20,000 points.
const MAX_CELLS: usize = 2_000_000;

/// Reads a range as columns. `names` chooses some; none means all.
pub async fn read(mut reader: Reader, names: Option<&HashSet<String>>) -> Result<Series, HistoryError> {
    let spacing_seconds = reader.spacing_seconds();
    let mut builder = Builder::new(reader.resolution_seconds(), reader.width_seconds());
    let mut previous: Option<Sample> = None;
    while let Some(sample) = reader.next_sample().await? {
        builder.step_to(sample.timestamp);
        if builder.cells() > MAX_CELLS {
            return Err(HistoryError::TooMuch);
        }
        for (name, value) in values(&sample, previous.as_ref(), spacing_seconds) {
            if names.is_none_or(|names| names.contains(&name)) {
                builder.add(name, value);
            }
        }
        previous = Some(sample);
    }
    Ok(builder.finish())
}

/// Every value of a sample by its name. Counters become rates against the sample before.
fn values(sample: &Sample, previous: Option<&Sample>, spacing_seconds: i64) -> Vec<(String, f64)> {
    let mut values = vec![
        ("cpu_percent".to_owned(), sample.cpu_percent),
        ("memory_percent".to_owned(), sample.memory_percent),
        ("memory_used".to_owned(), sample.memory_used as f64),
        ("swap_used".to_owned(), sample.swap_used as f64),
        ("process_count".to_owned(), sample.process_count as f64),
    ];
    let minutes = ["load_1", "load_5", "load_15"];
    values.extend(minutes.into_iter().zip(sample.load_average).map(|(name, load)| (name.to_owned(), load)));
    values.extend(sample.cpu_per_core.iter().enumerate().map(|(core, value)| (format!("cpu_core:{core}"), *value)));
    values.extend(sample.disk_usage.iter().map(|disk| (format!("disk_percent:{}", disk.path), disk.percent)));
    values.extend(sample.temperatures.iter().map(|sensor| (format!("temperature:{}", sensor.label), sensor.celsius)));
    for container in &sample.containers {
        values.push((format!("container_cpu:{}", container.name), container.cpu_percent));
        values.push((format!("container_memory:{}", container.name), container.memory_bytes as f64));
    }
    if let Some(previous) = previous {
        rates(sample, previous, spacing_seconds, &mut values);
    }
    values
}

/// Bytes a second since the sample before, for counters that are in both.
fn rates(sample: &Sample, previous: &Sample, spacing_seconds: i64, values: &mut Vec<(String, f64)>) {
    let elapsed_ms = sample.timestamp.millis_since(previous.timestamp);
    // Over a gap there is no telling when the bytes came.
    if elapsed_ms <= 0 || elapsed_ms > gap_ms(spacing_seconds) {
        return;
    }
    let mut push = |name: String, now: u64, before: u64| {
        // A counter that went down was reset: nothing is known of the time in between.
        if let Some(bytes) = now.checked_sub(before) {
            values.push((name, (bytes as f64 * 1000.0 / elapsed_ms as f64 * 100.0).round() / 100.0));
        }
    };
    for net in &sample.network {
        let Some(before) = previous.network.iter().find(|before| before.interface == net.interface) else { continue };
        push(format!("network_in:{}", net.interface), net.bytes_recv, before.bytes_recv);
        push(format!("network_out:{}", net.interface), net.bytes_sent, before.bytes_sent);
    }
    for io in &sample.disk_io {
        let Some(before) = previous.disk_io.iter().find(|before| before.device == io.device) else { continue };
        push(format!("disk_read:{}", io.device), io.read_bytes, before.read_bytes);
        push(format!("disk_write:{}", io.device), io.write_bytes, before.write_bytes);
    }
}

fn gap_ms(spacing_seconds: i64) -> i64 {
    spacing_seconds.saturating_mul(1000 * GAP_FACTOR)
}

/// Fills columns from left to right.
struct Builder {
    width_seconds: Option<i64>,
    series: Series,
    sums: BTreeMap<String, Sum>,
    current: Option<Timestamp>,
}

struct Sum {
    total: f64,
    count: f64,
    min: f64,
    max: f64,
}

impl Builder {
    fn new(resolution_seconds: i64, width_seconds: Option<i64>) -> Self {
        let series = Series { resolution_seconds, ..Series::default() };
        Self { width_seconds, series, sums: BTreeMap::new(), current: None }
    }

    /// How much the answer holds so far.
    fn cells(&self) -> usize {
        self.series.timestamps.len().max(1) * (self.series.series.len() + self.sums.len())
    }

    /// Closes the point before, and leaves a gap where there is one.
    fn step_to(&mut self, at: Timestamp) {
        let point = self.width_seconds.map_or(at, |width| bucket_start(at, width));
        if self.current == Some(point) {
            return;
        }
        if let Some(before) = self.current {
            self.close(before);
            self.leave_gap(before, point);
        }
        self.current = Some(point);
    }

    /// One empty point behind `before`, when `point` does not follow it: enough for a chart to break its line.
    fn leave_gap(&mut self, before: Timestamp, point: Timestamp) {
        let follows_within = match self.width_seconds {
            Some(width) => width.saturating_mul(1000),
            None => gap_ms(self.series.resolution_seconds),
        };
        if point.millis_since(before) > follows_within {
            self.close(before.plus_millis(self.series.resolution_seconds.saturating_mul(1000)));
        }
    }

    fn add(&mut self, name: String, value: f64) {
        self.sums
            .entry(name)
            .and_modify(|sum| {
                sum.total += value;
                sum.count += 1.0;
                sum.min = sum.min.min(value);
                sum.max = sum.max.max(value);
            })
            .or_insert(Sum { total: value, count: 1.0, min: value, max: value });
    }

    fn close(&mut self, at: Timestamp) {
        let length = self.series.timestamps.len();
        self.series.timestamps.push(at.as_seconds());
        for (name, sum) in std::mem::take(&mut self.sums) {
            let column = self.series.series.entry(name).or_default();
            column.pad(length);
            column.avg.push(Some((sum.total / sum.count * 100.0).round() / 100.0));
            column.min.push(Some(sum.min));
            column.max.push(Some(sum.max));
        }
    }

    fn finish(mut self) -> Series {
        if let Some(last) = self.current {
            self.close(last);
        }
        let length = self.series.timestamps.len();
        self.series.series.values_mut().for_each(|column| column.pad(length));
        self.series
    }
}

impl Column {
    fn pad(&mut self, length: usize) {
        for values in [&mut self.avg, &mut self.min, &mut self.max] {
            values.resize(length, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::sample::NetworkUsage;

    use super::*;

    fn sample(seconds: i64, bytes_recv: u64) -> Sample {
        Sample {
            timestamp: Timestamp::from_millis(seconds * 1000),
            network: vec![NetworkUsage { interface: "eth0".into(), bytes_sent: 0, bytes_recv }],
            ..Sample::default()
        }
    }

    fn rate(sample: &Sample, previous: &Sample) -> Option<f64> {
        let values = values(sample, Some(previous), 5);
        values.into_iter().find(|(name, _)| name == "network_in:eth0").map(|(_, value)| value)
    }

    #[test]
    fn counters_become_rates() {
        assert_eq!(rate(&sample(10, 6_000), &sample(5, 1_000)), Some(1_000.0));
    }

    #[test]
    fn a_reset_counter_or_a_gap_gives_no_rate() {
        assert_eq!(rate(&sample(10, 10), &sample(5, 1_000)), None);
        assert_eq!(rate(&sample(100, 6_000), &sample(5, 1_000)), None);
    }

    #[test]
    fn a_gap_is_one_point_of_nothing() {
        let mut builder = Builder::new(5, None);
        for (at, value) in [(0, 1.0), (5, 2.0), (60, 3.0)] {
            builder.step_to(Timestamp::from_millis(at * 1000));
            builder.add("cpu_percent".into(), value);
        }

        let series = builder.finish();

        assert_eq!(series.timestamps, [0, 5, 10, 60]);
        assert_eq!(series.series["cpu_percent"].avg, [Some(1.0), Some(2.0), None, Some(3.0)]);
    }

    #[test]
    fn a_bucket_keeps_its_extremes() {
        let mut builder = Builder::new(60, Some(60));
        for (at, value) in [(0, 1.0), (5, 5.0), (61, 3.0)] {
            builder.step_to(Timestamp::from_millis(at * 1000));
            builder.add("cpu_percent".into(), value);
        }

        let series = builder.finish();

        assert_eq!(series.timestamps, [0, 60]);
        let column = &series.series["cpu_percent"];
        assert_eq!((column.avg[0], column.min[0], column.max[0]), (Some(3.0), Some(1.0), Some(5.0)));
    }
}
