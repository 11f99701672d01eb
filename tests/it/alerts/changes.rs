//! Thresholds and servers that change, and the fate of the alerts that they have raised.

use serde_json::json;
use uuid::Uuid;

use crate::support::alerts::{Alarms, Probe, Threshold, busy_for};
use crate::support::site::Site;
use crate::support::{assert_timestamp, text_of};

/// A site on which one alert is active.
async fn fired(threshold: Threshold) -> (Site, Alarms, Uuid, Probe) {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let id = alarms.add(threshold).await;
    let mut probe = Probe::at(&site).await;
    probe.cpu(95.0).await;
    alarms.until_only(id, "active").await;
    (site, alarms, id, probe)
}

#[actix_web::test]
async fn a_disabled_threshold_raises_nothing() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).with("enabled", false)).await;
    let mut probe = Probe::at(&site).await;

    probe.cpu(95.0).await;
    alarms.expect_none(threshold).await;
    alarms.change(threshold, json!({"enabled": true})).await;
    // The sample from before does not count.
    probe.tell(Vec::new()).await;
    alarms.expect_none(threshold).await;
    probe.cpu(96.0).await;

    assert_eq!(alarms.until_only(threshold, "active").await["value"], 96.0);
}

#[actix_web::test]
async fn disabling_a_threshold_ends_its_alert() {
    let (_site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;

    alarms.change(threshold, json!({"enabled": false})).await;

    let ended = alarms.until_only(threshold, "resolved").await;
    assert_eq!(ended["resolved_by"], "threshold_deleted");
    probe.cpu(97.0).await;
    alarms.only(threshold).await;
    alarms.change(threshold, json!({"enabled": true})).await;
    probe.cpu(98.0).await;
    assert_eq!(alarms.until(threshold, "active").await["value"], 98.0);
}

#[actix_web::test]
async fn deleting_a_threshold_ends_its_alerts_which_stay_to_be_read() {
    let (_site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;
    let active = alarms.only(threshold).await;
    alarms.acknowledge(&active).await;

    alarms.remove(threshold).await;

    let ended = alarms.until_only(threshold, "resolved").await;
    assert_eq!((&ended["id"], &ended["resolved_by"]), (&active["id"], &json!("threshold_deleted")));
    assert_timestamp(&ended["resolved_at"]);
    assert_eq!(alarms.alert(&active).await["status"], "resolved");
    probe.cpu(97.0).await;
    alarms.only(threshold).await;
}

#[actix_web::test]
async fn a_threshold_with_another_metric_ends_its_alert_and_starts_over() {
    for change in [json!({"metric_type": "memory"}), json!({"comparison": "lt"}), json!({"metric_type": "load"})] {
        let (_site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;

        alarms.change(threshold, change.clone()).await;

        let ended = alarms.until_only(threshold, "resolved").await;
        assert_eq!(ended["resolved_by"], "threshold_deleted", "{change}");
        assert_eq!((&ended["metric_type"], &ended["comparison"]), (&json!("cpu"), &json!("gt")), "as it was: {change}");
        probe.now(|sample| sample.cpu_percent = 95.0).await;
        alarms.of_threshold(threshold).await;
    }
}

#[actix_web::test]
async fn another_target_ends_the_alert_of_the_one_before() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("disk", "gt", 30.0).target("/")).await;
    let mut probe = Probe::at(&site).await;
    probe.cpu(10.0).await;
    alarms.until_only(threshold, "active").await;

    alarms.change(threshold, json!({"target": "/data"})).await;
    assert_eq!(alarms.until_only(threshold, "resolved").await["resolved_by"], "threshold_deleted");
    probe.cpu(10.0).await;
    alarms.only(threshold).await;
    alarms.change(threshold, json!({"target": null})).await;
    probe.cpu(10.0).await;

    let alert = alarms.until(threshold, "active").await;
    assert_eq!((&alert["target"], &alert["worst_target"]), (&json!(null), &json!("/")));
}

#[actix_web::test]
async fn another_severity_ends_nothing() {
    let (_site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;
    let active = alarms.only(threshold).await;

    alarms.change(threshold, json!({"severity": "critical"})).await;
    probe.cpu(94.0).await;

    assert_eq!(alarms.only(threshold).await, active, "it is of the severity with which it was raised");
    probe.cpu(10.0).await;
    probe.cpu(95.0).await;
    assert_eq!(alarms.until(threshold, "active").await["severity"], "critical");
}

#[actix_web::test]
async fn a_change_that_changes_nothing_ends_nothing() {
    let (_site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;
    let active = alarms.only(threshold).await;

    let same =
        json!({"metric_type": "cpu", "comparison": "gt", "threshold_value": 90.0, "enabled": true, "target": null});
    alarms.change(threshold, same).await;
    probe.cpu(94.0).await;

    assert_eq!(alarms.only(threshold).await, active);
}

#[actix_web::test]
async fn a_changed_threshold_counts_for_the_next_sample() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;

    for (limit, fires) in [(70.0, true), (90.0, false), (60.0, true), (99.0, false)] {
        alarms.change(threshold, json!({"threshold_value": limit})).await;
        probe.cpu(80.0).await;
        let active = alarms.list("status=active").await;
        assert_eq!(active.len(), usize::from(fires), "over {limit}: {active:?}");
        assert!(active.iter().all(|alert| alert["threshold_value"] == limit), "{active:?}");
    }
}

#[actix_web::test]
async fn a_shorter_duration_does_not_count_what_was_before_it() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).lasting(3600)).await;
    let mut probe = Probe::at(&site).await;
    let end = probe.moment();
    probe.tell(busy_for(end, 40, 95.0)).await;

    alarms.change(threshold, json!({"duration_seconds": 0})).await;
    probe.cpu(95.0).await;

    alarms.until_only(threshold, "active").await;
}

