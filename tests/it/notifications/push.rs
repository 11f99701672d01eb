//! Channels that lead to browsers, with a push service that the test controls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use signalbox::audit::Actor;
use signalbox::auth::access::Access;
use signalbox::cluster::Cluster;
use signalbox::feeds::Feeds;
use signalbox::notify::pace::Pace;
use signalbox::notify::push::PushKey;
use signalbox::notify::sender::{Sender, SenderConfig};
use signalbox::notify::senders::OnlySender;
use signalbox::notify::{Notifier, Parts};
use signalbox::store::{Attempt, Channel, ChannelPatch, SealedSettings};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::api::path_of;
use super::scene::{KEY, Scene, pace, sealer};
use super::slow::{leading_to, patient};
use crate::support::push::{Browser, PushService, claims};
use crate::support::receiver::{Reaction, ReceivedRequest};
use crate::support::{TestService, eventually, keys_of, text_of};

const PRIVATE: &str = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";

/// A notifier that pushes for real.
fn pushing(scene: &Scene, service: &PushService, pace: Pace) -> Notifier {
    let sender = SenderConfig {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        ca_file: Some(service.authority.file()),
        smtp: None,
        push_key: Some(PushKey::new(&PRIVATE.into()).unwrap()),
        public_url: None,
        limits: pace.limits,
    };
    Notifier::start(Parts {
        store: scene.store.clone(),
        access: Access::without_grants(scene.store.clone(), Feeds::default()),
        sealer: sealer(KEY),
        deliver: Arc::new(Sender::new(sender).unwrap()),
        silences: Arc::new(scene.store.clone()),
        pace,
        clock: signalbox::clock::Clock::default(),
        shards: Cluster::alone().shards,
        senders: Box::new(OnlySender),
    })
}

fn calm() -> Pace {
    Pace { limits: patient(), ..pace() }
}

async fn browser_on(scene: &Scene, service: &PushService) -> (Browser, Channel) {
    let browser = Browser::new();
    let channel = leading_to(scene, "laptop", browser.settings(&service.endpoint())).await;
    (browser, channel)
}

async fn came(service: &PushService, count: usize) -> Vec<ReceivedRequest> {
    eventually("enough messages came", || async {
        let taken = service.receiver.taken();
        (taken.len() >= count).then_some(taken)
    })
    .await
}

/// Some headers of a message.
fn named(taken: &ReceivedRequest) -> [Option<&str>; 3] {
    ["TTL", "Urgency", "Topic"].map(|name| taken.header(name))
}

fn topic(alert_id: Uuid) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(alert_id.as_bytes())
}

#[actix_web::test]
async fn the_end_of_an_alert_takes_the_place_of_its_beginning() {
    let scene = Scene::set().await;
    let service = PushService::healthy().await;
    let (browser, _) = browser_on(&scene, &service).await;
    let other = scene.open("disk is full").await;
    scene.store.acknowledge_alert(scene.owner_id, other.id, &Actor::command_line(), Timestamp::now()).await.unwrap();
    let notifier = pushing(&scene, &service, calm());
    came(&service, 1).await;

    let alert = scene.open_with("cpu is high", |alert| alert.severity = "critical".to_owned()).await;
    notifier.nudge();
    came(&service, 2).await;
    scene.recover(&alert).await;
    notifier.nudge();
    let taken = came(&service, 3).await;
    scene.emptied().await;

    let topic = topic(alert.id);
    assert_eq!(named(&taken[1]), [Some("86400"), Some("high"), Some(topic.as_str())]);
    assert_eq!(named(&taken[2]), [Some("86400"), Some("normal"), Some(topic.as_str())]);
    assert_eq!(claims(&taken[1]).0["aud"], json!(service.origin()));
    let (began, over) = (browser.read(&taken[1]), browser.read(&taken[2]));
    let expected = json!({
        "id": began["id"], "alert_id": alert.id, "event": "triggered", "severity": "critical",
        "title": "🔴 Critical: web-1", "text": "web-1: cpu is high", "path": format!("/alerts/{}", alert.id),
        "alerts": [alert.id], "open_alerts": 1,
    });
    assert_eq!(began, expected);
    assert_eq!((&over["event"], &over["open_alerts"]), (&json!("resolved"), &json!(0)));
    assert_eq!((&over["alert_id"], &over["severity"]), (&json!(alert.id), &Value::Null));
    assert_ne!(over["id"], began["id"]);
}

