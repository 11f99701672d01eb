//! Answers of receivers, and their effects.

use serde_json::json;
use sha2::{Digest, Sha256};
use signalbox::notify::hand_over::Unkept;
use signalbox::store::{Progress, Verdict};

use super::*;
use crate::support::authority::Authority;
use crate::support::eventually;
use crate::support::port::Port;
use crate::support::receiver::{Reaction, Receiver};

/// HMAC-SHA256 by its definition (RFC 2104), so that the check shares no code with the signature.
fn hmac(key: &[u8], text: &[u8]) -> String {
    assert!(key.len() <= 64);
    let pad = |with: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect() };
    let inner = Sha256::digest([pad(0x36).as_slice(), text].concat());
    let outer = Sha256::digest([pad(0x5c).as_slice(), inner.as_slice()].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_webhook_arrives_signed() {
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let message = message();

    let receipt = local().send(&webhook(receiver.url("/hook?a=b")), &message).await.unwrap();

    let taken = receiver.only();
    assert_eq!((taken.method.as_str(), taken.path.as_str()), ("POST", "/hook?a=b"));
    assert_eq!(taken.header("Content-Type"), Some("application/json"));
    assert_eq!(taken.header("Idempotency-Key"), Some(message.id.to_string().as_str()));
    assert!(taken.header("User-Agent").unwrap().starts_with("Signalbox/"));
    let timestamp = taken.header("X-Signalbox-Timestamp").unwrap();
    let expected = hmac(SECRET.as_bytes(), format!("{timestamp}.{}", taken.body).as_bytes());
    assert_eq!(taken.header("X-Signalbox-Signature"), Some(format!("sha256={expected}").as_str()));
    assert!(timestamp.parse::<i64>().unwrap() >= message.at.as_seconds());
    assert_eq!(taken.json()["id"], json!(message.id));
    assert_eq!(taken.json()["alerts"], json!([{"event": "test", "server": null, "alert": null}]));
    assert_eq!(receipt.detail, "127.0.0.1 answered 200");
}

#[tokio::test]
async fn tokens_travel_in_their_headers() {
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let ntfy = Settings::Ntfy { url: receiver.url("/topic"), token: Some(SECRET.to_owned()) };

    send(&local(), &gotify(receiver.url(""))).await.unwrap();
    send(&local(), &ntfy).await.unwrap();

    let taken = receiver.taken();
    assert_eq!((taken[0].path.as_str(), taken[0].header("X-Gotify-Key")), ("/message", Some(SECRET)));
    let bearer = format!("Bearer {SECRET}");
    assert_eq!((taken[1].path.as_str(), taken[1].header("Authorization")), ("/", Some(bearer.as_str())));
}

#[tokio::test]
async fn every_status_means_something() {
    let table: [(&[u16], Option<Refusal>); 5] = [
        (&[200, 201, 202, 204, 299], None),
        (&[300, 303, 304, 305, 400, 401, 403, 404, 405, 410, 422, 451, 499], Some(Refusal::Rejected)),
        (&[413], Some(Refusal::TooLarge)),
        (&[408, 425, 429, 500, 502, 503, 599], Some(Refusal::Deferred)),
        (&[504], Some(Refusal::Perhaps)),
    ];
    for (statuses, expected) in table {
        for status in statuses {
            let receiver = Receiver::always(Reaction::Answer(*status)).await;

            let outcome = send(&local(), &webhook(receiver.url(&format!("/{SECRET}")))).await;

            assert_eq!(outcome.as_ref().err().map(|refused| refused.kind), expected, "{status}: {outcome:?}");
            let detail = outcome.map_or_else(|refused| refused.detail, |receipt| receipt.detail);
            assert_eq!(detail, format!("127.0.0.1 answered {status}"));
        }
    }
}

#[tokio::test]
async fn a_receiver_may_ask_for_a_pause() {
    let asked = async |value: &str| {
        let receiver = Receiver::always(Reaction::With(429, "Retry-After", value.to_owned())).await;
        send(&local(), &webhook(receiver.url("/"))).await.unwrap_err().retry_after
    };

    assert_eq!(asked("120").await, Some(Duration::from_secs(120)));
    assert_eq!(asked("1.5").await, Some(Duration::from_millis(1_500)));
    assert_eq!(asked("-3").await, Some(Duration::ZERO));
    assert_eq!(asked("1e30").await, None);
    assert_eq!(asked("NaN").await, Some(Duration::ZERO));
    assert_eq!(asked("soon").await, None);
    assert_eq!(asked("Wed, 21 Oct 2015 07:28:00 GMT").await, Some(Duration::ZERO));
    // Far enough in the future for the bound to apply, whenever this runs.
    assert_eq!(asked("Tue, 21 Oct 2200 07:28:00 GMT").await, Some(Duration::from_secs(86_400)));
}

#[tokio::test]
async fn a_receiver_that_hangs_is_left_after_a_while() {
    let receiver = Receiver::always(Reaction::Hang).await;

    let refused = refusal(send(&impatient(), &webhook(receiver.url("/"))).await);

    assert_eq!(refused, (Refusal::Perhaps, "127.0.0.1 was sent the message and did not answer in time".to_owned()));
    receiver.left().await;
}

#[tokio::test]
async fn what_may_have_arrived_is_sent_once_more_and_no_third_time() {
    let receiver = Receiver::always(Reaction::Trickle).await;
    let (sender, settings, message) = (impatient(), webhook(receiver.url("/")), message());
    let rest = async |before: &Progress| sender.send_rest(&settings, &message, before, &Unkept).await;

    let first = rest(&Progress::default()).await.unwrap_err();
    let second = rest(&first.progress).await.unwrap();
    let third = rest(&second.progress).await.unwrap();

    assert_eq!((first.kind, first.holds_others(1)), (Refusal::Perhaps, false));
    assert_eq!((second.progress.verdict(), &third.progress), (Some(Verdict::Perhaps), &second.progress));
    // The request may not be read yet when it is given up.
    eventually("both were read", async || (receiver.taken().len() >= 2).then_some(())).await;
    assert_eq!(receiver.taken().len(), 2);
}

/// A sender that waits long for an answer, and only as long for a connection as one takes on a machine under load.
fn connecting_soon() -> Sender {
    limited(Limits { connect: Duration::from_secs(2), ..Limits::each(PATIENCE) })
}

#[tokio::test]
async fn a_late_answer_counts() {
    let receiver = Receiver::always(Reaction::Late(Duration::from_secs(4), 200)).await;

    let receipt = send(&connecting_soon(), &webhook(receiver.url("/"))).await.unwrap();

    assert_eq!(receipt.detail, "127.0.0.1 answered 200");
}

#[tokio::test]
async fn a_receiver_that_does_not_shake_hands_was_handed_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    // Accepts connections and sends nothing: TLS never begins.
    let url = format!("https://{}/", listener.local_addr().unwrap());

    let refused = refusal(send(&connecting_soon(), &webhook(url)).await);

    assert_eq!(refused, (Refusal::Unreachable, "127.0.0.1 did not answer in time".to_owned()));
}

