//! Rollouts that cannot begin, and people who may not have one.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::{NEW, OLD, PROGRAM, Scene, canary_first, path};
use crate::support::text_of;

fn body() -> Value {
    json!({ "waves": canary_first(), "pause_minutes": 0, "max_failed": 0 })
}

#[actix_web::test]
async fn a_service_without_a_whole_release_rolls_nothing_out() {
    let scene = Scene::start().await;
    let _canary = scene.agent(&scene.canary, OLD).await;
    let post = || scene.call("POST", "/updates/rollouts").json(body());

    fs::write(scene.programs.path().join(PROGRAM), "another build").unwrap();
    let refused = post().expect_error(400, "release_incomplete").await;
    assert!(text_of(&refused["detail"]).contains(PROGRAM), "{refused}");
    let release = scene.read("/updates").await["release"].clone();
    assert_eq!((&release["is_complete"], &release["missing"]), (&json!(false), &json!([PROGRAM])));

    fs::remove_file(scene.programs.path().join("agent-release.json.sig")).unwrap();
    post().expect_error(400, "no_release").await;
    assert_eq!(scene.read("/updates").await["release"], Value::Null);
}

#[actix_web::test]
async fn a_rollout_needs_a_server_that_it_would_change() {
    let scene = Scene::start().await;
    let post = |waves: Value| scene.call("POST", "/updates/rollouts").json(json!({ "waves": waves }));

    // No agent has connected yet.
    post(canary_first()).expect_error(400, "nothing_to_update").await;
    let _agents = (scene.agent(&scene.canary, NEW).await, scene.agent(&scene.web, OLD).await);
    post(json!([{ "tags": ["canary"] }])).expect_error(400, "nothing_to_update").await;
    post(json!([{ "tags": ["nobody"] }])).expect_error(400, "nothing_to_update").await;

    let made = post(canary_first()).expect(201).await;
    assert_eq!((&made["wave"], &made["servers"].as_array().unwrap().len()), (&json!(1), &1), "{made}");
}

#[actix_web::test]
async fn an_account_has_one_rollout_at_a_time() {
    let scene = Scene::start().await;
    drop(scene.agent(&scene.canary, OLD).await);
    let post = || scene.call("POST", "/updates/rollouts").json(body());
    let made = post().expect(201).await;

    post().expect_error(400, "rollout_running").await;
    scene.step(&made, "pause").await;
    post().expect_error(400, "rollout_running").await;
    scene.step(&made, "cancel").await;

    let next = post().expect(201).await;
    let listed = scene.call("GET", "/updates/rollouts?limit=1").expect_answer(200).await;
    assert_eq!((&listed.json()[0]["id"], listed.header("x-total-count")), (&next["id"], "2"));
    assert!(listed.json()[0].get("servers").is_none(), "{listed}");
    assert_eq!(scene.read("/updates/rollouts?offset=1").await[0]["id"], made["id"]);
}

#[actix_web::test]
async fn the_rollout_of_somebody_else_does_not_exist() {
    let scene = Scene::start().await;
    drop(scene.agent(&scene.canary, OLD).await);
    let made = scene.roll_out(body()).await;
    let guest = scene.service.register("guest").await;
    // Managing a server is not owning it.
    let grant = json!({ "subject": { "username": "guest" }, "scope": { "all": true }, "role": "manager" });
    scene.call("POST", "/grants").json(grant).expect(201).await;
    let by_guest =
        |method: &str, path: &str| scene.service.client.call(method.parse().unwrap(), path).bearer(&guest.token);

    by_guest("GET", &path(&made)).expect_error(404, "not_found").await;
    for step in ["pause", "resume", "cancel"] {
        by_guest("POST", &format!("{}/{step}", path(&made))).expect_error(404, "not_found").await;
    }

    assert_eq!(by_guest("GET", "/updates/rollouts").expect(200).await, json!([]));
    let overview = by_guest("GET", "/updates").expect(200).await;
    assert_eq!((&overview["servers"], &overview["rollout"]), (&json!([]), &Value::Null));
    by_guest("POST", "/updates/rollouts").json(body()).expect_error(400, "nothing_to_update").await;
}

