//! Carries events of topics to the instances that have subscribers for them.
//!
//! An instance sends only the events of topics that have subscribers elsewhere. It hands what it receives to its own
//! subscribers and never forwards it. Messages may be lost: metrics come again, the status of agents is compared with the
//! database, and dashboards read the alerts again when a bus is back that may have lost some.

mod message;
mod outbox;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use signalbox_history::codec;
use signalbox_protocol::frontend::ServerStatus;
use tokio::sync::Notify;
use uuid::Uuid;

use super::interest::{self, BELIEVED_FOR, Interest, is_of_alerts};
use crate::bus::blob::Blob;
use crate::bus::client::BusClient;
use crate::bus::{Delivery, Subscription};
use crate::clock::Clock;
use crate::feeds::{FeedFrame, Feeds, Relay, Settled, Topic};
use crate::fleet::remote_cache::{RemoteCache, RemoteStatus};
use crate::fleet::{Fleet, Snapshot};
use crate::periodic::ticks;
use message::{RelayEvent, RelayMessage};
use outbox::Outbox;
use subscriptions::{LocalSubscriptions, TopicSubscription};

/// How often the state of the bus is checked: when it is back, all topics are announced at once.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After how many checks all topics are announced again: a third of the time for which an announcement is valid.
const LOOKS_A_LIST: u32 = 5;

/// Topics of missed alerts that the others hear of at a time: all of a long outage would displace what waits to be sent.
const MISSED_AT_ONCE: usize = 1_000;

/// How long a dashboard that opens waits until the others know of it. After that it shows what the database says.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);

/// The relay of topics between instances. Clones are cheap.
#[derive(Clone)]
pub struct ClusterRelay {
    bus_client: BusClient,
    fleet: Fleet,
    /// The status and samples of servers on other instances.
    remote_cache: RemoteCache,
    clock: Clock,
    interest: Interest,
    outbox: Arc<Outbox>,
    /// Those whose alerts may not have reached the other instances: one for each account at most.
    missed: Arc<Mutex<HashSet<Topic>>>,
    subscriptions: Arc<LocalSubscriptions>,
    /// Another instance has asked which topics have subscribers here.
    asked: Arc<Notify>,
    /// The subscribers on this instance; set once they exist.
    feeds: Arc<OnceLock<Feeds>>,
}

impl ClusterRelay {
    pub fn new(bus_client: BusClient, (fleet, remote_cache): (Fleet, RemoteCache), clock: Clock) -> Self {
        Self {
            bus_client,
            fleet,
            remote_cache,
            clock,
            interest: Interest::default(),
            outbox: Arc::default(),
            missed: Arc::default(),
            subscriptions: Arc::default(),
            asked: Arc::default(),
            feeds: Arc::default(),
        }
    }

    fn send(&self, topic: Topic, what: impl FnOnce() -> Option<RelayEvent>) {
        // Who watches is forgotten while the bus is away.
        if is_of_alerts(&topic) && !self.bus_client.is_up() {
            self.missed.lock().insert(topic);
        }
        if self.interest.is_watched(topic)
            && let Some(what) = what()
        {
            self.put(topic, what);
        }
    }

    /// Puts a message into the outbox. Alerts for which there is no room are read again by those who watch them.
    fn put(&self, topic: Topic, what: RelayEvent) {
        let displaced = self.outbox.put(topic, what);
        if displaced.iter().any(is_of_alerts) {
            self.missed.lock().extend(displaced.into_iter().filter(is_of_alerts));
        }
    }

    /// Sends the waiting messages one after the other, which preserves the order of each topic.
    async fn send_all(self) {
        loop {
            let (topic, what) = self.outbox.next().await;
            let Some(name) = topic.name() else { continue };
            let told = RelayMessage { from: self.bus_client.instance_id, what };
            if self.bus_client.tell(self.bus_client.subjects.feed(&name), &told).await.is_err() {
                outbox::lost(&told.what);
                if is_of_alerts(&topic) {
                    self.missed.lock().insert(topic);
                }
            }
        }
    }

