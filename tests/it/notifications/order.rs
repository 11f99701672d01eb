//! The end of an alert never goes before what its channel is still to get about it, whatever else goes past that.

use signalbox::store::{Alert, Attempt, Channel, Claim, Progress, Share, Standing};
use signalbox_protocol::Timestamp;

use super::scene::Scene;

const MINUTE: i64 = 60_000;

const SENT: Attempt = Attempt::Sent { error: None };

/// The receiver refused the message, which does not keep it from taking others.
fn refused(again_at: Timestamp) -> Attempt {
    Attempt::Failed { error: "answered 503".to_owned(), again_at, holds_others: false }
}

fn given_up() -> Attempt {
    Attempt::GivenUp { error: "answered 503".to_owned() }
}

fn lines(claim: &Claim) -> Vec<String> {
    claim.rows.iter().map(|row| format!("{} {}", row.event, row.subject)).collect()
}

/// A channel that an alert has just been queued for.
async fn opened() -> (Scene, Channel, Alert) {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    let alert = scene.open("cpu is high").await;
    (scene, channel, alert)
}

impl Scene {
    /// What the next messages of a channel carry; all are sent.
    async fn sent(&self, channel: &Channel, now: Timestamp) -> Vec<Vec<String>> {
        let mut sent = Vec::new();
        while let Some(claim) = self.claimed(channel, now, 100).await {
            self.concluded(&claim, &SENT, now).await;
            sent.push(lines(&claim));
        }
        sent
    }

    /// When the service looks at the only channel again, and whether a message holds up the others there.
    async fn looks(&self) -> (Timestamp, bool) {
        let due = self.store.channels_due(&Share::All).await.unwrap();
        assert_eq!(due.len(), 1, "{due:?}");
        (due[0].at, due[0].is_held)
    }
}

#[actix_web::test]
async fn the_end_of_an_alert_waits_for_a_beginning_that_was_refused_and_other_alerts_do_not() {
    let (scene, channel, alert) = opened().await;
    let now = Timestamp::now();
    let later = now.plus_millis(MINUTE);
    let first = scene.claimed(&channel, now, 100).await.unwrap();
    scene.concluded(&first, &refused(later), now).await;

    scene.recover(&alert).await;
    scene.open("disk is full").await;

    assert_eq!(scene.sent(&channel, Timestamp::now()).await, [["triggered disk is full"]]);
    assert_eq!(scene.looks().await, (later, false), "nothing is looked for that may not be sent");
    let again = scene.claimed(&channel, later, 100).await.unwrap();
    assert_eq!((again.message_id, lines(&again)), (first.message_id, vec!["triggered cpu is high".to_owned()]));
    scene.concluded(&again, &SENT, later).await;
    assert_eq!(scene.sent(&channel, later).await, [["resolved cpu is high"]]);
}

#[actix_web::test]
async fn the_end_is_sent_when_the_beginning_was_given_up() {
    let (scene, channel, alert) = opened().await;
    let now = Timestamp::now();
    let later = now.plus_millis(MINUTE);
    let first = scene.claimed(&channel, now, 100).await.unwrap();
    scene.concluded(&first, &refused(later), now).await;
    scene.recover(&alert).await;
    assert_eq!(scene.claimed(&channel, Timestamp::now(), 100).await, None);

    let last = scene.claimed(&channel, later, 100).await.unwrap();
    scene.concluded(&last, &given_up(), later).await;

    assert_eq!(lines(&last), ["triggered cpu is high"]);
    assert_eq!(scene.sent(&channel, later).await, [["resolved cpu is high"]]);
}

#[actix_web::test]
async fn the_end_waits_on_no_other_channel() {
    let scene = Scene::set().await;
    let (away, live) = (scene.channel("away").await, scene.channel("live").await);
    let alert = scene.open("cpu is high").await;
    let now = Timestamp::now();
    let first = scene.claimed(&away, now, 100).await.unwrap();
    scene.concluded(&first, &refused(now.plus_millis(MINUTE)), now).await;
    scene.recover(&alert).await;

    let (at_live, at_away) = (scene.sent(&live, Timestamp::now()).await, scene.sent(&away, Timestamp::now()).await);

    assert_eq!(at_live, [["triggered cpu is high", "resolved cpu is high"]]);
    assert_eq!(at_away, Vec::<Vec<String>>::new());
}

#[actix_web::test]
async fn a_message_with_both_keeps_them() {
    let (scene, channel, alert) = opened().await;
    scene.recover(&alert).await;
    let both = ["triggered cpu is high", "resolved cpu is high"];
    let now = Timestamp::now();
    let mut claim = scene.claimed(&channel, now, 100).await.unwrap();
    assert_eq!(lines(&claim), both);

    for holds_others in [false, true] {
        let failed = Attempt::Failed { error: "no answer".to_owned(), again_at: now, holds_others };
        scene.concluded(&claim, &failed, now).await;
        let again = scene.claimed(&channel, now, 100).await.unwrap();
        assert_eq!((again.message_id, lines(&again)), (claim.message_id, both.map(str::to_owned).to_vec()));
        claim = again;
    }
}

