//! Reads the value for a threshold from a sample. Pure and without allocations, because it runs for every threshold at
//! every sample.

pub mod series;

use std::sync::LazyLock;

use signalbox_history::metric::{DISKS, MACHINE, MetricOf, NETWORK, TEMPERATURES};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::{DiskUsage, NetworkUsage, Temperature, Unread};
use signalbox_protocol::traffic::LOOPBACK;

use crate::alert_words::{Comparison, MetricType};
pub use signalbox_history::network::PreviousSample;

/// A measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement<'a> {
    pub value: f64,
    /// The disk, interface, sensor or target with the worst value, if the threshold has no target.
    pub worst: Option<&'a str>,
    /// The unit of an open series.
    pub unit: Option<Unit<'a>>,
}

/// The unit of an open series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit<'a> {
    pub name: &'a str,
    /// The series is a counter, and the value is its rate per second.
    pub is_rate: bool,
}

impl<'a> Unit<'a> {
    /// Returns the unit of the values, which for a rate is the unit per second.
    pub fn of_values(self) -> &'a str {
        match self.name {
            "bytes" if self.is_rate => "bytes_per_second",
            "count" if self.is_rate => "per_second",
            "seconds" if self.is_rate => "ratio",
            name => name,
        }
    }
}

/// The row of the metric table from which a threshold on a typed metric reads.
enum Source {
    Machine(&'static MetricOf<Sample>),
    Disks(&'static MetricOf<DiskUsage>),
    Network(&'static MetricOf<NetworkUsage>),
    Sensors(&'static MetricOf<Temperature>),
}

/// Indexed by [`MetricType`], because it is looked up for every threshold at every sample.
static SOURCES: LazyLock<Vec<Option<Source>>> =
    LazyLock::new(|| MetricType::ALL.iter().map(|metric| Source::named(metric.word())).collect());

impl Source {
    /// Returns `None` for a metric that is not read from a sample.
    fn of(metric: MetricType) -> Option<&'static Self> {
        SOURCES.get(metric as usize)?.as_ref()
    }

    fn named(word: &str) -> Option<Self> {
        let machine = || find(&MACHINE, word).map(Self::Machine);
        let disks = || find(&DISKS, word).map(Self::Disks);
        let network = || find(&NETWORK, word).map(Self::Network);
        let sensors = || find(&TEMPERATURES, word).map(Self::Sensors);
        machine().or_else(disks).or_else(network).or_else(sensors)
    }
}

fn find<T>(table: &'static [MetricOf<T>], word: &str) -> Option<&'static MetricOf<T>> {
    table.iter().find(|row| row.metric.threshold.is_some_and(|threshold| threshold.word == word))
}

/// Returns the value of a typed metric for the target, or the worst value without a target. Returns `None` if the sample
/// does not have it, and for a rate also if the previous sample is missing, is before a gap, or is from before the counter
/// was reset.
pub fn read<'a>(
    metric: MetricType,
    target: Option<&str>,
    comparison: Comparison,
    now: &'a Sample,
    before: Option<PreviousSample<'_>>,
) -> Option<Measurement<'a>> {
    let worst = Worst { target, comparison };
    match Source::of(metric)? {
        Source::Machine(row) => row.watched(now).map(alone),
        Source::Disks(row) => {
            worst.of(now.disk_usage.iter().filter_map(|disk| Some((disk.path.as_str(), row.watched(disk)?))))
        }
        Source::Sensors(row) => {
            worst.of(now.temperatures.iter().filter_map(|sensor| Some((sensor.label.as_str(), row.watched(sensor)?))))
        }
        Source::Network(row) => worst.of_rates(now, before?, row.count()?),
    }
}

/// Returns whether a complete sample lacks the threshold's target, or without a target everything of its kind. Every
/// complete sample has the machine's memory, so one without memory proves nothing.
pub fn is_gone(metric: MetricType, target: Option<&str>, now: &Sample) -> bool {
    let asked = Worst { target, comparison: Comparison::Gt };
    let is_there = match Source::of(metric) {
        Some(Source::Disks(_)) => now.disk_usage.iter().any(|disk| disk.total > 0 && asked.is_asked(&disk.path)),
        Some(Source::Sensors(_)) => now.temperatures.iter().any(|sensor| asked.is_asked(&sensor.label)),
        Some(Source::Network(_)) => now.network.iter().any(|network| asked.is_asked_interface(&network.interface)),
        Some(Source::Machine(_)) | None => true,
    };
    !is_there && now.memory_total > 0
}

/// Returns whether the agent reports that the threshold's target, or without a target anything of its kind, exists and
/// could not be read.
pub fn is_unread(metric: MetricType, target: Option<&str>, unread: &[Unread]) -> bool {
    let list = match Source::of(metric) {
        Some(Source::Disks(_)) => "disk_usage",
        Some(Source::Sensors(_)) => "temperatures",
        Some(Source::Network(_)) => "network",
        Some(Source::Machine(_)) | None => return false,
    };
    let is_asked = |name: &Option<String>| name.is_none() || target.is_none() || name.as_deref() == target;
    unread.iter().any(|unread| unread.list == list && is_asked(&unread.name))
}

fn alone<'a>(value: f64) -> Measurement<'a> {
    Measurement { value, worst: None, unit: None }
}

/// Returns the value for a crossing or alert that already exists when the metric has disappeared: swap that was switched
/// off is 0 % full. Nothing new starts from it, because most machines without swap never had any.
pub fn read_on(metric: MetricType, now: &Sample) -> Option<Measurement<'_>> {
    let is_off = metric == MetricType::Swap && now.swap_total == 0 && now.memory_total > 0;
    is_off.then(|| alone(0.0))
}

/// Selects the target, or the worst of all.
struct Worst<'t> {
    target: Option<&'t str>,
    comparison: Comparison,
}

