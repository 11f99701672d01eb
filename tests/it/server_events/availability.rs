//! How much of the time a server was connected: time that the service did not see is neither up nor down.

use std::time::Duration;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use crate::support::agent::FakeAgent;
use crate::support::alerts::{Alarms, Threshold};
use crate::support::eventually;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::site::Site;
use crate::support::{Storage, TestService};

impl Site {
    async fn availability(&self, query: &str) -> Value {
        self.read(&format!("/servers/{}/availability?{query}", self.server_id)).await
    }
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[actix_web::test]
async fn a_server_without_an_agent_is_unknown() {
    let site = Site::start().await;

    let told = site.availability("start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z").await;

    assert_eq!(
        told,
        json!({"start": "2026-01-01T00:00:00.000Z", "end": "2026-01-02T00:00:00.000Z", "uptime_percent": null,
               "up_seconds": 0.0, "down_seconds": 0.0, "unknown_seconds": 86400.0, "reboots": 0, "outages": []})
    );
}

#[actix_web::test]
async fn availability_shows_when_an_agent_was_there_and_its_outages() {
    let site = Site::start().await;
    let before = Timestamp::now();
    let agent = site.agent().await;
    let told = site.availability("").await;
    assert_eq!((&told["uptime_percent"], &told["outages"]), (&json!(100.0), &json!([])));
    drop(agent);

    let down = eventually("the outage is there", async || {
        let told = site.availability(&format!("start={before}")).await;
        (seconds(&told["down_seconds"]) > 0.0).then_some(told)
    })
    .await;

    assert_eq!(down["outages"].as_array().map(Vec::len), Some(1));
    assert_eq!((&down["outages"][0]["ongoing"], &down["outages"][0]["reason"]), (&json!(true), &json!("disconnected")));
    let (up, off) = (seconds(&down["up_seconds"]), seconds(&down["down_seconds"]));
    assert!((seconds(&down["uptime_percent"]) - up / (up + off) * 100.0).abs() < 0.001, "{down}");
}

/// The service's answer about a server after it has stopped and is back.
async fn expect_unwatched(service: &ServiceProcess, prepared: &Prepared, reason: &str) {
    let events = service.read(prepared, &format!("/servers/{}/events", prepared.server_id)).await;
    let told = service.read(prepared, &format!("/servers/{}/availability", prepared.server_id)).await;

    assert_eq!((&events[0]["kind"], &events[0]["detail"]), (&json!("unwatched"), &json!({ "reason": reason })));
    assert_eq!((&told["down_seconds"], &told["outages"]), (&json!(0.0), &json!([])));
    assert!(seconds(&told["unknown_seconds"]) > 0.0, "{told}");
}

#[actix_web::test]
async fn while_the_service_was_away_nothing_was_down() {
    let storage = Storage::fresh().await;
    let service = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
    let prepared = service.prepare().await;
    let _agent = service.agent(&prepared).await;
    assert_eq!(service.terminate().await.code, Some(0));

    let service = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;

    expect_unwatched(&service, &prepared, "service_stopped").await;
}

#[actix_web::test]
async fn after_a_crash_of_the_service_nothing_was_down() {
    let storage = Storage::fresh().await;
    let service = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
    let prepared = service.prepare().await;
    let _agent = service.agent(&prepared).await;
    service.kill().await;

    let service = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;

    expect_unwatched(&service, &prepared, "service_lost").await;
}

#[actix_web::test]
async fn who_does_not_come_back_to_the_service_is_missing_from_then_on() {
    let Site { service, owner, server_id, key } = Site::start().await;
    let agent = FakeAgent::online(service.address, &key).await;
    let storage = service.stop().await;
    drop(agent);

    let patience = Duration::from_millis(200);
    let service = TestService::start_on(storage, |config| config.timing.offline_patience = patience).await;

    let site = Site { service, owner, server_id, key };
    site.until_kinds(&["offline", "unwatched", "online"]).await;
    assert_eq!(site.events("kind=offline").await[0]["detail"], json!({ "reason": "missing" }));
}

#[actix_web::test]
async fn an_alert_of_a_reboot_outlives_the_service() {
    let site = Site::start().await;
    let threshold = Alarms::at(&site).add(Threshold::on("reboot", "gte", 3_600.0)).await;
    drop(site.agent().await);
    let agent = site.rebooted(super::NEXT_BOOT).await;
    let opened = Alarms::at(&site).until_only(threshold, "active").await;
    drop(agent);

    let site = site.restart().await;
    let _agent = site.rebooted(super::NEXT_BOOT).await;

    let alert = Alarms::at(&site).only(threshold).await;
    assert_eq!((&alert["id"], &alert["status"]), (&opened["id"], &json!("active")));
}
