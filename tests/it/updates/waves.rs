//! The order of waves, and what holds them up.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::{NEW, OLD, Scene, canary_first, expect_offer, member, path, take, write_release};
use crate::support::{eventually, keys_of};

const MINUTE: i64 = 60_000;

fn time(value: &Value) -> Timestamp {
    Timestamp::parse(value.as_str().unwrap()).unwrap()
}

#[actix_web::test]
async fn waves_follow_each_other_after_the_pause() {
    let scene = Scene::start().await;
    let text = write_release(&scene.programs, NEW);
    let late = scene.machine_that_left("canary-2", &["canary"]).await;
    let (mut canary, mut web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);

    let made = scene.roll_out(json!({ "waves": canary_first(), "pause_minutes": 30, "max_failed": 0 })).await;

    assert_eq!(made["version"], NEW);
    assert_eq!((&made["status"], &made["wave"], &made["pause_minutes"]), (&json!("running"), &json!(0), &json!(30)));
    assert_eq!((&made["waves"], &made["created_by"]), (&canary_first(), &json!("owner")));
    assert_eq!(made["counts"], json!({ "waiting": 3, "offered": 0, "updated": 0, "failed": 0, "refused": 0 }));
    let first = take(&mut canary).await;
    assert_eq!(BASE64_STANDARD.decode(first.params["release"].as_str().unwrap()).unwrap(), text.as_bytes());
    let offered = scene.until_state(&made, &scene.canary, "offered").await;
    assert_eq!(keys_of(&offered), ["changed_at", "from_version", "name", "reason", "server_id", "state", "wave"]);
    drop(canary);
    let _updated = scene.agent(&scene.canary, NEW).await;
    let updated = scene.until_state(&made, &scene.canary, "updated").await;
    assert_eq!((&updated["from_version"], &updated["reason"]), (&json!(OLD), &Value::Null));
    let paused = scene.until_wave(&made, 1).await;
    let ahead = time(&paused["wave_since"]).millis_since(Timestamp::now());
    assert!((29 * MINUTE..=30 * MINUTE).contains(&ahead), "{paused}");

    // A server of the wave before gets its offer in the pause, and with it those of the next one would get theirs.
    let came_late = scene.stepped(&late).await;
    web.expect_silence(1).await;

    scene.execute("UPDATE update_rollouts SET wave_since = wave_since - 1800000").await;
    take(&mut web).await;
    drop((web, came_late));
    let _new = (scene.agent(&scene.web, NEW).await, scene.agent(&late, NEW).await);
    let done = scene.until_status(&made, "done").await;

    assert_eq!(done["counts"], json!({ "waiting": 0, "offered": 0, "updated": 3, "failed": 0, "refused": 0 }));
    assert!(done["ended_at"].is_string() && done["stopped_reason"].is_null(), "{done}");
    let ok = |action: &str| (action.to_owned(), "ok".to_owned());
    assert_eq!(scene.audited("rollout").await, [ok("rollout.create"), ok("rollout.end")]);
    assert_eq!(scene.audited("agent.update").await, [ok("agent.update"), ok("agent.update"), ok("agent.update")]);
    assert_eq!(scene.read("/updates").await["rollout"]["status"], "done");
}

#[actix_web::test]
async fn a_server_that_tries_the_release_holds_its_wave_up_also_while_it_is_offline() {
    let scene = Scene::start().await;
    let late = scene.machine_that_left("canary-2", &["canary"]).await;
    let (mut canary, mut web) = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let made = scene.roll_out_without_pause().await;
    take(&mut canary).await;
    drop(canary);
    scene.until_offline(&scene.canary).await;

    drop(scene.stepped(&late).await);
    let _late = scene.agent(&late, NEW).await;
    scene.until_state(&made, &late, "updated").await;
    let now = scene.read(&path(&made)).await;
    assert_eq!((&now["wave"], &now["counts"]["offered"]), (&json!(0), &json!(1)), "{now}");
    web.expect_silence(1).await;

    let _updated = scene.agent(&scene.canary, NEW).await;
    take(&mut web).await;
}