    async fn tell_interest(self) {
        let mut looks = ticks(LOOK_EVERY);
        let (mut number, mut connects, mut lost) = (0, self.bus_client.connects(), self.bus_client.lost());
        loop {
            tokio::select! {
                () = self.subscriptions.has_news() => self.subscriptions.tell_changes(&self.bus_client).await,
                () = self.asked.notified() => self.subscriptions.tell_all(&self.bus_client).await,
                _ = looks.tick() => {
                    let (is_up, connects_now) = (self.bus_client.is_up(), self.bus_client.connects());
                    // An outage may be over before it is looked for.
                    let is_back = is_up && std::mem::replace(&mut connects, connects_now) != connects_now;
                    number = (number + 1) % LOOKS_A_LIST;
                    let lost_now = self.bus_client.lost();
                    // Not each time: an instance that is too slow may lose messages all the time.
                    let has_lost = number == 0 && std::mem::replace(&mut lost, lost_now) != lost_now;
                    if is_back {
                        subscriptions::tell(&self.bus_client, interest::InterestChange::Ask).await;
                        // What was sent before the outage was noticed may be lost.
                        self.missed.lock().extend(self.interest.topics().into_iter().filter(is_of_alerts));
                    }
                    if is_back || has_lost {
                        self.read_alerts_again();
                    }
                    if is_up {
                        self.tell_missed();
                    }
                    if is_back || number == 0 {
                        self.subscriptions.tell_all(&self.bus_client).await;
                    }
                    self.interest.forget_expired(Instant::now());
                    metrics::gauge!("signalbox_topics_watched_here").set(self.subscriptions.len() as f64);
                    metrics::gauge!("signalbox_topics_watched_elsewhere").set(self.interest.len() as f64);
                }
            }
        }
    }

    /// Has the dashboards here read their alerts again: those of other instances may not have arrived.
    fn read_alerts_again(&self) {
        let Some(feeds) = self.feeds.get() else { return };
        for topic in self.subscriptions.topics().into_iter().filter(is_of_alerts) {
            feeds.deliver(topic, FeedFrame::Notice);
        }
    }

    /// Has the others read what they may not have heard.
    fn tell_missed(&self) {
        let some: Vec<Topic> = self.missed.lock().extract_if(|_| true).take(MISSED_AT_ONCE).collect();
        some.into_iter().for_each(|topic| self.put(topic, RelayEvent::Notice));
    }

    async fn hear_interest(self) {
        let relay = &self;
        let hear = |mut deliveries: Subscription| async move {
            subscriptions::tell(&relay.bus_client, interest::InterestChange::Ask).await;
            while let Some(delivery) = deliveries.next().await {
                relay.apply(delivery).await;
            }
        };
        self.bus_client.serve(self.bus_client.subjects.interest(), hear).await;
    }

    async fn apply(&self, delivery: Delivery) {
        let Ok(interest::InterestMessage { from, what }) = self.bus_client.read(delivery.payload).await else { return };
        if from == self.bus_client.instance_id {
            return;
        }
        match what {
            interest::InterestChange::Watched(topics) => {
                let new = self.interest.watched(from, &topics, Instant::now() + BELIEVED_FOR);
                // That instance was frozen or cut off, and its alerts were not sent.
                self.missed.lock().extend(self.interest.take_expired(&new));
                new.into_iter().for_each(|topic| self.send_snapshot(topic));
            }
            interest::InterestChange::Left(topics) => self.interest.left(from, &topics),
            interest::InterestChange::Ask => self.asked.notify_one(),
        }
    }

    /// Sends the status and latest samples of an owner's servers here to an instance that has just subscribed to all
    /// servers of that owner: it would miss what happened while its announcement was on its way.
    fn send_snapshot(&self, topic: Topic) {
        let Topic::Presence(owner_id) = topic else { return };
        for (server_id, latest) in self.fleet.of_owner(owner_id) {
            let (status, of) = (ServerStatus::Online, self.bus_client.instance_id);
            self.send(topic, || Some(RelayEvent::Status { server_id, status, of }));
            if let Some(latest) = latest {
                self.sample(owner_id, &latest);
            }
        }
    }

    /// Handles the messages on a topic one after the other, for as long as it has subscribers.
    async fn listen(self, topic: Topic, subject: String, subscription: Arc<TopicSubscription>) {
        let (relay, subscription) = (&self, subscription.as_ref());
        let hear = |mut deliveries: Subscription| async move {
            relay.subscriptions.opened(topic, subscription);
            while let Some(delivery) = deliveries.next().await {
                let told = relay.bus_client.read::<RelayMessage>(delivery.payload).await;
                let told = told.ok().filter(|told| told.from != relay.bus_client.instance_id);
                if let (Some(told), Some(feeds)) = (told, relay.feeds.get()) {
                    relay.deliver(feeds, topic, subscription, told.what);
                }
            }
        };
        self.bus_client.serve(subject, hear).await;
    }

