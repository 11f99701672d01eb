use actix::{Actor, Context, Handler};
use signalbox_protocol::{Sample, Timestamp};

use super::*;
use crate::bus::local::LocalBus;
use crate::bus::subject::Subjects;
use crate::bus::{Bus, MAX_WAITING};
use crate::feeds::{Subscription, Wake};
use crate::store::Swept;

const SOON: Duration = Duration::from_secs(30);

/// An actor that ignores being woken.
struct Sleeper;

impl Actor for Sleeper {
    type Context = Context<Self>;
}

impl Handler<Wake> for Sleeper {
    type Result = ();

    fn handle(&mut self, _: Wake, _: &mut Self::Context) {}
}

/// The parts that each of several instances has.
struct Instance {
    id: Uuid,
    relay: ClusterRelay,
    feeds: Feeds,
    fleet: Fleet,
}

impl Instance {
    async fn start(bus: &LocalBus) -> Self {
        let id = Uuid::now_v7();
        let bus_client = BusClient::open(Arc::new(bus.clone()), Subjects::new("test"), id).await.unwrap();
        let (fleet, remote_cache) = Fleet::among_others();
        let relay = ClusterRelay::new(bus_client, (fleet.clone(), remote_cache), Clock::default());
        Self { id, feeds: Feeds::among_others(Arc::new(relay.clone())), relay, fleet }
    }

    /// Subscribes to a topic, and waits until the others know of it.
    async fn watch(&self, topic: Topic) -> Subscription {
        let subscription = self.feeds.subscribe(vec![topic], Sleeper.start().recipient());
        self.relay.settled(&[topic]).await;
        subscription
    }

    fn tell(&self, topic: Topic, text: &str) {
        self.feeds.publish(topic, FeedFrame::Event(text.to_owned().into()));
    }

    async fn until_watched_elsewhere(&self, topic: Topic) {
        until(|| self.relay.is_watched(topic)).await;
    }
}

async fn until(is_it: impl Fn() -> bool) {
    let waited = async {
        while !is_it() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, waited).await.unwrap();
}

