//! What snapshots and series look like in the document. The values are written elsewhere, from the samples themselves;
//! a test holds the two together.

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::json;

use super::extract::field::described;
use super::field_out::{Bytes, Id, Moment, Percent};

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
