//! Thresholds that are set at one instance, agents at another, and dashboards at a third.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use signalbox::config::Config;
use tokio::sync::Mutex;

use super::{A, B, C, Scene, told_of};
use crate::support::agent::FakeAgent;
use crate::support::alerts::{ALERTS_PATH, Alarms, Probe, Threshold};
use crate::support::cluster::Cluster;
use crate::support::receiver::{Reaction, Receiver};
use crate::support::rows::fail_over;
use crate::support::{TestService, eventually, text_of};

#[actix_web::test]
async fn an_alert_goes_its_way_over_three_instances() {
    let scene = Scene::start().await;
    let mut probe = scene.probe(B).await;
    probe.cpu(10.0).await;
    let mut watching = scene.open(C, ALERTS_PATH).await;
    for instance in [A, B] {
        scene.until_heard_elsewhere(instance, 1).await;
    }
    let threshold = scene.alarms(A).add(Threshold::cpu(90.0)).await;

    let active = probe.cpu_until(95.0, &scene.alarms(A), threshold, "active").await;
    let told = told_of(&mut watching, "active").await;
    scene.alarms(A).acknowledge(&active).await;
    let acknowledged = told_of(&mut watching, "acknowledged").await;
    let resolved = probe.cpu_until(10.0, &scene.alarms(C), threshold, "resolved").await;

    assert_eq!((&told["id"], &acknowledged["id"]), (&active["id"], &active["id"]));
    assert_eq!((&resolved["id"], &resolved["resolved_by"]), (&active["id"], &json!("recovery")));
    assert_eq!(told_of(&mut watching, "resolved").await["id"], active["id"]);
    for instance in [A, B, C] {
        assert_eq!(scene.alarms(instance).timeline(&active).await, ["triggered", "acknowledged", "resolved"]);
        scene.alarms(instance).only(threshold).await;
    }
}

#[actix_web::test]
async fn one_that_was_resolved_by_hand_elsewhere_waits_for_the_recovery() {
    let scene = Scene::start().await;
    let mut probe = scene.probe(B).await;
    let threshold = scene.alarms(A).add(Threshold::cpu(90.0)).await;
    let active = probe.cpu_until(95.0, &scene.alarms(A), threshold, "active").await;

    scene.alarms(C).resolve(&active).await;
    for _ in 0..20 {
        probe.cpu(95.0).await;
    }
    scene.alarms(A).only(threshold).await;
    for _ in 0..2 {
        probe.cpu(10.0).await;
    }
    let again = probe.cpu_until(96.0, &scene.alarms(A), threshold, "active").await;

    assert_ne!(again["id"], active["id"]);
    assert_eq!(scene.alarms(B).of_threshold(threshold).await.len(), 2);
}

#[actix_web::test]
async fn a_threshold_that_is_changed_or_removed_elsewhere_holds_as_it_is() {
    let scene = Scene::start().await;
    let mut probe = scene.probe(B).await;
    let threshold = scene.alarms(A).add(Threshold::cpu(50.0)).await;
    probe.cpu_until(60.0, &scene.alarms(A), threshold, "active").await;

    scene.alarms(C).change(threshold, json!({"threshold_value": 80.0})).await;
    probe.cpu_until(60.0, &scene.alarms(A), threshold, "resolved").await;
    let active = probe.cpu_until(90.0, &scene.alarms(A), threshold, "active").await;
    scene.alarms(A).remove(threshold).await;

    let ended = eventually("it ends with its threshold", async || {
        Some(scene.alarms(C).alert(&active).await).filter(|alert| alert["status"] == "resolved")
    })
    .await;
    assert_eq!(ended["resolved_by"], "threshold_deleted");
}