impl Worst<'_> {
    /// Returns the worst of those that have the target's name, or of all; the first one if several are equally bad.
    fn of<'a>(&self, all: impl Iterator<Item = (&'a str, f64)>) -> Option<Measurement<'a>> {
        let asked = all.filter(|(name, _)| self.is_asked(name));
        let (name, value) =
            asked.reduce(|worst, other| if self.comparison.is_worse(other.1, worst.1) { other } else { worst })?;
        Some(Measurement { value, worst: self.target.is_none().then_some(name), unit: None })
    }

    /// Returns the worst rate, in bytes per second.
    fn of_rates<'a>(
        &self,
        now: &'a Sample,
        before: PreviousSample<'_>,
        counter: fn(&NetworkUsage) -> u64,
    ) -> Option<Measurement<'a>> {
        let rates = now.network.iter().enumerate().filter_map(|(index, network)| {
            let name = network.interface.as_str();
            if !self.is_asked_interface(name) {
                return None;
            }
            Some((name, before.rate(now, index, counter)?))
        });
        self.of(rates)
    }

    fn is_asked_interface(&self, name: &str) -> bool {
        self.is_asked(name) && (self.target.is_some() || name != LOOPBACK)
    }

    fn is_asked(&self, name: &str) -> bool {
        self.target.is_none_or(|target| target == name)
    }
}

#[cfg(test)]
mod tests {
    use signalbox_history::metric;
    use signalbox_protocol::Timestamp;

    use super::*;

    fn sample(seconds: i64) -> Sample {
        Sample { timestamp: Timestamp::from_millis(seconds * 1000), ..Sample::default() }
    }

    fn with_network(seconds: i64, interfaces: &[(&str, u64, u64)]) -> Sample {
        let network = interfaces.iter().map(|(interface, bytes_recv, bytes_sent)| NetworkUsage {
            interface: (*interface).to_owned(),
            bytes_recv: *bytes_recv,
            bytes_sent: *bytes_sent,
            in_total: None,
        });
        Sample { network: network.collect(), ..sample(seconds) }
    }

    fn disk(path: &str, total: u64, percent: f64) -> DiskUsage {
        DiskUsage { path: path.into(), total, percent, ..DiskUsage::default() }
    }

    fn sensor(label: &str, celsius: f64) -> Temperature {
        Temperature { label: label.into(), celsius }
    }

