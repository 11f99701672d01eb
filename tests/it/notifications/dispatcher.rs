//! When messages of the outbox are sent, and with which others.

use std::time::Duration;

use signalbox::audit::Actor;
use signalbox::notify::limits::Limits;
use signalbox::notify::message::Event;
use signalbox::notify::pace::Pace;
use signalbox::store::{
    AccountDeletion, AccountPatch, AlertAudience, AlertChange, ChannelPatch, NewUser, Registration,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::scene::{Fake, Reply, Scene, pace, subjects};
use crate::support::{eventually, in_time};

#[actix_web::test]
async fn an_alert_is_sent_and_its_delivery_is_recorded() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    let fake = Fake::taking();
    let notifier = scene.notifier(&fake, pace());

    let alert = scene.open("cpu is high").await;
    notifier.nudge();

    let seen = fake.saw(1).await;
    let message = &seen[0];
    assert_eq!((message.channel.as_str(), message.items.len()), ("ops", 1));
    let item = &message.items[0];
    assert_eq!((item.event, item.server_name.as_str()), (Event::Triggered, "web-1"));
    assert_eq!(item.server_tags, ["production"]);
    let told = item.alert.as_ref().unwrap();
    assert_eq!((told.id, told.value, told.status.as_str()), (alert.id, 97.5, "active"));
    let outbox = scene.emptied().await;
    let row = &outbox[0].notification;
    assert_eq!((row.channel_id, row.status.as_str(), row.attempts), (channel.id, "sent", 1));
    assert_eq!((row.message_id, row.next_attempt_at, row.error.as_deref()), (message.id, None, None));
    assert!(row.attempted_at.is_some() && row.finished_at.is_some());
}

#[actix_web::test]
async fn what_was_queued_before_the_start_goes_out() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    scene.open("cpu is high").await;
    let fake = Fake::taking();

    let _notifier = scene.notifier(&fake, pace());

    scene.emptied().await;
    assert_eq!(fake.seen().len(), 1);
}

#[actix_web::test]
async fn what_follows_a_message_is_gathered_for_its_channel_alone() {
    let scene = Scene::set().await;
    scene.channel("busy").await;
    scene.channel_with("calm", |new| new.severities = vec!["info"]).await;
    let fake = Fake::taking();
    let hour = Duration::from_secs(3_600);
    let notifier = scene.notifier(&fake, Pace { first_grouping: hour, grouping: hour, ..pace() });
    scene.open("first").await;
    notifier.nudge();
    scene.emptied().await;

    scene.open("second").await;
    notifier.nudge();
    // The dispatcher reads both channels when it sends this.
    scene.open_with("third", |alert| alert.severity = "info".to_owned()).await;
    notifier.nudge();

    fake.saw(2).await;
    let calm_is_sent = || async {
        let told = scene.told().await;
        told.contains(&"calm triggered third sent".to_owned()).then_some(told)
    };
    let told = eventually("the calm channel got it", calm_is_sent).await;
    assert!(told.contains(&"busy triggered second pending".to_owned()), "{told:?}");
    assert!(told.contains(&"busy triggered third pending".to_owned()), "{told:?}");
}

#[actix_web::test]
async fn a_burst_is_one_message_in_order() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let fake = Fake::taking();
    let notifier = scene.notifier(&fake, Pace { grouping: Duration::from_millis(50), ..pace() });
    let alerts: Vec<_> = (0..501).map(|n| scene.alert(&format!("alert {n}"))).collect();
    let opened = alerts
        .into_iter()
        .map(|alert| AlertChange::Opened { alert: Box::new(alert), audience: AlertAudience::default() });

    scene.store.change_alerts(&opened.collect::<Vec<_>>()).await.unwrap();
    notifier.nudge();

    let outbox = scene.emptied().await;
    let messages: Vec<Vec<String>> = fake.seen().iter().map(subjects).collect();
    assert_eq!(messages.iter().map(Vec::len).collect::<Vec<_>>(), [500, 1]);
    let expected: Vec<String> = (0..501).map(|n| format!("triggered alert {n}")).collect();
    assert_eq!(messages.concat(), expected);
    let ids = outbox.iter().map(|delivery| delivery.notification.message_id);
    assert_eq!(ids.collect::<std::collections::HashSet<_>>().len(), 2);
}

