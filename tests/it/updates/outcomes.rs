//! What becomes of the servers of a rollout.

use std::time::Duration;

use serde_json::json;
use signalbox_protocol::agent::AgentInfo;

use super::{NEW, OLD, PROGRAM, Scene, canary_first, connect, member, path, refuse, take, updatable, write_release};
use crate::support::eventually;

#[actix_web::test]
async fn a_failure_stops_the_rest() {
    let scene = Scene::start().await;
    let (mut canary, mut web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let made = scene.roll_out_without_pause().await;
    take(&mut canary).await;
    drop(canary);

    let _failed = scene.failed_agent(&scene.canary, "it did not connect within 60 s").await;

    let stopped = scene.until_status(&made, "stopped").await;
    assert_eq!(stopped["stopped_reason"], "1 server failed, and at most 0 may");
    let canary = member(&stopped, &scene.canary).unwrap();
    assert_eq!((&canary["state"], &canary["reason"]), (&json!("failed"), &json!("it did not connect within 60 s")));
    assert_eq!(member(&stopped, &scene.web).unwrap()["state"], "waiting");
    web.expect_silence(1).await;
    let entry = |action: &str, outcome: &str| (action.to_owned(), outcome.to_owned());
    assert_eq!(scene.audited("agent.update").await, [entry("agent.update", "failed: update_failed")]);
    assert_eq!(scene.audited("rollout.end").await, [entry("rollout.end", "failed: too_many_failed")]);
    let overview = scene.read("/updates").await;
    let failed = &overview["servers"][0]["failed_update"];
    assert_eq!(failed, &json!({ "version": NEW, "reason": "it did not connect within 60 s" }));
}

#[actix_web::test]
async fn as_many_servers_may_fail_as_the_rollout_says() {
    let scene = Scene::start().await;
    let (mut canary, mut web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let made = scene.roll_out(json!({ "waves": canary_first(), "pause_minutes": 0, "max_failed": 1 })).await;
    take(&mut canary).await;
    drop(canary);
    let _canary = scene.failed_agent(&scene.canary, "it exited").await;

    take(&mut web).await;
    drop(web);
    let _web = scene.failed_agent(&scene.web, "it exited").await;

    let stopped = scene.until_status(&made, "stopped").await;
    assert_eq!(stopped["stopped_reason"], "2 servers failed, and at most 1 may");
}

#[actix_web::test]
async fn the_trial_of_a_build_does_not_count_as_updated() {
    let scene = Scene::start_with(|config| config.timing.updates.settled = Duration::from_secs(3_600)).await;
    let late = scene.machine_that_left("canary-2", &["canary"]).await;
    let mut canary = scene.agent(&scene.canary, OLD).await;
    let made = scene.roll_out_without_pause().await;
    take(&mut canary).await;

    // The build connects while the one before still waits.
    let trial = scene.agent(&scene.canary, NEW).await;
    let _late = scene.stepped(&late).await;
    assert_eq!(member(&scene.read(&path(&made)).await, &scene.canary).unwrap()["state"], "offered");
    drop(trial);
    let _back = scene.failed_agent(&scene.canary, "it crashed").await;

    let stopped = scene.until_status(&made, "stopped").await;
    assert_eq!(member(&stopped, &scene.canary).unwrap()["reason"], "it crashed");
}

#[actix_web::test]
async fn a_failure_from_before_the_offer_is_not_one_of_the_rollout() {
    let scene = Scene::start().await;
    let late = scene.machine_that_left("canary-2", &["canary"]).await;
    let mut canary = scene.failed_agent(&scene.canary, "long ago").await;
    let made = scene.roll_out_without_pause().await;

    take(&mut canary).await;
    let _late = scene.stepped(&late).await;
    // The session of the offer is still there.
    let now = scene.read(&path(&made)).await;
    assert_eq!(member(&now, &scene.canary).unwrap()["state"], "offered", "{now}");
    drop(canary);
    let _updated = scene.agent(&scene.canary, NEW).await;

    scene.until_state(&made, &scene.canary, "updated").await;
}

#[actix_web::test]
async fn a_refusal_has_its_reason_and_is_no_failure() {
    let scene = Scene::start().await;
    let (mut canary, mut web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let made = scene.roll_out_without_pause().await;

    refuse(&mut canary, "not_newer").await;
    refuse(&mut web, "<script>").await;

    let done = scene.until_status(&made, "done").await;
    let told = |machine| member(&done, machine).map(|member| (member["state"].clone(), member["reason"].clone()));
    assert_eq!(told(&scene.canary), Some((json!("refused"), json!("not_newer"))));
    assert_eq!(told(&scene.web), Some((json!("refused"), json!("other"))));
    let refused = ("agent.update".to_owned(), "refused".to_owned());
    assert_eq!(scene.audited("agent.update").await, [refused.clone(), refused]);
}

#[actix_web::test]
async fn an_agent_that_takes_updates_no_longer_is_not_offered_any() {
    let scene = Scene::start().await;
    drop(scene.agent(&scene.canary, OLD).await);
    scene.until_offline(&scene.canary).await;
    let made = scene.roll_out_without_pause().await;

    let off = AgentInfo { capabilities: vec!["metrics".to_owned()], ..updatable() };
    let mut canary = connect(&scene.service, &scene.canary, off).await;

    let told = scene.until_state(&made, &scene.canary, "refused").await;
    assert_eq!(told["reason"], "updates_off");
    canary.expect_silence(1).await;
}

#[actix_web::test]
async fn an_offer_without_an_outcome_is_repeated_and_then_given_up() {
    let scene = Scene::start_with(|config| config.timing.updates.again = Duration::from_millis(60)).await;
    let mut canary = scene.agent(&scene.canary, OLD).await;
    let made = scene.roll_out_without_pause().await;

    for _ in 0..36 {
        take(&mut canary).await;
    }

    let told = scene.until_state(&made, &scene.canary, "failed").await;
    assert_eq!(told["reason"], "it was offered the build 36 times and did not connect with it");
    canary.expect_silence(1).await;
}

#[actix_web::test]
async fn a_server_that_vanishes_with_the_build_has_failed() {
    let scene = Scene::start_with(|config| config.timing.updates.again = Duration::from_millis(500)).await;
    let mut canary = scene.agent(&scene.canary, OLD).await;
    let made = scene.roll_out_without_pause().await;

    take(&mut canary).await;
    drop(canary);

    let told = scene.until_state(&made, &scene.canary, "failed").await;
    assert_eq!(told["reason"], "it has been offline since it was offered the build");
}

#[actix_web::test]
async fn an_agent_that_is_updated_by_hand_needs_no_offer() {
    let scene = Scene::start().await;
    drop(scene.agent(&scene.canary, OLD).await);
    scene.until_offline(&scene.canary).await;
    let made = scene.roll_out_without_pause().await;

    let mut canary = scene.agent(&scene.canary, NEW).await;

    scene.until_status(&made, "done").await;
    assert_eq!(scene.until_state(&made, &scene.canary, "updated").await["from_version"], OLD);
    canary.expect_silence(1).await;
}

#[actix_web::test]
async fn another_release_stops_the_rollout_of_the_one_before() {
    let scene = Scene::start().await;
    drop(scene.agent(&scene.canary, OLD).await);
    scene.until_offline(&scene.canary).await;
    let made = scene.roll_out_without_pause().await;
    write_release(&scene.programs, "9.1.0");

    let mut canary = scene.agent(&scene.canary, OLD).await;

    let stopped = scene.until_status(&made, "stopped").await;
    assert_eq!(stopped["stopped_reason"], "the service has another release now");
    canary.expect_silence(1).await;
}

#[actix_web::test]
async fn a_release_that_is_incomplete_for_a_while_is_offered_when_it_is_whole() {
    let scene = Scene::start().await;
    drop(scene.agent(&scene.canary, OLD).await);
    scene.until_offline(&scene.canary).await;
    let made = scene.roll_out_without_pause().await;
    let program = scene.programs.path().join(PROGRAM);
    std::fs::rename(&program, scene.programs.path().join("aside")).unwrap();
    let mut canary = scene.agent(&scene.canary, OLD).await;
    eventually("the release is incomplete", async || {
        (scene.read("/updates").await["release"]["is_complete"] == false).then_some(())
    })
    .await;
    canary.expect_silence(1).await;
    assert_eq!(scene.read(&path(&made)).await["status"], "running");

    std::fs::rename(scene.programs.path().join("aside"), &program).unwrap();

    take(&mut canary).await;
}