#[actix_web::test]
async fn every_field_of_a_rollout_is_checked() {
    let scene = Scene::start().await;
    let cases = [
        (json!({}), "body.waves", "value_error.missing"),
        (json!({ "waves": null }), "body.waves", "type_error.none.not_allowed"),
        (json!({ "waves": "all" }), "body.waves", "type_error.list"),
        (json!({ "waves": [] }), "body.waves", "value_error.list.min_items"),
        (json!({ "waves": vec![json!({ "tags": ["a"] }); 11] }), "body.waves", "value_error.list.max_items"),
        (json!({ "waves": [{}] }), "body.waves.0.tags", "value_error.missing"),
        (json!({ "waves": [{ "tags": "a" }] }), "body.waves.0.tags", "type_error.list"),
        (json!({ "waves": [{ "tags": [""] }] }), "body.waves.0.tags.0", "value_error.any_str.min_length"),
        (json!({ "waves": [{ "tags": vec!["a"; 21] }] }), "body.waves.0.tags", "value_error.list.max_items"),
        (
            json!({ "waves": [{ "tags": ["a"] }, { "tags": [] }, { "tags": ["b"] }] }),
            "body.waves.1.tags",
            "value_error.wave",
        ),
        (json!({ "waves": [{ "tags": [] }, { "tags": [] }] }), "body.waves.0.tags", "value_error.wave"),
        (json!({ "waves": [{ "tags": [] }], "pause_minutes": -1 }), "body.pause_minutes", "value_error.number.not_ge"),
        (
            json!({ "waves": [{ "tags": [] }], "pause_minutes": 10_081 }),
            "body.pause_minutes",
            "value_error.number.not_le",
        ),
        (json!({ "waves": [{ "tags": [] }], "pause_minutes": "30" }), "body.pause_minutes", "type_error.integer"),
        (json!({ "waves": [{ "tags": [] }], "max_failed": -1 }), "body.max_failed", "value_error.number.not_ge"),
        (json!({ "waves": [{ "tags": [] }], "max_failed": 1_001 }), "body.max_failed", "value_error.number.not_le"),
        (json!({ "waves": [{ "tags": [] }], "max_failed": 0.5 }), "body.max_failed", "type_error.integer"),
    ];

    for (body, place, kind) in cases {
        let post = scene.call("POST", "/updates/rollouts").json(body);
        post.expect_some_faults(422, &[(place, kind)]).await;
    }
    scene.call("GET", "/updates/rollouts/1").expect_some_faults(422, &[("path.id", "type_error.uuid")]).await;
    scene
        .call("GET", "/updates/rollouts?limit=0")
        .expect_some_faults(422, &[("query.limit", "value_error.number.not_ge")])
        .await;
}

#[actix_web::test]
async fn a_token_needs_all_servers_and_the_role_that_manages_them() {
    let scene = Scene::start().await;
    drop(scene.agent(&scene.canary, OLD).await);
    let token = async |role: &str, scope: Value| {
        let token = json!({ "name": role, "role": role, "scope": scope });
        text_of(&scene.call("POST", "/tokens").json(token).expect(201).await["token"])
    };
    let viewer = token("viewer", json!({ "all": true })).await;
    let narrow = token("manager", json!({ "tag": "canary" })).await;
    let manager = token("manager", json!({ "all": true })).await;
    let by =
        |token: &str, method: &str, path: &str| scene.service.client.call(method.parse().unwrap(), path).bearer(token);

    by(&viewer, "POST", "/updates/rollouts").json(body()).expect_error(403, "token_not_allowed").await;
    by(&narrow, "GET", "/updates").expect_error(403, "token_not_allowed").await;
    by(&narrow, "POST", "/updates/rollouts").json(body()).expect_error(403, "token_not_allowed").await;

    let made = by(&manager, "POST", "/updates/rollouts").json(body()).expect(201).await;
    assert_eq!(by(&viewer, "GET", &path(&made)).expect(200).await["status"], "running");
    by(&viewer, "POST", &format!("{}/cancel", path(&made))).expect_error(403, "token_not_allowed").await;
}

#[actix_web::test]
async fn to_begin_or_resume_one_takes_a_recent_proof() {
    let scene = Scene::start_with(|config| config.step_up = Some(Duration::from_secs(300))).await;
    drop(scene.agent(&scene.canary, OLD).await);
    let made = scene.roll_out(body()).await;
    scene.execute("UPDATE logins SET proved_at = proved_at - 301000").await;
    let scene = scene.restart_with_step_up().await;
    let post = |path: String| scene.call("POST", path);

    post(format!("{}/pause", path(&made))).expect(200).await;
    post(format!("{}/resume", path(&made))).expect_error(403, "step_up_required").await;
    post(format!("{}/cancel", path(&made))).expect(200).await;
    post("/updates/rollouts".to_owned()).json(body()).expect_error(403, "step_up_required").await;
}
