//! What snapshots and series look like in the document. The values are written elsewhere, from the samples themselves;
//! a test holds the two together.

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};

use crate::http::extract::field::described;
use crate::http::field_out::{Bytes, Id, Moment, Percent};
use crate::metrics::query::SeriesName;

/// The state of a server at one moment. Counters are cumulative since the machine's boot.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SnapshotOut {
    server_id: Id,
    timestamp: Moment,
    cpu_percent: Percent,
    cpu_per_core: Vec<f64>,
    /// Over 1, 5 and 15 minutes.
    load_average: LoadAverage,
    memory_percent: Percent,
    memory_total: Bytes,
    memory_used: Bytes,
    swap_total: Bytes,
    swap_used: Bytes,
    disk_usage: Vec<DiskUsageOut>,
    disk_io: Vec<DiskIoOut>,
    network: Vec<NetworkOut>,
    temperatures: Vec<TemperatureOut>,
    uptime_seconds: Bytes,
    process_count: Bytes,
    containers: Vec<ContainerOut>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct LoadAverage([f64; 3]);

described!(
    LoadAverage,
    json!({ "type": "array", "minItems": 3, "maxItems": 3, "example": [0.5, 0.4, 0.3],
            "items": { "type": "number", "format": "double", "minimum": 0 } })
);

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct DiskUsageOut {
    /// The mount path.
    path: String,
    total: Bytes,
    used: Bytes,
    free: Bytes,
    percent: Percent,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct DiskIoOut {
    device: String,
    read_bytes: Bytes,
    write_bytes: Bytes,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct NetworkOut {
    interface: String,
    bytes_sent: Bytes,
    bytes_recv: Bytes,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct TemperatureOut {
    label: String,
    celsius: f64,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ContainerOut {
    id: String,
    name: String,
    /// Percent of one core.
    cpu_percent: f64,
    memory_bytes: Bytes,
    network_rx_bytes: Bytes,
    network_tx_bytes: Bytes,
}

/// The history as columns.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SeriesOut {
    resolution_seconds: i64,
    /// Seconds since the epoch, ascending.
    timestamps: Vec<i64>,
    /// By name: `cpu_percent`, `disk_percent:/`, `network_in:eth0`, ...
    series: Columns,
}

/// The recent course of a server as columns.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct FleetSeriesOut {
    server_id: Id,
    resolution_seconds: i64,
    /// Seconds since the epoch, ascending.
    timestamps: Vec<i64>,
    /// By name: `cpu_percent`, `disk_percent:/`, `network_in:eth0`, ...
    series: Columns,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Columns(serde_json::Value);

described!(Columns, {
    let values = json!({ "type": "array", "items": { "type": "number", "format": "double", "nullable": true } });
    json!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "required": ["avg", "min", "max"],
            "properties": { "avg": values, "min": values, "max": values },
        },
        "example": { "cpu_percent": { "avg": [1.5, null], "min": [1.0, null], "max": [2.0, null] } },
    })
});

/// The series that a server has.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct NamesOut {
    pub names: Vec<SeriesNameOut>,
}

/// A series.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SeriesNameOut {
    name: String,
    /// `percent`, `bytes`, `bytes_per_second`, `celsius` or `count`.
    unit: String,
}

impl From<SeriesName> for SeriesNameOut {
    fn from(series: SeriesName) -> Self {
        Self { name: series.name, unit: series.unit.to_owned() }
    }
}

/// The processes that used the most at a time, the greediest first.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ProcessesOut {
    /// When they were looked at.
    timestamp: Moment,
    by_cpu: Vec<ProcessOut>,
    by_memory: Vec<ProcessOut>,
}

/// What one process used.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ProcessOut {
    pid: u32,
    /// Of the program, without its arguments.
    name: String,
    /// The user that it ran as.
    user: String,
    /// Percent of one core.
    cpu_percent: f64,
    memory_bytes: Bytes,
}

impl ProcessesOut {
    pub fn new(taken: Timestamp, top: TopProcesses) -> Self {
        let all = |list: Vec<ProcessUsage>| list.into_iter().map(ProcessOut::from).collect();
        Self { timestamp: Moment(taken), by_cpu: all(top.by_cpu), by_memory: all(top.by_memory) }
    }
}

impl From<ProcessUsage> for ProcessOut {
    fn from(process: ProcessUsage) -> Self {
        let ProcessUsage { pid, name, user, cpu_percent, memory_bytes } = process;
        Self { pid, name, user, cpu_percent, memory_bytes: Bytes(memory_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use paperclip::v2::schema::Apiv2Schema;
    use signalbox_protocol::Sample;
    use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};

    use super::*;
    use crate::fleet::snapshot_json;

    fn keys(value: &serde_json::Value) -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    }

    fn documented<T: Apiv2Schema>() -> Vec<String> {
        T::raw_schema().properties.keys().cloned().collect()
    }

    #[test]
    fn snapshots_are_documented_as_they_are_written() {
        let sample = Sample {
            disk_usage: vec![DiskUsage::default()],
            disk_io: vec![DiskIo::default()],
            network: vec![NetworkUsage::default()],
            temperatures: vec![Temperature::default()],
            containers: vec![ContainerUsage::default()],
            ..Sample::default()
        };

        let json: serde_json::Value = serde_json::from_slice(&snapshot_json(uuid::Uuid::nil(), &sample)).unwrap();

        assert_eq!(keys(&json), documented::<SnapshotOut>());
        assert_eq!(keys(&json["disk_usage"][0]), documented::<DiskUsageOut>());
        assert_eq!(keys(&json["disk_io"][0]), documented::<DiskIoOut>());
        assert_eq!(keys(&json["network"][0]), documented::<NetworkOut>());
        assert_eq!(keys(&json["temperatures"][0]), documented::<TemperatureOut>());
        assert_eq!(keys(&json["containers"][0]), documented::<ContainerOut>());
    }
}