#[actix_web::test]
async fn a_wave_ends_without_servers_that_are_offline_and_they_get_their_offer_when_they_come_back() {
    let scene = Scene::start().await;
    drop(scene.agent(&scene.canary, OLD).await);
    let mut web = scene.agent(&scene.web, OLD).await;
    scene.until_offline(&scene.canary).await;
    let made = scene.roll_out_without_pause().await;

    take(&mut web).await;
    drop(web);
    let _updated = scene.agent(&scene.web, NEW).await;
    scene.until_state(&made, &scene.web, "updated").await;
    let now = scene.read(&path(&made)).await;
    assert_eq!(
        (&now["status"], &member(&now, &scene.canary).unwrap()["state"]),
        (&json!("running"), &json!("waiting"))
    );

    let mut canary = scene.agent(&scene.canary, OLD).await;
    take(&mut canary).await;
    drop(canary);
    let _canary = scene.agent(&scene.canary, NEW).await;
    scene.until_status(&made, "done").await;
}

#[actix_web::test]
async fn servers_that_stay_offline_are_given_up_in_the_end() {
    let scene = Scene::start_with(|config| config.timing.updates.give_up = Duration::from_millis(200)).await;
    drop(scene.agent(&scene.canary, OLD).await);
    scene.until_offline(&scene.canary).await;

    let made = scene.roll_out_without_pause().await;

    let done = scene.until_status(&made, "done").await;
    assert_eq!(member(&done, &scene.canary).unwrap()["state"], "waiting");
    // Nothing more is offered.
    let mut canary = scene.agent(&scene.canary, OLD).await;
    canary.expect_silence(1).await;
}

#[actix_web::test]
async fn only_some_servers_of_a_wave_try_a_release_at_the_same_time() {
    let scene = Scene::start().await;
    let mut agents = Vec::new();
    for number in 0..27 {
        let machine = scene.machine(&format!("db-{number:02}"), &[]).await;
        agents.push((scene.agent(&machine, OLD).await, machine));
    }

    let made = scene.roll_out(json!({ "waves": [{ "tags": [] }] })).await;

    let offered = async |count: i64| {
        eventually("they are offered it", async || {
            let now = scene.read(&path(&made)).await;
            (now["counts"]["offered"] == count).then_some(now)
        })
        .await
    };
    // The agents do not answer yet: the offers wait together, and the others for their places.
    let now = offered(25).await;
    assert_eq!(now["counts"]["waiting"], 2, "{now}");
    let place = now["servers"].as_array().unwrap().iter().position(|server| server["state"] == "offered").unwrap();
    let (mut agent, machine) = agents.swap_remove(place);
    expect_offer(&mut agent).await;
    drop(agent);
    let _updated = scene.agent(&machine, NEW).await;
    scene.until_state(&made, &machine, "updated").await;
    let now = offered(25).await;
    assert_eq!(now["counts"]["waiting"], 1, "{now}");
}

#[actix_web::test]
async fn a_server_that_is_deleted_or_gets_another_owner_leaves_the_rollout() {
    let scene = Scene::start().await;
    let guest = scene.service.register("guest").await;
    let _agents = (scene.agent(&scene.canary, OLD).await, scene.agent(&scene.web, OLD).await);
    let more = scene.machine_that_left("web-2", &[]).await;
    let made = scene.roll_out(json!({ "waves": canary_first(), "pause_minutes": 60 })).await;
    assert_eq!(made["servers"].as_array().unwrap().len(), 3);

    scene.call("DELETE", format!("/servers/{}", scene.web.id)).expect(200).await;
    scene.give_away(&more, &guest).await;

    let now = scene.read(&path(&made)).await;
    let names: Vec<&str> = now["servers"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["canary-1"]);
    eventually("the row has gone", async || {
        let listed = scene.read("/updates/rollouts").await;
        (listed[0]["counts"]["waiting"] == 0).then_some(())
    })
    .await;
}
