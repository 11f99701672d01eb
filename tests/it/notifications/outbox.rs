//! The contents of the outbox when alerts come and go.

use signalbox::audit::Actor;
use signalbox::store::{AlertAudience, AlertChange, Attempt, ChannelPatch, Progress, Share, Standing};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::scene::Scene;

const MINUTE: i64 = 60_000;

#[actix_web::test]
async fn an_alert_is_queued_where_severity_and_tags_match() {
    let scene = Scene::set().await;
    scene.channel("all").await;
    scene.channel_with("critical", |new| new.severities = vec!["critical"]).await;
    scene.channel_with("production", |new| new.tags = vec!["staging".to_owned(), "production".to_owned()]).await;
    scene.channel_with("staging", |new| new.tags = vec!["staging".to_owned()]).await;
    scene.channel_with("off", |new| new.is_enabled = false).await;

    let alert = scene.open("cpu is high").await;

    let mut told = scene.told().await;
    told.sort();
    assert_eq!(told, ["all triggered cpu is high pending", "production triggered cpu is high pending"]);
    for delivery in scene.outbox().await {
        let row = delivery.notification;
        assert_eq!((row.message_id, row.alert_id, row.attempts), (row.id, Some(alert.id), 0));
        assert_eq!(row.next_attempt_at, Some(alert.triggered_at));
    }
}

#[actix_web::test]
async fn a_silenced_alert_is_not_queued() {
    let scene = Scene::set().await;
    scene.channel("ops").await;

    scene.open_with("cpu is high", |alert| alert.is_silenced = true).await;

    assert!(scene.told().await.is_empty());
}

#[actix_web::test]
async fn a_recovery_is_queued_once_where_the_beginning_was() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    scene.channel_with("quiet", |new| new.tells_recovery = false).await;
    scene.channel_with("critical", |new| new.severities = vec!["critical"]).await;
    let alert = scene.open("cpu is high").await;
    let late = scene.channel("late").await;

    scene.recover(&alert).await;
    let again =
        AlertChange::Resolved { id: alert.id, by: "recovery", sample_at: Timestamp::now(), at: Timestamp::now() };
    assert_eq!(scene.store.change_alerts(&[again]).await.unwrap(), [None]);

    let told = scene.told().await;
    let recoveries: Vec<&String> = told.iter().filter(|line| line.contains("resolved")).collect();
    assert_eq!(recoveries, ["ops resolved cpu is high pending"]);
    assert!(!told.iter().any(|line| line.starts_with(&late.name)));
}

#[actix_web::test]
async fn opening_twice_tells_once() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let alert = scene.alert("cpu is high");
    let opened = AlertChange::Opened { alert: Box::new(alert), audience: AlertAudience::default() };

    scene.store.change_alerts(std::slice::from_ref(&opened)).await.unwrap();
    scene.store.change_alerts(std::slice::from_ref(&opened)).await.unwrap();

    assert_eq!(scene.told().await, ["ops triggered cpu is high pending"]);
}

#[actix_web::test]
async fn a_message_is_claimed_by_one() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.open("cpu is high").await;
    let now = Timestamp::now();

    let first = scene.store.claim(channel.id, now, now.plus_millis(MINUTE), 100).await.unwrap();
    scene.open("disk is full").await;
    let second = scene.store.claim(channel.id, Timestamp::now(), now.plus_millis(MINUTE), 100).await.unwrap();

    assert_eq!(first.unwrap().rows.len(), 1);
    assert_eq!(second, None);
    // The instance that claimed it has died.
    let later = now.plus_millis(MINUTE);
    let repeated = scene.store.claim(channel.id, later, later.plus_millis(MINUTE), 100).await.unwrap().unwrap();
    assert_eq!((repeated.rows.len(), repeated.rows[0].attempts), (1, 2));
    assert_eq!(repeated.rows[0].subject, "cpu is high");
}

#[actix_web::test]
async fn a_claim_that_is_renewed_is_nobody_elses() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.open("cpu is high").await;
    let now = Timestamp::now();
    let later = now.plus_millis(MINUTE);
    let claim = scene.store.claim(channel.id, now, now.plus_millis(1), 100).await.unwrap().unwrap();

    let is_ours = scene.store.renew_claim(&claim, later).await.unwrap();

    assert!(is_ours);
    assert_eq!(scene.store.claim(channel.id, now.plus_millis(MINUTE / 2), later, 100).await.unwrap(), None);
}

