//! One reading of one server, and what makes it valid.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::series::{serialize_values, validate_values};
use crate::text::clean;

/// The most entries that any list of a sample may have.
pub const MAX_LIST: usize = 1024;
/// The longest name (interface, device, label, container), in bytes.
pub const MAX_NAME_BYTES: usize = 256;
/// The most entries that a list of top processes may have.
pub const MAX_PROCESSES: usize = 32;
/// The longest mount path, in bytes: Linux' `PATH_MAX`.
pub const MAX_PATH_BYTES: usize = 4096;

/// What an agent measured at one moment. Counters are cumulative since the machine's boot.
///
/// Its server and `timestamp` identify it. With `server_id` in front it is the API's metrics snapshot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// When the agent took it, by the agent's clock.
    pub timestamp: Timestamp,
    /// 0 to 100, over all the cores the machine (or its cgroup) may use.
    pub cpu_percent: f64,
    /// 0 to 100 for each core.
    #[serde(default)]
    pub cpu_per_core: Vec<f64>,
    /// The load average over 1, 5 and 15 minutes.
    #[serde(default)]
    pub load_average: [f64; 3],
    /// 0 to 100.
    pub memory_percent: f64,
    /// Bytes.
    #[serde(default)]
    pub memory_total: u64,
    /// Bytes, without what the kernel can reclaim at once.
    #[serde(default)]
    pub memory_used: u64,
    /// Bytes.
    #[serde(default)]
    pub swap_total: u64,
    /// Bytes.
    #[serde(default)]
    pub swap_used: u64,
    /// Mounted file systems.
    pub disk_usage: Vec<DiskUsage>,
    /// Block devices.
    #[serde(default)]
    pub disk_io: Vec<DiskIo>,
    /// Network interfaces.
    pub network: Vec<NetworkUsage>,
    /// Temperature sensors.
    #[serde(default)]
    pub temperatures: Vec<Temperature>,
    /// Seconds since boot.
    #[serde(default)]
    pub uptime_seconds: u64,
    /// How many processes the machine has.
    #[serde(default)]
    pub process_count: u64,
    /// Containers that run.
    #[serde(default)]
    pub containers: Vec<ContainerUsage>,
    /// The processes that used the most; with one sample a minute. Not part of the API's snapshot. (It is the last field of the
    /// version that stored fields by position, so that it may be left out there.)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<TopProcesses>,
    /// What exists and could not be read, so that its lists lack it. Not part of the API's snapshot, and never stored by
    /// position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
    /// The values of open series, by the ids under which this connection described them. Not part of the API's snapshot, and
    /// never stored by position.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_values")]
    pub values: Vec<(u16, f64)>,
}

/// Something that exists and that the agent could not read: a mount whose server does not answer, a sensor that fails.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Unread {
    /// The field of the sample that lacks it, such as `disk_usage`; `series` where it is an open series.
    pub list: String,
    /// Its mount path, label or interface; for an open series `name` or `name:target`; none where nothing of the list could be
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How full one mounted file system is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DiskUsage {
    /// The path that it is mounted on.
    pub path: String,
    /// Bytes.
    pub total: u64,
    /// Bytes.
    pub used: u64,
    /// Bytes that an unprivileged user can still write.
    pub free: u64,
    /// 0 to 100, as `df` calculates it: used of used and free.
    pub percent: f64,
}

/// What one network interface has carried since boot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NetworkUsage {
    /// The interface's name.
    pub interface: String,
    /// Bytes.
    pub bytes_sent: u64,
    /// Bytes.
    pub bytes_recv: u64,
    /// Whether these bytes are part of the machine's total, or another interface counts them (see [`crate::traffic`]). None
    /// where the agent does not say. (It is the last field for the same reason as `processes`.)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_total: Option<bool>,
}

/// What one block device has read and written since boot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DiskIo {
    /// The device's name, such as `sda`.
    pub device: String,
    /// Bytes.
    pub read_bytes: u64,
    /// Bytes.
    pub write_bytes: u64,
}

