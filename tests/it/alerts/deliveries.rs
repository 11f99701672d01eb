//! Notifications of alerts: each arrives at least once, whatever the receiver does, and a repetition is recognisable.

mod crash;
mod mail;
mod receivers;
mod reminders;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use signalbox::config::Config;
use signalbox_protocol::Timestamp;

use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::receiver::{Reaction, Receiver};
use crate::support::site::Site;
use crate::support::{PATIENCE, eventually, text_of};

/// Receivers are on the loopback here, and no test waits long for a second attempt, but each waits for a slow receiver.
fn nearby(config: &mut Config) {
    config.notification_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.timing.notify.grouping = Duration::from_millis(100);
    config.timing.notify.first_retry = Duration::from_millis(50);
    let limits = &mut config.timing.notify.limits;
    (limits.connect, limits.answer) = (PATIENCE, PATIENCE);
}

async fn webhook(alarms: &Alarms, url: &str, more: Value) -> String {
    let mut body = json!({"name": "hook", "type": "webhook", "settings": {"url": url}});
    for (field, value) in more.as_object().unwrap() {
        body[field] = value.clone();
    }
    text_of(&alarms.post("/notifications/channels", body).await["id"])
}

/// A notification that a receiver got, and its message.
#[derive(Debug, Clone, PartialEq)]
struct Received {
    event: String,
    alert: Value,
    message_id: String,
}

impl Received {
    fn is(&self, event: &str, alert: &Value) -> bool {
        self.event == event && self.alert["id"] == alert["id"]
    }
}

/// What a receiver got, each message once, however often it came; it must have been the same each time.
fn told(receiver: &Receiver) -> Vec<Received> {
    let mut bodies: BTreeMap<String, String> = BTreeMap::new();
    let mut all = Vec::new();
    for taken in receiver.taken() {
        let key = taken.header("Idempotency-Key").expect("a key").to_owned();
        let body = taken.json();
        assert_eq!(body["id"], key.as_str(), "the key is the message's id");
        match bodies.get(&key) {
            Some(before) => assert_eq!(before, &taken.body, "the same message says the same"),
            None => {
                for item in body["alerts"].as_array().unwrap() {
                    let (event, alert) = (text_of(&item["event"]), item["alert"].clone());
                    all.push(Received { event, alert, message_id: key.clone() });
                }
                bodies.insert(key, taken.body);
            }
        }
    }
    all
}

/// Everything that a receiver got, as soon as it contains this.
async fn until_told(receiver: &Receiver, event: &str, alert: &Value) -> Vec<Received> {
    eventually(&format!("{event} is sent"), async || {
        let told = told(receiver);
        told.iter().any(|it| it.is(event, alert)).then_some(told)
    })
    .await
}

fn events(told: &[Received]) -> Vec<&str> {
    told.iter().map(|it| it.event.as_str()).collect()
}

/// A site with a threshold on the processor, a receiver and a channel to it.
struct Scene {
    site: Site,
    alarms: Alarms,
    threshold: uuid::Uuid,
    probe: Probe,
    receiver: Receiver,
}

impl Scene {
    async fn start(reaction: Reaction, more: Value) -> Self {
        Self::with(Receiver::always(reaction).await, more).await
    }

    async fn with(receiver: Receiver, more: Value) -> Self {
        Self::adjusted(receiver, more, nearby).await
    }

    async fn adjusted(receiver: Receiver, more: Value, adjust: impl FnOnce(&mut Config)) -> Self {
        let site = Site::start_with(adjust).await;
        let alarms = Alarms::at(&site);
        webhook(&alarms, &receiver.url("/hook"), more).await;
        let threshold = alarms.add(Threshold::cpu(90.0)).await;
        let probe = Probe::at(&site).await;
        Self { site, alarms, threshold, probe, receiver }
    }

    /// Crosses and returns the alert.
    async fn fire(&mut self) -> Value {
        self.probe.cpu(95.0).await;
        self.alarms.until(self.threshold, "active").await
    }

    async fn recover(&mut self) -> Value {
        self.probe.cpu(10.0).await;
        self.alarms.until(self.threshold, "resolved").await
    }

    /// The service's delivery log, oldest first.
    async fn deliveries(&self) -> Vec<Value> {
        let mut deliveries = self.alarms.read("/notifications/deliveries").await.as_array().unwrap().clone();
        deliveries.reverse();
        deliveries
    }
}

#[actix_web::test]
async fn notifications_show_an_alert_and_its_recovery_like_the_api() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;

    let active = scene.fire().await;
    until_told(&scene.receiver, "triggered", &active).await;
    let resolved = scene.recover().await;
    let told = until_told(&scene.receiver, "resolved", &resolved).await;

    assert_eq!(events(&told), ["triggered", "resolved"]);
    assert_eq!((&told[0].alert, &told[1].alert), (&active, &resolved));
    assert_eq!(scene.receiver.taken()[0].json()["alerts"][0]["server"]["name"], "web-1");
    let deliveries = eventually("both are delivered", async || {
        let deliveries = scene.deliveries().await;
        deliveries.iter().all(|delivery| delivery["status"] == "sent").then_some(deliveries)
    })
    .await;
    let shown: Vec<_> = deliveries.iter().map(|it| (text_of(&it["event"]), text_of(&it["message_id"]))).collect();
    let expected: Vec<_> = told.iter().map(|it| (it.event.clone(), it.message_id.clone())).collect();
    assert_eq!(shown, expected);
    assert!(deliveries.iter().all(|it| it["alert_id"] == active["id"] && it["attempts"] == 1), "{deliveries:?}");
}

