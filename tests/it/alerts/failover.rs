//! A failover of the database that loses the last changes, while the service runs: alerts are again as the metrics say.

use super::restart::{End, Scene};
use crate::support::alerts::Threshold;
use crate::support::rows::fail_over;

#[actix_web::test]
async fn an_alert_that_the_database_lost_is_opened_again() {
    let scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
    let lost = scene.probe().await.cpu_until(95.0, &scene.alarms(), threshold, "active").await;

    // One that starts has read the audit log to its end. One that runs reads it once a second.
    let scene = scene.again(End::Term).await;
    fail_over(&scene.storage, "DELETE FROM alerts").await;
    let mut probe = scene.probe().await;
    let again = probe.cpu_until(96.0, &scene.alarms(), threshold, "active").await;
    let resolved = probe.cpu_until(10.0, &scene.alarms(), threshold, "resolved").await;

    assert_ne!(again["id"], lost["id"]);
    assert_eq!(resolved["id"], again["id"]);
    scene.alarms().only(threshold).await;
}

#[actix_web::test]
async fn an_alert_whose_end_the_database_lost_ends_again() {
    let scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
    let mut probe = scene.probe().await;
    probe.cpu_until(95.0, &scene.alarms(), threshold, "active").await;
    let resolved = probe.cpu_until(10.0, &scene.alarms(), threshold, "resolved").await;

    let scene = scene.again(End::Term).await;
    let undo = "UPDATE alerts SET status = 'active', resolved_at = NULL, resolved_by = NULL, rearmed_at = NULL, \
                sample_at = triggered_at";
    fail_over(&scene.storage, undo).await;
    let mut probe = scene.probe().await;
    let again = probe.cpu_until(10.0, &scene.alarms(), threshold, "resolved").await;

    assert_eq!((&again["id"], &again["resolved_by"]), (&resolved["id"], &resolved["resolved_by"]));
    scene.alarms().only(threshold).await;
}
