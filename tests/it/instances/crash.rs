//! An instance that is killed under load.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use actix_web::rt;
use serde_json::{Value, json};

use super::load::{BROKEN, Stream};
use super::{A, B, C, Scene, slowness};
use crate::support::alerts::Threshold;
use crate::support::commands::answered;
use crate::support::dashboard::Dashboard;
use crate::support::receiver::{Reaction, Receiver};
use crate::support::{eventually, text_of};

/// The promise for agents that look for another instance at once.
const ELSEWHERE_WITHIN: Duration = Duration::from_secs(10);

#[actix_web::test]
async fn its_agents_are_elsewhere_within_ten_seconds_and_no_acknowledged_sample_is_lost_or_there_twice() {
    let mut scene = Scene::start().await;
    let started = Instant::now();
    let streams = scene.streams(9, A).await;
    for stream in &streams {
        stream.go_on(5).await;
    }
    // The time where nothing is wrong.
    let usual = started.elapsed();

    let killed = scene.cluster.address(B);
    // On a slow machine an agent that connects may have to try again elsewhere.
    let there = streams.iter().filter(|stream| stream.place() == Some(killed)).count();
    assert!(there > 0, "no agent is at the instance to be killed");
    let began = Instant::now();
    scene.cluster.kill(B).await;
    for stream in &streams {
        stream.until_away_from(killed).await;
    }
    let took = began.elapsed();
    for stream in &streams {
        stream.go_on(5).await;
    }

    let most = ELSEWHERE_WITHIN + usual + slowness(usual);
    assert!(took < most, "they were elsewhere after {took:?}, and had come in {usual:?}");
    let online = scene.read(C, "/servers?status=online").await;
    assert_eq!(online.as_array().unwrap().len(), streams.len());
    let broken = streams.iter().filter(|stream| stream.ends().contains(&BROKEN)).count();
    assert_eq!(broken, there, "those of the killed instance and no other");
    for stream in streams {
        let id = stream.server_id;
        let told = stream.stop().await;
        for instance in [A, C] {
            scene.expect_whole(instance, id, &told).await;
        }
    }
}

