//! Numbers out of range, and lists and messages that are too long, which no correct agent sends.

use serde_json::{Value, json};
use signalbox_protocol::close::{MALFORMED, TOO_LARGE};
use signalbox_protocol::sample::{DiskUsage, MAX_LIST, NetworkUsage, Temperature};
use signalbox_protocol::{Encoding, MAX_MESSAGE_BYTES, Sample};
use tempfile::TempDir;

use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::process::ServiceProcess;
use crate::support::raw::{FIN, RawSocket, TEXT, frame, header};
use crate::support::site::Site;

/// Sends one sample, and expects that the service closes the session and stores nothing.
async fn expect_malformed(site: &Site, encoding: Encoding, what: &str, sample: Sample) {
    let mut agent = site.agent_in(encoding).await;
    agent.send_metrics(1, vec![sample_aged(1), sample]).await;

    assert_eq!(agent.socket.close_code().await, MALFORMED, "{what} in {encoding:?}");
}

fn disk(percent: f64) -> DiskUsage {
    DiskUsage { path: "/".to_owned(), percent, ..DiskUsage::default() }
}

/// A sample with 400 kB of paths, of which the history stores each byte.
fn too_large() -> Sample {
    let mount = |index: usize| DiskUsage { path: format!("/{index:0>4000}"), ..disk(1.0) };
    Sample { disk_usage: (0..100).map(mount).collect(), ..sample_aged(1) }
}

#[actix_web::test]
async fn numbers_out_of_range_close_the_session_and_store_nothing() {
    let site = Site::start().await;
    let sound = sample_aged(0);
    let cases = [
        ("cpu over 100", Sample { cpu_percent: 100.01, ..sound.clone() }),
        ("cpu below 0", Sample { cpu_percent: -0.01, ..sound.clone() }),
        ("memory over 100", Sample { memory_percent: 101.0, ..sound.clone() }),
        ("a core over 100", Sample { cpu_per_core: vec![1.0, 100.5], ..sound.clone() }),
        ("a disk over 100", Sample { disk_usage: vec![disk(100.1)], ..sound.clone() }),
        ("load below 0", Sample { load_average: [-1.0, 0.0, 0.0], ..sound.clone() }),
    ];

    for (what, sample) in cases {
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            expect_malformed(&site, encoding, what, sample.clone()).await;
        }
    }

    site.expect_no_metrics().await;
}

#[actix_web::test]
async fn numbers_that_are_not_finite_close_the_session() {
    let site = Site::start().await;
    let sound = sample_aged(0);

    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let hot = Temperature { label: "core".to_owned(), celsius: bad };
        let cases = [
            ("cpu", Sample { cpu_percent: bad, ..sound.clone() }),
            ("load", Sample { load_average: [0.0, bad, 0.0], ..sound.clone() }),
            ("disk", Sample { disk_usage: vec![disk(bad)], ..sound.clone() }),
            ("temperature", Sample { temperatures: vec![hot], ..sound.clone() }),
        ];
        for (what, sample) in cases {
            expect_malformed(&site, Encoding::MessagePack, what, sample).await;
        }
    }

    site.expect_no_metrics().await;
}

#[actix_web::test]
async fn missing_fields_and_wrong_types_close_the_session() {
    let site = Site::start().await;
    let sound = json!(sample_aged(0));
    let with = |field: &str, value: Value| {
        let mut sample = sound.clone();
        sample[field] = value;
        sample
    };
    let cases = [
        json!({}),
        json!("sample"),
        with("cpu_percent", json!("12")),
        with("cpu_percent", Value::Null),
        with("timestamp", json!("yesterday")),
        with("timestamp", Value::Null),
        with("network", json!({})),
        with("network", json!([{"interface": "eth0", "bytes_sent": -1, "bytes_recv": 0}])),
        with("network", json!([{"interface": "eth0", "bytes_sent": 1.5, "bytes_recv": 0}])),
    ];

    for sample in cases {
        let mut agent = site.agent().await;
        agent.send_value(&json!({"type": "metrics", "data": {"seq": 1, "samples": [sample]}})).await;

        assert_eq!(agent.socket.close_code().await, MALFORMED, "{sample}");
    }

    site.expect_no_metrics().await;
}

