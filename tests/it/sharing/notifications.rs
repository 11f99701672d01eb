//! Alerts of shared servers on the channels of those who see them.

use std::time::Duration;

use serde_json::{Value, json};
use signalbox::config::Config;

use super::Shared;
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::receiver::{Reaction, Receiver};
use crate::support::{Account, eventually, text_of};

const SHORT: Duration = Duration::from_millis(50);

fn nearby(config: &mut Config) {
    config.notification_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.timing.notify.grouping = SHORT;
    config.timing.notify.first_retry = SHORT;
    config.timing.notify.longest_retry = SHORT;
}

/// A server with tags `db` and `eu` and a threshold that its agent can cross.
struct Alarm {
    shared: Shared,
    agent: FakeAgent,
    samples: u64,
}

impl Alarm {
    async fn set(severity: &str) -> Self {
        let shared = Shared::start_with(nearby).await;
        shared.by_owner("PUT", &shared.path("/servers", "")).json(json!({"tags": ["db", "eu"]})).expect(200).await;
        let mut threshold = shared.site.cpu_threshold();
        threshold["severity"] = json!(severity);
        shared.by_owner("POST", "/alerts/thresholds").json(threshold).expect(201).await;
        let agent = shared.site.agent().await;
        Self { shared, agent, samples: 0 }
    }

    async fn channel(&self, account: &Account, receiver: &Receiver, more: Value) -> String {
        let mut body = json!({"name": "hook", "type": "webhook", "settings": {"url": receiver.url("/")}});
        for (field, value) in more.as_object().unwrap() {
            body[field] = value.clone();
        }
        text_of(&self.shared.by(account, "POST", "/notifications/channels").json(body).expect(201).await["id"])
    }

    async fn cpu(&mut self, percent: f64) {
        self.samples += 1;
        let mut sample = sample_aged(30 - i64::try_from(self.samples).unwrap());
        sample.cpu_percent = percent;
        self.agent.store(self.samples, vec![sample]).await;
    }

    async fn deliveries(&self, account: &Account) -> Vec<(String, String, String)> {
        let list = self.shared.by(account, "GET", "/notifications/deliveries").expect(200).await;
        let fields = |row: &Value| {
            (text_of(&row["event"]), text_of(&row["status"]), row["error"].as_str().unwrap_or("").to_owned())
        };
        list.as_array().unwrap().iter().rev().map(fields).collect()
    }

    /// Waits until an account's channels have so many notifications, and none is on its way.
    async fn delivered(&self, account: &Account, count: usize) -> Vec<(String, String, String)> {
        eventually("the notifications have arrived", async || {
            let list = self.deliveries(account).await;
            (list.len() == count && list.iter().all(|(_, status, _)| status != "pending")).then_some(list)
        })
        .await
    }
}

/// What a receiver got: each event with the owner of the server.
fn told(receiver: &Receiver) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for request in receiver.taken() {
        for item in request.json()["alerts"].as_array().unwrap() {
            all.push((text_of(&item["event"]), text_of(&item["alert"]["owner"]["username"])));
        }
    }
    all
}

fn sent(event: &str) -> (String, String, String) {
    (event.to_owned(), "sent".to_owned(), String::new())
}

