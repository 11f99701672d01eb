//! What users do with alerts.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::alerts::{Alarms, Probe, Threshold, busy_for};
use crate::support::site::Site;
use crate::support::{assert_timestamp, text_of};

/// A site on which one alert is active.
async fn fired(threshold: Threshold) -> (Site, Alarms, uuid::Uuid, Probe) {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let id = alarms.add(threshold).await;
    let mut probe = Probe::at(&site).await;
    probe.cpu(95.0).await;
    alarms.until_only(id, "active").await;
    (site, alarms, id, probe)
}

#[actix_web::test]
async fn an_acknowledged_alert_says_who_and_when_and_stays_open() {
    let (site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;
    let active = alarms.only(threshold).await;

    let acknowledged = alarms.acknowledge(&active).await;
    let again = alarms.acknowledge(&active).await;
    probe.cpu(99.0).await;
    let worse = alarms.only(threshold).await;
    probe.cpu(10.0).await;
    let resolved = alarms.until_only(threshold, "resolved").await;

    assert_eq!(acknowledged["status"], "acknowledged");
    assert_eq!(acknowledged["acknowledged_by"], site.owner.id.to_string());
    assert_timestamp(&acknowledged["acknowledged_at"]);
    assert_eq!(again["acknowledged_at"], acknowledged["acknowledged_at"], "once");
    assert_eq!((&worse["status"], &worse["peak_value"]), (&json!("acknowledged"), &json!(99.0)));
    assert_eq!(resolved["resolved_by"], "recovery");
    assert_eq!(resolved["acknowledged_at"], acknowledged["acknowledged_at"]);
    assert_eq!(alarms.timeline(&resolved).await, ["triggered", "acknowledged", "resolved"]);
}

#[actix_web::test]
async fn what_was_resolved_by_hand_does_not_fire_again_until_it_has_recovered() {
    let (site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0).clear(80.0)).await;
    let active = alarms.only(threshold).await;

    let resolved = alarms.resolve(&active).await;
    let again = alarms.resolve(&active).await;

    assert_eq!(resolved["status"], "resolved");
    assert_eq!(resolved["resolved_by"], site.owner.id.to_string());
    assert_timestamp(&resolved["resolved_at"]);
    assert_eq!(again, resolved, "resolving is idempotent");
    for percent in [96.0, 85.0, 99.0] {
        probe.cpu(percent).await;
        assert_eq!(alarms.only(threshold).await["resolved_at"], resolved["resolved_at"], "{percent}");
    }
    probe.cpu(80.0).await;
    assert_eq!(alarms.only(threshold).await["resolved_by"], site.owner.id.to_string(), "it stays as it was resolved");
    probe.cpu(97.0).await;
    let new = alarms.until(threshold, "active").await;
    assert_eq!(alarms.of_threshold(threshold).await.len(), 2);
    assert_ne!(new["id"], active["id"]);
    assert_eq!(new["value"], 97.0);
}

#[actix_web::test]
async fn a_resolved_alert_is_left_as_it_is() {
    let (_site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;
    probe.cpu(10.0).await;
    let recovered = alarms.until_only(threshold, "resolved").await;

    let after_acknowledging = alarms.acknowledge(&recovered).await;
    let after_resolving = alarms.resolve(&recovered).await;

    for answer in [after_acknowledging, after_resolving] {
        assert_eq!((&answer["status"], &answer["resolved_by"]), (&json!("resolved"), &json!("recovery")));
        assert_eq!(answer["resolved_at"], recovered["resolved_at"]);
        assert_eq!(answer["acknowledged_at"], json!(null));
    }
    assert_eq!(alarms.timeline(&recovered).await, ["triggered", "resolved"]);
}

#[actix_web::test]
async fn an_acknowledged_alert_can_be_resolved_by_hand() {
    let (_site, alarms, threshold, _probe) = fired(Threshold::cpu(90.0)).await;
    let active = alarms.only(threshold).await;
    alarms.acknowledge(&active).await;

    let resolved = alarms.resolve(&active).await;

    assert_eq!(resolved["status"], "resolved");
    assert_timestamp(&resolved["acknowledged_at"]);
    let timeline = alarms.alert(&active).await["timeline"].clone();
    let told = |at: usize| (text_of(&timeline[at]["kind"]), timeline[at]["username"].clone());
    assert_eq!(told(0), ("triggered".to_owned(), json!(null)));
    assert_eq!(told(1), ("acknowledged".to_owned(), json!("owner")));
    assert_eq!(told(2), ("resolved".to_owned(), json!("owner")));
}

#[actix_web::test]
async fn after_a_resolution_by_hand_the_duration_starts_over() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).lasting(30)).await;
    let mut probe = Probe::at(&site).await;
    let end = probe.moment();
    probe.tell(busy_for(end, 30, 95.0)).await;
    alarms.resolve(&alarms.until_only(threshold, "active").await).await;

    probe.cpu(10.0).await;
    let start = probe.moment();
    probe.tell(busy_for(start.plus_millis(25_000), 25, 95.0)).await;
    assert_eq!(alarms.only(threshold).await["status"], "resolved");
    probe.tell(busy_for(start.plus_millis(30_000), 0, 95.0)).await;

    alarms.until(threshold, "active").await;
    assert_eq!(alarms.of_threshold(threshold).await.len(), 2);
}

#[actix_web::test]
async fn many_hands_at_once_do_it_once() {
    let (_site, alarms, threshold, _probe) = fired(Threshold::cpu(90.0)).await;
    let active = alarms.only(threshold).await;

    let acknowledged = join_all((0..8).map(|_| alarms.acknowledge(&active))).await;
    let resolved = join_all((0..8).map(|_| alarms.resolve(&active))).await;

    assert!(acknowledged.iter().all(|answer| answer["acknowledged_at"] == acknowledged[0]["acknowledged_at"]));
    assert!(resolved.iter().all(|answer| answer == &resolved[0]), "{resolved:?}");
    assert_eq!(alarms.timeline(&active).await, ["triggered", "acknowledged", "resolved"]);
}

#[actix_web::test]
async fn hands_and_samples_at_once_leave_one_end() {
    let (_site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;

    for round in 0..10 {
        probe.cpu(95.0).await;
        let active = alarms.until(threshold, "active").await;
        let (resolved, ()) = futures_util::join!(alarms.resolve(&active), probe.cpu(10.0));
        assert_eq!(resolved["status"], "resolved", "round {round}");
        let ends = alarms.timeline(&active).await.into_iter().filter(|kind| kind == "resolved").count();
        assert_eq!(ends, 1, "round {round}");
        probe.cpu(10.0).await;
    }

    let alerts = alarms.of_threshold(threshold).await;
    assert_eq!(alerts.len(), 10, "one a round: {alerts:?}");
}
