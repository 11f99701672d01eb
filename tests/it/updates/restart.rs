//! Rollouts that are paused, cancelled, or go through a restart of the service.

use serde_json::json;

use super::{NEW, OLD, Scene, expect_offer, member, path, take};
use crate::database_away::through_proxy;
use crate::support::{Storage, eventually};

#[actix_web::test]
async fn a_paused_rollout_offers_nothing_and_notes_what_was_taken() {
    let scene = Scene::start().await;
    let (mut canary, mut web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let made = scene.roll_out(json!({ "waves": [{ "tags": ["canary"] }, { "tags": [] }], "pause_minutes": 0 })).await;
    take(&mut canary).await;

    let paused = scene.step(&made, "pause").await;
    assert_eq!(paused["status"], "paused");
    assert_eq!(scene.step(&made, "pause").await["status"], "paused");
    drop(canary);
    let _updated = scene.agent(&scene.canary, NEW).await;
    scene.until_state(&made, &scene.canary, "updated").await;
    web.expect_silence(1).await;
    assert_eq!(scene.read(&path(&made)).await["wave"], 0);

    assert_eq!(scene.step(&made, "resume").await["status"], "running");
    assert_eq!(scene.step(&made, "resume").await["status"], "running");
    take(&mut web).await;
    let ok = |action: &str| (action.to_owned(), "ok".to_owned());
    let expected = [ok("rollout.create"), ok("rollout.pause"), ok("rollout.resume")];
    assert_eq!(scene.audited("rollout").await, expected);
}

#[actix_web::test]
async fn a_cancelled_rollout_has_ended() {
    let scene = Scene::start().await;
    let (mut canary, mut web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let made = scene.roll_out_without_pause().await;
    take(&mut canary).await;

    let cancelled = scene.step(&made, "cancel").await;

    assert_eq!(cancelled["status"], "cancelled");
    assert!(cancelled["ended_at"].is_string(), "{cancelled}");
    for step in ["pause", "resume", "cancel"] {
        scene.call("POST", format!("{}/{step}", path(&made))).expect_error(400, "rollout_ended").await;
    }
    // Another one may begin, and it has what this one had not reached.
    drop(canary);
    let _updated = scene.agent(&scene.canary, NEW).await;
    let next = scene.roll_out_without_pause().await;
    take(&mut web).await;
    assert!(member(&next, &scene.canary).is_none(), "{next}");
    assert_eq!(scene.read(&path(&made)).await["status"], "cancelled");
}

#[actix_web::test]
async fn a_rollout_survives_a_restart_and_offers_nothing_twice() {
    let scene = Scene::start().await;
    let late = scene.machine_that_left("canary-2", &["canary"]).await;
    let (mut canary, web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let made = scene.roll_out_without_pause().await;
    take(&mut canary).await;
    scene.until_state(&made, &scene.canary, "offered").await;
    drop((canary, web));

    let scene = scene.restart().await;
    let mut canary = scene.agent(&scene.canary, OLD).await;
    let mut web = scene.agent(&scene.web, OLD).await;
    let came_late = scene.stepped(&late).await;
    canary.expect_silence(1).await;
    web.expect_silence(1).await;
    assert_eq!(scene.until_state(&made, &scene.canary, "offered").await["from_version"], OLD);
    drop((canary, came_late));
    let _updated = (scene.agent(&scene.canary, NEW).await, scene.agent(&late, NEW).await);

    take(&mut web).await;
    let now = scene.read(&path(&made)).await;
    assert_eq!((&now["wave"], &now["counts"]["updated"]), (&json!(1), &json!(2)), "{now}");
}

#[actix_web::test]
async fn a_rollout_survives_a_database_that_is_away_and_offers_nothing_twice() {
    let storage = Storage::fresh().await;
    // SQLite cannot be away.
    let Some((proxy, through)) = through_proxy(&storage).await else { return };
    let scene = Scene::on(storage, |config| config.database_url = Some(through.into())).await;
    let late = scene.machine_that_left("canary-2", &["canary"]).await;
    let (mut canary, mut web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let made = scene.roll_out_without_pause().await;
    let request = expect_offer(&mut canary).await;
    let ready = async |status: u16| {
        eventually("the database comes or goes", async || {
            (scene.service.root.get("/readyz").send().await.status == status).then_some(())
        })
        .await;
    };

    proxy.refuse();
    ready(503).await;
    canary.answer(&request, Ok(json!({ "version": NEW }))).await;
    proxy.heal();
    ready(200).await;

    let came_late = scene.stepped(&late).await;
    canary.expect_silence(1).await;
    let now = scene.read(&path(&made)).await;
    assert_eq!((&now["status"], &now["counts"]["offered"]), (&json!("running"), &json!(2)), "{now}");
    web.expect_silence(1).await;
    drop((canary, came_late));
    let _updated = (scene.agent(&scene.canary, NEW).await, scene.agent(&late, NEW).await);
    take(&mut web).await;
}
