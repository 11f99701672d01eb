//! Which metrics there are. Where node_exporter (1.5) or cAdvisor has a metric of the same meaning it has the same name
//! and labels, so that dashboards made for them work; what they have as a counter and we as a share has a name of ours.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::hash::Hash;

use signalbox_protocol::Sample;
use signalbox_protocol::sample::Temperature;

use super::{Lines, Target};

/// What a family's numbers are.
#[derive(Debug, Clone, Copy)]
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

/// A metric, and how a target's samples of it are found.
pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub samples: fn(&Target, &mut Lines<'_>),
}

const fn gauge(name: &'static str, help: &'static str, samples: fn(&Target, &mut Lines<'_>)) -> Family {
    Family { name, kind: Kind::Gauge, help, samples }
}

const fn counter(name: &'static str, help: &'static str, samples: fn(&Target, &mut Lines<'_>)) -> Family {
    Family { name, kind: Kind::Counter, help, samples }
}

/// Every family, in the order in which they are told. A name stands here once.
pub const FAMILIES: &[Family] = &[
    gauge(
        "signalbox_server_up",
        "Whether the server's agent is connected and its latest sample is fresh; without that, no other metric of it \
         is told.",
        |target, lines| lines.add(&[], u8::from(target.is_up)),
    ),
    gauge(
        "signalbox_server_last_sample_timestamp_seconds",
        "When the latest sample was taken, in unixtime, by the server's clock.",
        |target, lines| {
            let at = target.latest.as_ref().map(|latest| latest.sample.timestamp.as_millis());
            lines.add_one(at.map(|millis| millis as f64 / 1000.0));
        },
    ),
    gauge("node_uname_info", "What the server's agent said of its system.", |target, lines| {
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
    gauge("node_time_seconds", "When the sample was taken, in unixtime, by the server's clock.", |target, lines| {
        lines.add_one(target.sample().map(|sample| sample.timestamp.as_seconds()));
    }),
    gauge("node_boot_time_seconds", "Node boot time, in unixtime, give or take a second.", |target, lines| {
        let sample = target.sample().filter(|sample| has_load(sample));
        lines
            .add_one(sample.map(|sample| sample.timestamp.as_seconds().saturating_sub_unsigned(sample.uptime_seconds)));
    }),
    gauge("node_load1", "1m load average.", |target, lines| {
        lines.add_one(load(target).map(|[one, _, _]| one));
    }),
    gauge("node_load5", "5m load average.", |target, lines| {
        lines.add_one(load(target).map(|[_, five, _]| five));
    }),
    gauge("node_load15", "15m load average.", |target, lines| {
        lines.add_one(load(target).map(|[_, _, fifteen]| fifteen));
    }),
    gauge(
        "signalbox_cpu_usage_ratio",
        "Share of all cores that were busy between the latest two samples, 0 to 1. A gauge: there are no \
         node_cpu_seconds_total counters here.",
        |target, lines| lines.add_one(target.sample().map(|sample| hundredth(sample.cpu_percent))),
    ),
    gauge(
        "signalbox_cpu_core_usage_ratio",
        "Share of one core that was busy between the latest two samples, 0 to 1.",
        |target, lines| {
            let cores = target.sample().map_or(&[][..], |sample| &sample.cpu_per_core);
            for (core, percent) in cores.iter().enumerate() {
                lines.add(&[("cpu", &core.to_string())], hundredth(*percent));
            }
        },
    ),
    gauge("node_memory_MemTotal_bytes", "Memory that the server, or its cgroup, may use.", |target, lines| {
        lines.add_one(memory(target).map(|sample| sample.memory_total));
    }),
    gauge("node_memory_MemAvailable_bytes", "Memory that is free or can be reclaimed at once.", |target, lines| {
        lines.add_one(memory(target).map(|sample| sample.memory_total.saturating_sub(sample.memory_used)));
    }),
    gauge("node_memory_SwapTotal_bytes", "Swap that the server may use.", |target, lines| {
        lines.add_one(memory(target).map(|sample| sample.swap_total));
    }),
    gauge("node_memory_SwapFree_bytes", "Swap that is not used.", |target, lines| {
        lines.add_one(memory(target).map(|sample| sample.swap_total.saturating_sub(sample.swap_used)));
    }),
    gauge("node_filesystem_size_bytes", "Filesystem size in bytes.", |target, lines| {
        for disk in each(target, |sample| &sample.disk_usage, |disk| &disk.path) {
            lines.add(&[("mountpoint", &disk.path)], disk.total);
        }
    }),
    gauge(
        "node_filesystem_free_bytes",
        "Filesystem free space in bytes, with what is kept for root.",
        |target, lines| {
            for disk in each(target, |sample| &sample.disk_usage, |disk| &disk.path) {
                lines.add(&[("mountpoint", &disk.path)], disk.total.saturating_sub(disk.used));
            }
        },
    ),
    gauge("node_filesystem_avail_bytes", "Filesystem space available to non-root users in bytes.", |target, lines| {
        for disk in each(target, |sample| &sample.disk_usage, |disk| &disk.path) {
            lines.add(&[("mountpoint", &disk.path)], disk.free);
        }
    }),
    counter("node_disk_read_bytes_total", "The total number of bytes read successfully.", |target, lines| {
        for disk in each(target, |sample| &sample.disk_io, |disk| &disk.device) {
            lines.add(&[("device", &disk.device)], disk.read_bytes);
        }
    }),
    counter("node_disk_written_bytes_total", "The total number of bytes written successfully.", |target, lines| {
        for disk in each(target, |sample| &sample.disk_io, |disk| &disk.device) {
            lines.add(&[("device", &disk.device)], disk.write_bytes);
        }
    }),
    counter("node_network_receive_bytes_total", "Network device statistic receive_bytes.", |target, lines| {
        for link in each(target, |sample| &sample.network, |link| &link.interface) {
            lines.add(&[("device", &link.interface)], link.bytes_recv);
        }
    }),
    counter("node_network_transmit_bytes_total", "Network device statistic transmit_bytes.", |target, lines| {
        for link in each(target, |sample| &sample.network, |link| &link.interface) {
            lines.add(&[("device", &link.interface)], link.bytes_sent);
        }
    }),
    gauge("node_hwmon_chip_names", "The chips that have sensors.", |target, lines| {
        for sensor in each(target, |sample| &sample.temperatures, |sensor| chip_and_sensor(sensor).0) {
            let (chip, _) = chip_and_sensor(sensor);
            lines.add(&[("chip", chip), ("chip_name", chip)], 1);
        }
    }),
    gauge("node_hwmon_temp_celsius", "Hardware monitor for temperature.", |target, lines| {
        for sensor in each(target, |sample| &sample.temperatures, chip_and_sensor) {
            let (chip, name) = chip_and_sensor(sensor);
            lines.add(&[("chip", chip), ("sensor", name)], sensor.celsius);
        }
    }),
    gauge("node_processes_pids", "Number of PIDs", |target, lines| {
        lines.add_one(target.sample().map(|sample| sample.process_count).filter(|count| *count > 0));
    }),
    gauge(
        "signalbox_container_cpu_usage_cores",
        "Cores that the container kept busy between the latest two samples. A gauge: there are no \
         container_cpu_usage_seconds_total counters here.",
        |target, lines| {
            for container in each(target, |sample| &sample.containers, |container| &container.id) {
                let labels = [("id", &*container.id), ("name", &*container.name)];
                lines.add(&labels, hundredth(container.cpu_percent));
            }
        },
    ),
    gauge("container_memory_usage_bytes", "Memory that the container uses, in bytes.", |target, lines| {
        for container in each(target, |sample| &sample.containers, |container| &container.id) {
            lines.add(&[("id", &container.id), ("name", &container.name)], container.memory_bytes);
        }
    }),
    counter(
        "container_network_receive_bytes_total",
        "Cumulative count of bytes received, over all of the container's interfaces.",
        |target, lines| {
            for container in each(target, |sample| &sample.containers, |container| &container.id) {
                lines.add(&[("id", &container.id), ("name", &container.name)], container.network_rx_bytes);
            }
        },
    ),
    counter(
        "container_network_transmit_bytes_total",
        "Cumulative count of bytes transmitted, over all of the container's interfaces.",
        |target, lines| {
            for container in each(target, |sample| &sample.containers, |container| &container.id) {
                lines.add(&[("id", &container.id), ("name", &container.name)], container.network_tx_bytes);
            }
        },
    ),
];

/// The entries of a target's list. Of two with the same name the first counts: Prometheus takes a series once.
fn each<'a, T: 'a, K: Eq + Hash>(
    target: &'a Target,
    list: fn(&'a Sample) -> &'a [T],
    name: fn(&'a T) -> K,
) -> impl Iterator<Item = &'a T> {
    let mut told = HashSet::new();
    target.sample().map_or(&[][..], list).iter().filter(move |item| told.insert(name(item)))
}

/// Load and uptime are read together, and a machine that runs is up for a second at least: without an uptime the zeros
/// say nothing.
fn has_load(sample: &Sample) -> bool {
    sample.uptime_seconds > 0
}

fn load(target: &Target) -> Option<[f64; 3]> {
    target.sample().filter(|sample| has_load(sample)).map(|sample| sample.load_average)
}

/// The sample, if it says how much memory there is.
fn memory(target: &Target) -> Option<&Sample> {
    target.sample().filter(|sample| sample.memory_total > 0)
}

/// A percentage, which is kept to hundredths, as a share: exact to the last digit, so that 12.34 gives 0.1234.
fn hundredth(percent: f64) -> f64 {
    (percent * 100.0).round() / 10_000.0
}

/// Our labels are a chip's name and its sensor's, with a blank between them; thermal zones have one name for both.
fn chip_and_sensor(temperature: &Temperature) -> (&str, &str) {
    let label = temperature.label.as_str();
    label.split_once(' ').unwrap_or((label, label))
}