#[actix_web::test]
async fn what_was_resolved_by_hand_of_a_changed_threshold_does_not_hold_it_back() {
    let (_site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;
    alarms.resolve(&alarms.only(threshold).await).await;

    alarms.change(threshold, json!({"threshold_value": 85.0})).await;
    probe.cpu(95.0).await;

    let alert = alarms.until(threshold, "active").await;
    assert_eq!(alert["threshold_value"], 85.0);
    assert_eq!(alarms.of_threshold(threshold).await.len(), 2);
}

#[actix_web::test]
async fn a_deleted_server_takes_its_thresholds_and_alerts_along() {
    let (site, alarms, threshold, _probe) = fired(Threshold::cpu(90.0)).await;
    let everywhere = alarms.add(Threshold::cpu(80.0).everywhere()).await;
    let alert = alarms.only(threshold).await;

    site.delete_server().await;

    assert!(alarms.all().await.is_empty());
    let thresholds = alarms.read("/alerts/thresholds").await;
    let ids: Vec<_> = thresholds.as_array().unwrap().iter().map(|threshold| text_of(&threshold["id"])).collect();
    assert_eq!(ids, [everywhere.to_string()]);
    let path = format!("/alerts/{}", text_of(&alert["id"]));
    site.service.client.get(path).bearer(&alarms.token).expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn a_renamed_server_is_named_so_by_the_next_alert() {
    let (site, alarms, threshold, mut probe) = fired(Threshold::cpu(90.0)).await;

    alarms.put(&format!("/servers/{}", site.server_id), json!({"name": "shop-7"})).await;
    probe.cpu(10.0).await;
    probe.cpu(95.0).await;

    let alert = alarms.until(threshold, "active").await;
    assert!(text_of(&alert["message"]).contains("shop-7"), "{alert}");
}

#[actix_web::test]
async fn a_threshold_that_comes_while_samples_stream_is_heard() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let mut probe = Probe::at(&site).await;

    for round in 0..10 {
        probe.cpu(95.0).await;
        let threshold = alarms.add(Threshold::cpu(90.0)).await;
        probe.cpu(96.0).await;
        let alert = alarms.until_only(threshold, "active").await;
        assert_eq!(alert["value"], 96.0, "round {round}");
        alarms.remove(threshold).await;
        let ended = alarms.until_only(threshold, "resolved").await;
        assert_eq!(ended["resolved_by"], "threshold_deleted", "round {round}");
    }
}
