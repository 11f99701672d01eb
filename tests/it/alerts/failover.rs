//! A failover of the database that loses the last changes, while the service runs: alerts are again as the metrics say.

use sea_orm::ConnectionTrait;

use super::restart::{End, Scene};
use crate::support::alerts::Threshold;
use crate::support::in_time;
use crate::support::rows::writable_audit_log;

/// A failover to a database that lacks the last entry of the audit log and what this statement undoes, while the service runs.
async fn fail_over(scene: Scene, undo: &str) -> Scene {
    // A service that starts has read all entries. One that runs reads them once a second.
    let scene = scene.again(End::Term).await;
    let database = writable_audit_log(&scene.storage.direct_url()).await;
    let last = "(SELECT max(seq) FROM audit_log)";
    let lost = [
        undo.to_owned(),
        format!("DELETE FROM audit_log WHERE seq = {last}"),
        format!("UPDATE audit_head SET seq = {last}, hash = (SELECT hash FROM audit_log WHERE seq = {last})"),
    ];
    for sql in lost {
        database.execute_unprepared(&sql).await.unwrap();
    }
    scene
}

#[actix_web::test]
async fn an_alert_that_the_database_lost_is_opened_again() {
    let scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
    scene.probe().await.cpu(95.0).await;
    let lost = scene.alarms().until_only(threshold, "active").await;

    let scene = fail_over(scene, "DELETE FROM alerts").await;
    let mut probe = scene.probe().await;

    let opened = async {
        loop {
            probe.cpu(96.0).await;
            if let Some(alert) = scene.alarms().of_threshold(threshold).await.into_iter().next() {
                return alert;
            }
        }
    };
    let alert = in_time("it is open again", opened).await;
    assert_eq!(alert["status"], "active");
    assert_ne!(alert["id"], lost["id"]);
    probe.cpu(10.0).await;
    assert_eq!(scene.alarms().until_only(threshold, "resolved").await["id"], alert["id"]);
}

#[actix_web::test]
async fn an_alert_whose_end_the_database_lost_ends_again() {
    let scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
    let mut probe = scene.probe().await;
    probe.cpu(95.0).await;
    probe.cpu(10.0).await;
    let resolved = scene.alarms().until_only(threshold, "resolved").await;

    let undo = "UPDATE alerts SET status = 'active', resolved_at = NULL, resolved_by = NULL, rearmed_at = NULL, \
                sample_at = triggered_at";
    let scene = fail_over(scene, undo).await;
    let mut probe = scene.probe().await;

    let ended = async {
        loop {
            probe.cpu(10.0).await;
            let alert = scene.alarms().only(threshold).await;
            if alert["status"] == "resolved" {
                return alert;
            }
        }
    };
    let again = in_time("it has ended", ended).await;
    assert_eq!((&again["id"], &again["resolved_by"]), (&resolved["id"], &resolved["resolved_by"]));
}
