//! Agents that are away: by the clock of the service, and with patience after its own restart.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use signalbox::config::Config;
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;
use crate::support::{Account, Storage, TestService, eventually, text_of};

/// The service has hardly any patience with agents after its start.
fn impatient(config: &mut Config) {
    config.timing.offline_patience = Duration::from_millis(1);
}

#[actix_web::test]
async fn a_server_whose_agent_is_away_for_too_long_has_an_alert_that_recovers() {
    let site = Site::start_with(impatient).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::offline(0.5).severity("critical")).await;
    let mut probe = Probe::at(&site).await;
    probe.cpu(10.0).await;
    alarms.expect_none(threshold).await;

    probe.agent.socket.abort();
    let alert = alarms.until_only(threshold, "active").await;
    let _back = Probe::at(&site).await;
    let resolved = alarms.until_only(threshold, "resolved").await;

    assert_eq!((&alert["metric_type"], &alert["severity"]), (&json!("offline"), &json!("critical")));
    assert!(alert["value"].as_f64().unwrap() > 0.5, "{alert}");
    assert!(text_of(&alert["message"]).contains("web-1"), "{alert}");
    assert_eq!(resolved["resolved_by"], "recovery");
    assert!(resolved["peak_value"].as_f64() >= alert["value"].as_f64(), "how long it was in the end: {resolved}");
}

#[actix_web::test]
async fn it_fires_again_for_the_next_absence() {
    let site = Site::start_with(impatient).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::offline(0.2)).await;

    for round in 1..=3 {
        let agent = site.agent().await;
        eventually("it is back", async || alarms.list("status=active").await.is_empty().then_some(())).await;
        agent.socket.abort();
        alarms.until(threshold, "active").await;
        assert_eq!(alarms.of_threshold(threshold).await.len(), round);
    }
}

#[actix_web::test]
async fn the_duration_of_an_absence_counts_from_when_it_is_too_long() {
    let site = Site::start_with(impatient).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::offline(0.2).lasting(1)).await;
    let probe = Probe::at(&site).await;

    probe.agent.socket.abort();
    let alert = alarms.until_only(threshold, "active").await;

    assert!(alert["value"].as_f64().unwrap() >= 1.2, "{alert}");
}

#[actix_web::test]
async fn a_server_that_never_had_an_agent_is_not_missed() {
    let site = Site::start_with(impatient).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::offline(0.1).everywhere()).await;
    let (other_id, key) = alarms.server("web-2", &[]).await;

    // The absence of another agent shows that time has passed.
    alarms.probe(&key).await.agent.socket.abort();
    let alert = alarms.until_only(threshold, "active").await;

    assert_eq!(alert["server_id"], other_id.to_string());
}

#[actix_web::test]
async fn a_threshold_that_comes_while_the_agent_is_away_is_heard() {
    let site = Site::start_with(impatient).await;
    let alarms = Alarms::at(&site);
    site.agent().await.socket.abort();
    site.until_status("offline").await;

    let threshold = alarms.add(Threshold::offline(0.3)).await;

    alarms.until_only(threshold, "active").await;
}

#[actix_web::test]
async fn an_absence_that_was_resolved_by_hand_fires_again_only_after_a_return() {
    let site = Site::start_with(impatient).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::offline(0.1)).await;
    site.agent().await.socket.abort();
    alarms.resolve(&alarms.until_only(threshold, "active").await).await;

    let other = alarms.add(Threshold::offline(0.5)).await;
    alarms.until_only(other, "active").await;
    alarms.only(threshold).await;
    let agent = site.agent().await;
    alarms.until_only(other, "resolved").await;
    agent.socket.abort();

    alarms.until(threshold, "active").await;
    assert_eq!(alarms.of_threshold(threshold).await.len(), 2);
}

