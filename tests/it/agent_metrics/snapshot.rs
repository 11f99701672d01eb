//! `GET /metrics/{server_id}`: the latest sample, field by field.

use serde_json::json;
use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Encoding, Sample, Timestamp};
use uuid::Uuid;

use crate::support::agent::{sample_aged, sample_at};
use crate::support::site::Site;

/// The first integer that a double cannot hold.
const BEYOND_DOUBLES: u64 = (1 << 53) + 1;

#[actix_web::test]
async fn there_is_none_before_the_first_sample() {
    let site = Site::start().await;
    let _agent = site.agent().await;

    site.expect_no_metrics().await;
}

#[actix_web::test]
async fn a_full_sample_is_given_back_rounded_and_exact() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = site.agent_in(encoding).await;
        let sample = full_sample();

        agent.store(1, vec![sample.clone()]).await;

        let expected = expected_snapshot(site.server_id, sample.timestamp);
        assert_eq!(site.latest().await, expected, "latest");
        assert_eq!(site.history("resolution=raw").await, [expected], "history");
    }
}

fn full_sample() -> Sample {
    Sample {
        timestamp: Timestamp::now().plus_millis(-1_000),
        cpu_percent: 12.345_678,
        cpu_per_core: vec![0.0, 99.994, 100.0],
        load_average: [0.123, 1.239, 15.0],
        memory_percent: 33.333_333,
        memory_total: u64::MAX,
        memory_used: BEYOND_DOUBLES,
        swap_total: 0,
        swap_used: 0,
        disk_usage: vec![DiskUsage {
            path: "/srv/data ü".to_owned(),
            total: BEYOND_DOUBLES,
            used: BEYOND_DOUBLES - 2,
            free: 2,
            percent: 99.999,
        }],
        disk_io: vec![DiskIo { device: "nvme0n1".to_owned(), read_bytes: u64::MAX, write_bytes: 7 }],
        network: vec![
            NetworkUsage {
                interface: "eth0".to_owned(),
                bytes_sent: u64::MAX,
                bytes_recv: BEYOND_DOUBLES,
                in_total: None,
            },
            NetworkUsage { interface: "wlan0".to_owned(), bytes_sent: 0, bytes_recv: 1, in_total: None },
        ],
        temperatures: vec![Temperature { label: "coretemp \"0\"".to_owned(), celsius: -45.67 }],
        uptime_seconds: 86_400,
        process_count: 321,
        containers: vec![ContainerUsage {
            id: "4f5c".to_owned(),
            name: "db".to_owned(),
            cpu_percent: 399.999,
            memory_bytes: BEYOND_DOUBLES,
            network_rx_bytes: 5,
            network_tx_bytes: 6,
        }],
        ..Sample::default()
    }
}

fn expected_snapshot(server_id: Uuid, timestamp: Timestamp) -> serde_json::Value {
    json!({
        "server_id": server_id,
        "timestamp": timestamp.to_string(),
        "cpu_percent": 12.35,
        "cpu_per_core": [0.0, 99.99, 100.0],
        "load_average": [0.12, 1.24, 15.0],
        "memory_percent": 33.33,
        "memory_total": u64::MAX,
        "memory_used": BEYOND_DOUBLES,
        "swap_total": 0,
        "swap_used": 0,
        "disk_usage": [{
            "path": "/srv/data ü",
            "total": BEYOND_DOUBLES,
            "used": BEYOND_DOUBLES - 2,
            "free": 2,
            "percent": 100.0,
        }],
        "disk_io": [{"device": "nvme0n1", "read_bytes": u64::MAX, "write_bytes": 7}],
        "network": [
            {"interface": "eth0", "bytes_sent": u64::MAX, "bytes_recv": BEYOND_DOUBLES},
            {"interface": "wlan0", "bytes_sent": 0, "bytes_recv": 1},
        ],
        "temperatures": [{"label": "coretemp \"0\"", "celsius": -45.7}],
        "uptime_seconds": 86_400,
        "process_count": 321,
        "containers": [{
            "id": "4f5c",
            "name": "db",
            "cpu_percent": 400.0,
            "memory_bytes": BEYOND_DOUBLES,
            "network_rx_bytes": 5,
            "network_tx_bytes": 6,
        }],
    })
}

#[actix_web::test]
async fn a_minimal_sample_is_taken() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let time = Timestamp::now().plus_millis(-1_000).to_string();
    let sample = json!({
        "cpu_percent": 1,
        "memory_percent": 2.5,
        "disk_usage": [],
        "network": [{"interface": "lo", "bytes_sent": 1, "bytes_recv": 2}],
        "timestamp": time,
    });

    agent.send_value(&json!({"type": "metrics", "data": {"seq": 1, "samples": [sample]}})).await;
    agent.expect_ack(1).await;

    let latest = site.latest().await;
    assert_eq!(latest["cpu_percent"], 1.0);
    assert_eq!(latest["memory_percent"], 2.5);
    assert_eq!(latest["disk_usage"], json!([]));
    assert_eq!(latest["network"], json!([{"interface": "lo", "bytes_sent": 1, "bytes_recv": 2}]));
    assert_eq!(latest["timestamp"], time);
    assert_eq!(latest["server_id"], json!(site.server_id));
}

#[actix_web::test]
async fn a_timestamp_of_another_offset_is_the_same_moment() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let time = Timestamp::now().plus_millis(-1_000);
    let offset = chrono::FixedOffset::east_opt(5 * 3600 + 1800).unwrap();
    let mut sample = json!(sample_at(time));
    sample["timestamp"] = json!(time.to_datetime().with_timezone(&offset).to_rfc3339());

    agent.send_value(&json!({"type": "metrics", "data": {"seq": 1, "samples": [sample]}})).await;
    agent.expect_ack(1).await;

    assert_eq!(site.latest().await["timestamp"], time.to_string());
}

#[actix_web::test]
async fn it_survives_a_restart_of_the_service() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(5), sample_aged(2)]).await;
    let before = site.latest().await;

    let site = site.restart().await;

    assert_eq!(site.latest().await, before);
    assert_eq!(site.raw_timestamps().await.len(), 2);
    assert_eq!(site.server().await["status"], "offline");
}