#[actix_web::test]
async fn the_end_waits_for_a_beginning_in_transit_that_others_overtake() {
    let (scene, channel, alert) = opened().await;
    let now = Timestamp::now();
    let until = now.plus_millis(MINUTE);
    let slow = scene.claimed(&channel, now, 100).await.unwrap();
    scene.store.let_overtake(&slow).await.unwrap();

    scene.recover(&alert).await;
    scene.open("disk is full").await;

    assert_eq!(scene.sent(&channel, Timestamp::now()).await, [["triggered disk is full"]]);
    assert_eq!(scene.looks().await, (until, false));
    // The instance that sent it has died.
    assert_eq!(scene.sent(&channel, until).await, [["triggered cpu is high"], ["resolved cpu is high"]]);
}

#[actix_web::test]
async fn the_end_waits_for_a_reminder() {
    let scene = Scene::set().await;
    let channel = scene.channel_with("nagging", |new| new.repeat_minutes = 5).await;
    let alert = scene.open("cpu is high").await;
    let start = Timestamp::from(alert.triggered_at);
    let after = |minutes: i64| start.plus_millis(minutes * MINUTE);
    scene.deliver(start).await;
    let due = scene.due(after(6)).await;
    scene.store.remind(&due[0], None, after(6)).await.unwrap();
    let reminder = scene.claimed(&channel, after(6), 100).await.unwrap();
    assert_eq!(lines(&reminder), ["reminder cpu is high"]);
    scene.concluded(&reminder, &refused(after(20)), after(6)).await;

    scene.recover(&alert).await;

    assert_eq!(scene.claimed(&channel, after(19), 100).await, None);
    assert_eq!(scene.sent(&channel, after(20)).await, [["reminder cpu is high"], ["resolved cpu is high"]]);
}

#[actix_web::test]
async fn of_a_message_in_parts_the_end_follows_the_beginning_and_holds_up_no_other() {
    let (scene, channel, alert) = opened().await;
    scene.open("disk is full").await;
    scene.recover(&alert).await;
    let now = Timestamp::now();
    let (soon, later) = (now.plus_millis(MINUTE / 2), now.plus_millis(MINUTE));
    let whole = scene.claimed(&channel, now, 100).await.unwrap();
    scene.concluded(&whole, &Attempt::Split, now).await;
    let slow = scene.claimed(&channel, now, 1).await.unwrap();
    assert_eq!(lines(&slow), ["triggered cpu is high"]);
    scene.store.let_overtake(&slow).await.unwrap();

    assert_eq!(scene.sent(&channel, now).await, [["triggered disk is full"]]);
    assert_eq!(scene.looks().await, (later, false));
    scene.concluded(&slow, &refused(later), now).await;
    scene.open("memory is full").await;

    assert_eq!(scene.sent(&channel, soon).await, [["triggered memory is full"]]);
    assert_eq!(scene.sent(&channel, later).await, [["triggered cpu is high"], ["resolved cpu is high"]]);
}

#[actix_web::test]
async fn one_recipient_that_has_no_beginning_yet_keeps_the_end_from_nobody() {
    let (scene, channel, alert) = opened().await;
    let now = Timestamp::now();
    let later = now.plus_millis(MINUTE);
    let claim = scene.claimed(&channel, now, 100).await.unwrap();
    let mut progress = Progress::default();
    progress.set("a@example.com", Standing::Delivered);
    progress.set("full@example.com", Standing::Waiting { reason: "452 mailbox full".to_owned() });
    scene.store.conclude(&claim, &refused(later), &progress, now).await.unwrap();

    scene.recover(&alert).await;

    assert_eq!(scene.sent(&channel, Timestamp::now()).await, [["resolved cpu is high"]]);
    let again = scene.claimed(&channel, later, 100).await.unwrap();
    assert_eq!((again.message_id, again.progress()), (claim.message_id, progress));
}

#[actix_web::test]
async fn the_end_waits_for_a_beginning_that_may_have_arrived_and_is_sent_once_more() {
    let (scene, channel, alert) = opened().await;
    let now = Timestamp::now();
    let later = now.plus_millis(MINUTE);
    let claim = scene.claimed(&channel, now, 100).await.unwrap();
    let mut progress = Progress::default();
    progress.hand_over("hooks.invalid");
    scene.store.conclude(&claim, &refused(later), &progress, now).await.unwrap();

    scene.recover(&alert).await;

    assert_eq!(scene.claimed(&channel, Timestamp::now(), 100).await, None);
    assert_eq!(scene.sent(&channel, later).await, [["triggered cpu is high"], ["resolved cpu is high"]]);
}
