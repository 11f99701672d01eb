//! Requests to agents through another instance.

use actix_web::rt;
use serde_json::{Value, json};
use signalbox_protocol::agent::{RequestError, ServiceMessage};

use super::{A, B, C, Scene, exchange};
use crate::support::cluster::Cluster;
use crate::support::nats::Nats;
use crate::support::{eventually, in_time};

fn containers(scene: &Scene, rest: &str) -> String {
    format!("/docker/{}/containers{rest}", scene.server_id())
}

/// Lines of about this many bytes in total.
fn lines_of(bytes: usize) -> Value {
    let message = "x".repeat(1_000);
    json!({"lines": vec![json!({"timestamp": null, "stream": "stdout", "message": message}); bytes / 1_000]})
}

#[actix_web::test]
async fn containers_are_listed_and_told_to_start_and_stop() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let container = json!({
        "id": "75af", "name": "web", "image": "nginx", "state": "running", "status": "Up 4 seconds",
        "created_at": "2026-11-20T09:30:00.000Z", "labels": {"a": "b"}, "ports": [],
    });

    for instance in [A, B, C] {
        let call = scene.get(instance, containers(&scene, ""));
        let (asked, answer) = exchange(&mut agent, call, Ok(json!([container]))).await;
        assert_eq!(asked, json!({"method": "docker.list", "params": {"all": true}}), "{instance}");
        assert_eq!((answer.status, answer.json()), (200, json!([container])), "{instance}");
    }
    for verb in ["start", "stop", "restart"] {
        let call = scene.post(A, containers(&scene, &format!("/web/{verb}")));
        let acted = json!({"container_id": "75af", "state": "running"});
        let (asked, answer) = exchange(&mut agent, call, Ok(acted)).await;
        assert_eq!(asked["method"], format!("docker.{verb}"));
        assert_eq!(answer.json(), json!({"container_id": "75af", "action": verb, "state": "running"}));
    }
    let error = RequestError::new("container_not_found", "no such container");
    let (_, answer) = exchange(&mut agent, scene.get(C, containers(&scene, "/none")), Err(error)).await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("container_not_found")));
}

#[actix_web::test]
async fn a_refusal_of_the_agent_is_reported() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    let refusal = RequestError::new("agent_refused", "docker is off here");
    let (_, answer) = exchange(&mut agent, scene.post(A, containers(&scene, "/web/start")), Err(refusal)).await;

    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("agent_refused")), "{answer}");
    assert_eq!(answer.json()["detail"], "docker is off here");
}

#[actix_web::test]
async fn the_agent_learns_who_asked() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    let waiting = rt::spawn(scene.post(A, containers(&scene, "/web/start")).send());
    let request = agent.expect_request().await;
    agent.answer(&request, Ok(json!({"container_id": "75af", "state": "running"}))).await;

    assert_eq!(request.by.as_deref(), Some("owner from 127.0.0.1"));
    assert_eq!(request.params["asker"], json!({"user": "owner"}));
    assert!(request.timeout_ms.is_some(), "the deadline crosses, too");
    assert_eq!(in_time("the answer", waiting).await.unwrap().status, 200);
}

#[actix_web::test]
async fn an_agent_that_is_nowhere_is_offline() {
    let scene = Scene::start().await;

    for instance in [A, B, C] {
        scene.get(instance, containers(&scene, "")).expect_error(400, "agent_offline").await;
    }
    scene.agent(B).await.socket.abort();
    scene.until_status(A, "offline").await;
    // A question may be on its way to where it was until then.
    for instance in [A, B, C] {
        eventually(&format!("it is offline at {instance}"), async || {
            let answer = scene.get(instance, containers(&scene, "")).send().await;
            assert_eq!(answer.status, 400, "{answer}");
            (answer.json()["code"] == "agent_offline").then_some(())
        })
        .await;
    }
}

#[actix_web::test]
async fn an_agent_that_disconnects_before_it_answers_is_reported() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    let waiting = rt::spawn(scene.get(A, containers(&scene, "")).send());
    agent.expect_request().await;
    agent.socket.abort();

    let answer = in_time("the answer", waiting).await.unwrap();
    assert_eq!(answer.status, 400, "{answer}");
    let code = answer.json()["code"].clone();
    assert!([json!("agent_disconnected"), json!("agent_offline")].contains(&code), "{answer}");
}

#[actix_web::test]
async fn answers_larger_than_a_message_of_the_bus_arrive_whole() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    for bytes in [900_000, 1_048_576, 3_000_000] {
        let call = scene.get(A, containers(&scene, "/web/logs?tail=10000"));
        let (_, answer) = exchange(&mut agent, call, Ok(lines_of(bytes))).await;

        assert_eq!(answer.status, 200, "{bytes}");
        let told = answer.json();
        assert_eq!(told["lines"].as_array().unwrap().len(), bytes / 1_000);
        assert_eq!(told["truncated"], false);
        assert_eq!(told["logs"].as_str().unwrap().len(), bytes / 1_000 * 1_001);
    }
}

#[actix_web::test]
async fn a_bus_with_small_messages_carries_the_same() {
    let nats = Nats::start_with("max_payload: 65536").await;
    let scene = Scene::on(Cluster::on(nats, 3).await).await;
    let mut agent = scene.agent(B).await;

    let call = scene.get(A, containers(&scene, "/web/logs?tail=10000"));
    let (_, answer) = exchange(&mut agent, call, Ok(lines_of(1_000_000))).await;
    assert_eq!(answer.json()["lines"].as_array().unwrap().len(), 1_000);
    // And the other way: what an agent receives.
    let stdin = "y\n".repeat(200_000);
    let body = json!({"command": "cat", "stdin": stdin});
    scene.post(A, format!("/commands/{}?wait=0", scene.server_id())).json(body).expect(200).await;
    assert!(agent.expect_execute().await.stdin == Some(stdin));
}

#[actix_web::test]
async fn logs_are_searched() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let lines = json!([{"timestamp": "2026-11-20T09:30:00.000Z", "stream": "sshd", "message": "an error"}]);
    let found = json!({"lines": lines, "truncated": true, "stopped_at": "2026-11-20T09:00:00.000Z"});

    let call = scene.get(C, format!("/logs/{}?tail=5&q=error", scene.server_id()));
    let (asked, answer) = exchange(&mut agent, call, Ok(found.clone())).await;

    assert_eq!((&asked["method"], &asked["params"]["q"]), (&json!("logs.query"), &json!("error")));
    assert_eq!((answer.status, answer.json()), (200, found));
}

#[actix_web::test]
async fn a_caller_who_hangs_up_takes_the_question_back() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    let waiting = rt::spawn(scene.get(A, containers(&scene, "")).send());
    let request_id = agent.expect_request().await.request_id;
    waiting.abort();

    assert_eq!(agent.next().await, ServiceMessage::RequestCancel { request_id });
}
