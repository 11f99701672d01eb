//! The metric families: those of the typed metrics, from their table, and those that describe a server itself. If
//! node_exporter (1.5) or cAdvisor has a metric with the same meaning, ours has the same name and labels, so that
//! dashboards made for them work. If they have a counter where we have a ratio, ours has its own name.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::hash::Hash;
use std::sync::LazyLock;

use signalbox_history::metric::{
    self, CONTAINERS, CORES, DISK_IO, DISKS, MACHINE, Metric, MetricOf, NETWORK, TEMPERATURES, has_load,
};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};

use super::{Lines, Target};

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    Counter,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        })
    }
}

/// A metric family, and how to find a target's samples of it.
pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    samples: Samples,
}

/// Where a family's samples come from.
enum Samples {
    Server(fn(&Target, &mut Lines<'_>)),
    Machine(&'static MetricOf<Sample>),
    Cores(&'static MetricOf<f64>),
    Disks(&'static MetricOf<DiskUsage>),
    DiskIo(&'static MetricOf<DiskIo>),
    Network(&'static MetricOf<NetworkUsage>),
    Temperatures(&'static MetricOf<Temperature>),
    Containers(&'static MetricOf<ContainerUsage>),
}

/// Every family, in the order of the output. Names are unique.
pub static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let mut families: Vec<Family> = of_servers().into();
    families.extend(of_table(&MACHINE, Samples::Machine));
    families.extend(of_table(&CORES, Samples::Cores));
    families.extend(of_table(&DISKS, Samples::Disks));
    families.extend(of_table(&DISK_IO, Samples::DiskIo));
    families.extend(of_table(&NETWORK, Samples::Network));
    families.extend(of_table(&TEMPERATURES, Samples::Temperatures));
    families.extend(of_table(&CONTAINERS, Samples::Containers));
    families.sort_by_key(|family| ORDER.iter().position(|name| *name == family.name).unwrap_or(ORDER.len()));
    families
});

/// The order of the first families. The others follow in the order of the table.
const ORDER: [&str; 29] = [
    "signalbox_server_up",
    "signalbox_server_last_sample_timestamp_seconds",
    "node_uname_info",
    "node_os_info",
    "node_time_seconds",
    "node_boot_time_seconds",
    "node_load1",
    "node_load5",
    "node_load15",
    "signalbox_cpu_usage_ratio",
    "signalbox_cpu_core_usage_ratio",
    "node_memory_MemTotal_bytes",
    "node_memory_MemAvailable_bytes",
    "node_memory_SwapTotal_bytes",
    "node_memory_SwapFree_bytes",
    "node_filesystem_size_bytes",
    "node_filesystem_free_bytes",
    "node_filesystem_avail_bytes",
    "node_disk_read_bytes_total",
    "node_disk_written_bytes_total",
    "node_network_receive_bytes_total",
    "node_network_transmit_bytes_total",
    "node_hwmon_chip_names",
    "node_hwmon_temp_celsius",
    "node_processes_pids",
    "signalbox_container_cpu_usage_cores",
    "container_memory_usage_bytes",
    "container_network_receive_bytes_total",
    "container_network_transmit_bytes_total",
];

/// The families that describe servers themselves.
fn of_servers() -> [Family; 7] {
    let gauge = |name, help, samples| Family { name, kind: Kind::Gauge, help, samples: Samples::Server(samples) };
    [
        gauge(
            "signalbox_server_up",
            "Whether the server's agent is connected and its latest sample is fresh; otherwise its other metrics are left \
             out.",
            |target, lines| lines.add(&[], u8::from(target.is_up)),
        ),
        gauge(
            "signalbox_server_last_sample_timestamp_seconds",
            "When the latest sample was taken, in unixtime, by the server's clock; while its agent is not connected, when the \
             server was last seen.",
            |target, lines| lines.add_one(target.last_sample_at().map(|at| at.as_millis() as f64 / 1000.0)),
        ),
        gauge("node_uname_info", "System information that the server's agent reported.", |target, lines| {
            if target.is_up {
                let agent = &target.agent;
                let (machine, nodename, release) = (&*agent.arch, &*agent.hostname, &*agent.kernel);
                let labels = [("machine", machine), ("nodename", nodename), ("release", release), ("sysname", "Linux")];
                lines.add(&labels, 1);
            }
        }),
        gauge("node_os_info", "The server's operating system.", |target, lines| {
            if target.is_up && !target.agent.os.is_empty() {
                lines.add(&[("pretty_name", &target.agent.os)], 1);
            }
        }),
        gauge(
            "node_time_seconds",
            "When the sample was taken, in unixtime, by the server's clock.",
            |target, lines| {
                lines.add_one(target.sample().map(|sample| sample.timestamp.as_seconds()));
            },
        ),
        gauge("node_boot_time_seconds", "Node boot time, in unixtime, accurate to one second.", |target, lines| {
            let sample = target.sample().filter(|sample| has_load(sample));
            let booted =
                sample.map(|sample| sample.timestamp.as_seconds().saturating_sub_unsigned(sample.uptime_seconds));
            lines.add_one(booted);
        }),
        gauge("node_hwmon_chip_names", "Hardware chips with sensors.", |target, lines| {
            for sensor in each(target, |sample| &sample.temperatures, |sensor| chip_and_sensor(sensor).0) {
                let (chip, _) = chip_and_sensor(sensor);
                lines.add(&[("chip", chip), ("chip_name", chip)], 1);
            }
        }),
    ]
}

/// Returns the families of the metrics of one table.
fn of_table<T>(
    table: &'static [MetricOf<T>],
    samples: fn(&'static MetricOf<T>) -> Samples,
) -> impl Iterator<Item = Family> {
    table.iter().filter_map(move |row| {
        let Metric { exposed, field, .. } = &row.metric;
        let kind = if field.kind == metric::Kind::Counter { Kind::Counter } else { Kind::Gauge };
        exposed.map(|exposed| Family { name: exposed.name, kind, help: exposed.help, samples: samples(row) })
    })
}

impl Family {
    /// Writes a target's samples of this family.
    pub fn write(&self, target: &Target, lines: &mut Lines<'_>) {
        match self.samples {
            Samples::Server(samples) => samples(target, lines),
            Samples::Machine(row) => lines.add_one(target.sample().and_then(|sample| row.told(sample))),
            Samples::Cores(row) => {
                let cores = target.sample().map_or(&[][..], |sample| &sample.cpu_per_core);
                for (core, percent) in cores.iter().enumerate() {
                    lines.add_some(&[("cpu", &core.to_string())], row.told(percent));
                }
            }
            Samples::Disks(row) => {
                for disk in each(target, |sample| &sample.disk_usage, |disk| &disk.path) {
                    lines.add_some(&[("mountpoint", &disk.path)], row.told(disk));
                }
            }
            Samples::DiskIo(row) => {
                for device in each(target, |sample| &sample.disk_io, |device| &device.device) {
                    lines.add_some(&[("device", &device.device)], row.told(device));
                }
            }
            Samples::Network(row) => {
                for link in each(target, |sample| &sample.network, |link| &link.interface) {
                    lines.add_some(&[("device", &link.interface)], row.told(link));
                }
            }
            Samples::Temperatures(row) => {
                for sensor in each(target, |sample| &sample.temperatures, chip_and_sensor) {
                    let (chip, name) = chip_and_sensor(sensor);
                    lines.add_some(&[("chip", chip), ("sensor", name)], row.told(sensor));
                }
            }
            Samples::Containers(row) => {
                for container in each(target, |sample| &sample.containers, |container| &container.id) {
                    lines.add_some(&[("id", &container.id), ("name", &container.name)], row.told(container));
                }
            }
        }
    }
}

/// Returns the entries of a target's list. If two have the same name the first counts, because Prometheus accepts a series
/// only once.
fn each<'a, T: 'a, K: Eq + Hash>(
    target: &'a Target,
    list: fn(&'a Sample) -> &'a [T],
    name: fn(&'a T) -> K,
) -> impl Iterator<Item = &'a T> {
    let mut told = HashSet::new();
    target.sample().map_or(&[][..], list).iter().filter(move |item| told.insert(name(item)))
}

/// Splits a label, which is the chip's name and the sensor's with a space between them; thermal zones have only one name.
fn chip_and_sensor(temperature: &Temperature) -> (&str, &str) {
    let label = temperature.label.as_str();
    label.split_once(' ').unwrap_or((label, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_unique_and_the_ordered_ones_exist() {
        let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();

        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(names.starts_with(&ORDER), "{names:?}");
    }
}
