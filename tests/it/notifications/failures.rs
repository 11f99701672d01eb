//! Destinations that fail, hang and refuse; a process that dies; keys that do not fit.

use std::time::Duration;

use actix_web::rt::System;
use signalbox::audit::Actor;
use signalbox::config::Config;
use signalbox::notify::channel::Settings;
use signalbox::notify::limits::Limits;
use signalbox::notify::message::Message;
use signalbox::notify::pace::Pace;
use signalbox::notify::sender::{Refusal, Refused};
use signalbox::notify::{Notifier, Parts};
use signalbox::store::{ChannelPatch, DeliveryFilter, PageRequest, Progress, SealedSettings, Standing, Store};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::scene::{Fake, KEY, Reply, Scene, pace, parts, sealer, subjects};
use crate::support::{PATIENCE, eventually};

fn refuse(kind: Refusal) -> Reply {
    Reply::Refuse(Refused::new(kind, "answered 503"))
}

fn is_about(message: &Message, subject: &str) -> bool {
    subjects(message).iter().any(|line| line.ends_with(subject))
}

#[actix_web::test]
async fn a_message_is_tried_again_as_it_was() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let alert = scene.open("cpu is high").await;
    let fake = Fake::new(|_, _| refuse(Refusal::Unreachable));

    let _notifier = scene.notifier(&fake, pace());
    fake.saw(1).await;
    // The notification has the alert's state at that time.
    scene.store.acknowledge_alert(scene.owner_id, alert.id, &Actor::command_line(), Timestamp::now()).await.unwrap();
    // The first of these may have been read before that.
    fake.saw(fake.seen().len() + 2).await;
    fake.now(|_, _| Reply::Take);

    let outbox = scene.emptied().await;
    let seen = fake.seen();
    assert!(seen.iter().all(|message| *message == seen[0]), "{seen:?}");
    let row = &outbox[0].notification;
    assert_eq!((usize::try_from(row.attempts).unwrap(), row.status.as_str()), (seen.len(), "sent"));
}

#[actix_web::test]
async fn what_comes_later_waits_for_a_destination_that_is_away_and_joins_nothing() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let fake = Fake::new(|_, _| refuse(Refusal::Unreachable));
    let notifier = scene.notifier(&fake, pace());
    let alert = scene.open("cpu is high").await;
    notifier.nudge();
    fake.saw(1).await;

    scene.open("disk is full").await;
    scene.recover(&alert).await;
    notifier.nudge();
    let seen = fake.saw(fake.seen().len() + 3).await;
    assert!(seen.iter().all(|message| *message == seen[0]), "{seen:?}");
    fake.now(|_, _| Reply::Take);

    scene.emptied().await;
    let taken: Vec<Message> = fake.seen().into_iter().filter(|message| message.id != seen[0].id).collect();
    assert_eq!(taken.iter().flat_map(subjects).collect::<Vec<_>>(), ["triggered disk is full", "resolved cpu is high"]);
}

#[actix_web::test]
async fn what_is_rejected_holds_nobody_back() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let fake = Fake::new(|message, _| match is_about(message, "odd") {
        true => refuse(Refusal::Rejected),
        false => Reply::Take,
    });
    let notifier = scene.notifier(&fake, pace());
    scene.open("odd").await;
    notifier.nudge();
    fake.saw(1).await;

    scene.open("plain").await;
    notifier.nudge();

    let plain_is_sent = || async {
        let told = scene.told().await;
        told.contains(&"ops triggered plain sent".to_owned()).then_some(told)
    };
    let told = eventually("the other was sent", plain_is_sent).await;
    assert!(told.contains(&"ops triggered odd pending".to_owned()), "{told:?}");
    fake.now(|_, _| Reply::Take);
    scene.emptied().await;
}