/// What a receiver got for each alert, by message: a repeated attempt is the same message.
fn told(receiver: &Receiver) -> BTreeMap<(String, String), Vec<String>> {
    let mut all: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for taken in receiver.taken() {
        let body = taken.json();
        for item in body["alerts"].as_array().unwrap() {
            let what = (text_of(&item["alert"]["id"]), text_of(&item["event"]));
            let messages = all.entry(what).or_default();
            let message = text_of(&body["id"]);
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
    }
    all
}

#[actix_web::test]
async fn no_alert_is_lost_or_raised_twice_or_told_twice() {
    let mut scene = Scene::start().await;
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let channel = json!({"name": "hook", "type": "webhook", "settings": {"url": receiver.url("/hook")}});
    scene.post(A, "/notifications/channels").json(channel).expect(201).await;
    let threshold = scene.alarms(A).add(Threshold::cpu(90.0).everywhere()).await;
    let mut streams: Vec<Stream> = Vec::new();
    for _ in 0..3 {
        // One after the other at the same instance.
        streams.extend(scene.streams(1, B).await);
    }
    for stream in &streams {
        stream.go_on(1).await;
    }
    let alarms = scene.alarms(C);
    let until = async |count: usize, status: &str| {
        eventually(&format!("{count} alerts are {status}"), async || {
            let alerts = alarms.of_threshold(threshold).await;
            (alerts.iter().filter(|alert| alert["status"] == status).count() == count).then_some(alerts)
        })
        .await
    };

    // One before it is killed, one at that moment, one afterwards.
    streams[0].cpu(95.0);
    until(1, "active").await;
    streams[1].cpu(95.0);
    scene.cluster.kill(B).await;
    streams[2].cpu(95.0);
    until(3, "active").await;
    for stream in &streams {
        stream.go_on(10).await;
        stream.cpu(10.0);
    }
    let alerts = until(3, "resolved").await;

    assert_eq!(alerts.len(), 3, "{alerts:?}");
    for alert in &alerts {
        assert_eq!(alarms.timeline(alert).await, ["triggered", "resolved"]);
    }
    let told = eventually("all are sent", async || Some(told(&receiver)).filter(|told| told.len() >= 6)).await;
    for alert in &alerts {
        for event in ["triggered", "resolved"] {
            let messages = told.get(&(text_of(&alert["id"]), event.to_owned()));
            assert_eq!(messages.map(Vec::len), Some(1), "{event} of {alert}: {told:?}");
        }
    }
    assert_eq!(told.len(), 6, "{told:?}");
    for stream in streams {
        stream.stop().await;
    }
}

#[actix_web::test]
async fn after_a_crash_a_waiting_caller_gets_the_result_when_the_agent_is_back_elsewhere() {
    let mut scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let waiting = scene.run(A, "make");
    let id = agent.expect_execute().await.command_id;
    agent.settle(1).await;

    scene.cluster.kill(B).await;
    let mut agent = scene.agent_holding(C, &[id]).await;
    agent.send_output_at(id, 0, "made\n").await;
    agent.finish(id).await;
    let answer = answered(waiting).await;

    assert_eq!(answer.status, 200, "{answer}");
    assert_eq!((&answer.json()["status"], &answer.json()["output"]), (&json!("succeeded"), &json!("made\n")));
}

#[actix_web::test]
async fn a_waiting_caller_learns_that_the_agent_stays_away() {
    let mut scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let path = format!("/commands/{}", scene.server_id());
    let call = scene.post(A, format!("{path}?wait=3")).json(json!({"command": "make"}));
    let waiting = rt::spawn(call.send());
    let id = agent.expect_execute().await.command_id;

    scene.cluster.kill(B).await;
    let answer = answered(waiting).await;

    // Whether the owner is dead or only slow is known after its lease; until then the command counts as running.
    let is_clear = match answer.status {
        400 => answer.json()["code"] == "agent_disconnected",
        200 => answer.json()["status"] == "running",
        _ => false,
    };
    assert!(is_clear, "{answer}");
    let mut agent = scene.agent_holding(C, &[id]).await;
    agent.finish(id).await;
    scene.until_command(A, id, "succeeded").await;
}

#[actix_web::test]
async fn a_command_outlives_the_instance_that_was_asked_for_it() {
    let mut scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let id = scene.running(A, &mut agent, "make").await;

    scene.cluster.kill(A).await;
    agent.send_output_at(id, 0, "made\n").await;
    agent.finish(id).await;

    for instance in [B, C] {
        assert_eq!(scene.until_command(instance, id, "succeeded").await["output"], "made\n");
    }
}

/// Waits until a dashboard shows its server with this status.
async fn until_shown(dashboard: &mut Dashboard, status: &str) {
    while dashboard.until("status").await["status"] != status {}
}

#[actix_web::test]
async fn a_server_whose_instance_died_is_offline_to_all_within_seconds() {
    let mut scene = Scene::start().await;
    let _agent = scene.agent(B).await;
    let mut dashboard = scene.watch(C).await;
    // On a machine that is too busy for its heartbeats, an instance may seem dead before it is.
    until_shown(&mut dashboard, "online").await;

    scene.cluster.kill(B).await;

    until_shown(&mut dashboard, "offline").await;
    scene.until_status(A, "offline").await;
    // It stays until that is shown.
    let _back = scene.agent(A).await;
    until_shown(&mut dashboard, "online").await;
}

#[actix_web::test]
async fn an_instance_that_begins_again_takes_its_part() {
    let mut scene = Scene::start().await;
    let stream = scene.streams(1, B).await.remove(0);
    stream.go_on(3).await;
    scene.cluster.kill(B).await;
    stream.until_away_from(scene.cluster.address(B)).await;

    scene.cluster.begin(B).await;
    let mut agent = scene.agent(B).await;
    let path = format!("/docker/{}/containers", scene.server_id());
    let (_, answer) = super::exchange(&mut agent, scene.get(A, &path), Ok(json!([]))).await;

    assert_eq!(answer.status, 200, "{answer}");
    let online = scene.read(B, "/servers?status=online").await;
    assert_eq!(online.as_array().map(Vec::len), Some(2), "{online}");
    let latest: Value = scene.read(B, &format!("/metrics/{}", stream.server_id)).await;
    assert!(latest["timestamp"].is_string());
    stream.stop().await;
}