#[actix_web::test]
async fn an_instance_that_lost_a_claim_hands_nothing_over() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.open("cpu is high").await;
    let now = Timestamp::now();
    let first = scene.store.claim(channel.id, now, now.plus_millis(1), 100).await.unwrap().unwrap();
    let later = now.plus_millis(MINUTE);
    let second = scene.store.claim(channel.id, later, later.plus_millis(MINUTE), 100).await.unwrap().unwrap();
    let mut progress = Progress::default();
    progress.hand_over("hooks.invalid");

    let firsts = scene.store.begin_hand_over(&first, &progress).await.unwrap();
    let seconds = scene.store.begin_hand_over(&second, &progress).await.unwrap();
    let failed = Attempt::Failed { error: "too late".to_owned(), again_at: now, holds_others: true };
    scene.store.conclude(&first, &failed, &Progress::default(), later).await.unwrap();

    assert_eq!((firsts, seconds, scene.store.renew_claim(&first, later).await.unwrap()), (false, true, false));
    let row = scene.outbox().await.remove(0).notification;
    assert_eq!((row.hold.as_deref(), row.error), (Some("sending"), None));
    assert_eq!(Progress::read(row.recipients.as_deref()), progress);
}

#[actix_web::test]
async fn what_overtakes_is_claimed_and_what_was_overtaken_is_nobody_elses() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.open("first").await;
    let now = Timestamp::now();
    let until = now.plus_millis(MINUTE);
    let slow = scene.store.claim(channel.id, now, until, 100).await.unwrap().unwrap();
    scene.open("second").await;

    scene.store.let_overtake(&slow).await.unwrap();

    let due = scene.store.channels_due(&Share::All).await.unwrap();
    assert_eq!((due.len(), due[0].is_held, due[0].at <= Timestamp::now()), (1, false, true));
    let next = scene.store.claim(channel.id, Timestamp::now(), until, 100).await.unwrap().unwrap();
    assert_eq!(next.rows[0].subject, "second");
    scene.store.conclude(&next, &Attempt::Sent { error: None }, &Progress::default(), now).await.unwrap();
    assert_eq!(scene.store.claim(channel.id, Timestamp::now(), until, 100).await.unwrap(), None);
    // The instance that sent it has died.
    let again = scene.store.claim(channel.id, until, until.plus_millis(MINUTE), 100).await.unwrap().unwrap();
    assert_eq!((again.message_id, again.attempts()), (slow.message_id, 2));
}

#[actix_web::test]
async fn how_recipients_stand_outlives_the_sender() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.open("cpu is high").await;
    let now = Timestamp::now();
    let claim = scene.store.claim(channel.id, now, now.plus_millis(1), 100).await.unwrap().unwrap();
    let mut progress = claim.progress();
    progress.set("a@example.com", Standing::Delivered);
    progress.set("b@example.com", Standing::Waiting { reason: "450 greylisted".to_owned() });
    progress.hand_over("c@example.com");
    scene.store.begin_hand_over(&claim, &progress).await.unwrap();

    scene.store.release_claims(now).await.unwrap();

    let again = scene.store.claim(channel.id, now, now.plus_millis(MINUTE), 100).await.unwrap().unwrap();
    let left = ["a", "b", "c"].map(|name| again.progress().is_left(&format!("{name}@example.com")));
    assert_eq!((again.progress(), left), (progress, [false, true, true]));
}

#[actix_web::test]
async fn old_deliveries_go_and_pending_ones_stay() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let first = scene.open("first").await;
    let now = Timestamp::now();
    scene.deliver(now).await;
    scene.recover(&first).await;
    scene.open("second").await;

    assert_eq!(scene.store.forget_notifications(now).await.unwrap(), 0);
    assert_eq!(scene.store.forget_notifications(now.plus_millis(MINUTE)).await.unwrap(), 1);

    assert_eq!(scene.told().await, ["ops resolved first pending", "ops triggered second pending"]);
}

#[actix_web::test]
async fn channels_that_sent_an_open_alert_are_not_forgotten() {
    let scene = Scene::set().await;
    scene.channel_with("nagging", |new| new.repeat_minutes = 5).await;
    scene.channel("once").await;
    let alert = scene.open("cpu is high").await;
    let later = Timestamp::from(alert.triggered_at).plus_millis(5 * MINUTE);
    scene.deliver(later).await;

    assert_eq!(scene.store.forget_notifications(later.plus_millis(MINUTE)).await.unwrap(), 0);

    let due = scene.due(later).await;
    scene.store.remind(&due[0], None, later).await.unwrap();
    scene.recover(&alert).await;
    let mut told = scene.told().await.split_off(2);
    told.sort();
    let heard = ["nagging reminder", "nagging resolved", "once resolved"].map(|it| format!("{it} cpu is high pending"));
    assert_eq!(told, heard);
}

