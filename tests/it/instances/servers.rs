//! A server whose agent is at one instance, seen from the others.

use serde_json::json;
use uuid::Uuid;

use super::{A, B, C, Scene};
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::exposition::Exposition;
use crate::support::{assert_timestamp, eventually, text_of};

#[actix_web::test]
async fn its_status_and_agent_are_the_same_everywhere() {
    let scene = Scene::start().await;
    let path = format!("/servers/{}", scene.server_id());

    let agent = scene.agent(B).await;
    for instance in [A, B, C] {
        let server = scene.read(instance, &path).await;
        assert_eq!((&server["status"], &server["agent"]["version"]), (&json!("online"), &json!("1.2.3")), "{instance}");
        assert_timestamp(&server["agent"]["connected_at"]);
        let listed = scene.read(instance, "/servers?status=online").await;
        assert_eq!(listed.as_array().unwrap().len(), 1, "{instance}: {listed}");
    }
    agent.socket.abort();

    for instance in [A, B, C] {
        scene.until_status(instance, "offline").await;
    }
}

#[actix_web::test]
async fn an_acknowledged_sample_is_everywhere_at_once() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let id = scene.server_id();
    let (first, second) = (sample_aged(10), sample_aged(5));

    agent.store(1, vec![first.clone(), second.clone()]).await;

    for instance in [A, C, B] {
        assert_eq!(scene.moments(instance, id).await, [first.timestamp.to_string(), second.timestamp.to_string()]);
        let latest = scene.read(instance, &format!("/metrics/{id}")).await;
        assert_eq!(latest["timestamp"], json!(second.timestamp), "{instance}");
        assert_eq!(latest["cpu_percent"], json!(12.5), "{instance}");
        let series = scene.read(instance, &format!("/metrics/{id}/series?resolution=raw&names=cpu_percent")).await;
        let seconds = json!([first.timestamp.as_seconds(), second.timestamp.as_seconds()]);
        assert_eq!(series["timestamps"], seconds, "{instance}: {series}");
    }
}

#[actix_web::test]
async fn prometheus_can_scrape_any_instance() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    agent.store(1, vec![sample_aged(1)]).await;
    let id = scene.server_id().to_string();

    for path in ["/metrics/prometheus".to_owned(), format!("/metrics/{id}/prometheus")] {
        let told = eventually("the server is up", async || {
            let answer = scene.get(A, &path).expect_answer(200).await;
            let told = Exposition::parse(&answer.text);
            let up = told.values("signalbox_server_up", &[("instance", "web-1"), ("server_id", &id)]) == ["1"];
            up.then_some(told)
        })
        .await;
        let labels = [("instance", "web-1"), ("server_id", id.as_str())];
        assert_eq!(told.values("node_memory_MemTotal_bytes", &labels), ["8000000000"], "{path}");
    }
}

#[actix_web::test]
async fn what_one_changes_all_read() {
    let scene = Scene::start().await;
    let path = format!("/servers/{}", scene.server_id());

    let body = json!({"name": "renamed", "tags": ["production"]});
    scene.client(A).put(&path).bearer(&scene.prepared.token).json(body).expect(200).await;

    for instance in [B, C] {
        let server = scene.read(instance, &path).await;
        assert_eq!((&server["name"], &server["tags"]), (&json!("renamed"), &json!(["production"])), "{instance}");
    }
}

#[actix_web::test]
async fn a_key_that_one_made_opens_every_other_at_once() {
    let scene = Scene::start().await;

    for instance in [A, B, C] {
        let (id, key) = scene.another(&format!("more-{instance}")).await;
        let mut agent =
            FakeAgent::connect(scene.cluster.address(instance), signalbox_protocol::Encoding::MessagePack).await;
        let answer = agent.authenticate(&key).await;
        assert_eq!((answer.success, answer.server_id), (true, Some(id)), "{instance}");
    }
}

#[actix_web::test]
async fn a_deleted_server_is_gone_everywhere_and_its_agent_learns_it() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    agent.store(1, vec![sample_aged(5)]).await;
    let mut dashboard = scene.watch(C).await;
    dashboard.expect("status").await;
    let path = format!("/servers/{}", scene.server_id());

    scene.client(A).delete(&path).bearer(&scene.prepared.token).expect(200).await;

    agent.expect_close(4404).await;
    dashboard.expect_close(4404).await;
    for instance in [A, B, C] {
        scene.get(instance, &path).expect_error(404, "not_found").await;
        scene.get(instance, format!("/metrics/{}", scene.server_id())).expect_error(404, "not_found").await;
        assert_refused(&scene, instance).await;
    }
}

/// The key of a server that is gone opens nothing.
async fn assert_refused(scene: &Scene, instance: usize) {
    let address = scene.cluster.address(instance);
    let mut agent = FakeAgent::connect(address, signalbox_protocol::Encoding::MessagePack).await;
    let answer = agent.authenticate(&scene.prepared.key).await;
    assert_eq!((answer.success, answer.server_id), (false, None::<Uuid>), "{instance}");
}

#[actix_web::test]
async fn the_audit_log_is_one() {
    let scene = Scene::start().await;
    for instance in [A, B, C] {
        let body = json!({"name": format!("of-{instance}"), "host": "192.0.2.10"});
        scene.post(instance, "/servers").json(body).expect(201).await;
    }

    let told = scene.read(C, "/audit?limit=500").await;

    let entries = told.as_array().unwrap();
    let made = entries.iter().filter(|entry| text_of(&entry["action"]) == "server.create").count();
    assert_eq!(made, 4, "{told}");
}
