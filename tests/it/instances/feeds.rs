//! Dashboards at one instance and agents at another.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{AgentMessage, ServiceMessage};

use super::{A, B, C, Scene, told_of};
use crate::support::agent::{FakeAgent, sample_aged, sample_at};
use crate::support::alerts::{ALERTS_PATH, Probe, Threshold};
use crate::support::dashboard::Dashboard;
use crate::support::{eventually, text_of, uuid_of};

/// Stores one sample after the other until a dashboard receives one, as it is from then on.
async fn until_live(agent: &mut FakeAgent, dashboard: &mut Dashboard) {
    let mut seq = 0;
    loop {
        seq += 1;
        agent.store(seq, vec![sample_at(Timestamp::now())]).await;
        if let Some(message) = dashboard.next_if_any().await
            && message["type"] == "metrics"
        {
            break;
        }
    }
}

#[actix_web::test]
async fn samples_arrive_at_every_instance_each_once_and_in_order() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let mut dashboards = Vec::new();
    for instance in [A, C, C, B] {
        let mut dashboard = scene.watch(instance).await;
        assert_eq!(dashboard.expect("status").await["status"], "online");
        until_live(&mut agent, &mut dashboard).await;
        dashboards.push(dashboard);
    }

    // The messages that showed that it is live end here.
    let samples: Vec<_> = (0..20_i64).map(|step| sample_at(Timestamp::now().plus_millis(step))).collect();
    for (seq, sample) in samples.iter().enumerate() {
        agent.store(1_000 + seq as u64, vec![sample.clone()]).await;
    }
    let latest = scene.read(A, &format!("/metrics/{}", scene.server_id())).await;

    for mut dashboard in dashboards {
        let mut told = Vec::new();
        while told.last() != Some(&latest) {
            let snapshot = dashboard.expect("metrics").await;
            if snapshot["timestamp"].as_str() >= json!(samples[0].timestamp).as_str() {
                told.push(snapshot);
            }
        }
        let moments: Vec<_> = told.iter().map(|snapshot| snapshot["timestamp"].clone()).collect();
        let expected: Vec<_> = samples.iter().map(|sample| json!(sample.timestamp)).collect();
        assert_eq!(moments, expected);
    }
}

#[actix_web::test]
async fn an_agent_is_asked_for_live_samples_that_somebody_watches_at_another_instance() {
    let scene = Scene::start().await;
    let mut agent = FakeAgent::with_live_samples(scene.cluster.address(B), &scene.prepared.key, 1.0).await;
    let mut dashboard = scene.watch(C).await;
    assert_eq!(dashboard.expect("status").await["status"], "online");

    let asked = agent.next().await;
    let sample = sample_at(Timestamp::now());
    agent.send(&AgentMessage::Live { sample: Box::new(sample.clone()) }).await;

    assert_eq!(asked, ServiceMessage::Watched { interval_seconds: 1.0, for_seconds: 10.0 });
    assert_eq!(dashboard.expect("metrics").await["timestamp"], json!(sample.timestamp));
    assert!(scene.moments(A, scene.server_id()).await.is_empty());
}

#[actix_web::test]
async fn a_dashboard_begins_with_what_is() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let sample = sample_aged(2);
    agent.store(1, vec![sample.clone()]).await;

    for instance in [A, B, C] {
        let mut dashboard = scene.watch(instance).await;

        assert_eq!(dashboard.expect("status").await["status"], "online", "{instance}");
        assert_eq!(dashboard.expect("metrics").await["timestamp"], json!(sample.timestamp), "{instance}");
    }
}

#[actix_web::test]
async fn connecting_and_disconnecting_agents_are_announced() {
    let scene = Scene::start().await;
    let mut dashboard = scene.watch(C).await;
    assert_eq!(dashboard.expect("status").await["status"], "pending");

    let agent = scene.agent(B).await;
    assert_eq!(dashboard.expect("status").await["status"], "online");
    agent.socket.abort();

    assert_eq!(dashboard.expect("status").await["status"], "offline");
}