/// One temperature sensor.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Temperature {
    /// The sensor's name.
    pub label: String,
    /// Degrees Celsius.
    pub celsius: f64,
}

/// What one container uses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ContainerUsage {
    /// The container's whole id.
    pub id: String,
    /// The container's name.
    pub name: String,
    /// Percent of one core; a container on four cores may show 400.
    pub cpu_percent: f64,
    /// Memory without the file cache.
    pub memory_bytes: u64,
    /// Bytes received since it was started.
    #[serde(default)]
    pub network_rx_bytes: u64,
    /// Bytes sent since it was started.
    #[serde(default)]
    pub network_tx_bytes: u64,
}

/// The processes that used the most at the time of a sample, the largest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TopProcesses {
    /// By processor time, at most [`MAX_PROCESSES`].
    pub by_cpu: Vec<ProcessUsage>,
    /// By memory, at most [`MAX_PROCESSES`].
    pub by_memory: Vec<ProcessUsage>,
}

/// What one process uses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// The process id.
    pub pid: u32,
    /// The program's name, without its arguments, because those may hold secrets.
    pub name: String,
    /// The name of the user that it runs as, or the number where the user has no name.
    pub user: String,
    /// Percent of one core since the previous reading; a process on four cores may show 400.
    pub cpu_percent: f64,
    /// Resident memory.
    pub memory_bytes: u64,
}

/// Why a sample is refused: the first field that is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is out of range")]
pub struct OutOfRange {
    /// The field's name, as on the wire.
    pub field: &'static str,
}

impl Sample {
    /// Checks every range, length and name. Counters may have any value.
    pub fn validate(&self) -> Result<(), OutOfRange> {
        percent("cpu_percent", self.cpu_percent)?;
        percent("memory_percent", self.memory_percent)?;
        list("cpu_per_core", &self.cpu_per_core, |value| percent("cpu_per_core", *value))?;
        for load in self.load_average {
            number("load_average", load, 0.0, 1e9)?;
        }
        list("disk_usage", &self.disk_usage, |disk| {
            text("disk_usage.path", &disk.path, MAX_PATH_BYTES)?;
            percent("disk_usage.percent", disk.percent)
        })?;
        list("disk_io", &self.disk_io, |io| text("disk_io.device", &io.device, MAX_NAME_BYTES))?;
        list("network", &self.network, |net| text("network.interface", &net.interface, MAX_NAME_BYTES))?;
        list("temperatures", &self.temperatures, |sensor| {
            text("temperatures.label", &sensor.label, MAX_NAME_BYTES)?;
            number("temperatures.celsius", sensor.celsius, -273.15, 10_000.0)
        })?;
        list("containers", &self.containers, |container| {
            text("containers.id", &container.id, MAX_NAME_BYTES)?;
            text("containers.name", &container.name, MAX_NAME_BYTES)?;
            number("containers.cpu_percent", container.cpu_percent, 0.0, 1e7)
        })?;
        list("unread", &self.unread, |unread| {
            text("unread.list", &unread.list, MAX_NAME_BYTES)?;
            text("unread.name", unread.name.as_deref().unwrap_or_default(), MAX_PATH_BYTES)
        })?;
        validate_values(&self.values)?;
        self.processes.as_ref().map_or(Ok(()), TopProcesses::validate)
    }

    /// Removes the characters from every name that a name may not have.
    pub fn clean(&mut self) {
        self.disk_usage.iter_mut().for_each(|disk| clean(&mut disk.path));
        self.disk_io.iter_mut().for_each(|io| clean(&mut io.device));
        self.network.iter_mut().for_each(|network| clean(&mut network.interface));
        self.temperatures.iter_mut().for_each(|sensor| clean(&mut sensor.label));
        for container in &mut self.containers {
            clean(&mut container.id);
            clean(&mut container.name);
        }
        self.unread.iter_mut().filter_map(|unread| unread.name.as_mut()).for_each(clean);
        if let Some(processes) = &mut self.processes {
            for process in processes.by_cpu.iter_mut().chain(&mut processes.by_memory) {
                clean(&mut process.name);
                clean(&mut process.user);
            }
        }
    }