#[actix_web::test]
async fn a_silence_from_another_instance_applies() {
    let scene = Scene::start().await;
    let mut probe = scene.probe(B).await;
    probe.cpu(10.0).await;
    let ends_at = signalbox_protocol::Timestamp::now().plus_millis(3_600_000).to_string();
    scene.alarms(A).post("/alerts/silences", json!({"all": true, "reason": "new disks", "ends_at": ends_at})).await;
    let threshold = scene.alarms(C).add(Threshold::cpu(90.0)).await;

    // Both become known in this order.
    let alert = probe.cpu_until(95.0, &scene.alarms(A), threshold, "active").await;

    assert_eq!(alert["silenced"], true, "{alert}");
}

#[actix_web::test]
async fn an_alert_follows_its_agent() {
    let scene = Scene::start().await;
    let threshold = scene.alarms(A).add(Threshold::cpu(90.0)).await;
    let mut probe = scene.probe(B).await;
    let active = probe.cpu_until(95.0, &scene.alarms(A), threshold, "active").await;

    for instance in [C, A] {
        probe = scene.probe(instance).await;
        probe.cpu(96.0).await;
        let only = scene.alarms(B).only(threshold).await;
        assert_eq!((&only["id"], &only["status"]), (&active["id"], &json!("active")), "{instance}");
    }
    let resolved = probe.cpu_until(10.0, &scene.alarms(B), threshold, "resolved").await;

    assert_eq!(resolved["id"], active["id"]);
    assert_eq!(scene.alarms(C).timeline(&active).await, ["triggered", "resolved"]);
}

#[actix_web::test]
async fn an_alert_that_the_database_lost_is_opened_again_where_its_agent_is() {
    let scene = Scene::start().await;
    let threshold = scene.alarms(A).add(Threshold::cpu(90.0)).await;
    let mut probe = scene.probe(B).await;
    let lost = probe.cpu_until(95.0, &scene.alarms(A), threshold, "active").await;

    // By now B has read the entry about the threshold, which is made at A.
    fail_over(&scene.cluster.storage, "DELETE FROM alerts").await;
    let again = probe.cpu_until(96.0, &scene.alarms(C), threshold, "active").await;
    let resolved = probe.cpu_until(10.0, &scene.alarms(A), threshold, "resolved").await;

    assert_ne!(again["id"], lost["id"]);
    assert_eq!(resolved["id"], again["id"]);
    scene.alarms(B).only(threshold).await;
}

#[actix_web::test]
async fn a_channel_receives_each_alert_once_wherever_it_is_raised() {
    let scene = Scene::start().await;
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let channel = json!({"name": "hook", "type": "webhook", "settings": {"url": receiver.url("/hook")}});
    scene.post(A, "/notifications/channels").json(channel).expect(201).await;
    let threshold = scene.alarms(B).add(Threshold::cpu(90.0).everywhere()).await;
    let mut probes = Vec::new();
    for instance in [A, B, C] {
        for number in 0..2 {
            let (_, key) = scene.another(&format!("of-{instance}-{number}")).await;
            probes.push(Probe::new(FakeAgent::online(scene.cluster.address(instance), &key).await));
        }
    }

    let probes = Mutex::new(probes);
    let alerts = eventually("all have crossed", async || {
        for probe in probes.lock().await.iter_mut() {
            probe.cpu(95.0).await;
        }
        Some(scene.alarms(A).of_threshold(threshold).await).filter(|alerts| alerts.len() == 6)
    })
    .await;
    for probe in probes.lock().await.iter_mut() {
        probe.cpu(10.0).await;
    }

    let told = eventually("all twelve are sent", async || {
        let told: Vec<_> = receiver.taken().iter().flat_map(|taken| items_of(&taken.json())).collect();
        (told.len() >= 12).then_some(told)
    })
    .await;
    let expected: BTreeSet<_> = alerts
        .iter()
        .flat_map(|alert| ["triggered", "resolved"].map(|event| (text_of(&alert["id"]), event.to_owned())))
        .collect();
    assert_eq!((told.len(), told.into_iter().collect()), (12, expected));
    let once = |delivery: &Value| delivery["status"] == "sent" && delivery["attempts"] == 1;
    let deliveries = eventually("all deliveries are known as sent", async || {
        let deliveries = scene.read(C, "/notifications/deliveries?limit=500").await;
        deliveries.as_array().unwrap().iter().all(once).then_some(deliveries)
    })
    .await;
    assert_eq!(deliveries.as_array().unwrap().len(), 12);
}