#[actix_web::test]
async fn alerts_reach_dashboards_of_the_server_and_of_all_servers() {
    let scene = Scene::start().await;
    let threshold = scene.alarms(A).add(Threshold::cpu(90.0)).await;
    let mut probe = scene.probe(B).await;
    let mut of_server = scene.watch(C).await;
    until_live(&mut probe.agent, &mut of_server).await;
    let mut of_all = scene.open(C, ALERTS_PATH).await;
    for instance in [A, B] {
        scene.until_heard_elsewhere(instance, 2).await;
    }
    // An alert that is open when it begins to watch is sent; so it arrives in any case.
    until_active(&scene, &mut probe).await;
    let active = scene.alarms(A).only(threshold).await;

    assert_eq!(of_server.until("alert").await, active);
    assert_eq!(of_all.until("alert").await, active);
    scene.alarms(A).acknowledge(&active).await;
    for dashboard in [&mut of_server, &mut of_all] {
        assert_eq!(told_of(dashboard, "acknowledged").await["id"], active["id"]);
    }
    probe.cpu(10.0).await;
    for dashboard in [&mut of_server, &mut of_all] {
        assert_eq!(told_of(dashboard, "resolved").await["id"], active["id"]);
    }
}

/// Crosses until there is an alert: the agent's instance learns of the threshold a moment later.
async fn until_active(scene: &Scene, probe: &mut Probe) {
    let probe = tokio::sync::Mutex::new(probe);
    eventually("an alert is active", async || {
        probe.lock().await.cpu(95.0).await;
        (!scene.alarms(A).all().await.is_empty()).then_some(())
    })
    .await;
}

#[actix_web::test]
async fn the_dashboard_of_all_servers_shows_agents_of_every_instance() {
    let scene = Scene::start().await;
    let mut agents = Vec::new();
    let mut expected = BTreeSet::new();
    for instance in [A, B, C] {
        let (id, key) = scene.another(&format!("of-{instance}")).await;
        agents.push(FakeAgent::online(scene.cluster.address(instance), &key).await);
        expected.insert(id);
    }

    let mut wall = scene.open(C, "/api/v1/ws/fleet").await;
    let sample = sample_aged(1);
    for agent in &mut agents {
        agent.store(1, vec![sample.clone()]).await;
    }

    let mut live = BTreeSet::new();
    while live != expected {
        let fleet = wall.until("fleet").await;
        let is_live = |server: &&Value| server["status"] == "online" && server["timestamp"] == json!(sample.timestamp);
        live.extend(fleet["servers"].as_array().unwrap().iter().filter(is_live).map(|it| uuid_of(&it["server_id"])));
    }
    // A server that was created elsewhere is announced soon.
    let (id, _) = scene.another("later").await;
    loop {
        let fleet = wall.until("fleet").await;
        if fleet["servers"].as_array().unwrap().iter().any(|server| uuid_of(&server["server_id"]) == id) {
            break;
        }
    }
    for agent in agents {
        agent.socket.abort();
    }
    let mut gone = BTreeSet::new();
    while gone != expected {
        let fleet = wall.until("fleet").await;
        let is_gone = |server: &&Value| text_of(&server["status"]) == "offline";
        gone.extend(fleet["servers"].as_array().unwrap().iter().filter(is_gone).map(|it| uuid_of(&it["server_id"])));
    }
}

#[actix_web::test]
async fn a_dashboard_survives_the_agents_move() {
    let scene = Scene::start().await;
    let mut dashboard = scene.watch(C).await;
    for instance in [A, B, C, A] {
        let mut agent = scene.agent(instance).await;
        let at = json!(Timestamp::now()).as_str().unwrap().to_owned();
        let mut seq = 0;
        loop {
            seq += 1;
            agent.store(seq, vec![sample_at(Timestamp::now())]).await;
            let message = dashboard.next_if_any().await.unwrap_or_default();
            if message["type"] == "metrics" && message["data"]["timestamp"].as_str() >= Some(&at) {
                break;
            }
        }
    }
}