/// The texts that a subscription received, up to `last`.
async fn texts(subscription: &Subscription, last: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let read = async {
        while texts.last().is_none_or(|text| text != last) {
            let frames = subscription.take().0;
            texts.extend(frames.into_iter().map(|frame| match frame {
                FeedFrame::Metrics(text) | FeedFrame::Event(text) => text.text().to_string(),
                FeedFrame::Notice => "notice".to_owned(),
                FeedFrame::Rights => "rights".to_owned(),
            }));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, read).await.unwrap();
    texts
}

fn status(status: &str) -> String {
    format!(r#"{{"type":"status","data":{{"status":"{status}"}}}}"#)
}

fn server(number: u128) -> Topic {
    Topic::Server(Uuid::from_u128(number))
}

#[actix::test]
async fn events_reach_the_subscribers_of_every_instance_once_and_in_order() {
    let bus = LocalBus::default();
    let (one, two, three) = (Instance::start(&bus).await, Instance::start(&bus).await, Instance::start(&bus).await);
    let topic = server(1);
    let watching = [one.watch(topic).await, two.watch(topic).await, three.watch(topic).await];
    one.until_watched_elsewhere(topic).await;

    (0..20).for_each(|number| one.tell(topic, &number.to_string()));
    one.tell(topic, "last");

    let mut expected: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    expected.push("last".to_owned());
    for watcher in &watching {
        assert_eq!(texts(watcher, "last").await, expected);
    }
}

#[actix::test]
async fn alerts_that_an_outage_of_the_bus_lost_are_read_again() {
    let bus = LocalBus::default();
    let (home, other) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let (topic, quiet) = (Topic::Alerts(Uuid::from_u128(7)), Topic::Alerts(Uuid::from_u128(8)));
    let watching_quiet = other.watch(quiet).await;
    // Nobody is known to watch this one, as during a long outage.
    let subject = Subjects::new("test").feed(&topic.name().unwrap());
    let mut sent = bus.subscribe(subject).await.unwrap();

    bus.cut(true);
    home.tell(topic, "lost");
    bus.cut(false);

    let first: RelayMessage = home.relay.bus_client.read(sent.next().await.unwrap().payload).await.unwrap();
    assert!(matches!(first.what, RelayEvent::Notice) && first.from == home.id, "{first:?}");
    // Whatever else was lost in that time is not known.
    assert_eq!(texts(&watching_quiet, "notice").await, ["notice"]);
}

#[actix::test]
async fn alerts_that_were_not_sent_to_an_instance_that_was_forgotten_are_read_again() {
    let bus = LocalBus::default();
    let (home, other) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let topic = Topic::Alerts(Uuid::from_u128(7));
    let watching = other.watch(topic).await;
    home.until_watched_elsewhere(topic).await;

    // As if the other one had been frozen.
    home.relay.interest.forget_expired(Instant::now() + 2 * BELIEVED_FOR);
    assert!(!home.relay.is_watched(topic));
    home.tell(topic, "unsent");

    // It announces all its topics again.
    assert_eq!(texts(&watching, "notice").await, ["notice"]);
}

#[actix::test]
async fn alerts_that_came_too_fast_are_read_again() {
    let bus = LocalBus::default();
    let (home, other) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let topic = Topic::Alerts(Uuid::from_u128(7));
    let watching = other.watch(topic).await;
    home.until_watched_elsewhere(topic).await;

    // All are sent before the other one takes any.
    (0..2 * MAX_WAITING).for_each(|_| home.tell(topic, "alert"));

    let received = texts(&watching, "notice").await;
    assert!(received.len() < 2 * MAX_WAITING, "{} were not lost", received.len());
}

#[actix::test]
async fn nothing_is_sent_without_subscribers_elsewhere() {
    let bus = LocalBus::default();
    let (home, other) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let (topic, owner_id) = (server(1), Uuid::from_u128(7));
    let subject = |topic: Topic| Subjects::new("test").feed(&topic.name().unwrap());
    let mut sent = bus.subscribe(subject(topic)).await.unwrap();
    let mut samples = bus.subscribe(subject(Topic::Presence(owner_id))).await.unwrap();
    let watching_here = home.watch(topic).await;
    let _watching_more = other.watch(server(2)).await;
    home.until_watched_elsewhere(server(2)).await;
    let snapshot = |millis| {
        let sample = Sample { timestamp: Timestamp::from_millis(millis), ..Sample::default() };
        Snapshot::new(Uuid::from_u128(1), sample)
    };

    home.tell(topic, "unheard");
    home.relay.sample(owner_id, &snapshot(1));
    let _watching = (other.watch(topic).await, other.watch(Topic::Presence(owner_id)).await);
    home.until_watched_elsewhere(topic).await;
    home.until_watched_elsewhere(Topic::Presence(owner_id)).await;
    home.tell(topic, "heard");
    home.relay.sample(owner_id, &snapshot(2));

    let first: RelayMessage = home.relay.bus_client.read(sent.next().await.unwrap().payload).await.unwrap();
    assert!(matches!(first.what, RelayEvent::Event(text) if text == "heard"));
    let first: RelayMessage = home.relay.bus_client.read(samples.next().await.unwrap().payload).await.unwrap();
    let RelayEvent::Sample { sample, .. } = first.what else { panic!("no sample: {first:?}") };
    assert_eq!(codec::decode(&sample.0, None).unwrap().row.at, 2);
    assert_eq!(texts(&watching_here, "heard").await, ["unheard", "heard"]);
}

#[actix::test]
async fn interest_ends_with_the_last_subscriber_and_a_new_instance_learns_of_it() {
    let bus = LocalBus::default();
    let (watched, home) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let (first, second) = (watched.watch(server(1)).await, watched.watch(server(1)).await);
    home.until_watched_elsewhere(server(1)).await;

    drop(first);
    let late = Instance::start(&bus).await;
    late.until_watched_elsewhere(server(1)).await;
    assert!(home.feeds.is_watched(server(1)) && !home.feeds.is_watched(server(2)));
    drop(second);

    until(|| !home.feeds.is_watched(server(1)) && !late.feeds.is_watched(server(1))).await;
    assert_eq!(watched.relay.subscriptions.len(), 0);
    let again = watched.watch(server(1)).await;
    home.until_watched_elsewhere(server(1)).await;
    drop(again);
}

#[actix::test]
async fn local_topics_stay_on_their_instance() {
    let bus = LocalBus::default();
    let (one, other) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let id = Uuid::from_u128(1);
    let local = [Topic::Servers(id), Topic::Log(id), Topic::Login(id), Topic::ServerEnd(id), Topic::Service];
    let watching = other.feeds.subscribe(local.to_vec(), Sleeper.start().recipient());
    let crossing = other.watch(server(1)).await;
    one.until_watched_elsewhere(server(1)).await;

    local.into_iter().for_each(|topic| one.tell(topic, "unheard"));
    one.tell(server(1), "heard");

    assert_eq!(texts(&crossing, "heard").await, ["heard"]);
    assert!(watching.take().0.is_empty());
}

#[actix::test]
async fn a_server_that_moves_is_not_shown_offline_in_between() {
    let bus = LocalBus::default();
    let (old, new, dashboard) = (Instance::start(&bus).await, Instance::start(&bus).await, Instance::start(&bus).await);
    let (server_id, owner_id) = (Uuid::from_u128(1), Uuid::from_u128(7));
    let topics = [Topic::Server(server_id), Topic::Presence(owner_id)];
    let (watching, _all) = (dashboard.watch(topics[0]).await, dashboard.watch(topics[1]).await);
    for topic in topics {
        old.until_watched_elsewhere(topic).await;
        new.until_watched_elsewhere(topic).await;
    }
    let heard = || dashboard.fleet.view(server_id).heard.map(|heard| (heard.status, heard.from));
    old.feeds.publish_status(server_id, owner_id, ServerStatus::Online);
    assert_eq!(texts(&watching, &status("online")).await.len(), 1);

    new.feeds.publish_status(server_id, owner_id, ServerStatus::Online);
    until(|| heard() == Some((ServerStatus::Online, Some(new.id)))).await;
    old.feeds.publish_status(server_id, owner_id, ServerStatus::Offline);
    old.tell(topics[0], "behind it");

    assert_eq!(texts(&watching, "behind it").await, [status("online"), "behind it".to_owned()]);
    new.feeds.publish_status(server_id, owner_id, ServerStatus::Offline);
    assert_eq!(texts(&watching, &status("offline")).await, [status("offline")]);
    until(|| heard() == Some((ServerStatus::Offline, Some(new.id)))).await;
}

#[actix::test]
async fn the_instance_that_sweeps_speaks_for_the_one_that_died() {
    let bus = LocalBus::default();
    let (sweeper, dashboard) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let (server_id, owner_id, dead) = (Uuid::from_u128(1), Uuid::from_u128(7), Uuid::from_u128(9));
    let watching = [sweeper.watch(server(1)).await, dashboard.watch(server(1)).await];
    sweeper.until_watched_elsewhere(server(1)).await;
    let swept = |instance_id| Swept { server_id, owner_id, instance_id };

    sweeper.feeds.publish_swept(swept(dead));
    sweeper.feeds.publish_status(server_id, owner_id, ServerStatus::Online);
    // It comes late: the agent has already reconnected.
    sweeper.feeds.publish_swept(swept(dead));
    sweeper.tell(server(1), "behind it");

    for watcher in &watching {
        let expected = [status("offline"), status("online"), "behind it".to_owned()];
        assert_eq!(texts(watcher, "behind it").await, expected);
    }
}

#[actix::test]
async fn samples_of_other_instances_are_known_while_a_subscriber_watches_all_servers() {
    let bus = LocalBus::default();
    let (home, dashboard) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let (server_id, owner_id) = (Uuid::from_u128(1), Uuid::from_u128(7));
    let watching = dashboard.watch(Topic::Presence(owner_id)).await;
    home.until_watched_elsewhere(Topic::Presence(owner_id)).await;

    let sample = Sample { cpu_percent: 12.5, timestamp: Timestamp::from_millis(1_000), ..Sample::default() };
    home.relay.sample(owner_id, &Snapshot::new(server_id, sample.clone()));
    home.feeds.publish_status(server_id, owner_id, ServerStatus::Online);

    until(|| dashboard.fleet.view(server_id).heard.is_some()).await;
    let view = dashboard.fleet.view(server_id);
    assert_eq!(view.latest.map(|latest| latest.sample.clone()), Some(sample));
    assert!(view.heard_of_at.is_some() && view.presence.is_none());
    // Only the database knows the latest sample.
    assert!(dashboard.fleet.latest(server_id).is_none());
    drop(watching);
    assert!(dashboard.fleet.view(server_id).latest.is_none());
}

#[actix::test]
async fn a_new_subscriber_to_all_servers_learns_which_are_online() {
    let bus = LocalBus::default();
    let (home, dashboard) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let (server_id, owner_id) = (Uuid::from_u128(1), Uuid::from_u128(7));
    home.fleet.online(server_id, Uuid::nil(), owner_id, Timestamp::from_millis(1));
    let sample = Sample { timestamp: Timestamp::from_millis(1_000), ..Sample::default() };
    home.fleet.record(Arc::new(Snapshot::new(server_id, sample)), Timestamp::now());

    let _watching = dashboard.watch(Topic::Presence(owner_id)).await;

    until(|| dashboard.fleet.view(server_id).latest.is_some()).await;
    let heard = dashboard.fleet.view(server_id).heard.map(|heard| (heard.status, heard.from));
    assert_eq!(heard, Some((ServerStatus::Online, Some(home.id))));
}

#[actix::test]
async fn a_lost_message_is_corrected_from_the_database() {
    let bus = LocalBus::default();
    let dashboard = Instance::start(&bus).await;
    let server_id = Uuid::from_u128(1);
    let before = Instant::now();
    let watching = dashboard.watch(server(1)).await;
    assert_eq!(dashboard.relay.watched_servers(), [server_id]);
    dashboard.relay.shows(server_id, ServerStatus::Online);
    let look = |is_online, asked_at| dashboard.relay.correct(server_id, is_online, asked_at);
    let later = || Instant::now() + Duration::from_secs(1);

    look(false, before);
    look(true, later());
    assert!(watching.take().0.is_empty(), "older, or no change");
    look(false, later());
    look(false, later());

    assert_eq!(texts(&watching, &status("offline")).await, [status("offline")]);
    assert!(watching.take().0.is_empty(), "sent once");
}

#[actix::test]
async fn a_bus_that_is_away_blocks_nobody_and_recovers() {
    let bus = LocalBus::default();
    let (home, other) = (Instance::start(&bus).await, Instance::start(&bus).await);
    let first = other.watch(server(1)).await;
    home.until_watched_elsewhere(server(1)).await;

    bus.cut(true);
    (0..50_000).for_each(|_| home.tell(server(1), "lost"));
    let second = other.watch(server(2)).await;
    bus.cut(false);

    home.until_watched_elsewhere(server(2)).await;
    home.tell(server(2), "heard");
    assert_eq!(texts(&second, "heard").await, ["heard"]);
    drop(first);
}