    fn told(reading: Option<Measurement<'_>>) -> Option<(f64, Option<String>)> {
        reading.map(|reading| (reading.value, reading.worst.map(str::to_owned)))
    }

    fn reads(metric: MetricType, target: Option<&str>, now: &Sample) -> Option<(f64, Option<String>)> {
        told(read(metric, target, Comparison::Gt, now, None))
    }

    fn rate(target: Option<&str>, now: &Sample, before: &Sample) -> Option<(f64, Option<String>)> {
        told(read(MetricType::NetworkIn, target, Comparison::Gt, now, Some(after(before, 5_000))))
    }

    fn after(sample: &Sample, elapsed_ms: i64) -> PreviousSample<'_> {
        PreviousSample { sample, elapsed_ms }
    }

    #[test]
    fn every_word_of_the_table_is_a_metric_type_and_is_read() {
        for threshold in metric::all().filter_map(|metric| metric.threshold.as_ref()) {
            let metric = MetricType::of(threshold.word);
            assert!(metric.is_some_and(|metric| Source::of(metric).is_some()), "{}", threshold.word);
        }
        let others = [MetricType::Offline, MetricType::ContainerState, MetricType::Reboot, MetricType::Series];
        for metric in MetricType::ALL {
            assert_eq!(Source::of(*metric).is_none(), others.contains(metric), "{metric:?}");
        }
    }

    #[test]
    fn single_values_are_read_unchanged() {
        let now = Sample {
            cpu_percent: 12.5,
            memory_percent: 40.0,
            load_average: [1.5, 2.5, 3.5],
            swap_total: 3_000,
            swap_used: 1_000,
            ..sample(0)
        };

        assert_eq!(reads(MetricType::Cpu, None, &now), Some((12.5, None)));
        assert_eq!(reads(MetricType::Memory, None, &now), Some((40.0, None)));
        assert_eq!(reads(MetricType::Load, None, &now), Some((1.5, None)));
        assert_eq!(reads(MetricType::Swap, None, &now), Some((33.33, None)));
        assert_eq!(reads(MetricType::Swap, None, &sample(0)), None, "no swap");
        let swapless = Sample { memory_total: 1, ..sample(0) };
        assert_eq!(told(read_on(MetricType::Swap, &swapless)), Some((0.0, None)));
        assert_eq!(told(read_on(MetricType::Disk, &swapless)), None);
        assert_eq!(reads(MetricType::Offline, None, &now), None);
        assert_eq!(reads(MetricType::ContainerState, None, &now), None);
    }

    #[test]
    fn the_worst_of_all_depends_on_the_comparison() {
        let now = Sample {
            disk_usage: vec![disk("/", 10, 50.0), disk("/var", 10, 90.0), disk("/srv", 10, 5.0), disk("/b", 10, 90.0)],
            ..sample(0)
        };

        for (comparison, value, worst) in [
            (Comparison::Gt, 90.0, "/var"),
            (Comparison::Gte, 90.0, "/var"),
            (Comparison::Lt, 5.0, "/srv"),
            (Comparison::Lte, 5.0, "/srv"),
        ] {
            let reading = read(MetricType::Disk, None, comparison, &now, None);
            assert_eq!(reading, Some(Measurement { value, worst: Some(worst), unit: None }), "{comparison:?}");
        }
    }

    #[test]
    fn only_the_target_is_read_and_a_missing_one_is_no_data() {
        let now = Sample { disk_usage: vec![disk("/", 10, 50.0), disk("/var", 10, 90.0)], ..sample(0) };

        assert_eq!(reads(MetricType::Disk, Some("/"), &now), Some((50.0, None)));
        assert_eq!(reads(MetricType::Disk, Some("/usb"), &now), None);
        assert_eq!(reads(MetricType::Disk, None, &sample(0)), None);
    }

    #[test]
    fn an_unread_entry_matches_by_list_and_name() {
        let unread = |list: &str, name: Option<&str>| Unread { list: list.into(), name: name.map(str::to_owned) };
        let nas = [unread("disk_usage", Some("/mnt/nas")), unread("network", None), unread("of_later", Some("/"))];

        for (metric, target, expected) in [
            (MetricType::Disk, Some("/mnt/nas"), true),
            (MetricType::Disk, Some("/"), false),
            (MetricType::Disk, None, true),
            (MetricType::NetworkIn, Some("eth0"), true),
            (MetricType::NetworkOut, None, true),
            (MetricType::Temperature, None, false),
            (MetricType::Swap, None, false),
        ] {
            assert_eq!(is_unread(metric, target, &nas), expected, "{metric:?} of {target:?}");
        }
    }

    #[test]
    fn a_disk_without_a_size_is_ignored() {
        let now = Sample { disk_usage: vec![disk("/proc", 0, 0.0), disk("/", 10, 50.0)], ..sample(0) };

        let least = read(MetricType::Disk, None, Comparison::Lt, &now, None);

        assert_eq!(told(least), Some((50.0, Some("/".into()))));
    }

    #[test]
    fn the_worst_of_several_sensors_with_the_same_label_counts() {
        let now = Sample {
            temperatures: vec![sensor("core", 40.0), sensor("core", 80.0), sensor("disk", 90.0)],
            ..sample(0)
        };

        assert_eq!(reads(MetricType::Temperature, Some("core"), &now), Some((80.0, None)));
        assert_eq!(reads(MetricType::Temperature, None, &now), Some((90.0, Some("disk".into()))));
    }

    #[test]
    fn rates_are_computed_between_two_samples() {
        let before = with_network(0, &[("lo", 0, 0), ("eth0", 1_000, 0), ("eth1", 0, 100)]);
        let now = with_network(5, &[("lo", 900_000, 900_000), ("eth1", 1_000, 5_100), ("eth0", 4_001, 0)]);

        assert_eq!(rate(None, &now, &before), Some((600.2, Some("eth0".into()))));
        assert_eq!(rate(Some("eth1"), &now, &before), Some((200.0, None)));
        assert_eq!(rate(Some("lo"), &now, &before), Some((180_000.0, None)), "named, it counts");
        let sent = read(MetricType::NetworkOut, None, Comparison::Gt, &now, Some(after(&before, 5_000)));
        assert_eq!(told(sent), Some((1_000.0, Some("eth1".into()))));
    }

    #[test]
    fn the_loopback_interface_is_never_the_worst_of_all() {
        let [before, now] = [with_network(0, &[("lo", 0, 0)]), with_network(5, &[("lo", 500, 0)])];

        assert_eq!(rate(None, &now, &before), None);
    }

    #[test]
    fn a_first_sample_a_gap_a_new_interface_and_a_reset_counter_have_no_rate() {
        let before = with_network(0, &[("eth0", 5_000, 0), ("eth1", 0, 0)]);
        let now = |seconds| with_network(seconds, &[("eth0", 10, 0), ("eth1", 50, 0), ("eth2", 999_999, 0)]);

        assert_eq!(reads(MetricType::NetworkIn, None, &now(5)), None);
        assert_eq!(rate(Some("eth0"), &now(5), &before), None);
        assert_eq!(rate(Some("eth2"), &now(5), &before), None);
        assert_eq!(rate(None, &now(5), &before), Some((10.0, Some("eth1".into()))));
        assert_eq!(rate(None, &now(15), &before), Some((3.33, Some("eth1".into()))));
        assert_eq!(rate(None, &now(16), &before), None);
        assert_eq!(rate(None, &now(0), &before), None);
        assert_eq!(rate(None, &now(-5), &before), None);
    }

    #[test]
    fn an_agent_with_a_long_interval_has_rates() {
        let [before, now] = [with_network(0, &[("eth0", 0, 0)]), with_network(300, &[("eth0", 600, 0)])];
        let read = |elapsed_ms| {
            let before = Some(after(&before, elapsed_ms));
            told(read(MetricType::NetworkIn, None, Comparison::Gt, &now, before))
        };

        assert_eq!(read(0), None);
        assert_eq!(read(300_000), Some((2.0, Some("eth0".into()))));
    }
}
