//! NATS that is away: from one instance, or from all. What needs no other instance continues, and the rest is reported.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::ServiceMessage;
use uuid::Uuid;

use super::{A, B, C, Scene, clocks, exchange};
use crate::support::agent::{FakeAgent, sample_aged, sample_at};
use crate::support::alerts::{ALERTS_PATH, Threshold};
use crate::support::dashboard::Dashboard;
use crate::support::{Call, PATIENCE, eventually, text_of};

/// The ways of asking the agent of a server.
fn ask(scene: &Scene, instance: usize, server_id: Uuid) -> Call {
    scene.get(instance, format!("/docker/{server_id}/containers"))
}

/// Asserts that a call to the agent of another instance ends, and says why.
async fn expect_clear_end(scene: &Scene, instance: usize, server_id: Uuid) {
    let answer = ask(scene, instance, server_id).send().await;
    let code = text_of(&answer.json()["code"]);
    let codes =
        [(400, "agent_offline"), (400, "agent_disconnected"), (400, "agent_timeout"), (503, "busy"), (503, "bus_away")];
    assert!(codes.contains(&(answer.status, code.as_str())), "{answer}");
}

/// Asserts that agents, dashboards and calls of this instance work without any other.
async fn expect_whole(
    scene: &Scene,
    instance: usize,
    server_id: Uuid,
    agent: &mut FakeAgent,
    dashboard: &mut Dashboard,
) {
    let sample = sample_at(Timestamp::now());
    agent.store(Timestamp::now().as_millis().unsigned_abs(), vec![sample.clone()]).await;
    while dashboard.until("metrics").await["timestamp"] != json!(sample.timestamp) {}
    let latest = scene.read(instance, &format!("/metrics/{server_id}")).await;
    assert_eq!(latest["timestamp"], json!(sample.timestamp));
    let (_, answer) = exchange(agent, ask(scene, instance, server_id), Ok(json!([]))).await;
    assert_eq!(answer.status, 200, "{answer}");
}

/// Waits until a call from one instance reaches the agent at another.
async fn until_connected(scene: &Scene, instance: usize, server_id: Uuid, agent: &mut FakeAgent) {
    let agent = tokio::sync::Mutex::new(agent);
    eventually("calls cross", async || {
        let mut agent = agent.lock().await;
        let mut waiting = actix_web::rt::spawn(ask(scene, instance, server_id).send());
        loop {
            tokio::select! {
                answer = &mut waiting => return (answer.unwrap().status == 200).then_some(()),
                message = agent.next() => if let ServiceMessage::Request(request) = message {
                    agent.answer(&request, Ok(json!([]))).await;
                },
            }
        }
    })
    .await;
}

#[actix_web::test]
async fn an_instance_that_is_cut_off_does_what_it_can_alone_and_heals() {
    let scene = Scene::with_lines().await;
    let (there_id, there_key) = scene.another("there").await;
    let mut here = scene.agent(B).await;
    let mut there = FakeAgent::online(scene.cluster.address(C), &there_key).await;
    let mut dashboard = scene.watch(B).await;
    here.store(1, vec![sample_aged(5)]).await;

    scene.cluster.line(B).nats.refuse();
    scene.cluster.until_away(B, "bus").await;

    expect_whole(&scene, B, scene.server_id(), &mut here, &mut dashboard).await;
    let mut of_there = scene.open(C, &format!("/api/v1/ws/metrics/{there_id}")).await;
    expect_whole(&scene, C, there_id, &mut there, &mut of_there).await;
    expect_clear_end(&scene, B, there_id).await;
    expect_clear_end(&scene, A, scene.server_id()).await;
    for instance in [A, C] {
        assert_eq!(scene.cluster.away(instance).await, None, "{instance}");
        // Data in the database is available everywhere anyway.
        assert_eq!(scene.moments(instance, scene.server_id()).await.len(), 2);
    }
    let body = json!({"name": "made during the outage", "host": "192.0.2.10"});
    scene.post(B, "/servers").json(body).expect(201).await;

    scene.cluster.line(B).nats.heal();
    scene.cluster.until_ready(B).await;
    until_connected(&scene, A, scene.server_id(), &mut here).await;
    until_connected(&scene, B, there_id, &mut there).await;
    expect_live(&scene, A, &mut here).await;
}

/// Waits until samples of an agent arrive at a dashboard of another instance.
async fn expect_live(scene: &Scene, instance: usize, agent: &mut FakeAgent) {
    let mut dashboard = scene.watch(instance).await;
    let began = text_of(&json!(Timestamp::now()));
    loop {
        let at = Timestamp::now();
        agent.store(at.as_millis().unsigned_abs(), vec![sample_at(at)]).await;
        let message = dashboard.next_if_any().await.unwrap_or(Value::Null);
        if message["data"]["timestamp"].as_str() >= Some(began.as_str()) {
            return;
        }
    }
}