#[tokio::test]
async fn a_receiver_that_hangs_up_may_have_the_message_and_gets_it_once_more() {
    let authority = Authority::new();
    let plain = Receiver::always(Reaction::Close).await;
    let tls = Receiver::tls(authority.acceptor("localhost"), Reaction::Close).await;
    let trusting = Sender::new(SenderConfig { ca_file: Some(authority.file()), ..config(&["127.0.0.0/8"]) }).unwrap();
    let tls_url = format!("https://localhost:{}/", tls.address.port());
    for (sender, receiver, url) in [(local(), &plain, plain.url("/")), (trusting, &tls, tls_url)] {
        let (settings, message) = (webhook(url), message());

        let first = sender.send_rest(&settings, &message, &Progress::default(), &Unkept).await.unwrap_err();
        let second = sender.send_rest(&settings, &message, &first.progress, &Unkept).await.unwrap();

        assert!(first.detail.ends_with("was sent the message and closed the connection"), "{}", first.detail);
        assert_eq!((first.kind, first.holds_others(1)), (Refusal::Perhaps, false));
        assert_eq!((second.progress.verdict(), receiver.taken().len()), (Some(Verdict::Perhaps), 2));
    }
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let nobody = Port::reserve();

    let refused = refusal(send(&local(), &webhook(format!("http://{}/{SECRET}", nobody.address))).await);

    assert_eq!(refused, (Refusal::Unreachable, "127.0.0.1 refuses connections".to_owned()));
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_unreachable() {
    // RFC 6761: this name never exists.
    let refused = refusal(send(&local(), &webhook(format!("http://nobody.invalid/{SECRET}"))).await);

    assert_eq!(refused, (Refusal::Unreachable, "nobody.invalid cannot be found".to_owned()));
}

#[tokio::test]
async fn an_answer_counts_whatever_its_body_is() {
    for reaction in [Reaction::Endless, Reaction::Bodyless] {
        let receiver = Receiver::always(reaction).await;

        let receipt = send(&local(), &webhook(receiver.url("/"))).await.unwrap();

        assert_eq!(receipt.detail, "127.0.0.1 answered 200");
        receiver.left().await;
    }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let sender = local();

    for _ in 0..3 {
        send(&sender, &webhook(receiver.url("/"))).await.unwrap();
    }

    assert_eq!((receiver.taken().len(), receiver.connections()), (3, 1));
}

#[tokio::test]
async fn a_channel_that_makes_no_request_is_misconfigured() {
    let hostile = Settings::Gotify { url: "http://127.0.0.1:9/".to_owned(), token: format!("{SECRET}\r\nX: y") };
    let topicless = Settings::Ntfy { url: "http://127.0.0.1:9/".to_owned(), token: None };
    let mail = Settings::Email { to: vec!["a@example.com".to_owned()] };

    for settings in [hostile, topicless, mail, webhook("nowhere"), webhook("")] {
        let (kind, detail) = refusal(send(&local(), &settings).await);

        assert_eq!(kind, Refusal::Misconfigured, "{detail}");
    }
}
