//! Thresholds for a tag and for everything, whatever servers come and go.

use serde_json::json;
use uuid::Uuid;

use crate::support::alerts::{Alarms, Threshold};
use crate::support::eventually;
use crate::support::site::Site;

/// The ids of the servers on which a threshold has an active alert.
async fn active_on(alarms: &Alarms, threshold: Uuid) -> Vec<String> {
    let alerts = alarms.of_threshold(threshold).await;
    let active = alerts.iter().filter(|alert| alert["status"] == "active");
    let mut servers: Vec<_> = active.map(|alert| alert["server_id"].as_str().unwrap().to_owned()).collect();
    servers.sort();
    servers
}

fn sorted(servers: &[Uuid]) -> Vec<String> {
    let mut servers: Vec<_> = servers.iter().map(Uuid::to_string).collect();
    servers.sort();
    servers
}

#[actix_web::test]
async fn a_threshold_for_all_is_for_present_and_future_servers() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let mut present = alarms.probe(&site.key).await;
    let threshold = alarms.add(Threshold::cpu(90.0).everywhere()).await;
    let (future_id, key) = alarms.server("web-2", &[]).await;
    let mut future = alarms.probe(&key).await;

    present.cpu(95.0).await;
    future.cpu(96.0).await;

    assert_eq!(active_on(&alarms, threshold).await, sorted(&[site.server_id, future_id]));
    // Each recovers separately.
    present.cpu(10.0).await;
    assert_eq!(active_on(&alarms, threshold).await, sorted(&[future_id]));
}

#[actix_web::test]
async fn a_threshold_for_a_tag_is_for_servers_that_have_it() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).tagged("prod")).await;
    let (tagged_id, tagged_key) = alarms.server("db-1", &["eu", "prod"]).await;
    let (_, other_key) = alarms.server("db-2", &["production", "pro"]).await;
    let mut probes = [alarms.probe(&site.key).await, alarms.probe(&tagged_key).await, alarms.probe(&other_key).await];

    for probe in &mut probes {
        probe.cpu(95.0).await;
    }

    assert_eq!(active_on(&alarms, threshold).await, sorted(&[tagged_id]));
}

#[actix_web::test]
async fn a_tag_that_comes_brings_its_thresholds_and_one_that_goes_ends_their_alerts() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).tagged("prod")).await;
    let mut probe = alarms.probe(&site.key).await;
    let path = format!("/servers/{}", site.server_id);
    probe.cpu(95.0).await;
    alarms.expect_none(threshold).await;

    alarms.put(&path, json!({"tags": ["prod"]})).await;
    probe.cpu(95.0).await;
    alarms.until_only(threshold, "active").await;
    alarms.put(&path, json!({"tags": ["test"]})).await;

    let ended = alarms.until_only(threshold, "resolved").await;
    assert_eq!(ended["resolved_by"], "threshold_deleted");
    probe.cpu(96.0).await;
    alarms.only(threshold).await;
    alarms.put(&path, json!({"tags": ["test", "prod"]})).await;
    probe.cpu(97.0).await;
    assert_eq!(alarms.until(threshold, "active").await["value"], 97.0);
}

#[actix_web::test]
async fn other_changes_of_a_server_leave_its_alerts_alone() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let path = format!("/servers/{}", site.server_id);
    alarms.put(&path, json!({"tags": ["prod"]})).await;
    let threshold = alarms.add(Threshold::cpu(90.0).tagged("prod")).await;
    let mut probe = alarms.probe(&site.key).await;
    probe.cpu(95.0).await;
    let active = alarms.until_only(threshold, "active").await;

    alarms.put(&path, json!({"tags": ["eu", "prod"], "description": "moved"})).await;
    probe.cpu(94.0).await;

    assert_eq!(alarms.only(threshold).await, active);
}

#[actix_web::test]
async fn a_threshold_may_move_from_a_server_to_a_tag_and_to_all() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let (tagged_id, tagged_key) = alarms.server("db-1", &["prod"]).await;
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut own = alarms.probe(&site.key).await;
    let mut tagged = alarms.probe(&tagged_key).await;
    own.cpu(95.0).await;
    tagged.cpu(95.0).await;
    assert_eq!(active_on(&alarms, threshold).await, sorted(&[site.server_id]));

    alarms.change(threshold, json!({"server_id": null, "tag": "prod"})).await;
    eventually("it is not for that server any more", async || {
        active_on(&alarms, threshold).await.is_empty().then_some(())
    })
    .await;
    own.cpu(96.0).await;
    tagged.cpu(96.0).await;
    assert_eq!(active_on(&alarms, threshold).await, sorted(&[tagged_id]));

    alarms.change(threshold, json!({"tag": null, "all": true})).await;
    own.cpu(97.0).await;
    tagged.cpu(97.0).await;
    assert_eq!(active_on(&alarms, threshold).await, sorted(&[site.server_id, tagged_id]));
}

#[actix_web::test]
async fn a_threshold_for_all_is_for_nobody_elses_servers() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let stranger = site.service.register("stranger").await;
    let (server_id, key) = site.service.server_with_key(&stranger, "theirs").await;
    let theirs = Alarms::of(&site.service, &stranger, server_id);
    let threshold = alarms.add(Threshold::cpu(90.0).everywhere()).await;
    let mut probe = theirs.probe(&key).await;

    probe.cpu(99.0).await;

    alarms.expect_none(threshold).await;
    assert!(theirs.all().await.is_empty());
}

#[actix_web::test]
async fn a_deleted_template_ends_its_alerts_on_all_servers() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).everywhere()).await;
    let mut probes = vec![alarms.probe(&site.key).await];
    for number in 2..6 {
        let (_, key) = alarms.server(&format!("web-{number}"), &[]).await;
        probes.push(alarms.probe(&key).await);
    }
    for probe in &mut probes {
        probe.cpu(95.0).await;
    }
    assert_eq!(active_on(&alarms, threshold).await.len(), 5);

    alarms.remove(threshold).await;

    let alerts = eventually("all of them have ended", async || {
        let alerts = alarms.of_threshold(threshold).await;
        alerts.iter().all(|alert| alert["status"] == "resolved").then_some(alerts)
    })
    .await;
    assert_eq!(alerts.len(), 5);
    let is_ended = |alert: &serde_json::Value| alert["resolved_by"] == "threshold_deleted";
    assert!(alerts.iter().all(is_ended), "{alerts:?}");
}
