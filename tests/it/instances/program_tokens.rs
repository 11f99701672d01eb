//! Tokens of programs: one that is made at an instance works at every other, and so does its end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{A, B, C, Scene};
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::socket::Received;
use crate::support::{eventually, text_of};

async fn token(scene: &Scene, scope: Value) -> (String, String) {
    let body = json!({"name": "program", "role": "operator", "scope": scope});
    let made = scene.post(A, "/tokens").json(body).expect(201).await;
    (text_of(&made["id"]), text_of(&made["token"]))
}

async fn open(scene: &Scene, instance: usize, path: &str, token: &str) -> Dashboard {
    let (address, path) = (scene.cluster.address(instance), format!("/api/v1{path}"));
    Dashboard::open(address, &path, Pass::Header(token), &[]).await.expect("a dashboard")
}

#[actix_web::test]
async fn a_token_that_is_revoked_at_one_ends_at_the_others() {
    let scene = Scene::start().await;
    let (id, text) = token(&scene, json!({"all": true})).await;
    let get = |instance| scene.client(instance).get("/servers").bearer(&text);
    let mut sockets = Vec::new();
    for instance in [A, B, C] {
        get(instance).expect(200).await;
        sockets.push(open(&scene, instance, &format!("/ws/metrics/{}", scene.server_id()), &text).await);
        sockets.push(open(&scene, instance, "/ws/fleet", &text).await);
    }

    let began = Instant::now();
    scene.client(B).delete(format!("/tokens/{id}")).bearer(&scene.prepared.token).expect(200).await;

    get(B).expect_error(401, "token_revoked").await;
    for socket in &mut sockets {
        while !matches!(socket.socket.receive().await, Received::Closed(4401)) {}
    }
    // After 20 s each socket looks on its own whether its token still holds.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    for instance in [A, B, C] {
        get(instance).expect_error(401, "token_revoked").await;
    }
}

#[actix_web::test]
async fn a_tag_that_is_removed_at_one_ends_what_a_token_sees_at_the_others() {
    let scene = Scene::start().await;
    let path = format!("/servers/{}", scene.server_id());
    let tag = async |tags: Value| {
        let change = scene.client(A).put(&path).bearer(&scene.prepared.token).json(json!({"tags": tags}));
        change.expect(200).await;
    };
    tag(json!(["db"])).await;
    let (_, text) = token(&scene, json!({"tag": "db"})).await;
    let mut sockets = Vec::new();
    for instance in [B, C] {
        eventually("the tag is known", async || {
            let answer = scene.client(instance).get(&path).bearer(&text).send().await;
            (answer.status == 200).then_some(())
        })
        .await;
        sockets.push(open(&scene, instance, &format!("/ws/metrics/{}", scene.server_id()), &text).await);
    }

    tag(json!([])).await;

    for socket in &mut sockets {
        while !matches!(socket.socket.receive().await, Received::Closed(4404)) {}
    }
    for instance in [A, B, C] {
        scene.client(instance).get(&path).bearer(&text).expect_error(404, "not_found").await;
    }
}

#[actix_web::test]
async fn a_command_that_another_instance_runs_is_the_tokens_in_the_audit_log() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    scene.until_status(A, "online").await;
    let (id, text) = token(&scene, json!({"all": true})).await;

    let path = format!("/commands/{}?wait=0", scene.server_id());
    let run = scene.client(A).post(path).bearer(&text).json(json!({"command": "true"})).expect(200).await;
    agent.expect_execute().await;
    agent.finish(text_of(&run["command_id"]).parse().unwrap()).await;

    let entries = eventually("the command has ended", async || {
        let entries = scene.read(A, "/audit?action=command.run").await;
        (entries.as_array().unwrap().len() == 2).then(|| entries.as_array().unwrap().clone())
    });
    for entry in entries.await {
        assert_eq!(entry["token"], json!({"id": id, "name": "program"}), "{entry}");
    }
}