/// Samples with a list of this many entries, one for each list.
fn samples_with_lists_of(entries: usize) -> Vec<Sample> {
    let sound = sample_aged(0);
    let network =
        |index| NetworkUsage { interface: format!("veth{index}"), bytes_sent: 1, bytes_recv: 2, in_total: None };
    let sensor = |index| Temperature { label: format!("core {index}"), celsius: 40.0 };
    let mount = |index| DiskUsage { path: format!("/mnt/{index}"), ..disk(1.0) };
    vec![
        Sample { cpu_per_core: vec![1.0; entries], ..sound.clone() },
        Sample { network: (0..entries).map(network).collect(), ..sound.clone() },
        Sample { temperatures: (0..entries).map(sensor).collect(), ..sound.clone() },
        Sample { disk_usage: (0..entries).map(mount).collect(), ..sound },
    ]
}

#[actix_web::test]
async fn lists_of_1024_entries_are_taken() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;

    for (index, mut sample) in samples_with_lists_of(MAX_LIST).into_iter().enumerate() {
        sample.timestamp = sample.timestamp.plus_millis(index as i64);
        agent.store(1 + index as u64, vec![sample]).await;
    }

    let latest = site.latest().await;
    assert_eq!(latest["disk_usage"].as_array().unwrap().len(), MAX_LIST);
}

#[actix_web::test]
async fn lists_of_1025_entries_are_refused() {
    let site = Site::start().await;

    for sample in samples_with_lists_of(MAX_LIST + 1) {
        expect_malformed(&site, Encoding::MessagePack, "a long list", sample).await;
    }

    site.expect_no_metrics().await;
}

#[actix_web::test]
async fn a_batch_of_1024_samples_is_taken_and_1025_are_refused() {
    let site = Site::start().await;
    let batch = |samples: i64| (0..samples).map(|age| sample_aged(1 + age)).collect::<Vec<_>>();
    let mut agent = site.agent_in(Encoding::MessagePack).await;

    agent.store(1, batch(1024)).await;
    agent.send_metrics(2, batch(1025)).await;

    agent.expect_close(MALFORMED).await;
    assert_eq!(site.history("resolution=raw&max_points=20000").await.len(), 1024);
}

#[actix_web::test]
async fn a_sample_that_is_too_large_to_store_is_left_out_and_its_batch_is_acknowledged() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;

    agent.store(1, vec![sample_aged(2), too_large()]).await;
    agent.store(2, vec![too_large()]).await;
    agent.store(3, vec![sample_aged(0)]).await;

    assert_eq!(site.raw_timestamps().await.len(), 2);
}

#[actix_web::test]
async fn the_log_names_the_server_of_samples_that_are_too_large_once_for_each_session() {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;

    for seq in [1, 3] {
        let mut agent = service.agent(&prepared).await;
        agent.store(seq, vec![too_large(), too_large()]).await;
        agent.store(seq + 1, vec![too_large()]).await;
    }

    let log = service.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("too large to store")).collect();
    let id = prepared.server_id.to_string();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(&id)), "{log}");
}

/// A message of an unknown type, which is ignored, of exactly this many bytes.
fn padded_message(bytes: usize) -> String {
    let empty = json!({"type": "padding", "data": ""}).to_string();
    let padding = "x".repeat(bytes - empty.len());
    json!({"type": "padding", "data": padding}).to_string()
}

#[actix_web::test]
async fn a_message_of_4_mib_is_taken() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let text = padded_message(MAX_MESSAGE_BYTES);
    assert_eq!(text.len(), 4 * 1024 * 1024);

    agent.socket.send(tokio_tungstenite::tungstenite::Message::text(text)).await;

    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn a_message_over_4_mib_is_refused_at_its_header() {
    let site = Site::start().await;
    let mut socket = RawSocket::authenticated_agent(site.service.address, &site.key).await;

    socket.write(&header(FIN | TEXT, MAX_MESSAGE_BYTES as u64 + 1)).await.unwrap();

    socket.expect_close(TOO_LARGE).await;
}

#[actix_web::test]
async fn a_whole_message_over_4_mib_is_refused() {
    let site = Site::start().await;
    let mut socket = RawSocket::authenticated_agent(site.service.address, &site.key).await;
    let message = frame(FIN | TEXT, padded_message(MAX_MESSAGE_BYTES + 1).as_bytes());

    // The service may end the connection before it has read everything.
    let _ = socket.write(&message).await;

    socket.expect_end(&[TOO_LARGE]).await;
    let mut agent = FakeAgent::online(site.service.address, &site.key).await;
    agent.store(1, vec![sample_aged(1)]).await;
}