#[actix_web::test]
async fn channels_of_a_viewer_receive_what_fits_by_tag_and_severity_and_those_of_a_stranger_nothing() {
    let mut alarm = Alarm::set("critical").await;
    let (fitting, other) =
        (Receiver::always(Reaction::Answer(200)).await, Receiver::always(Reaction::Answer(200)).await);
    let (guest, owner) = (alarm.shared.guest.clone(), alarm.shared.site.owner.clone());
    let stranger = alarm.shared.site.service.register("stranger").await;
    alarm.shared.grant(json!({"tag": "db"}), "viewer", json!([])).await;
    alarm.channel(&guest, &fitting, json!({"tags": ["eu"], "severities": ["critical"]})).await;
    alarm.channel(&guest, &other, json!({"tags": ["web"]})).await;
    alarm.channel(&guest, &other, json!({"severities": ["info"]})).await;
    alarm.channel(&stranger, &other, json!({})).await;
    let owners = Receiver::always(Reaction::Answer(200)).await;
    alarm.channel(&owner, &owners, json!({})).await;

    alarm.cpu(99.0).await;
    alarm.delivered(&guest, 1).await;
    alarm.cpu(1.0).await;

    assert_eq!(alarm.delivered(&guest, 2).await, [sent("triggered"), sent("resolved")]);
    alarm.delivered(&owner, 2).await;
    let both = [("triggered", "owner"), ("resolved", "owner")].map(|(event, name)| (event.to_owned(), name.to_owned()));
    assert_eq!((told(&fitting), told(&owners), told(&other)), (both.to_vec(), both.to_vec(), Vec::new()));
    assert_eq!(alarm.deliveries(&stranger).await, []);
}

#[actix_web::test]
async fn a_member_of_a_team_is_notified_until_they_leave_it() {
    let mut alarm = Alarm::set("warning").await;
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let guest = alarm.shared.guest.clone();
    let team = text_of(&alarm.shared.by_owner("POST", "/teams").json(json!({"name": "ops"})).expect(201).await["id"]);
    let member = format!("/teams/{team}/members/guest");
    alarm.shared.by_owner("PUT", &member).expect(200).await;
    let grant = json!({"subject": {"team_id": team}, "scope": {"all": true}, "role": "viewer"});
    alarm.shared.by_owner("POST", "/grants").json(grant).expect(201).await;
    alarm.channel(&guest, &receiver, json!({})).await;
    alarm.cpu(99.0).await;
    alarm.delivered(&guest, 1).await;

    alarm.shared.by_guest("DELETE", &member).expect(200).await;
    alarm.cpu(1.0).await;

    let list = alarm.delivered(&guest, 2).await;
    assert_eq!((&list[0], list[1].1.as_str()), (&sent("triggered"), "failed"));
    assert!(list[1].2.contains("not shared"), "{list:?}");
    assert_eq!(told(&receiver).len(), 1);
}

#[actix_web::test]
async fn a_message_that_is_retried_is_not_sent_once_the_right_has_ended() {
    let mut alarm = Alarm::set("warning").await;
    let receiver = Receiver::always(Reaction::Answer(503)).await;
    let guest = alarm.shared.guest.clone();
    let grant = alarm.shared.grant_server("viewer", json!([])).await;
    alarm.channel(&guest, &receiver, json!({})).await;
    alarm.cpu(99.0).await;
    eventually("the receiver has refused it", async || (receiver.taken().len() > 1).then_some(())).await;

    alarm.shared.end(&grant).await;

    let list = alarm.delivered(&guest, 1).await;
    assert_eq!((list[0].0.as_str(), list[0].1.as_str()), ("triggered", "failed"));
    assert!(list[0].2.contains("not shared"), "{list:?}");
}

#[actix_web::test]
async fn a_disabled_account_receives_nothing_of_others_servers() {
    let mut alarm = Alarm::set("warning").await;
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let guest = alarm.shared.guest.clone();
    alarm.shared.grant_server("viewer", json!([])).await;
    alarm.channel(&guest, &receiver, json!({})).await;
    let owners = Receiver::always(Reaction::Answer(200)).await;
    let owner = alarm.shared.site.owner.clone();
    alarm.channel(&owner, &owners, json!({})).await;
    // The owner made the first account, and administers the service.
    let path = format!("/users/{}", guest.id);
    alarm.shared.by_owner("PUT", &path).json(json!({"disabled": true})).expect(200).await;

    alarm.cpu(99.0).await;

    alarm.delivered(&owner, 1).await;
    assert_eq!((told(&owners).len(), told(&receiver).len()), (1, 0));
}