#[actix_web::test]
async fn of_what_was_sent_about_an_open_alert_the_last_is_kept() {
    let scene = Scene::set().await;
    scene.channel_with("nagging", |new| new.repeat_minutes = 5).await;
    let alert = scene.open("cpu is high").await;
    let after = |minutes: i64| Timestamp::from(alert.triggered_at).plus_millis(minutes * MINUTE);
    scene.deliver(after(0)).await;
    for minutes in [5, 10] {
        let due = scene.due(after(minutes)).await;
        scene.store.remind(&due[0], None, after(minutes)).await.unwrap();
        scene.deliver(after(minutes)).await;
    }

    assert_eq!(scene.store.forget_notifications(after(60)).await.unwrap(), 2);

    assert_eq!(scene.told().await, ["nagging reminder cpu is high sent"]);
    scene.recover(&alert).await;
    assert_eq!(scene.told().await[1..], ["nagging resolved cpu is high pending"]);
}

#[actix_web::test]
async fn what_waits_on_a_disabled_channel_is_given_up_in_the_end() {
    let scene = Scene::set().await;
    let channel = scene.channel("off").await;
    scene.channel("on").await;
    scene.open("cpu is high").await;
    let off = ChannelPatch { is_enabled: Some(false), ..ChannelPatch::default() };
    scene.store.update_channel(scene.owner_id, channel.id, off, Actor::command_line(), Timestamp::now()).await.unwrap();
    let later = Timestamp::now().plus_millis(MINUTE);

    assert_eq!(scene.store.give_up_notifications(later, later).await.unwrap(), 1);

    let mut told = scene.told().await;
    told.sort();
    assert_eq!(told, ["off triggered cpu is high failed", "on triggered cpu is high pending"]);
}

#[actix_web::test]
async fn a_deleted_channel_takes_its_rows_with_it() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.open("cpu is high").await;

    let stranger = scene.store.delete_channel(Uuid::now_v7(), channel.id, Actor::command_line()).await.unwrap();
    let owner = scene.store.delete_channel(scene.owner_id, channel.id, Actor::command_line()).await.unwrap();

    assert_eq!((stranger, owner), (false, true));
    assert!(scene.told().await.is_empty());
    assert!(scene.store.channels_due(&Share::All).await.unwrap().is_empty());
}

#[actix_web::test]
async fn what_a_clock_that_was_ahead_has_put_off_is_tried_when_it_was_put_right() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    scene.open("cpu is high").await;
    let (now, year) = (Timestamp::now(), 365 * 24 * 60 * MINUTE);
    let claim = async |now: Timestamp| {
        let due = scene.store.channels_due(&Share::All).await.unwrap();
        scene.store.claim(due[0].channel_id, now, now.plus_millis(1), 100).await.unwrap()
    };
    let claimed = claim(now.plus_millis(year)).await.unwrap();
    let again_at = now.plus_millis(year + MINUTE);
    let failed = Attempt::Failed { error: "no answer".to_owned(), again_at, holds_others: true };
    scene.store.conclude(&claimed, &failed, &Progress::default(), now.plus_millis(year)).await.unwrap();
    assert!(claim(now.plus_millis(MINUTE)).await.is_none());

    scene.store.hasten_notifications(now.plus_millis(2 * 60 * MINUTE), now).await.unwrap();

    assert!(claim(now.plus_millis(MINUTE)).await.is_some());
}

#[actix_web::test]
async fn what_is_being_sent_is_not_sent_again_because_a_clock_was_put_right() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    scene.open("cpu is high").await;
    let now = Timestamp::now();
    let due = scene.store.channels_due(&Share::All).await.unwrap();
    let claim =
        async |at: Timestamp| scene.store.claim(due[0].channel_id, at, at.plus_millis(MINUTE), 100).await.unwrap();
    // By a clock that is half an hour ahead.
    assert!(claim(now.plus_millis(30 * MINUTE)).await.is_some());

    scene.store.hasten_notifications(now, now).await.unwrap();

    assert!(claim(now.plus_millis(2 * MINUTE)).await.is_none());
}