#[actix_web::test]
async fn an_open_dashboard_continues_after_the_cut() {
    let scene = Scene::with_lines().await;
    let mut agent = scene.agent(B).await;
    let mut dashboard = scene.watch(C).await;
    scene.cluster.line(B).nats.refuse();
    scene.cluster.until_away(B, "bus").await;
    scene.cluster.line(B).nats.heal();
    scene.cluster.until_ready(B).await;

    let began = text_of(&json!(Timestamp::now()));
    loop {
        let at = Timestamp::now();
        agent.store(at.as_millis().unsigned_abs(), vec![sample_at(at)]).await;
        let message = dashboard.next_if_any().await.unwrap_or(Value::Null);
        if message["type"] == "metrics" && message["data"]["timestamp"].as_str() >= Some(began.as_str()) {
            return;
        }
    }
}

async fn until_offline(dashboard: &mut Dashboard) {
    while dashboard.until("status").await["status"] != "offline" {}
}

/// Nothing repeats a status: the instance that shows it compares it with the database.
#[actix_web::test]
async fn the_end_of_a_session_at_an_instance_that_is_cut_off_is_shown_at_another() {
    let scene = Scene::with_lines().await;
    let agent = scene.agent(B).await;
    let mut dashboard = scene.watch(C).await;
    assert_eq!(dashboard.expect("status").await["status"], "online");

    scene.cluster.line(B).nats.refuse();
    agent.socket.abort();

    until_offline(&mut dashboard).await;
}

/// The agent was at the instance of the dashboard when that opened.
#[actix_web::test]
async fn the_end_of_an_agent_that_moved_away_is_shown_at_an_instance_that_is_cut_off() {
    let scene = Scene::with_lines().await;
    let mut old = scene.agent(B).await;
    let mut dashboard = scene.watch(B).await;
    assert_eq!(dashboard.expect("status").await["status"], "online");
    scene.cluster.line(B).nats.refuse();
    scene.cluster.until_away(B, "bus").await;

    let new = scene.agent(C).await;
    old.expect_close(4409).await;
    new.socket.abort();

    until_offline(&mut dashboard).await;
}

/// Nothing was sent to the agent, so nobody has to wait for what becomes of it.
#[actix_web::test]
async fn a_batch_of_an_instance_that_is_cut_off_fails_for_the_servers_of_others() {
    let scene = Scene::with_lines().await;
    let mut agent = scene.agent(B).await;
    scene.cluster.line(A).nats.refuse();
    scene.cluster.until_away(A, "bus").await;

    let body = json!({"command": "true", "server_ids": [scene.server_id()], "concurrency": 1});
    let batch = scene.post(A, "/commands").json(body).expect(201).await;
    let path = format!("/commands/batches/{}", text_of(&batch["id"]));
    let ended = eventually("the end of the batch", async || {
        Some(scene.read(A, &path).await).filter(|batch| batch["finished_at"].is_string())
    })
    .await;

    let result = &ended["results"][0];
    assert_eq!((&result["status"], &result["error"]["code"]), (&json!("failed"), &json!("busy")), "{ended}");
    agent.expect_silence(1).await;
}

/// Sends samples over a threshold until it has raised an alert: without NATS an instance learns of a threshold later.
async fn raise(scene: &Scene, agent: &mut FakeAgent, threshold: Uuid) -> Value {
    loop {
        let at = Timestamp::now();
        let mut sample = sample_at(at);
        sample.cpu_percent = 95.0;
        agent.store(at.as_millis().unsigned_abs(), vec![sample]).await;
        if let Some(alert) = scene.alarms(A).of_threshold(threshold).await.pop() {
            return alert;
        }
    }
}

/// Nothing repeats an alert. So that a page which stays open shows what happened in the meantime, it gets all alerts again.
#[actix_web::test]
async fn alerts_of_an_outage_are_at_an_open_dashboard_afterwards() {
    for cut in [B, C] {
        let scene = Scene::with_lines().await;
        let mut agent = scene.agent(B).await;
        let threshold = scene.alarms(A).add(Threshold::cpu(90.0).of_server(scene.server_id())).await;
        let mut dashboard = scene.open(C, ALERTS_PATH).await;
        dashboard.send(json!({"type": "ping"})).await;
        dashboard.expect("pong").await;
        scene.cluster.line(cut).nats.refuse();
        scene.cluster.until_away(cut, "bus").await;

        let raised = tokio::time::timeout(PATIENCE, raise(&scene, &mut agent, threshold)).await.expect("an alert");
        scene.cluster.line(cut).nats.heal();

        expect_alert(&mut dashboard, &raised).await;
    }
}

/// Waits until an instance believes that nothing is watched at others.
async fn until_others_are_forgotten(scene: &Scene, instance: usize) {
    eventually("the others are forgotten", async || {
        let known = clocks::counted(scene.cluster.at(instance), "signalbox_topics_watched_elsewhere").await;
        (known == 0.0).then_some(())
    })
    .await;
}