#[actix_web::test]
async fn the_end_of_an_alert_arrives_after_its_beginning_however_long_that_was_refused() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let fake = Fake::new(|_, _| refuse(Refusal::Deferred));
    let notifier = scene.notifier(&fake, pace());
    let alert = scene.open("cpu is high").await;
    notifier.nudge();
    // Often enough that it holds up no other alert any more.
    fake.saw(4).await;
    scene.recover(&alert).await;
    scene.open("disk is full").await;
    notifier.nudge();

    let is_overtaken = || async { fake.seen().iter().any(|it| is_about(it, "disk is full")).then_some(()) };
    eventually("another alert goes past it", is_overtaken).await;
    fake.now(|_, _| Reply::Take);

    scene.emptied().await;
    let arrived: Vec<String> = fake.seen().iter().flat_map(subjects).collect();
    let last_beginning = arrived.iter().rposition(|line| line == "triggered cpu is high").unwrap();
    let ends: Vec<usize> = (0..arrived.len()).filter(|at| arrived[*at] == "resolved cpu is high").collect();
    assert!(ends.len() == 1 && ends[0] > last_beginning, "{arrived:?}");
}

#[actix_web::test]
async fn a_destination_that_hangs_delays_its_own_channel_alone() {
    let scene = Scene::set().await;
    for dead in 0..10 {
        scene.channel(&format!("dead-{dead}")).await;
    }
    scene.channel("live").await;
    let fake = Fake::new(|message, _| if message.channel == "live" { Reply::Take } else { Reply::Hang });
    // Nothing is given up or overtaken during this.
    let patient = Pace { limits: Limits::each(PATIENCE), overtaking: PATIENCE, ..pace() };
    let notifier = scene.notifier(&fake, patient);

    scene.open("first").await;
    notifier.nudge();
    fake.saw(11).await;
    scene.open("second").await;
    notifier.nudge();

    fake.saw(12).await;
    assert_eq!(fake.by_channel()["live"], [["triggered first"], ["triggered second"]]);
    assert_eq!(fake.by_channel()["dead-0"], [["triggered first"]]);
}

#[actix_web::test]
async fn a_pause_that_a_destination_asks_for_is_kept() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let alert = scene.open("cpu is high").await;
    let pause = Some(Duration::from_secs(600));
    let asked = Refused { retry_after: pause, ..Refused::new(Refusal::Deferred, "answered 429") };
    let fake = Fake::new(move |_, _| Reply::Refuse(asked.clone()));

    let _notifier = scene.notifier(&fake, pace());

    let is_put_off = || async {
        let row = scene.outbox().await.remove(0).notification;
        row.error.clone().map(|_| row)
    };
    let row = eventually("it was refused", is_put_off).await;
    let pause = Timestamp::from(row.next_attempt_at.unwrap()).millis_since(alert.triggered_at.into());
    assert!(pause >= 600_000, "{pause}");
    assert_eq!((row.error.as_deref(), row.attempts), (Some("answered 429"), 1));
}

#[actix_web::test]
async fn a_message_fails_when_its_time_is_over_and_the_next_has_its_turn() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let fake = Fake::new(|_, _| refuse(Refusal::Unreachable));
    let notifier = scene.notifier(&fake, Pace { expiry: Duration::ZERO, ..pace() });
    scene.open("first").await;
    notifier.nudge();
    let outbox = scene.emptied().await;

    let row = &outbox[0].notification;
    assert_eq!((row.status.as_str(), row.error.as_deref()), ("failed", Some("answered 503")));
    assert!(row.attempts >= 1 && row.finished_at.is_some() && row.next_attempt_at.is_none());
    fake.now(|_, _| Reply::Take);
    scene.open("second").await;
    notifier.nudge();
    scene.emptied().await;
    assert_eq!(scene.told().await, ["ops triggered first failed", "ops triggered second sent"]);
}

/// Runs a notifier in a thread of its own until the first message is in transit, and then ends it without a trace.
fn die_while_sending(config: Config, fake: Fake) {
    let life = std::thread::spawn(move || {
        System::new().block_on(async move {
            let store = Store::open(&config.database_url(), config.database).await.unwrap();
            let _notifier = Notifier::start(parts(store, &fake, pace()));
            fake.saw(1).await;
        });
    });
    life.join().unwrap();
}

