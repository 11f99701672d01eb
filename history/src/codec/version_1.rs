//! Version 1 of a stored sample: a sample in MessagePack with positional fields, followed by one letter for each interface that
//! says whether it is part of the machine's total. Frozen: nothing writes it any more, and all of it must stay readable.

use std::io::ErrorKind;

use rmp_serde::decode::Error as DecodeError;
use serde::Deserialize;
use signalbox_protocol::codec::MAX_DEPTH;
use signalbox_protocol::sample::{
    ContainerUsage, DiskIo, DiskUsage, NetworkUsage, ProcessUsage, Temperature, TopProcesses,
};
use signalbox_protocol::{Sample, Timestamp};

use super::{CodecError, marked};

#[derive(Deserialize)]
struct SampleV1 {
    timestamp: Timestamp,
    cpu_percent: f64,
    cpu_per_core: Vec<f64>,
    load_average: [f64; 3],
    memory_percent: f64,
    memory_total: u64,
    memory_used: u64,
    swap_total: u64,
    swap_used: u64,
    disk_usage: Vec<DiskUsageV1>,
    disk_io: Vec<DiskIoV1>,
    network: Vec<NetworkUsageV1>,
    temperatures: Vec<TemperatureV1>,
    uptime_seconds: u64,
    process_count: u64,
    containers: Vec<ContainerUsageV1>,
    #[serde(default)]
    processes: Option<TopProcessesV1>,
}

#[derive(Deserialize)]
struct DiskUsageV1 {
    path: String,
    total: u64,
    used: u64,
    free: u64,
    percent: f64,
}

#[derive(Deserialize)]
struct DiskIoV1 {
    device: String,
    read_bytes: u64,
    write_bytes: u64,
}

#[derive(Deserialize)]
struct NetworkUsageV1 {
    interface: String,
    bytes_sent: u64,
    bytes_recv: u64,
    /// Written by builds that did not have the letters after the sample.
    #[serde(default)]
    in_total: Option<bool>,
}

#[derive(Deserialize)]
struct TemperatureV1 {
    label: String,
    celsius: f64,
}

#[derive(Deserialize)]
struct ContainerUsageV1 {
    id: String,
    name: String,
    cpu_percent: f64,
    memory_bytes: u64,
    network_rx_bytes: u64,
    network_tx_bytes: u64,
}

/// Blocks of top processes use it, too.
#[derive(Deserialize)]
pub struct TopProcessesV1 {
    by_cpu: Vec<ProcessUsageV1>,
    by_memory: Vec<ProcessUsageV1>,
}

#[derive(Deserialize)]
struct ProcessUsageV1 {
    pid: u32,
    name: String,
    user: String,
    cpu_percent: f64,
    memory_bytes: u64,
}

/// Reads what follows the version.
pub fn decode(bytes: &[u8]) -> Result<Sample, CodecError> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(MAX_DEPTH);
    let mut sample = Sample::from(SampleV1::deserialize(&mut deserializer)?);
    match <&str>::deserialize(&mut deserializer) {
        Ok(marks) => sample.network.iter_mut().zip(marks.bytes()).for_each(|(one, mark)| one.in_total = marked(mark)),
        // Nothing follows the sample.
        Err(DecodeError::InvalidMarkerRead(error)) if error.kind() == ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(error.into()),
    }
    Ok(sample)
}

impl From<SampleV1> for Sample {
    fn from(old: SampleV1) -> Self {
        Self {
            timestamp: old.timestamp,
            cpu_percent: old.cpu_percent,
            cpu_per_core: old.cpu_per_core,
            load_average: old.load_average,
            memory_percent: old.memory_percent,
            memory_total: old.memory_total,
            memory_used: old.memory_used,
            swap_total: old.swap_total,
            swap_used: old.swap_used,
            disk_usage: old.disk_usage.into_iter().map(DiskUsage::from).collect(),
            disk_io: old.disk_io.into_iter().map(DiskIo::from).collect(),
            network: old.network.into_iter().map(NetworkUsage::from).collect(),
            temperatures: old.temperatures.into_iter().map(Temperature::from).collect(),
            uptime_seconds: old.uptime_seconds,
            process_count: old.process_count,
            containers: old.containers.into_iter().map(ContainerUsage::from).collect(),
            processes: old.processes.map(TopProcesses::from),
            ..Self::default()
        }
    }
}

impl From<DiskUsageV1> for DiskUsage {
    fn from(DiskUsageV1 { path, total, used, free, percent }: DiskUsageV1) -> Self {
        Self { path, total, used, free, percent }
    }
}

impl From<DiskIoV1> for DiskIo {
    fn from(DiskIoV1 { device, read_bytes, write_bytes }: DiskIoV1) -> Self {
        Self { device, read_bytes, write_bytes }
    }
}

impl From<NetworkUsageV1> for NetworkUsage {
    fn from(NetworkUsageV1 { interface, bytes_sent, bytes_recv, in_total }: NetworkUsageV1) -> Self {
        Self { interface, bytes_sent, bytes_recv, in_total }
    }
}

impl From<TemperatureV1> for Temperature {
    fn from(TemperatureV1 { label, celsius }: TemperatureV1) -> Self {
        Self { label, celsius }
    }
}

impl From<ContainerUsageV1> for ContainerUsage {
    fn from(old: ContainerUsageV1) -> Self {
        let ContainerUsageV1 { id, name, cpu_percent, memory_bytes, network_rx_bytes, network_tx_bytes } = old;
        Self { id, name, cpu_percent, memory_bytes, network_rx_bytes, network_tx_bytes }
    }
}

impl From<TopProcessesV1> for TopProcesses {
    fn from(TopProcessesV1 { by_cpu, by_memory }: TopProcessesV1) -> Self {
        let usage = |old: Vec<ProcessUsageV1>| old.into_iter().map(ProcessUsage::from).collect();
        Self { by_cpu: usage(by_cpu), by_memory: usage(by_memory) }
    }
}

impl From<ProcessUsageV1> for ProcessUsage {
    fn from(ProcessUsageV1 { pid, name, user, cpu_percent, memory_bytes }: ProcessUsageV1) -> Self {
        Self { pid, name, user, cpu_percent, memory_bytes }
    }
}
