//! How version 1 of the formats was written. Frozen: no build writes it any more, and every build reads it.

use serde::Serialize;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

/// Fields go by their places, and have no names.
#[derive(Serialize)]
struct SampleV1<'a> {
    timestamp: Timestamp,
    cpu_percent: f64,
    cpu_per_core: &'a [f64],
    load_average: [f64; 3],
    memory_percent: f64,
    memory_total: u64,
    memory_used: u64,
    swap_total: u64,
    swap_used: u64,
    disk_usage: Vec<(&'a str, u64, u64, u64, f64)>,
    disk_io: Vec<(&'a str, u64, u64)>,
    network: Vec<(&'a str, u64, u64)>,
    temperatures: Vec<(&'a str, f64)>,
    uptime_seconds: u64,
    process_count: u64,
    containers: Vec<(&'a str, &'a str, f64, u64, u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<TopProcessesV1<'a>>,
}

type ProcessV1<'a> = (u32, &'a str, &'a str, f64, u64);

/// By processor, by memory.
type TopProcessesV1<'a> = (Vec<ProcessV1<'a>>, Vec<ProcessV1<'a>>);

/// A row of the journal: samples of a server, encoded.
pub fn journal_row(server_id: Uuid, samples: &[Vec<u8>]) -> Vec<u8> {
    let mut row = vec![1];
    for sample in samples {
        row.extend_from_slice(server_id.as_bytes());
        row.extend_from_slice(&u32::try_from(sample.len()).unwrap().to_le_bytes());
        row.extend_from_slice(sample);
    }
    row
}

/// A stored sample, as it was in a journal, in a table, and on the way between instances.
pub fn sample(sample: &Sample) -> Vec<u8> {
    let old = SampleV1 {
        timestamp: sample.timestamp,
        cpu_percent: sample.cpu_percent,
        cpu_per_core: &sample.cpu_per_core,
        load_average: sample.load_average,
        memory_percent: sample.memory_percent,
        memory_total: sample.memory_total,
        memory_used: sample.memory_used,
        swap_total: sample.swap_total,
        swap_used: sample.swap_used,
        disk_usage: sample
            .disk_usage
            .iter()
            .map(|it| (it.path.as_str(), it.total, it.used, it.free, it.percent))
            .collect(),
        disk_io: sample.disk_io.iter().map(|it| (it.device.as_str(), it.read_bytes, it.write_bytes)).collect(),
        network: sample.network.iter().map(|it| (it.interface.as_str(), it.bytes_sent, it.bytes_recv)).collect(),
        temperatures: sample.temperatures.iter().map(|it| (it.label.as_str(), it.celsius)).collect(),
        uptime_seconds: sample.uptime_seconds,
        process_count: sample.process_count,
        containers: sample
            .containers
            .iter()
            .map(|it| {
                let (id, name) = (it.id.as_str(), it.name.as_str());
                (id, name, it.cpu_percent, it.memory_bytes, it.network_rx_bytes, it.network_tx_bytes)
            })
            .collect(),
        processes: sample.processes.as_ref().map(top_processes),
    };
    let mut bytes = vec![1];
    rmp_serde::encode::write(&mut bytes, &old).unwrap();
    bytes
}

fn top_processes(top: &TopProcesses) -> TopProcessesV1<'_> {
    (processes(&top.by_cpu), processes(&top.by_memory))
}

fn processes(list: &[ProcessUsage]) -> Vec<ProcessV1<'_>> {
    list.iter().map(|it| (it.pid, it.name.as_str(), it.user.as_str(), it.cpu_percent, it.memory_bytes)).collect()
}