#[actix_web::test]
async fn a_burst_is_one_message_that_names_its_alerts() {
    let scene = Scene::set().await;
    let service = PushService::healthy().await;
    let (browser, _) = browser_on(&scene, &service).await;
    let mut ids = Vec::new();
    for number in 0..30 {
        ids.push(scene.open(&format!("alert {number}")).await.id);
    }

    let _notifier = pushing(&scene, &service, calm());
    scene.emptied().await;

    let taken = service.receiver.only();
    assert_eq!(named(&taken), [Some("86400"), Some("normal"), None]);
    let told = browser.read(&taken);
    assert_eq!((&told["alert_id"], &told["event"], &told["path"]), (&Value::Null, &Value::Null, &json!("/alerts")));
    assert_eq!((&told["title"], &told["open_alerts"]), (&json!("🟠 Warning: 30 alerts on web-1"), &json!(30)));
    assert_eq!(told["alerts"], json!(ids[..20]));
    let text = text_of(&told["text"]);
    assert!(text.starts_with("🟠 web-1: alert 0\n") && text.ends_with("\n… and 23 more"), "{text}");
    assert!(taken.bytes.len() <= 4_096);
}

#[actix_web::test]
async fn a_browser_that_ended_its_subscription_ends_its_channel() {
    let scene = Scene::set().await;
    let service = PushService::start(|_| Reaction::Answer(410)).await;
    let (_, channel) = browser_on(&scene, &service).await;
    scene.open("first").await;
    let notifier = pushing(&scene, &service, calm());
    let outbox = scene.emptied().await;

    scene.open("second").await;
    notifier.nudge();

    let error = "localhost answered 410: the browser has ended its subscription, the channel was disabled";
    let row = &outbox[0].notification;
    assert_eq!((row.status.as_str(), row.error.as_deref(), row.attempts), ("failed", Some(error), 1));
    let ended = scene.store.find_channel(scene.owner_id, channel.id).await.unwrap().unwrap();
    assert!(!ended.is_enabled && ended.updated_at >= channel.updated_at && ended.settings == channel.settings);
    assert_eq!(scene.told().await, ["laptop triggered first failed"]);
    assert_eq!(service.receiver.taken().len(), 1);
}

#[actix_web::test]
async fn what_waits_for_a_channel_that_ends_is_given_up_with_it() {
    let scene = Scene::set().await;
    let service = PushService::healthy().await;
    let (_, channel) = browser_on(&scene, &service).await;
    scene.open("first").await;
    let now = Timestamp::now();
    let claim = scene.store.claim(channel.id, now, now.plus_millis(60_000), 1).await.unwrap().unwrap();
    scene.open("second").await;
    let gone = Attempt::Ended { error: "gone".to_owned() };

    scene.store.conclude(&claim, &gone, &claim.progress(), now).await.unwrap();

    assert_eq!(scene.told().await, ["laptop triggered first failed", "laptop triggered second failed"]);
    assert!(scene.outbox().await.iter().all(|row| row.notification.error.as_deref() == Some("gone")));
}

#[actix_web::test]
async fn a_subscription_that_has_been_renewed_is_not_ended_and_gets_the_message() {
    let scene = Scene::set().await;
    let service = PushService::healthy().await;
    let (_, channel) = browser_on(&scene, &service).await;
    scene.open("cpu is high").await;
    let now = Timestamp::now();
    let claim = scene.store.claim(channel.id, now, now.plus_millis(60_000), 1).await.unwrap().unwrap();
    let renewed = Browser::new();
    let settings = renewed.settings(&service.endpoint());
    let settings = SealedSettings {
        kind: settings.kind(),
        settings: sealer(KEY).seal(channel.id, &settings).unwrap(),
        destination: settings.destination(),
    };
    let patch = ChannelPatch { settings: Some(settings), ..ChannelPatch::default() };
    scene.store.update_channel(scene.owner_id, channel.id, patch, Actor::command_line(), now).await.unwrap();

    let gone = Attempt::Ended { error: "gone".to_owned() };
    scene.store.conclude(&claim, &gone, &claim.progress(), now).await.unwrap();
    let _notifier = pushing(&scene, &service, calm());
    scene.emptied().await;

    assert_eq!(scene.told().await, ["laptop triggered cpu is high sent"]);
    assert_eq!(renewed.read(&service.receiver.only())["event"], json!("triggered"));
}

