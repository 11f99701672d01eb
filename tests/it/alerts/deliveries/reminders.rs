//! Notifications are repeated until somebody acknowledges the alert, and a restart repeats none.

use serde_json::json;

use super::{Scene, events, nearby, told, until_told};
use crate::support::alerts::{Alarms, Probe};
use crate::support::receiver::Reaction;
use crate::support::site::Site;
use crate::support::{TestService, eventually};

const HOUR_MS: i64 = 3_600_000;

/// The same scene an hour later: the service restarts, and everything in its outbox is an hour old.
async fn an_hour_later(scene: Scene) -> Scene {
    // A receiver gets the message before that is written, and a service that ends waits only a moment for it.
    eventually("the message is recorded as sent", async || {
        scene.deliveries().await.iter().all(|delivery| delivery["status"] == "sent").then_some(())
    })
    .await;
    let Scene { site, threshold, receiver, probe, .. } = scene;
    drop(probe);
    let Site { service, owner, server_id, key } = site;
    let storage = service.stop().await;
    let earlier = |table: &str, column: &str| format!("UPDATE {table} SET {column} = {column} - {HOUR_MS}");
    let statements = [
        earlier("alerts", "notify_at"),
        earlier("notifications", "created_at"),
        earlier("notifications", "attempted_at"),
        earlier("notifications", "finished_at"),
    ];
    storage.execute(&statements.each_ref().map(String::as_str)).await;
    let service = TestService::start_on(storage, nearby).await;
    let site = Site { service, owner, server_id, key };
    let (alarms, probe) = (Alarms::at(&site), Probe::at(&site).await);
    Scene { site, alarms, threshold, probe, receiver }
}

#[actix_web::test]
async fn a_reminder_comes_until_somebody_looks_after_it() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({"repeat_minutes": 10})).await;
    let active = scene.fire().await;
    until_told(&scene.receiver, "triggered", &active).await;

    let scene = an_hour_later(scene).await;
    let reminded = until_told(&scene.receiver, "reminder", &active).await;
    scene.alarms.acknowledge(&active).await;
    let mut scene = an_hour_later(scene).await;
    let resolved = scene.recover().await;

    assert_eq!(events(&reminded), ["triggered", "reminder"], "one for all that were missed");
    let told = until_told(&scene.receiver, "resolved", &resolved).await;
    assert_eq!(events(&told), ["triggered", "reminder", "resolved"]);
}

#[actix_web::test]
async fn without_a_repetition_nobody_is_reminded() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;
    let active = scene.fire().await;
    until_told(&scene.receiver, "triggered", &active).await;

    let mut scene = an_hour_later(scene).await;
    let resolved = scene.recover().await;

    let told = until_told(&scene.receiver, "resolved", &resolved).await;
    assert_eq!(events(&told), ["triggered", "resolved"]);
}

#[actix_web::test]
async fn a_restart_tells_nobody_twice() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;
    let active = scene.fire().await;
    until_told(&scene.receiver, "triggered", &active).await;

    for _ in 0..3 {
        scene = an_hour_later(scene).await;
        scene.probe.cpu(95.0).await;
    }
    let resolved = scene.recover().await;

    until_told(&scene.receiver, "resolved", &resolved).await;
    assert_eq!(events(&told(&scene.receiver)), ["triggered", "resolved"]);
    // A graceful stop waits for a running attempt, so that not even the same message came twice.
    assert_eq!(scene.receiver.taken().len(), 2);
}
