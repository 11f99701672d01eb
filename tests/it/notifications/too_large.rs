//! Messages that are too large for their receiver: their alerts arrive in smaller ones.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use signalbox::notify::pace::Pace;
use signalbox::notify::sender::{Refusal, Refused};
use signalbox::store::{AlertAudience, AlertChange, Attempt, Claim, Progress, Share};
use signalbox_protocol::Timestamp;

use super::scene::{Fake, Reply, Scene, pace, subjects};
use super::slow::{leading_to, patient, sending, webhook};
use crate::support::receiver::{Reaction, ReceivedRequest, Receiver};
use crate::support::{eventually, in_time};

const MINUTE: i64 = 60_000;

/// What the receiver accepts in one request. An alert takes about 700 bytes, so 25 of them fit and 50 do not.
const MAX_BODY_BYTES: usize = 24 * 1024;

const SENT: Attempt = Attempt::Sent { error: None };

impl Scene {
    /// Opens alerts in one transaction.
    async fn burst(&self, subjects: &[String]) {
        let opened = |subject: &String| AlertChange::Opened {
            alert: Box::new(self.alert(subject)),
            audience: AlertAudience::default(),
        };
        self.store.change_alerts(&subjects.iter().map(opened).collect::<Vec<_>>()).await.unwrap();
    }
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("alert {number}")).collect()
}

/// The subjects of a webhook's alerts.
fn alerts(taken: &ReceivedRequest) -> Vec<String> {
    let subject = |item: &Value| item["alert"]["message"].as_str().unwrap().to_owned();
    taken.json()["alerts"].as_array().unwrap().iter().map(subject).collect()
}

fn is_too_large(taken: &ReceivedRequest) -> bool {
    taken.body.len() > MAX_BODY_BYTES
}

fn is_poison(taken: &ReceivedRequest) -> bool {
    taken.body.contains("poison")
}

fn key(taken: &ReceivedRequest) -> String {
    taken.header("Idempotency-Key").unwrap().to_owned()
}

fn rows(claim: &Claim) -> Vec<&str> {
    claim.rows.iter().map(|row| row.subject.as_str()).collect()
}

#[actix_web::test]
async fn a_receiver_that_limits_bodies_gets_every_alert_once_in_few_messages() {
    let scene = Scene::set().await;
    let receiver = Receiver::start(|taken| Reaction::Answer(if is_too_large(taken) { 413 } else { 200 })).await;
    leading_to(&scene, "hook", webhook(&receiver)).await;
    scene.burst(&numbered(0..100)).await;

    let notifier = sending(&scene, None, Pace { limits: patient(), ..pace() });

    let outbox = scene.emptied().await;
    let requests = receiver.taken();
    let sizes: Vec<usize> = requests.iter().map(|taken| alerts(taken).len()).collect();
    assert_eq!(sizes, [100, 50, 25, 25, 25, 25]);
    let accepted: Vec<String> = requests.iter().filter(|taken| !is_too_large(taken)).flat_map(alerts).collect();
    assert_eq!(accepted, numbered(0..100));
    assert_eq!(requests.iter().map(key).collect::<HashSet<_>>().len(), requests.len());
    for delivery in outbox {
        let row = delivery.notification;
        assert_eq!((row.status.as_str(), row.attempts, row.error, row.hold), ("sent", 1, None, None));
    }

    scene.burst(&numbered(100..150)).await;
    notifier.nudge();

    scene.emptied().await;
    let later: Vec<Vec<String>> = receiver.taken().iter().skip(requests.len()).map(alerts).collect();
    assert_eq!(later, [numbered(100..125), numbered(125..150)]);
}

#[actix_web::test]
async fn the_parts_and_the_next_burst_do_not_wait_for_more_alerts() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let fake = Fake::new(|message, _| match message.items.len() {
        0..=2 => Reply::Take,
        _ => Reply::Refuse(Refused::new(Refusal::TooLarge, "answered 413")),
    });
    scene.burst(&numbered(0..8)).await;

    let notifier = scene.notifier(
        &fake,
        Pace { first_grouping: Duration::from_secs(3_600), grouping: Duration::from_secs(3_600), ..pace() },
    );
    scene.emptied().await;
    scene.burst(&numbered(8..12)).await;
    notifier.nudge();
    scene.emptied().await;

    let sizes: Vec<usize> = fake.seen().iter().map(|message| message.items.len()).collect();
    assert_eq!(sizes, [8, 4, 2, 2, 2, 2, 2, 2]);
}

#[actix_web::test]
async fn an_alert_that_is_too_large_alone_is_retried_and_holds_up_no_other() {
    let scene = Scene::set().await;
    let receiver = Receiver::start(|taken| Reaction::Answer(if is_poison(taken) { 413 } else { 200 })).await;
    leading_to(&scene, "hook", webhook(&receiver)).await;
    scene.burst(&["first", "second", "poison", "fourth", "fifth"].map(str::to_owned)).await;

    let notifier = sending(&scene, None, Pace { limits: patient(), ..pace() });

    let alone = || async {
        let requests = receiver.taken();
        let poisoned: Vec<ReceivedRequest> = requests.into_iter().filter(|taken| alerts(taken) == ["poison"]).collect();
        (poisoned.len() >= 3).then_some(poisoned)
    };
    let retried = eventually("it is retried", alone).await;
    assert!(retried.iter().all(|taken| key(taken) == key(&retried[0])));
    let others = || async {
        let told = scene.told().await;
        (told.iter().filter(|line| line.ends_with("sent")).count() == 4).then_some(told)
    };
    let told = eventually("the others are sent", others).await;
    assert!(told.contains(&"hook triggered poison pending".to_owned()), "{told:?}");
    in_time("the notifier stops", notifier.stop()).await;
    let accepted: Vec<String> = receiver.taken().iter().filter(|taken| !is_poison(taken)).flat_map(alerts).collect();
    assert_eq!(accepted, ["first", "second", "fourth", "fifth"]);
    let outbox = scene.outbox().await;
    let row = &outbox.iter().find(|delivery| delivery.notification.subject == "poison").unwrap().notification;
    assert_eq!((row.error.as_deref(), row.hold.as_deref()), (Some("127.0.0.1 answered 413"), None));
}

