//! Push messages to browsers: the request that a push service gets.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use signalbox::notify::push::PushKey;

use super::*;
use crate::support::push::{Browser, PushService, claims};
use crate::support::receiver::{Reaction, Receiver};

/// The private key of an example (RFC 8291, appendix A), and its public key.
const PRIVATE: &str = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
const PUBLIC: &str = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";

fn pushing(service: &PushService, public_url: Option<&str>) -> Sender {
    let config = config(&["127.0.0.0/8"]);
    Sender::new(SenderConfig {
        ca_file: Some(service.authority.file()),
        push_key: Some(PushKey::new(&PRIVATE.into()).unwrap()),
        public_url: public_url.map(str::to_owned),
        ..config
    })
    .unwrap()
}

#[tokio::test]
async fn a_push_service_learns_who_sends_and_the_browser_what() {
    let (service, browser) = (PushService::healthy().await, Browser::new());
    let message = message();
    let sender = pushing(&service, Some("https://signalbox.example.com"));

    let receipt = sender.send(&browser.settings(&service.endpoint()), &message).await.unwrap();

    let taken = service.receiver.only();
    assert_eq!((taken.method.as_str(), taken.path.as_str()), ("POST", "/send/hush-hush"));
    let named = ["Content-Type", "Content-Encoding", "TTL", "Urgency", "Topic"].map(|name| taken.header(name));
    assert_eq!(named, [Some("application/octet-stream"), Some("aes128gcm"), Some("60"), Some("high"), None]);
    let (mut claims, key) = claims(&taken);
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let valid = claims.as_object_mut().unwrap().remove("exp").unwrap().as_i64().unwrap() - now;
    assert!((43_100..=43_200).contains(&valid), "{valid}");
    assert_eq!(claims, json!({"aud": service.origin(), "sub": "https://signalbox.example.com"}));
    assert_eq!(key, PUBLIC);
    let text = "This is a test message for the channel “ops”. Alerts will look like this.";
    let expected = json!({
        "id": message.id, "alert_id": null, "event": "test", "severity": null,
        "title": "🔔 Test message from Signalbox", "text": text, "path": "/account/notifications",
        "alerts": [], "open_alerts": null,
    });
    assert_eq!(browser.read(&taken), expected);
    assert_eq!(taken.bytes.len(), 1_127, "its length says nothing");
    assert_eq!(receipt.detail, "localhost answered 201");
}

#[tokio::test]
async fn an_address_without_https_is_not_told_to_push_services() {
    let (service, browser) = (PushService::healthy().await, Browser::new());
    for public_url in [None, Some("http://signalbox.lan")] {
        let sender = pushing(&service, public_url);
        send(&sender, &browser.settings(&service.endpoint())).await.unwrap();
    }

    for taken in service.receiver.taken() {
        assert!(claims(&taken).0.get("sub").is_none());
    }
}

#[tokio::test]
async fn every_attempt_has_other_bytes() {
    let (service, browser) = (PushService::healthy().await, Browser::new());
    let (sender, message) = (pushing(&service, None), message());
    for _ in 0..2 {
        sender.send(&browser.settings(&service.endpoint()), &message).await.unwrap();
    }

    let taken = service.receiver.taken();
    assert_ne!(taken[0].bytes[..16], taken[1].bytes[..16], "the salt");
    assert_ne!(taken[0].bytes[21..86], taken[1].bytes[21..86], "the sender's key");
    assert_eq!(browser.read(&taken[0]), browser.read(&taken[1]));
}

#[tokio::test]
async fn answers_of_push_services_mean_what_the_standard_says() {
    let table = [
        (404, Refusal::Gone),
        (410, Refusal::Gone),
        (413, Refusal::TooLarge),
        (429, Refusal::Deferred),
        (500, Refusal::Deferred),
        (503, Refusal::Deferred),
        (400, Refusal::Rejected),
        (403, Refusal::Rejected),
    ];
    for (status, kind) in table {
        let service = PushService::start(move |_| Reaction::Answer(status)).await;
        let outcome = send(&pushing(&service, None), &Browser::new().settings(&service.endpoint())).await;

        assert_eq!(refusal(outcome), (kind, format!("localhost answered {status}")));
    }
}

#[tokio::test]
async fn only_a_push_service_ends_a_channel_by_saying_that_it_is_gone() {
    let receiver = Receiver::always(Reaction::Answer(410)).await;

    let (kind, _) = refusal(send(&local(), &webhook(receiver.url("/"))).await);

    assert_eq!(kind, Refusal::Rejected);
}

#[tokio::test]
async fn nothing_is_sent_without_a_key_without_tls_or_to_a_private_address() {
    let (service, browser) = (PushService::healthy().await, Browser::new());
    let plain = Receiver::always(Reaction::Answer(201)).await;
    let sender = pushing(&service, None);
    let without_key =
        Sender::new(SenderConfig { ca_file: Some(service.authority.file()), ..config(&["127.0.0.0/8"]) }).unwrap();
    let guarded = Sender::new(SenderConfig {
        push_key: Some(PushKey::new(&PRIVATE.into()).unwrap()),
        ca_file: Some(service.authority.file()),
        ..config(&[])
    })
    .unwrap();

    let table = [
        (&without_key, service.endpoint(), Refusal::Misconfigured, "the service has no push key (--push-key-file)"),
        (&sender, plain.url("/"), Refusal::Misconfigured, "the address must begin with https://"),
        (&guarded, service.endpoint(), Refusal::Forbidden, &private("localhost")),
    ];
    for (sender, endpoint, kind, detail) in table {
        let outcome = send(sender, &browser.settings(&endpoint)).await;
        assert_eq!(refusal(outcome), (kind, detail.to_owned()));
    }
    assert_eq!((plain.connections(), service.receiver.taken().len()), (0, 0));
}