    /// Rounds percentages and loads to hundredths and temperatures to tenths, the precision that is stored.
    pub fn round(&mut self) {
        hundredths(&mut self.cpu_percent);
        hundredths(&mut self.memory_percent);
        self.cpu_per_core.iter_mut().for_each(hundredths);
        self.load_average.iter_mut().for_each(hundredths);
        self.disk_usage.iter_mut().for_each(|disk| hundredths(&mut disk.percent));
        self.containers.iter_mut().for_each(|container| hundredths(&mut container.cpu_percent));
        for sensor in &mut self.temperatures {
            sensor.celsius = (sensor.celsius * 10.0).round() / 10.0;
        }
        if let Some(processes) = &mut self.processes {
            let all = processes.by_cpu.iter_mut().chain(&mut processes.by_memory);
            all.for_each(|process| hundredths(&mut process.cpu_percent));
        }
    }
}

impl TopProcesses {
    fn validate(&self) -> Result<(), OutOfRange> {
        if self.by_cpu.len() > MAX_PROCESSES || self.by_memory.len() > MAX_PROCESSES {
            return Err(OutOfRange { field: "processes" });
        }
        self.by_cpu.iter().chain(&self.by_memory).try_for_each(|process| {
            text("processes.name", &process.name, MAX_NAME_BYTES)?;
            text("processes.user", &process.user, MAX_NAME_BYTES)?;
            number("processes.cpu_percent", process.cpu_percent, 0.0, 1e7)
        })
    }
}

fn hundredths(value: &mut f64) {
    *value = (*value * 100.0).round() / 100.0;
}

fn percent(field: &'static str, value: f64) -> Result<(), OutOfRange> {
    number(field, value, 0.0, 100.0)
}

fn number(field: &'static str, value: f64, low: f64, high: f64) -> Result<(), OutOfRange> {
    // A range never contains NaN, so this also requires a finite number.
    if (low..=high).contains(&value) { Ok(()) } else { Err(OutOfRange { field }) }
}

fn text(field: &'static str, value: &str, most_bytes: usize) -> Result<(), OutOfRange> {
    let sound = value.len() <= most_bytes && !value.contains('\0');
    if sound { Ok(()) } else { Err(OutOfRange { field }) }
}

fn list<T>(field: &'static str, items: &[T], check: impl Fn(&T) -> Result<(), OutOfRange>) -> Result<(), OutOfRange> {
    if items.len() > MAX_LIST {
        return Err(OutOfRange { field });
    }
    items.iter().try_for_each(check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_sample_is_valid() {
        assert_eq!(Sample { cpu_percent: 100.0, ..Sample::default() }.validate(), Ok(()));
    }

    #[test]
    fn numbers_must_be_finite_and_in_range() {
        for bad in [f64::NAN, f64::INFINITY, -0.01, 100.01] {
            let sample = Sample { cpu_percent: bad, ..Sample::default() };
            assert_eq!(sample.validate(), Err(OutOfRange { field: "cpu_percent" }), "{bad}");
        }
    }

    #[test]
    fn lists_are_bounded() {
        let full = Sample { cpu_per_core: vec![1.0; MAX_LIST], ..Sample::default() };
        let over = Sample { cpu_per_core: vec![1.0; MAX_LIST + 1], ..Sample::default() };

        assert_eq!(full.validate(), Ok(()));
        assert_eq!(over.validate(), Err(OutOfRange { field: "cpu_per_core" }));
    }

    #[test]
    fn rounding_keeps_hundredths_and_tenths() {
        let mut sample = Sample {
            cpu_percent: 12.345_678,
            temperatures: vec![Temperature { label: "core".into(), celsius: 45.67 }],
            ..Sample::default()
        };

        sample.round();

        assert_eq!(sample.cpu_percent, 12.35);
        assert_eq!(sample.temperatures.first().map(|sensor| sensor.celsius), Some(45.7));
    }
}
