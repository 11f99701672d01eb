//! The outbox with real but slow destinations: how often each gets a message, and which messages overtake it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use signalbox::auth::access::Access;
use signalbox::cluster::Cluster;
use signalbox::feeds::Feeds;
use signalbox::notify::channel::Settings;
use signalbox::notify::limits::Limits;
use signalbox::notify::mail::SmtpConfig;
use signalbox::notify::pace::Pace;
use signalbox::notify::sender::{Sender, SenderConfig};
use signalbox::notify::senders::OnlySender;
use signalbox::notify::{Notifier, Parts};
use signalbox::store::{Channel, Progress, SealedSettings, Standing, Verdict};
use tempfile::TempDir;

use super::scene::{KEY, Scene, pace, sealer};
use crate::support::mail::MailServer;
use crate::support::receiver::{Reaction, Receiver};
use crate::support::{PATIENCE, eventually, in_time};

/// Anything later than this is given up; anything in time takes less, even on a slow machine.
const SHORT: Duration = Duration::from_secs(2);

pub(super) fn patient() -> Limits {
    Limits::each(PATIENCE)
}

/// A notifier that sends for real: mails by this server, requests to this machine.
pub(super) fn sending(scene: &Scene, server: Option<&MailServer>, pace: Pace) -> Notifier {
    let smtp = server.map(|server| SmtpConfig {
        url: format!("smtp://127.0.0.1:{}?tls=none", server.port).into(),
        from: "signalbox@example.com".to_owned(),
    });
    let networks = vec!["127.0.0.0/8".parse().unwrap()];
    let sender = SenderConfig { networks, ca_file: None, smtp, push_key: None, public_url: None, limits: pace.limits };
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

pub(super) async fn leading_to(scene: &Scene, name: &str, settings: Settings) -> Channel {
    let leads = |new: &mut signalbox::store::NewChannel| {
        new.settings = SealedSettings {
            kind: settings.kind(),
            settings: sealer(KEY).seal(new.id, &settings).unwrap(),
            destination: settings.destination(),
        };
    };
    scene.channel_with(name, leads).await
}

async fn mailing(scene: &Scene, name: &str, to: &[&str]) -> Channel {
    leading_to(scene, name, Settings::Email { to: to.iter().map(|to| (*to).to_owned()).collect() }).await
}

pub(super) fn webhook(receiver: &Receiver) -> Settings {
    Settings::Webhook { url: receiver.url("/"), secret: "a secret".to_owned() }
}

fn recipients(mails: &[Value]) -> Vec<Value> {
    mails.iter().map(|mail| mail["to"].clone()).collect()
}

#[actix_web::test]
async fn a_mail_whose_final_dot_is_answered_late_is_delivered_once_and_others_go_past_it() {
    let scene = Scene::set().await;
    let directory = TempDir::new().unwrap();
    let gate = directory.path().join("gate");
    let server = MailServer::plain(json!({ "gate": gate })).await;
    mailing(&scene, "mail", &["ops@example.com"]).await;
    let overtaking = Duration::from_millis(200);
    let notifier = sending(&scene, Some(&server), Pace { limits: patient(), overtaking, ..pace() });
    scene.open("cpu is high").await;
    notifier.nudge();
    server.mails(1).await;

    scene.open("memory is full").await;
    notifier.nudge();

    // While the first one waits for its answer.
    server.mails(2).await;
    assert_eq!(scene.told().await, ["mail triggered cpu is high pending", "mail triggered memory is full pending"]);
    std::fs::write(&gate, "").unwrap();
    let outbox = scene.emptied().await;
    for delivery in outbox {
        let row = delivery.notification;
        assert_eq!((row.status.as_str(), row.attempts, row.error), ("sent", 1, None));
    }
    server.mails(2).await;
}

#[actix_web::test]
async fn a_mail_whose_final_dot_is_never_answered_arrives_twice_at_most() {
    let scene = Scene::set().await;
    let server = MailServer::plain(json!({"slow": {"dot": 60}})).await;
    mailing(&scene, "mail", &["ops@example.com"]).await;
    let limits = Limits { dot: SHORT, ..patient() };
    let notifier = sending(&scene, Some(&server), Pace { limits, ..pace() });
    scene.open("cpu is high").await;
    notifier.nudge();
    server.mails(1).await;
    scene.open("memory is full").await;
    notifier.nudge();

    let outbox = scene.emptied().await;

    for delivery in outbox {
        let row = delivery.notification;
        assert_eq!((row.status.as_str(), row.attempts), ("sent", 2));
        assert_eq!(row.error.as_deref(), Some("127.0.0.1 was sent the mail and did not answer in time"));
        assert_eq!(Progress::read(row.recipients.as_deref()).verdict(), Some(Verdict::Perhaps));
    }
    server.mails(4).await;
}

#[actix_web::test]
async fn after_a_restart_only_those_get_it_who_do_not_have_it() {
    let scene = Scene::set().await;
    let greylisting = json!({"rcpt": {"grey@example.com": "450 come back later"}});
    let (first, second) = (MailServer::plain(greylisting).await, MailServer::plain(json!({})).await);
    mailing(&scene, "mail", &["a@example.com", "grey@example.com"]).await;
    let slow = Pace { first_retry: PATIENCE * 60, longest_retry: PATIENCE * 60, limits: patient(), ..pace() };
    scene.open("cpu is high").await;
    let notifier = sending(&scene, Some(&first), slow);
    let is_noted = || async {
        let row = scene.outbox().await.remove(0).notification;
        row.error.is_some().then_some(row)
    };
    let row = eventually("the first attempt is written", is_noted).await;
    assert_eq!((row.status.as_str(), row.hold.as_deref()), ("pending", Some("partly")), "it holds up nothing");
    assert_eq!(Progress::read(row.recipients.as_deref()).of("a@example.com"), Some(&Standing::Delivered));
    in_time("the notifier stops", notifier.stop()).await;
    scene.make_due().await;

    let _notifier = sending(&scene, Some(&second), Pace { limits: patient(), ..pace() });

    scene.emptied().await;
    assert_eq!(recipients(&first.mails(1).await), [json!(["a@example.com"])]);
    assert_eq!(recipients(&second.mails(1).await), [json!(["grey@example.com"])]);
}

#[actix_web::test]
async fn a_receiver_that_never_answers_gets_a_message_twice_and_holds_up_no_other() {
    let scene = Scene::set().await;
    let receiver = Receiver::always(Reaction::Hang).await;
    leading_to(&scene, "hook", webhook(&receiver)).await;
    let limits = Limits { connect: SHORT / 2, answer: SHORT / 2, ..patient() };
    let notifier = sending(&scene, None, Pace { limits, ..pace() });
    scene.open("cpu is high").await;
    notifier.nudge();
    eventually("it is sent", || async { (!receiver.taken().is_empty()).then_some(()) }).await;
    scene.open("memory is full").await;
    notifier.nudge();

    let outbox = scene.emptied().await;

    assert_eq!(receiver.taken().len(), 4);
    for delivery in outbox {
        let row = delivery.notification;
        assert_eq!((row.status.as_str(), row.attempts), ("sent", 2));
        assert_eq!(Progress::read(row.recipients.as_deref()).verdict(), Some(Verdict::Perhaps));
    }
}

#[actix_web::test]
async fn a_message_that_its_receiver_cannot_digest_holds_up_no_other_for_long() {
    let scene = Scene::set().await;
    let receiver =
        Receiver::start(|taken| Reaction::Answer(if taken.body.contains("poison") { 500 } else { 200 })).await;
    leading_to(&scene, "hook", webhook(&receiver)).await;
    let notifier = sending(&scene, None, Pace { limits: patient(), ..pace() });
    scene.open("poison").await;
    notifier.nudge();
    eventually("it is sent", || async { (!receiver.taken().is_empty()).then_some(()) }).await;

    scene.open("memory is full").await;
    notifier.nudge();

    let told = eventually("the other is delivered", || async {
        let told = scene.told().await;
        told.contains(&"hook triggered memory is full sent".to_owned()).then_some(told)
    })
    .await;
    assert!(told.contains(&"hook triggered poison pending".to_owned()), "{told:?}");
    in_time("the notifier stops", notifier.stop()).await;
}

#[actix_web::test]
async fn slow_mails_hold_up_no_requests() {
    let scene = Scene::set().await;
    let server = MailServer::plain(json!({"slow": {"greeting": 60}})).await;
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    for number in 0..12 {
        mailing(&scene, &format!("mail-{number}"), &["ops@example.com"]).await;
    }
    leading_to(&scene, "hook", webhook(&receiver)).await;
    let notifier = sending(&scene, Some(&server), Pace { limits: patient(), ..pace() });

    scene.open("cpu is high").await;
    notifier.nudge();

    eventually("the request is sent", || async {
        scene.told().await.contains(&"hook triggered cpu is high sent".to_owned()).then_some(())
    })
    .await;
    assert_eq!(receiver.taken().len(), 1);
    // The mails in transit end with the server; otherwise a task that still writes to the database would outlive the test.
    drop(server);
    in_time("the notifier stops", notifier.stop()).await;
}