#[actix_web::test]
async fn a_process_that_dies_while_it_sends_leaves_the_same_message_to_the_next() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    let first = scene.open("first").await;
    scene.open("second").await;
    let fake = Fake::new(|_, _| Reply::Hang);
    let (config, dying) = (scene.config(), fake.clone());
    tokio::task::spawn_blocking(move || die_while_sending(config, dying)).await.unwrap();
    scene.open("third").await;
    scene.recover(&first).await;

    fake.now(|_, _| Reply::Take);
    let _notifier = scene.notifier(&fake, pace());

    scene.emptied().await;
    let seen = fake.seen();
    assert_eq!(seen[0], seen[1]);
    assert_eq!(subjects(&seen[0]), ["triggered first", "triggered second"]);
    assert_eq!(seen[2..].iter().flat_map(subjects).collect::<Vec<_>>(), ["triggered third", "resolved first"]);
}

/// The state of the only destination of the only message.
async fn standing(store: &Store, owner_id: Uuid) -> Option<Standing> {
    let page = PageRequest { limit: 1, offset: 0 };
    let row = store.list_deliveries(owner_id, DeliveryFilter::default(), page).await.unwrap().items.remove(0);
    Progress::read(row.notification.recipients.as_deref()).of("hooks.invalid").cloned()
}

/// Runs a notifier in a thread of its own until it has recorded that the message was handed over this many times, and then ends
/// it without a trace.
fn die_after_handing_over(config: Config, fake: Fake, owner_id: Uuid, times: u8) {
    let life = std::thread::spawn(move || {
        System::new().block_on(async move {
            let store = Store::open(&config.database_url(), config.database).await.unwrap();
            let _notifier = Notifier::start(parts(store.clone(), &fake, pace()));
            let is_noted = || async {
                let standing = standing(&store, owner_id).await;
                (standing == Some(Standing::Perhaps { times })).then_some(())
            };
            eventually("it is noted", is_noted).await;
        });
    });
    life.join().unwrap();
}

#[actix_web::test]
async fn a_process_that_dies_after_it_has_handed_a_message_over_leaves_one_more_try() {
    let scene = Scene::set().await;
    scene.channel("ops").await;
    scene.open("cpu is high").await;
    let fake = Fake::new(|_, _| Reply::Swallow);
    for times in [1, 2] {
        let (config, fake, owner_id) = (scene.config(), fake.clone(), scene.owner_id);
        let dying = move || die_after_handing_over(config, fake, owner_id, times);
        tokio::task::spawn_blocking(dying).await.unwrap();
    }

    let _notifier = scene.notifier(&fake, pace());

    let outbox = scene.emptied().await;
    assert_eq!(fake.seen().len(), 2);
    let row = &outbox[0].notification;
    assert_eq!((row.status.as_str(), row.error.as_deref()), ("sent", Some("hooks.invalid never answered")));
}

#[actix_web::test]
async fn a_wrong_key_is_reported_and_new_settings_fix_it() {
    let scene = Scene::set().await;
    let channel = scene.channel("ops").await;
    scene.open("cpu is high").await;
    let fake = Fake::taking();
    let other = "the key of another directory";
    let slow = Pace { first_retry: Duration::from_secs(3_600), longest_retry: Duration::from_secs(3_600), ..pace() };
    let notifier = Notifier::start(Parts { sealer: sealer(other), ..parts(scene.store.clone(), &fake, slow) });
    let is_told = || async { scene.outbox().await.remove(0).notification.error };
    let error = eventually("the problem is reported", is_told).await;
    assert!(error.contains("another key"), "{error}");
    assert!(notifier.open(&channel).is_err());

    let settings = sealer(KEY).open(channel.id, &channel.settings).unwrap();
    let sealed = sealer(other).seal(channel.id, &settings).unwrap();
    let settings = SealedSettings { kind: Settings::kind(&settings), settings: sealed, destination: String::new() };
    let patch = ChannelPatch { settings: Some(settings), ..ChannelPatch::default() };
    let (actor, now) = (Actor::command_line(), Timestamp::now());
    scene.store.update_channel(scene.owner_id, channel.id, patch, actor, now).await.unwrap();
    notifier.nudge();

    scene.emptied().await;
    assert_eq!(fake.seen().len(), 1);
}