#[actix_web::test]
async fn a_deleted_server_is_not_missed() {
    let site = Site::start_with(impatient).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::offline(0.3).everywhere()).await;
    let (other_id, key) = alarms.server("web-2", &[]).await;
    let (gone, left) = (site.agent().await, alarms.probe(&key).await);

    site.delete_server().await;
    gone.socket.abort();
    left.agent.socket.abort();

    assert_eq!(alarms.until_only(threshold, "active").await["server_id"], other_id.to_string());
}

/// Many servers with agents, on a service that restarts.
struct Fleet {
    storage: Storage,
    owner: Account,
    threshold: Uuid,
    servers: Vec<(Uuid, String)>,
}

const SERVERS: usize = 40;

impl Fleet {
    /// Their agents were there until the service ended.
    async fn left_behind(threshold: Threshold) -> Self {
        let service = TestService::start_with(impatient).await;
        let owner = service.register("owner").await;
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            servers.push(service.server_with_key(&owner, &format!("web-{number}")).await);
        }
        let alarms = Alarms::of(&service, &owner, servers[0].0);
        let threshold = alarms.add(threshold.everywhere()).await;
        let agents = join_all(servers.iter().map(|(_, key)| FakeAgent::online(service.address, key))).await;
        let storage = service.stop().await;
        drop(agents);
        Self { storage, owner, threshold, servers }
    }
}

#[actix_web::test]
async fn a_restart_of_the_service_raises_no_storm_but_real_absences() {
    let Fleet { storage, owner, threshold, servers } = Fleet::left_behind(Threshold::offline(3.0)).await;
    // By then all the others have to be back, counted from within the start.
    let patience = Duration::from_secs(45);

    let service = TestService::start_on(storage, |config| config.timing.offline_patience = patience).await;
    let alarms = Alarms::of(&service, &owner, servers[0].0);
    let (missing, back) = servers.split_last().unwrap();
    let _agents = join_all(back.iter().map(|(_, key)| FakeAgent::online(service.address, key))).await;

    // Once the one that stays away is reported, patience is over for all.
    alarms.until(threshold, "active").await;
    assert_eq!(alarms.only(threshold).await["server_id"], missing.0.to_string());
}

#[actix_web::test]
async fn a_service_that_ends_does_not_miss_the_agents_that_it_has_sent_away() {
    let Fleet { storage, owner, servers, .. } = Fleet::left_behind(Threshold::offline(0.0)).await;

    let service = TestService::start_on(storage, |_| {}).await;

    let alerts = Alarms::of(&service, &owner, servers[0].0).all().await;
    assert!(alerts.is_empty(), "{} alerts", alerts.len());
}

#[actix_web::test]
async fn an_agent_that_came_back_and_left_again_is_missed_at_once() {
    let Fleet { storage, owner, threshold, servers } = Fleet::left_behind(Threshold::offline(3.0)).await;

    // With a patience longer than the test.
    let service = TestService::start_on(storage, |_| {}).await;
    let alarms = Alarms::of(&service, &owner, servers[0].0);
    FakeAgent::online(service.address, &servers[3].1).await.socket.abort();

    alarms.until(threshold, "active").await;
    assert_eq!(alarms.only(threshold).await["server_id"], servers[3].0.to_string());
}

#[actix_web::test]
async fn an_absence_from_before_a_restart_continues_and_ends_with_the_return() {
    let site = Site::start_with(impatient).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::offline(0.1)).await;
    site.agent().await.socket.abort();
    let active = alarms.until_only(threshold, "active").await;

    let site = site.restart().await;
    let alarms = Alarms::at(&site);
    // The absence grew until the restart.
    let without_peak = |alert: &Value| {
        let mut alert = alert.clone();
        alert["peak_value"] = Value::Null;
        alert
    };
    let continued = alarms.only(threshold).await;
    assert_eq!(without_peak(&continued), without_peak(&active));
    let peak = |alert: &Value| alert["peak_value"].as_f64().unwrap();
    assert!(peak(&continued) >= peak(&active), "{continued}");
    let _agent = site.agent().await;

    let resolved = alarms.until_only(threshold, "resolved").await;
    assert_eq!(resolved["id"], active["id"]);
}