fn items_of(body: &Value) -> Vec<(String, String)> {
    let items = body["alerts"].as_array().unwrap().iter();
    items.map(|item| (text_of(&item["alert"]["id"]), text_of(&item["event"]))).collect()
}

/// Hardly any patience with agents that have not come back yet.
fn impatient(config: &mut Config) {
    config.timing.offline_patience = Duration::from_millis(1);
}

/// An instance that can be killed, and two that have no patience.
struct Impatient {
    cluster: Cluster,
    others: [TestService; 2],
    key: String,
    alarms: Alarms,
}

impl Impatient {
    async fn start() -> Self {
        let cluster = Cluster::start(1).await;
        let others = [cluster.join(impatient).await, cluster.join(impatient).await];
        let prepared = cluster.at(0).prepare().await;
        let alarms = Alarms::reached(&others[0].client, others[0].address, &prepared.token, prepared.server_id);
        Self { cluster, others, key: prepared.key, alarms }
    }
}

#[actix_web::test]
async fn a_long_absence_is_reported_once_and_recovers_at_another_instance() {
    let scene = Impatient::start().await;
    let threshold = scene.alarms.add(Threshold::offline(0.5)).await;
    let mut probe = Probe::new(FakeAgent::online(scene.others[1].address, &scene.key).await);
    probe.cpu(10.0).await;

    probe.agent.socket.abort();
    let active = scene.alarms.until_only(threshold, "active").await;
    let _back = FakeAgent::online(scene.others[0].address, &scene.key).await;
    let resolved = scene.alarms.until_only(threshold, "resolved").await;

    assert_eq!((&active["metric_type"], &resolved["resolved_by"]), (&json!("offline"), &json!("recovery")));
    assert_eq!(scene.alarms.timeline(&active).await, ["triggered", "resolved"]);
}

#[actix_web::test]
async fn an_agent_whose_instance_died_is_missed_once() {
    let mut scene = Impatient::start().await;
    let threshold = scene.alarms.add(Threshold::offline(0.5)).await;
    let mut probe = Probe::new(FakeAgent::online(scene.cluster.address(0), &scene.key).await);
    probe.cpu(10.0).await;

    scene.cluster.kill(0).await;
    let active = scene.alarms.until_only(threshold, "active").await;
    let _back = FakeAgent::online(scene.others[1].address, &scene.key).await;
    scene.alarms.until_only(threshold, "resolved").await;

    assert_eq!(active["metric_type"], "offline");
}

#[actix_web::test]
async fn an_agent_that_only_moves_is_not_missed() {
    let scene = Impatient::start().await;
    let threshold = scene.alarms.add(Threshold::offline(1.0)).await;
    let places = [scene.others[0].address, scene.others[1].address];

    let mut agent = FakeAgent::online(scene.cluster.address(0), &scene.key).await;
    for round in 0..10 {
        let next = FakeAgent::online(places[round % 2], &scene.key).await;
        agent.expect_close(4409).await;
        agent = next;
        agent.settle(1).await;
    }
    // Long enough that an agent that had gone would be missed, by the clock of another threshold that really fires.
    let (gone_id, gone_key) = scene.alarms.server("gone", &[]).await;
    let other = scene.alarms.add(Threshold::offline(1.5).of_server(gone_id)).await;
    FakeAgent::online(scene.others[0].address, &gone_key).await.socket.abort();
    scene.alarms.until_only(other, "active").await;

    scene.alarms.expect_none(threshold).await;
}
