//! The schemas of snapshots and series in the OpenAPI document. The fields of typed metrics come from their table. The
//! values are serialized elsewhere, from the samples themselves; a test compares the two.

use paperclip::actix::Apiv2Schema;
use paperclip::v2::models::DefaultSchemaRaw;
use paperclip::v2::schema::Apiv2Schema;
use serde::Serialize;
use serde_json::json;
use signalbox_history::metric::{self, MetricOf};
use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};
use signalbox_protocol::series::Unit;

use crate::http::extract::field::described;
use crate::http::field_out::{Bytes, Id, Percent, TimeOut};

/// The state of a server at one time. Counters are cumulative since the machine's boot.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SnapshotOut {
    server_id: Id,
    timestamp: TimeOut,
    #[serde(flatten)]
    metrics: OfMachine,
    cpu_per_core: Vec<f64>,
    /// The averages of 1, 5 and 15 minutes.
    load_average: LoadAverage,
    disk_usage: Vec<DiskUsageOut>,
    disk_io: Vec<DiskIoOut>,
    network: Vec<NetworkOut>,
    temperatures: Vec<TemperatureOut>,
    containers: Vec<ContainerOut>,
    /// Open series, by name. Absent if there are none.
    extra: Option<Extra>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Extra(serde_json::Value);

described!(
    Extra,
    json!({ "type": "object", "additionalProperties": { "type": "number", "format": "double" },
            "example": { "cpu_mode:iowait": 1.5, "fan_speed:cpu": 1180.0 } })
);

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
    #[serde(flatten)]
    metrics: OfDisk,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct DiskIoOut {
    device: String,
    #[serde(flatten)]
    metrics: OfDevice,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct NetworkOut {
    interface: String,
    #[serde(flatten)]
    metrics: OfInterface,
    /// Whether these bytes count in the server's total, which the list of servers shows. False for interfaces on top of
    /// others: bonds, bridges, VLANs, tunnels. Absent in the history and from older agents; then the names decide.
    in_total: Option<bool>,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct TemperatureOut {
    label: String,
    #[serde(flatten)]
    metrics: OfSensor,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ContainerOut {
    id: String,
    name: String,
    #[serde(flatten)]
    metrics: OfContainer,
    /// In percent of one core.
    cpu_percent: f64,
}

/// Defines a type with the rows of a table as its fields, to be flattened into other types.
macro_rules! fields_of {
    ($($name:ident: $table:ident),+ $(,)?) => {$(
        #[derive(Debug, Serialize)]
        pub struct $name {}

        impl Apiv2Schema for $name {
            fn raw_schema() -> DefaultSchemaRaw {
                fields(&metric::$table)
            }
        }
    )+};
}

fields_of!(
    OfMachine: MACHINE,
    OfDisk: DISKS,
    OfDevice: DISK_IO,
    OfInterface: NETWORK,
    OfSensor: TEMPERATURES,
    OfContainer: CONTAINERS,
);

/// The rows that are separate fields; loads and cores are in arrays.
fn fields<T>(table: &[MetricOf<T>]) -> DefaultSchemaRaw {
    let mut schema = DefaultSchemaRaw::default();
    for row in table.iter().filter(|row| row.key.place.is_none()) {
        let field = match row.metric.unit {
            _ if row.count().is_some() => Bytes::raw_schema(),
            Unit::Percent => Percent::raw_schema(),
            _ => f64::raw_schema(),
        };
        schema.properties.insert(row.key.name.to_owned(), field.into());
        schema.required.insert(row.key.name.to_owned());
    }
    schema
}

/// The history as columns.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SeriesOut {
    resolution_seconds: i64,
    /// In seconds since the epoch, ascending.
    timestamps: Vec<i64>,
    /// The series by name: `cpu_percent`, `disk_percent:/`, `network_in:eth0`, ...
    series: Columns,
}

/// The recent metrics of a server as columns.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct FleetSeriesOut {
    server_id: Id,
    resolution_seconds: i64,
    /// In seconds since the epoch, ascending.
    timestamps: Vec<i64>,
    /// The series by name: `cpu_percent`, `disk_percent:/`, `network_in:eth0`, ...
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

/// The processes that used the most at a time, in descending order.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ProcessesOut {
    /// When the list was made.
    timestamp: TimeOut,
    by_cpu: Vec<ProcessOut>,
    by_memory: Vec<ProcessOut>,
}

/// The resource usage of one process.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ProcessOut {
    pid: u32,
    /// The name of the program, without its arguments.
    name: String,
    /// The user that it ran as.
    user: String,
    /// In percent of one core.
    cpu_percent: f64,
    memory_bytes: Bytes,
}

impl ProcessesOut {
    pub fn new(taken: Timestamp, top: TopProcesses) -> Self {
        let all = |list: Vec<ProcessUsage>| list.into_iter().map(ProcessOut::from).collect();
        Self { timestamp: TimeOut(taken), by_cpu: all(top.by_cpu), by_memory: all(top.by_memory) }
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
    use std::sync::Arc;

    use signalbox_history::metric::{Kind, Series};
    use signalbox_history::open::Open;
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
            network: vec![NetworkUsage { in_total: Some(true), ..NetworkUsage::default() }],
            temperatures: vec![Temperature::default()],
            containers: vec![ContainerUsage::default()],
            ..Sample::default()
        };
        let series = Series { name: "fan_speed".into(), unit: "rpm".into(), kind: Kind::Gauge, target: None };
        let open = Open::new(vec![(Arc::new(series), 900.0)]);

        let json: serde_json::Value =
            serde_json::from_slice(&snapshot_json(uuid::Uuid::nil(), &sample, &open)).unwrap();

        assert_eq!(keys(&json), documented::<SnapshotOut>());
        assert_eq!(keys(&json["disk_usage"][0]), documented::<DiskUsageOut>());
        assert_eq!(keys(&json["disk_io"][0]), documented::<DiskIoOut>());
        assert_eq!(keys(&json["network"][0]), documented::<NetworkOut>());
        assert_eq!(keys(&json["temperatures"][0]), documented::<TemperatureOut>());
        assert_eq!(keys(&json["containers"][0]), documented::<ContainerOut>());
    }
}