#[actix_web::test]
async fn a_recovery_follows_its_alert() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let fake = Fake::taking();
    let alert = scene.open("cpu is high").await;
    scene.recover(&alert).await;

    let _notifier = scene.notifier(&fake, pace());

    scene.emptied().await;
    let seen = fake.seen();
    assert_eq!(seen.iter().flat_map(subjects).collect::<Vec<_>>(), ["triggered cpu is high", "resolved cpu is high"]);
    let states: Vec<_> =
        seen.iter().flat_map(|message| &message.items).map(|item| item.alert.as_ref().unwrap()).collect();
    assert_eq!((states[0].status.as_str(), states[1].status.as_str()), ("active", "resolved"));
}

#[actix_web::test]
async fn a_disabled_channel_waits_until_it_is_enabled() {
    let scene = Scene::set().await;
    let channel = scene.channel("off").await;
    scene.channel("on").await;
    scene.open("cpu is high").await;
    let enabled = |is_enabled| ChannelPatch { is_enabled: Some(is_enabled), ..ChannelPatch::default() };
    let update =
        |patch| scene.store.update_channel(scene.owner_id, channel.id, patch, Actor::command_line(), Timestamp::now());
    update(enabled(false)).await.unwrap();
    let fake = Fake::taking();
    let notifier = scene.notifier(&fake, pace());
    fake.saw(1).await;
    assert_eq!(fake.by_channel().keys().collect::<Vec<_>>(), ["on"]);

    update(enabled(true)).await.unwrap();
    notifier.nudge();

    scene.emptied().await;
    assert_eq!(fake.by_channel()["off"], [["triggered cpu is high"]]);
}

#[actix_web::test]
async fn an_alert_of_a_server_that_was_given_away_at_another_instance_is_sent_to_its_new_owner() {
    let scene = Scene::set().await;
    scene.channel("before").await;
    let fake = Fake::taking();
    let notifier = scene.notifier(&fake, pace());
    scene.open("cpu is high").await;
    notifier.nudge();
    fake.saw(1).await;
    let grace = NewUser {
        id: Uuid::now_v7(),
        email: "grace@example.com".to_owned(),
        username: "grace".to_owned(),
        full_name: String::new(),
        password_hash: String::new(),
    };
    let grace = scene.store.create_user(grace, Registration::Open, "", None).await.unwrap().id;
    let (promote, now) = (AccountPatch { is_admin: Some(true), is_disabled: None }, Timestamp::now());
    scene.store.change_account(grace, promote, Actor::command_line()).await.unwrap();

    // Directly in the store: the notifier still knows the former owner.
    let deletion = AccountDeletion { user_id: scene.owner_id, servers_to: Some(grace), verified_hash: None, now };
    scene.store.delete_account(deletion, Actor::command_line()).await.unwrap().unwrap();
    scene.channel_with("after", |new| new.owner_id = grace).await;
    scene.open("disk is full").await;
    notifier.nudge();

    fake.saw(2).await;
    assert_eq!(fake.by_channel()["after"], [["triggered disk is full"]]);
}

#[actix_web::test]
async fn the_end_waits_for_what_is_on_its_way() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    scene.open("cpu is high").await;
    let fake = Fake::new(|_, _| Reply::Hang);
    let notifier = scene.notifier(&fake, Pace { limits: Limits::each(Duration::from_millis(10)), ..pace() });
    fake.saw(1).await;

    in_time("the notifier stops", notifier.stop()).await;

    // It was given up after its time, and that is recorded.
    let row = scene.outbox().await.remove(0).notification;
    assert_eq!((row.status.as_str(), row.hold.as_deref()), ("pending", Some("unreachable")));
    assert_eq!(row.error.as_deref(), Some("did not answer in time"));
    assert_eq!(fake.seen().len(), usize::try_from(row.attempts).unwrap());
}
