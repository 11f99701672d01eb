//! Repetitions of what was sent about an alert, and what a silence holds back.

use signalbox::audit::Actor;
use signalbox::notify::Silences;
use signalbox::store::{Reach, Share, SilenceTerms};
use signalbox_protocol::Timestamp;

use super::scene::Scene;

const MINUTE: i64 = 60_000;

#[actix_web::test]
async fn an_alert_is_repeated_until_somebody_acknowledges_it() {
    let scene = Scene::set().await;
    scene.channel_with("nagging", |new| new.repeat_minutes = 5).await;
    scene.channel("once").await;
    let alert = scene.open("cpu is high").await;
    let start = Timestamp::from(alert.triggered_at);
    let after = |minutes: i64| start.plus_millis(minutes * MINUTE);
    assert_eq!(alert.notify_at.map(Timestamp::from), Some(after(5)));
    assert_eq!(scene.store.next_alert_to_notify(&Share::All).await.unwrap(), Some(after(5)));
    scene.deliver(start).await;

    assert!(scene.due(after(5).plus_millis(-1)).await.is_empty());
    let due = scene.due(after(6)).await;
    scene.store.remind(&due[0], None, after(6)).await.unwrap();
    scene.store.remind(&due[0], None, after(6)).await.unwrap();

    let told = scene.told().await;
    assert_eq!(told[2..], ["nagging reminder cpu is high pending"]);
    assert_eq!(due[0].audience.tags, ["production"]);
    assert_eq!(scene.store.next_alert_to_notify(&Share::All).await.unwrap(), Some(after(11)));

    // The last one is still in transit: nothing piles up.
    let due = scene.due(after(12)).await;
    scene.store.remind(&due[0], None, after(12)).await.unwrap();
    assert_eq!(scene.told().await.len(), 3);
    scene.store.acknowledge_alert(scene.owner_id, alert.id, &Actor::command_line(), Timestamp::now()).await.unwrap();
    assert!(scene.due(after(1_000)).await.is_empty());
}

#[actix_web::test]
async fn an_unnotified_channel_receives_the_alert_at_the_next_check() {
    let scene = Scene::set().await;
    scene.channel_with("nagging", |new| new.repeat_minutes = 5).await;
    let alert = scene.open("cpu is high").await;
    scene.channel("new").await;
    let later = Timestamp::from(alert.triggered_at).plus_millis(5 * MINUTE);
    scene.deliver(later).await;

    let due = scene.due(later).await;
    scene.store.remind(&due[0], None, later).await.unwrap();

    let mut told = scene.told().await.split_off(1);
    told.sort();
    assert_eq!(told, ["nagging reminder cpu is high pending", "new triggered cpu is high pending"]);
}

#[actix_web::test]
async fn a_silence_puts_off_until_its_end() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let start = Timestamp::now();
    scene
        .open_with("cpu is high", |alert| {
            alert.is_silenced = true;
            alert.notify_at = Some(start.into());
        })
        .await;
    let (end, due) = (start.plus_millis(MINUTE), scene.due(start).await);

    scene.store.remind(&due[0], Some(end), start).await.unwrap();

    assert!(scene.told().await.is_empty());
    assert_eq!(scene.store.next_alert_to_notify(&Share::All).await.unwrap(), Some(end));
    let due = scene.due(end).await;
    scene.store.remind(&due[0], None, end).await.unwrap();
    assert_eq!(scene.told().await, ["ops triggered cpu is high pending"]);
    assert_eq!(scene.store.next_alert_to_notify(&Share::All).await.unwrap(), None);
}

#[actix_web::test]
async fn a_silence_that_is_deleted_while_an_alert_is_being_checked_holds_it_no_longer() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let start = Timestamp::now();
    let terms = SilenceTerms {
        reach: Reach { server_id: None, tag: None },
        reason: String::new(),
        starts_at: None,
        ends_at: Some(start.plus_millis(24 * 60 * MINUTE)),
        schedule: None,
    };
    let silence = scene.store.create_silence(scene.owner_id, terms, Actor::command_line()).await.unwrap();
    scene
        .open_with("cpu is high", |alert| {
            alert.is_silenced = true;
            alert.notify_at = Some(start.into());
        })
        .await;
    let due = scene.due(start).await;
    let held_until = scene.store.held_until(&due[0], start).await.unwrap();
    assert!(held_until.is_some());
    let later = start.plus_millis(1);

    assert!(scene.store.delete_silence(&silence, Actor::command_line(), later).await.unwrap());
    scene.store.remind(&due[0], held_until, later).await.unwrap();

    let due = scene.due(later).await;
    assert_eq!(due.len(), 1, "it is checked again at once");
    scene.store.remind(&due[0], None, later).await.unwrap();
    assert_eq!(scene.told().await, ["ops triggered cpu is high pending"]);
}

#[actix_web::test]
async fn finished_alerts_are_not_repeated() {
    let scene = Scene::set().await;
    scene.channel_with("nagging", |new| new.repeat_minutes = 5).await;
    let alert = scene.open("cpu is high").await;
    let later = Timestamp::from(alert.triggered_at).plus_millis(6 * MINUTE);
    let due = scene.due(later).await;

    scene.recover(&alert).await;
    scene.store.remind(&due[0], None, later).await.unwrap();

    assert!(!scene.told().await.iter().any(|line| line.contains("reminder")));
    assert!(scene.due(later).await.is_empty());
}

#[actix_web::test]
async fn reminders_that_a_clock_that_was_ahead_has_put_off_come_when_it_was_put_right() {
    let scene = Scene::set().await;
    scene.channel_with("nagging", |new| new.repeat_minutes = 5).await;
    let now = Timestamp::now();
    let year = now.plus_millis(365 * 24 * 60 * MINUTE);
    scene.open_with("cpu is high", |alert| alert.triggered_at = year.into()).await;
    scene.deliver(year).await;
    let after = |minutes: i64| now.plus_millis(minutes * MINUTE);
    let check = async |at: Timestamp| {
        for due in scene.due(at).await {
            scene.store.remind(&due, None, at).await.unwrap();
        }
        scene.deliver(at).await;
    };
    check(after(0)).await;
    assert_eq!(scene.told().await, ["nagging triggered cpu is high sent"]);

    scene.store.hasten_alerts(after(0), after(0)).await.unwrap();
    check(after(0)).await;
    scene.store.hasten_alerts(after(1), after(1)).await.unwrap();
    check(after(1)).await;

    let reminders = async || scene.told().await.iter().filter(|line| line.contains("reminder")).count();
    assert_eq!(reminders().await, 1, "a check that comes too early repeats nothing");
    assert_eq!(scene.store.next_alert_to_notify(&Share::All).await.unwrap(), Some(after(5)));
    check(after(5)).await;
    assert_eq!(reminders().await, 2);
}
