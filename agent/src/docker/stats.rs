//! What one container uses at this moment, as the engine reports it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use signalbox_protocol::Timestamp;
use signalbox_protocol::container::ContainerStats;

use super::engine::Engine;
use super::error::EngineError;

/// The time between two readings, where the engine returns one at a time.
const BETWEEN: Duration = Duration::from_millis(500);
/// An engine reports a container without a limit with nearly all that 63 bits can hold.
const NO_LIMIT: u64 = 1 << 62;

/// `/containers/{id}/stats`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stats {
    #[serde(alias = "Id")]
    id: String,
    read: String,
    preread: String,
    cpu_stats: Cpu,
    precpu_stats: Cpu,
    memory_stats: Memory,
    #[serde(deserialize_with = "or_empty")]
    networks: BTreeMap<String, Network>,
    #[serde(deserialize_with = "or_empty")]
    blkio_stats: Blocks,
    pids_stats: Pids,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cpu {
    cpu_usage: CpuUsage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CpuUsage {
    /// Nanoseconds.
    total_usage: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Memory {
    usage: u64,
    limit: u64,
    stats: MemoryParts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MemoryParts {
    /// In version 1, including the groups below.
    total_inactive_file: Option<u64>,
    /// In version 2, where it includes the groups below.
    inactive_file: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Network {
    rx_bytes: u64,
    tx_bytes: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Blocks {
    #[serde(deserialize_with = "or_empty")]
    io_service_bytes_recursive: Vec<BlockEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BlockEntry {
    op: String,
    value: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pids {
    current: Option<u64>,
}

fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Takes one to two seconds with Docker, half a second with Podman.
pub async fn read(engine: &Engine, container_id: &str) -> Result<ContainerStats, EngineError> {
    let path = format!("/containers/{container_id}/stats?stream=false");
    let first: Stats = engine.read(&path).await?;
    if moment(&first.read).is_none() || moment(&first.preread).is_some() {
        let before = (first.precpu_stats.cpu_usage.total_usage, first.preread.clone());
        return Ok(tell(first, before));
    }
    tokio::time::sleep(BETWEEN).await;
    let second = engine.read(&path).await?;
    Ok(tell(second, (first.cpu_stats.cpu_usage.total_usage, first.read)))
}

/// `before`: the processor time at an earlier moment.
fn tell(stats: Stats, (usage_before, read_before): (u64, String)) -> ContainerStats {
    let read = moment(&stats.read);
    let elapsed_ms = read.zip(moment(&read_before)).map_or(0, |(now, before)| now.millis_since(before)).max(0);
    let used_ns = stats.cpu_stats.cpu_usage.total_usage.saturating_sub(usage_before);
    let cpu_percent = if elapsed_ms == 0 { 0.0 } else { used_ns as f64 / (elapsed_ms as f64 * 1e6) * 100.0 };
    let memory = &stats.memory_stats;
    let cache = memory.stats.total_inactive_file.or(memory.stats.inactive_file).unwrap_or(0);
    let blocks = |op: &str| {
        let entries = stats.blkio_stats.io_service_bytes_recursive.iter();
        entries.filter(|entry| entry.op.eq_ignore_ascii_case(op)).map(|entry| entry.value).sum()
    };
    ContainerStats {
        container_id: stats.id.clone(),
        timestamp: read.unwrap_or_else(Timestamp::now),
        cpu_percent: (cpu_percent * 100.0).round() / 100.0,
        memory_bytes: memory.usage.saturating_sub(cache),
        memory_limit_bytes: Some(memory.limit).filter(|limit| (1..NO_LIMIT).contains(limit)),
        network_rx_bytes: stats.networks.values().map(|network| network.rx_bytes).sum(),
        network_tx_bytes: stats.networks.values().map(|network| network.tx_bytes).sum(),
        block_read_bytes: blocks("read"),
        block_write_bytes: blocks("write"),
        process_count: stats.pids_stats.current,
    }
}

/// None for Go's zero time: a container that does not run, or an engine without an earlier reading.
fn moment(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text).filter(|moment| moment.as_millis() > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_share_of_a_core_is_counted_between_two_readings() {
        let stats: Stats = serde_json::from_value(json!({
            "id": "75af", "read": "2026-11-21T15:12:14.000Z", "preread": "2026-11-21T15:12:13.000Z",
            "cpu_stats": {"cpu_usage": {"total_usage": 2_500_000_000_u64}, "system_cpu_usage": 1},
            "precpu_stats": {"cpu_usage": {"total_usage": 1_000_000_000_u64}},
            "memory_stats": {"usage": 1_000, "limit": 9_223_372_036_854_771_712_u64, "stats": {"total_inactive_file": 400}},
            "networks": {"eth0": {"rx_bytes": 1, "tx_bytes": 2}, "eth1": {"rx_bytes": 10, "tx_bytes": 20}},
            "blkio_stats": {"io_service_bytes_recursive": [{"op": "Read", "value": 5}, {"op": "write", "value": 7}]},
            "pids_stats": {"current": 2},
        }))
        .unwrap();

        let told = tell(stats, (1_000_000_000, "2026-11-21T15:12:13.000Z".to_owned()));

        let expected = ContainerStats {
            container_id: "75af".into(),
            timestamp: Timestamp::parse("2026-11-21T15:12:14Z").unwrap(),
            cpu_percent: 150.0,
            memory_bytes: 600,
            memory_limit_bytes: None,
            network_rx_bytes: 11,
            network_tx_bytes: 22,
            block_read_bytes: 5,
            block_write_bytes: 7,
            process_count: Some(2),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn values_that_podman_and_stopped_containers_lack_are_empty() {
        let stats: Stats = serde_json::from_value(json!({
            "Id": "75af", "read": "0001-01-01T00:00:00Z", "preread": "0001-01-01T00:00:00Z",
            "blkio_stats": {"io_service_bytes_recursive": null}, "networks": null, "memory_stats": {}, "pids_stats": {},
        }))
        .unwrap();

        let told = tell(stats, (0, String::new()));

        let expected = ContainerStats { container_id: "75af".into(), timestamp: told.timestamp, ..Default::default() };
        assert_eq!(told, expected);
    }
}