    fn deliver(&self, feeds: &Feeds, topic: Topic, subscription: &TopicSubscription, what: RelayEvent) {
        match (topic, what) {
            (_, RelayEvent::Metrics(text)) => feeds.deliver(topic, FeedFrame::Metrics(text.into())),
            (_, RelayEvent::Event(text)) => feeds.deliver(topic, FeedFrame::Event(text.into())),
            (_, RelayEvent::Notice) => feeds.deliver(topic, FeedFrame::Notice),
            (_, RelayEvent::Nudge) => feeds.wake(topic),
            (Topic::Server(server_id), RelayEvent::Status { status, of, .. }) => {
                // The end of another session says nothing about the session that is here.
                let is_here = self.fleet.presence(server_id).is_some();
                let is_past = is_here && status != ServerStatus::Online;
                if !is_past && subscription.hears(RemoteStatus::now(status, Some(of))) && !is_here {
                    feeds.show_status(server_id, status);
                }
            }
            (Topic::Presence(owner_id), RelayEvent::Status { server_id, status, of }) => {
                self.remote_cache.status(owner_id, server_id, RemoteStatus::now(status, Some(of)));
                feeds.wake(topic);
            }
            (Topic::Presence(owner_id), RelayEvent::Sample { server_id, sample }) => {
                match codec::decode(&sample.0, None) {
                    Ok(stored) => {
                        let snapshot = Arc::new(Snapshot::of(server_id, stored.measured()));
                        self.remote_cache.sample(owner_id, snapshot, self.clock.now());
                    }
                    Err(error) => tracing::warn!(%error, "cannot read a sample of another instance"),
                }
            }
            (_, RelayEvent::Status { .. } | RelayEvent::Sample { .. }) => {}
        }
    }
}

impl Relay for ClusterRelay {
    fn open(&self, feeds: Feeds) {
        _ = self.feeds.set(feeds);
        tokio::spawn(self.clone().send_all());
        tokio::spawn(self.clone().tell_interest());
        tokio::spawn(self.clone().hear_interest());
    }

    fn is_watched(&self, topic: Topic) -> bool {
        self.interest.is_watched(topic)
    }

    fn watched_elsewhere(&self) -> Vec<Topic> {
        self.interest.topics()
    }

    fn publish(&self, topic: Topic, frame: &FeedFrame) {
        self.send(topic, || Some(RelayEvent::of(frame)));
    }

    fn nudge(&self, topic: Topic) {
        self.send(topic, || Some(RelayEvent::Nudge));
    }

    fn status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus, of: Option<Uuid>) -> bool {
        let of = of.unwrap_or(self.bus_client.instance_id);
        for topic in [Topic::Server(server_id), Topic::Presence(owner_id)] {
            self.send(topic, || Some(RelayEvent::Status { server_id, status, of }));
        }
        let heard = RemoteStatus::now(status, Some(of));
        self.remote_cache.status(owner_id, server_id, heard);
        self.subscriptions.subscription(Topic::Server(server_id)).is_none_or(|subscription| subscription.hears(heard))
    }

    fn sample(&self, owner_id: Uuid, snapshot: &Snapshot) {
        self.send(Topic::Presence(owner_id), || {
            let sample = codec::encode_with_open(&snapshot.sample, &snapshot.open)
                .inspect_err(|error| tracing::error!(%error, "cannot encode a sample"));
            Some(RelayEvent::Sample { server_id: snapshot.server_id, sample: Blob(sample.ok()?) })
        });
    }

    fn enter(&self, topic: Topic) -> bool {
        let Some(name) = topic.name() else { return false };
        self.subscriptions.enter(topic, |subscription| {
            if let Topic::Presence(owner_id) = topic {
                self.remote_cache.follow(owner_id);
            }
            tokio::spawn(self.clone().listen(topic, self.bus_client.subjects.feed(&name), subscription)).abort_handle()
        });
        true
    }

    fn leave(&self, topic: Topic) {
        self.subscriptions.leave(topic, || {
            if let Topic::Presence(owner_id) = topic {
                self.remote_cache.forget(owner_id);
            }
        });
    }

    fn settled<'a>(&'a self, topics: &'a [Topic]) -> Settled<'a> {
        Box::pin(async move {
            if self.bus_client.is_up() {
                self.subscriptions.settled(topics, SETTLED_WITHIN).await;
            }
        })
    }

    fn shows(&self, server_id: Uuid, status: ServerStatus) {
        if let Some(subscription) = self.subscriptions.subscription(Topic::Server(server_id)) {
            subscription.shows(RemoteStatus::now(status, None));
        }
    }

    fn watched_servers(&self) -> Vec<Uuid> {
        let servers = self.subscriptions.topics().into_iter().filter_map(|topic| match topic {
            Topic::Server(server_id) => Some(server_id),
            _ => None,
        });
        servers.filter(|server_id| self.fleet.presence(*server_id).is_none()).collect()
    }

    fn correct(&self, server_id: Uuid, is_online: bool, asked_at: Instant) {
        let status = if is_online { ServerStatus::Online } else { ServerStatus::Offline };
        let Some(subscription) = self.subscriptions.subscription(Topic::Server(server_id)) else { return };
        if subscription.reads(RemoteStatus::now(status, None), asked_at)
            && let Some(feeds) = self.feeds.get()
        {
            feeds.show_status(server_id, status);
        }
    }
}