#[actix_web::test]
async fn a_push_service_that_is_busy_gets_the_message_again_after_the_pause_it_asks_for() {
    let scene = Scene::set().await;
    let before = Arc::new(AtomicUsize::new(0));
    let service = PushService::start(move |_| match before.fetch_add(1, Ordering::SeqCst) {
        0 => Reaction::With(429, "Retry-After", "1".to_owned()),
        _ => Reaction::Answer(201),
    })
    .await;
    let (browser, _) = browser_on(&scene, &service).await;
    scene.open("cpu is high").await;
    let begun = std::time::Instant::now();

    let _notifier = pushing(&scene, &service, calm());
    let outbox = scene.emptied().await;

    assert!(begun.elapsed() >= Duration::from_secs(1));
    let taken = service.receiver.taken();
    assert_eq!((taken.len(), outbox[0].notification.attempts), (2, 2));
    assert_eq!(browser.read(&taken[0]), browser.read(&taken[1]));
}

#[actix_web::test]
async fn a_channel_is_made_of_a_subscription_and_shows_nothing_of_it() {
    let push = PushService::start(|_| Reaction::Answer(404)).await;
    let ca_file = push.authority.file();
    let service = TestService::start_with(move |config| {
        config.notification_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.notification_ca_file = Some(ca_file);
    })
    .await;
    let account = service.register("alice").await;
    let browser = Browser::new();
    let body = json!({"name": "Firefox", "type": "push", "settings": browser.subscription(&push.endpoint())});

    let answer = service.new_channel(&account, body).expect_answer(201).await;
    let made = answer.json();
    let tested = service.client.post(format!("{}/test", path_of(&made["id"]))).bearer(&account.token).expect(200).await;

    let host = format!("localhost:{}", push.receiver.address.port());
    assert_eq!((&made["type"], &made["destination"], &made["enabled"]), (&json!("push"), &json!(host), &json!(true)));
    assert!(!answer.text.contains("hush-hush") && !answer.text.contains(&browser.auth()), "{answer}");
    let key = text_of(&service.client.get("/service").expect(200).await["push_key"]);
    assert_eq!(claims(&push.receiver.only()).1, key);
    let detail = "localhost answered 404: the browser has ended its subscription, the channel was disabled";
    assert_eq!(tested, json!({"delivered": false, "detail": detail}));
    let now = service.client.get(path_of(&made["id"])).bearer(&account.token).expect(200).await;
    assert_eq!(now["enabled"], json!(false));
    let audit = service.client.get("/audit").bearer(&account.token).query(&[("action", "channel.update")]);
    let entries = audit.expect(200).await;
    let expected = json!({"enabled": {"from": true, "to": false}, "reason": detail});
    assert_eq!((&entries[0]["detail"], keys_of(&entries[0]["detail"]).len()), (&expected, 2));
}

#[actix_web::test]
async fn what_is_no_subscription_is_refused() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let browser = Browser::new();
    let with = |endpoint: &str, p256dh: &str, auth: &str| {
        json!({"name": "x", "type": "push",
               "settings": {"endpoint": endpoint, "keys": {"p256dh": p256dh, "auth": auth}}})
    };
    let (p256dh, auth, endpoint) = (browser.p256dh(), browser.auth(), "https://push.invalid/x");

    let faults = [
        (json!({"name": "x", "type": "push", "settings": {}}), "settings.endpoint", "value_error.missing"),
        (with("http://push.invalid/x", &p256dh, &auth), "settings.endpoint", "value_error.url"),
        (with("https://127.0.0.1/x", &p256dh, &auth), "settings.endpoint", "value_error.url"),
        (with(endpoint, &auth, &auth), "settings.keys.p256dh", "value_error.push_key"),
        (with(endpoint, &p256dh, "AAAA"), "settings.keys.auth", "value_error.push_key"),
    ];
    for (body, field, kind) in faults {
        let refused = service.new_channel(&account, body).expect(422).await;
        let fault = &refused["detail"][0];
        let place: Vec<String> = fault["loc"].as_array().unwrap().iter().skip(1).map(text_of).collect();
        assert_eq!((place.join("."), text_of(&fault["type"])), (field.to_owned(), kind.to_owned()), "{refused}");
    }
    service.new_channel(&account, with(endpoint, &p256dh, &auth)).expect(201).await;
}