#[actix_web::test]
async fn a_process_that_dies_before_it_splits_a_message_leaves_that_to_the_next() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.burst(&numbered(0..4)).await;
    let claim = scene.claimed(&channel, Timestamp::now(), 100).await.unwrap();
    let mut handed_over = Progress::default();
    handed_over.hand_over("hooks.invalid");
    assert!(scene.store.begin_hand_over(&claim, &handed_over).await.unwrap());
    // The receiver answered 413, and nobody wrote that down.
    let fake = Fake::new(|message, _| match message.items.len() {
        1 | 2 => Reply::Take,
        _ => Reply::Refuse(Refused::new(Refusal::TooLarge, "answered 413")),
    });

    let _notifier = scene.notifier(&fake, pace());

    let outbox = scene.emptied().await;
    let seen = fake.seen();
    assert_eq!((seen[0].id, seen[0].items.len()), (claim.message_id, 4));
    assert_eq!(seen[1..].iter().flat_map(subjects).collect::<Vec<_>>(), subjects(&seen[0]));
    assert_eq!((seen.len(), outbox.len()), (3, 4));
    // The attempt that died counts, the one that was split does not.
    assert!(outbox.iter().all(|delivery| delivery.notification.attempts == 2), "{outbox:?}");
}

#[actix_web::test]
async fn parts_are_messages_of_their_own_and_go_before_what_comes_later() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.burst(&numbered(0..5)).await;
    let now = Timestamp::now();
    let whole = scene.claimed(&channel, now, 100).await.unwrap();
    scene.open("later").await;

    scene.concluded(&whole, &Attempt::Split, now).await;

    let due = scene.store.channels_due(&Share::All).await.unwrap();
    assert_eq!((due.len(), due[0].is_held, due[0].at), (1, true, now));
    let first = scene.claimed(&channel, now, 2).await.unwrap();
    assert_eq!((rows(&first), first.attempts()), (vec!["alert 0", "alert 1"], 1));
    assert_eq!(scene.claimed(&channel, now, 2).await, None, "it waits for the part that is being sent");
    scene.concluded(&first, &SENT, now).await;
    let second = scene.claimed(&channel, now, 2).await.unwrap();
    assert_eq!(rows(&second), ["alert 2", "alert 3"]);
    // A part that failed is repeated as it was, whatever would fit now.
    let failed = Attempt::Failed { error: "no answer".to_owned(), again_at: now, holds_others: true };
    scene.concluded(&second, &failed, now).await;
    let again = scene.claimed(&channel, now, 100).await.unwrap();
    assert_eq!((again.message_id, rows(&again), again.attempts()), (second.message_id, rows(&second), 2));
    scene.concluded(&again, &SENT, now).await;
    let third = scene.claimed(&channel, now, 2).await.unwrap();
    assert_eq!(rows(&third), ["alert 4"]);
    scene.concluded(&third, &SENT, now).await;
    let later = scene.claimed(&channel, Timestamp::now(), 2).await.unwrap();
    assert_eq!(rows(&later), ["later"]);
    let ids = [&whole, &first, &second, &third, &later].map(|claim| claim.message_id);
    assert_eq!(HashSet::from(ids).len(), ids.len());
}

#[actix_web::test]
async fn an_instance_that_lost_its_claim_splits_nothing_and_disturbs_no_parts() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.burst(&numbered(0..2)).await;
    let now = Timestamp::now();
    let later = now.plus_millis(MINUTE);
    let stale = scene.claimed(&channel, now, 100).await.unwrap();
    let valid = scene.claimed(&channel, later, 100).await.unwrap();

    scene.concluded(&stale, &Attempt::Split, later).await;

    for delivery in scene.outbox().await {
        let row = delivery.notification;
        assert_eq!((row.message_id, row.attempts, row.hold.as_deref()), (valid.message_id, 2, Some("sending")));
    }
    scene.concluded(&valid, &Attempt::Split, later).await;
    assert!(!scene.store.renew_claim(&stale, later.plus_millis(MINUTE)).await.unwrap());
    let failed = Attempt::Failed { error: "too late".to_owned(), again_at: later, holds_others: false };
    scene.concluded(&stale, &failed, later).await;
    let part = scene.claimed(&channel, later, 1).await.unwrap();
    assert_eq!((rows(&part), part.attempts()), (vec!["alert 0"], 2));
    assert!(scene.outbox().await.iter().all(|delivery| delivery.notification.error.is_none()));
}

#[actix_web::test]
async fn a_part_that_takes_long_is_overtaken_by_the_next() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.burst(&numbered(0..4)).await;
    let now = Timestamp::now();
    let whole = scene.claimed(&channel, now, 100).await.unwrap();
    scene.concluded(&whole, &Attempt::Split, now).await;
    let slow = scene.claimed(&channel, now, 2).await.unwrap();

    scene.store.let_overtake(&slow).await.unwrap();

    let next = scene.claimed(&channel, now, 2).await.unwrap();
    assert_eq!(rows(&next), ["alert 2", "alert 3"]);
    scene.concluded(&next, &SENT, now).await;
    scene.concluded(&slow, &Attempt::Split, now).await;
    let part = scene.claimed(&channel, now, 1).await.unwrap();
    assert_eq!(rows(&part), ["alert 0"]);
}