#[actix_web::test]
async fn changes_in_between_are_not_notified() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;
    let active = scene.fire().await;
    scene.probe.cpu(99.0).await;
    scene.alarms.acknowledge(&active).await;

    let resolved = scene.recover().await;

    let told = until_told(&scene.receiver, "resolved", &resolved).await;
    assert_eq!(events(&told), ["triggered", "resolved"]);
}

#[actix_web::test]
async fn ends_by_hand_or_with_the_threshold_are_notified() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;

    let first = scene.fire().await;
    scene.alarms.resolve(&first).await;
    until_told(&scene.receiver, "resolved", &first).await;
    scene.probe.cpu(10.0).await;
    let second = scene.fire().await;
    scene.alarms.remove(scene.threshold).await;

    let told = until_told(&scene.receiver, "resolved", &second).await;
    assert_eq!(events(&told), ["triggered", "resolved", "triggered", "resolved"]);
    assert_eq!(told[3].alert["resolved_by"], "threshold_deleted");
}

#[actix_web::test]
async fn a_channel_receives_what_it_wants() {
    let wanted = json!({"severities": ["critical"], "tags": ["prod"], "notify_recovery": false});
    let mut scene = Scene::start(Reaction::Answer(200), wanted).await;
    let critical = scene.alarms.add(Threshold::cpu(90.0).severity("critical")).await;
    // Critical, and of another server.
    scene.fire().await;
    scene.recover().await;
    let path = format!("/servers/{}", scene.site.server_id);
    scene.alarms.put(&path, json!({"tags": ["prod"]})).await;

    scene.fire().await;
    let first = scene.alarms.until(critical, "active").await;
    until_told(&scene.receiver, "triggered", &first).await;
    scene.recover().await;
    scene.fire().await;
    let second = scene.alarms.until(critical, "active").await;

    let told = until_told(&scene.receiver, "triggered", &second).await;
    assert_eq!(told.len(), 2, "no warning, no recovery, nothing without the tag: {told:?}");
    assert!(told[0].is("triggered", &first));
}

#[actix_web::test]
async fn a_burst_is_sent_in_a_few_messages() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;
    for step in 0..40 {
        scene.alarms.add(Threshold::cpu(50.0 + f64::from(step))).await;
    }

    scene.fire().await;

    let told = eventually("all are sent", async || {
        let told = told(&scene.receiver);
        (told.len() >= 41).then_some(told)
    })
    .await;
    let mut ids: Vec<_> = told.iter().map(|it| text_of(&it.alert["id"])).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), told.len()), (41, 41), "each once");
    assert!(scene.receiver.taken().len() <= 5, "{} messages", scene.receiver.taken().len());
}

#[actix_web::test]
async fn a_silenced_alert_is_notified_when_the_silence_ends_if_it_is_still_open() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;
    let over = scene.alarms.add(Threshold::on("memory", "gt", 90.0)).await;
    let seen = scene.alarms.add(Threshold::on("load", "gt", 5.0)).await;
    let ends_in = |millis: i64| json!({"all": true, "ends_at": Timestamp::now().plus_millis(millis).to_string()});
    let silence = scene.alarms.post("/alerts/silences", ends_in(3_600_000)).await;
    scene
        .probe
        .now(|sample| {
            (sample.cpu_percent, sample.memory_percent) = (95.0, 95.0);
            sample.load_average = [9.0, 9.0, 9.0];
        })
        .await;
    let active = scene.alarms.until_only(scene.threshold, "active").await;
    assert_eq!(active["silenced"], true, "the silence still held");
    scene.alarms.acknowledge(&scene.alarms.only(seen).await).await;
    scene.probe.now(|sample| (sample.cpu_percent, sample.load_average) = (95.0, [9.0, 9.0, 9.0])).await;
    scene.alarms.until_only(over, "resolved").await;
    assert!(told(&scene.receiver).is_empty(), "nothing is sent while it applies");

    scene.alarms.put(&format!("/alerts/silences/{}", text_of(&silence["id"])), ends_in(2_000)).await;
    until_told(&scene.receiver, "triggered", &active).await;
    let resolved = scene.recover().await;

    let told = until_told(&scene.receiver, "resolved", &resolved).await;
    assert_eq!(events(&told), ["triggered", "resolved"], "neither what was over nor what was seen");
    assert!(told.iter().all(|it| it.alert["id"] == active["id"]), "{told:?}");
}

#[actix_web::test]
async fn the_end_of_an_unnotified_alert_is_not_notified() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;
    let ends_at = Timestamp::now().plus_millis(3_600_000).to_string();
    let silence = scene.alarms.post("/alerts/silences", json!({"all": true, "ends_at": ends_at})).await;
    scene.fire().await;
    scene.recover().await;
    scene.alarms.delete(&format!("/alerts/silences/{}", text_of(&silence["id"]))).await;

    let second = scene.fire().await;

    let told = until_told(&scene.receiver, "triggered", &second).await;
    assert_eq!(told.len(), 1, "{told:?}");
}

#[actix_web::test]
async fn deleting_a_silence_notifies_alerts_that_are_still_open() {
    let mut scene = Scene::start(Reaction::Answer(200), json!({})).await;
    let ends_at = Timestamp::now().plus_millis(3_600_000).to_string();
    let silence = scene.alarms.post("/alerts/silences", json!({"all": true, "ends_at": ends_at})).await;
    let active = scene.fire().await;

    scene.alarms.delete(&format!("/alerts/silences/{}", text_of(&silence["id"]))).await;

    assert_eq!(until_told(&scene.receiver, "triggered", &active).await.len(), 1);
}
