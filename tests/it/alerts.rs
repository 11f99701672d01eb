//! The promises of thresholds: they fire and recover, and each alert exists once, whatever breaks in between.

mod backfill;
mod changes;
mod containers;
mod crash;
mod deliveries;
mod duration;
mod failover;
mod feeds;
mod hands;
mod lists;
mod metrics;
mod offline;
mod once;
mod outage;
mod real;
mod restart;
mod retention;
mod silences;
mod targets;
mod templates;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};

use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;
use crate::support::{assert_timestamp, text_of};

fn process(name: &str, cpu_percent: f64, memory_bytes: u64) -> ProcessUsage {
    ProcessUsage { pid: 100, name: name.to_owned(), user: "root".to_owned(), cpu_percent, memory_bytes }
}

/// Four processes, of which the last is in neither list's first three.
fn top() -> TopProcesses {
    TopProcesses {
        by_cpu: vec![
            process("ffmpeg", 180.0, 9),
            process("postgres", 35.0, 8),
            process("node", 12.0, 7),
            process("sh", 1.0, 6),
        ],
        by_memory: vec![
            process("java", 0.0, 4 << 30),
            process("redis", 0.0, 2 << 30),
            process("mysqld", 0.0, 1 << 30),
            process("sh", 1.0, 6),
        ],
    }
}

#[track_caller]
fn assert_names(alert: &Value, words: &[&str]) {
    let message = text_of(&alert["message"]);
    for word in words {
        assert!(message.contains(word), "{message:?} does not name {word}");
    }
    assert_eq!(message.lines().count(), 1, "{message:?} is one line");
}

#[actix_web::test]
async fn a_crossing_sample_raises_an_alert_that_says_everything() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).severity("critical")).await;
    let mut probe = Probe::at(&site).await;
    let before = Timestamp::now();

    probe.cpu(97.25).await;

    let alert = alarms.until_only(threshold, "active").await;
    let triggered_at = Timestamp::parse(&text_of(&alert["triggered_at"])).unwrap();
    assert!(triggered_at >= before && triggered_at <= Timestamp::now(), "{alert}");
    assert_timestamp(&alert["triggered_at"]);
    assert_names(&alert, &["CPU", "97.25", "90", "web-1"]);
    let mut expected = json!({
        "threshold_id": threshold.to_string(),
        "server_id": site.server_id.to_string(),
        "owner": {"id": site.owner.id, "username": site.owner.username},
        "metric_type": "cpu",
        "series": null,
        "target": null,
        "threshold_value": 90.0,
        "clear_value": null,
        "comparison": "gt",
        "duration_seconds": 0,
        "value": 97.25,
        "unit": null,
        "peak_value": 97.25,
        "status": "active",
        "severity": "critical",
        "silenced": false,
        "acknowledged_at": null,
        "acknowledged_by": null,
        "resolved_at": null,
        "resolved_by": null,
    });
    for field in ["id", "message", "triggered_at", "worst_target"] {
        expected[field] = alert[field].clone();
    }
    assert_eq!(alert, expected);
}

#[actix_web::test]
async fn an_alert_keeps_its_first_value_and_the_worst_and_resolves_itself() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    for percent in [91.0, 99.0, 95.0] {
        probe.cpu(percent).await;
    }
    let open = alarms.only(threshold).await;

    probe.cpu(50.0).await;

    let resolved = alarms.until_only(threshold, "resolved").await;
    assert_eq!((&open["value"], &open["peak_value"]), (&json!(91.0), &json!(99.0)));
    assert_eq!((&resolved["value"], &resolved["peak_value"]), (&json!(91.0), &json!(99.0)));
    assert_eq!((&open["id"], &open["triggered_at"]), (&resolved["id"], &resolved["triggered_at"]));
    assert_eq!(resolved["resolved_by"], "recovery");
    assert_timestamp(&resolved["resolved_at"]);
    assert!(text_of(&resolved["resolved_at"]) >= text_of(&resolved["triggered_at"]));
    assert_eq!(alarms.timeline(&resolved).await, ["triggered", "resolved"]);
}

#[actix_web::test]
async fn the_worst_of_a_lower_bound_is_the_least() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("cpu", "lt", 10.0)).await;
    let mut probe = Probe::at(&site).await;

    for percent in [9.0, 2.0, 5.0] {
        probe.cpu(percent).await;
    }

    let alert = alarms.only(threshold).await;
    assert_eq!((&alert["value"], &alert["peak_value"]), (&json!(9.0), &json!(2.0)));
}

#[actix_web::test]
async fn after_a_recovery_it_fires_again() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;

    for percent in [95.0, 10.0, 96.0, 10.0, 97.0] {
        probe.cpu(percent).await;
    }

    let alerts = alarms.of_threshold(threshold).await;
    let told: Vec<_> = alerts.iter().map(|alert| (text_of(&alert["status"]), alert["value"].clone())).collect();
    let expected = [("active", 97.0), ("resolved", 96.0), ("resolved", 95.0)];
    assert_eq!(told, expected.map(|(status, value)| (status.to_owned(), json!(value))), "newest first");
}

#[actix_web::test]
async fn alerts_of_the_processor_and_the_memory_name_the_three_greediest_processes() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let cpu = alarms.add(Threshold::cpu(90.0)).await;
    let memory = alarms.add(Threshold::on("memory", "gte", 95.0)).await;
    let load = alarms.add(Threshold::on("load", "gt", 8.0)).await;
    let mut probe = Probe::at(&site).await;
    // The list comes once a minute, with a sample that crosses nothing.
    probe.now(|sample| sample.processes = Some(top())).await;

    probe
        .now(|sample| {
            (sample.cpu_percent, sample.memory_percent) = (97.0, 96.5);
            sample.load_average = [9.0, 1.0, 1.0];
        })
        .await;

    let cpu = alarms.until_only(cpu, "active").await;
    let memory = alarms.until_only(memory, "active").await;
    let load = alarms.until_only(load, "active").await;
    assert_names(&cpu, &["97", "ffmpeg", "180", "postgres", "35", "node", "12"]);
    assert_names(&memory, &["96.5", "java", "redis", "mysqld"]);
    assert_names(&load, &["9", "8", "web-1"]);
    let messages = [&cpu, &memory, &load].map(|alert| text_of(&alert["message"]));
    assert!(messages.iter().all(|message| !message.contains("sh ")), "the fourth is not named: {messages:?}");
    assert!(!messages[0].contains("java") && !messages[1].contains("ffmpeg"), "each its own: {messages:?}");
    assert!(!messages[2].contains("ffmpeg"), "the load has none: {messages:?}");
}

#[actix_web::test]
async fn the_message_names_how_long_it_has_been_so() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).lasting(30)).await;
    let mut probe = Probe::at(&site).await;

    let end = probe.moment();
    probe.tell(crate::support::alerts::busy_for(end, 30, 97.0)).await;

    assert_names(&alarms.until_only(threshold, "active").await, &["97", "90", "30 s", "web-1"]);
}

#[actix_web::test]
async fn names_in_a_message_cannot_break_it() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    let name = format!("a\u{1b}[31m\n\r{}", "x".repeat(200));
    let processes = TopProcesses { by_cpu: vec![process(&name, 90.0, 1); 3], by_memory: Vec::new() };

    probe
        .now(|sample| {
            sample.cpu_percent = 97.0;
            sample.processes = Some(processes);
        })
        .await;

    let message = text_of(&alarms.until_only(threshold, "active").await["message"]);
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.chars().count() <= 500, "{message:?}");
}