/// Asserts that a dashboard receives an alert that was raised before.
async fn expect_alert(dashboard: &mut Dashboard, raised: &Value) {
    let told = tokio::time::timeout(PATIENCE, dashboard.until("alert")).await.expect("the alert");
    assert_eq!(told["id"], raised["id"]);
}

/// What is watched at an instance that says nothing for long is not sent there.
#[actix_web::test]
async fn alerts_that_an_instance_missed_while_it_was_frozen_are_at_an_open_dashboard_afterwards() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let threshold = scene.alarms(A).add(Threshold::cpu(90.0).of_server(scene.server_id())).await;
    let mut dashboard = scene.open(C, ALERTS_PATH).await;
    scene.until_heard_elsewhere(B, 1).await;

    scene.cluster.at(C).signal("STOP");
    until_others_are_forgotten(&scene, B).await;
    let raised = tokio::time::timeout(PATIENCE, raise(&scene, &mut agent, threshold)).await.expect("an alert");
    scene.cluster.at(C).signal("CONT");

    expect_alert(&mut dashboard, &raised).await;
}

/// When the cut is noticed, the home has forgotten who watches.
#[actix_web::test]
async fn alerts_that_were_sent_into_a_silent_line_are_at_an_open_dashboard_afterwards() {
    let scene = Scene::with_lines().await;
    let mut agent = scene.agent(B).await;
    let threshold = scene.alarms(A).add(Threshold::cpu(90.0).of_server(scene.server_id())).await;
    let mut dashboard = scene.open(C, ALERTS_PATH).await;
    scene.until_heard_elsewhere(B, 1).await;

    scene.cluster.line(B).nats.silence();
    let raised = tokio::time::timeout(PATIENCE, raise(&scene, &mut agent, threshold)).await.expect("an alert");
    scene.cluster.until_away(B, "bus").await;
    until_others_are_forgotten(&scene, B).await;
    // What waits in the line does not arrive late.
    scene.cluster.line(B).nats.refuse();
    scene.cluster.line(B).nats.heal();

    expect_alert(&mut dashboard, &raised).await;
}

#[actix_web::test]
async fn revocations_take_effect_at_an_instance_that_is_cut_off() {
    let scene = Scene::with_lines().await;
    let mut agent = scene.agent(B).await;
    let mut dashboard = scene.watch(B).await;
    dashboard.expect("status").await;
    let form = [("username", "owner"), ("password", crate::support::PASSWORD)];
    let tokens = scene.client(A).post("/auth/login").form(&form).expect(200).await;
    scene.cluster.line(B).nats.refuse();
    scene.cluster.until_away(B, "bus").await;

    let path = format!("/api-keys/{}", scene.prepared.key_id);
    scene.client(A).delete(path).bearer(&text_of(&tokens["access_token"])).expect(200).await;
    scene.post(A, "/auth/logout").expect(200).await;

    agent.expect_close(4401).await;
    dashboard.expect_close(4401).await;
}

#[actix_web::test]
async fn an_instance_that_is_cut_off_releases_an_agent_that_moves_away() {
    let scene = Scene::with_lines().await;
    let mut old = scene.agent(B).await;
    scene.cluster.line(B).nats.refuse();
    scene.cluster.until_away(B, "bus").await;

    let mut new = scene.agent(C).await;
    new.store(1, vec![sample_aged(1)]).await;

    old.expect_close(4409).await;
    let (_, answer) = exchange(&mut new, ask(&scene, A, scene.server_id()), Ok(json!([]))).await;
    assert_eq!(answer.status, 200, "{answer}");
}

#[actix_web::test]
async fn lines_that_fall_silent_are_noticed() {
    let scene = Scene::with_lines().await;
    let mut agent = scene.agent(B).await;

    scene.cluster.line(B).nats.silence();
    scene.cluster.until_away(B, "bus").await;
    expect_clear_end(&scene, A, scene.server_id()).await;
    scene.cluster.line(B).nats.heal();

    scene.cluster.until_ready(B).await;
    until_connected(&scene, A, scene.server_id(), &mut agent).await;
}

#[actix_web::test]
async fn nats_that_dies_and_begins_again_is_found_again() {
    let mut scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    scene.cluster.nats.kill().await;
    for instance in [A, B, C] {
        scene.cluster.until_away(instance, "bus").await;
    }
    agent.store(1, vec![sample_aged(2)]).await;
    assert_eq!(scene.moments(C, scene.server_id()).await.len(), 1);
    expect_clear_end(&scene, A, scene.server_id()).await;
    scene.cluster.nats.again().await;

    for instance in [A, B, C] {
        scene.cluster.until_ready(instance).await;
    }
    until_connected(&scene, A, scene.server_id(), &mut agent).await;
    expect_live(&scene, C, &mut agent).await;
}
