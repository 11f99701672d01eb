//! Carries events of topics to the instances that have subscribers for them.
//!
//! An instance sends only the events of topics that have subscribers elsewhere. It hands what it receives to its own
//! subscribers and never forwards it. Messages may be lost: metrics come again, and the status of agents is compared
//! with the database.

mod listening;
mod message;
mod outbox;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signalbox_history::codec;
use signalbox_protocol::frontend::ServerStatus;
use tokio::sync::Notify;
use uuid::Uuid;

use super::interest::{self, BELIEVED_FOR, Interest};
use crate::bus::blob::Blob;
use crate::bus::post::Post;
use crate::bus::{Delivery, Subscription};
use crate::clock::Clock;
use crate::feeds::{Feeds, Frame, Relay, Settled, Topic};
use crate::fleet::abroad::{Abroad, Heard};
use crate::fleet::{Fleet, Snapshot};
use crate::periodic::ticks;
use listening::{Ear, Listening};
use message::{Told, What};
use outbox::Outbox;

/// How often the state of the bus is checked: when it is back, all topics are announced at once.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After how many checks all topics are announced again: a third of the time for which an announcement is valid.
const LOOKS_A_LIST: u32 = 5;

/// How long a dashboard that opens waits until the others know of it. After that it shows what the database says.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);

/// The relay of topics between instances. Clones are cheap.
#[derive(Clone)]
pub struct Exchange {
    post: Post,
    fleet: Fleet,
    /// The status and samples of servers on other instances.
    abroad: Abroad,
    clock: Clock,
    interest: Interest,
    outbox: Arc<Outbox>,
    listening: Arc<Listening>,
    /// Another instance has asked which topics have subscribers here.
    asked: Arc<Notify>,
    /// The subscribers on this instance; set once they exist.
    feeds: Arc<OnceLock<Feeds>>,
}

impl Exchange {
    pub fn new(post: Post, (fleet, abroad): (Fleet, Abroad), clock: Clock) -> Self {
        Self {
            post,
            fleet,
            abroad,
            clock,
            interest: Interest::default(),
            outbox: Arc::default(),
            listening: Arc::default(),
            asked: Arc::default(),
            feeds: Arc::default(),
        }
    }

    fn send(&self, topic: Topic, what: impl FnOnce() -> Option<What>) {
        if self.interest.is_watched(topic)
            && let Some(what) = what()
        {
            self.outbox.put(topic, what);
        }
    }

    /// Sends the waiting messages one after the other, which preserves the order of each topic.
    async fn send_all(self) {
        loop {
            let (topic, what) = self.outbox.next().await;
            let Some(name) = topic.name() else { continue };
            let told = Told { from: self.post.instance_id, what };
            if self.post.tell(self.post.subjects.feed(&name), &told).await.is_err() {
                outbox::lost(&told.what);
            }
        }
    }

    async fn tell_interest(self) {
        let mut looks = ticks(LOOK_EVERY);
        let (mut number, mut was_up) = (0, true);
        loop {
            tokio::select! {
                () = self.listening.has_news() => self.listening.tell_changes(&self.post).await,
                () = self.asked.notified() => self.listening.tell_all(&self.post).await,
                _ = looks.tick() => {
                    let is_up = self.post.is_up();
                    let is_back = is_up && !std::mem::replace(&mut was_up, is_up);
                    number = (number + 1) % LOOKS_A_LIST;
                    if is_back {
                        listening::tell(&self.post, interest::What::Ask).await;
                    }
                    if is_back || number == 0 {
                        self.listening.tell_all(&self.post).await;
                    }
                    self.interest.forget_expired(Instant::now());
                    metrics::gauge!("signalbox_topics_watched_here").set(self.listening.len() as f64);
                    metrics::gauge!("signalbox_topics_watched_elsewhere").set(self.interest.len() as f64);
                }
            }
        }
    }

    async fn hear_interest(self) {
        let exchange = &self;
        let hear = |mut deliveries: Subscription| async move {
            listening::tell(&exchange.post, interest::What::Ask).await;
            while let Some(delivery) = deliveries.next().await {
                exchange.heed(delivery).await;
            }
        };
        self.post.serve(self.post.subjects.interest(), hear).await;
    }

    async fn heed(&self, delivery: Delivery) {
        let Ok(interest::Told { from, what }) = self.post.read(delivery.payload).await else { return };
        if from == self.post.instance_id {
            return;
        }
        match what {
            interest::What::Watched(topics) => {
                let new = self.interest.watched(from, &topics, Instant::now() + BELIEVED_FOR);
                new.into_iter().for_each(|topic| self.greet(topic));
            }
            interest::What::Left(topics) => self.interest.left(from, &topics),
            interest::What::Ask => self.asked.notify_one(),
        }
    }

    /// Sends the status and latest samples of an owner's servers here to an instance that has just subscribed to all
    /// servers of that owner: it would miss what happened while its announcement was on its way.
    fn greet(&self, topic: Topic) {
        let Topic::Presence(owner_id) = topic else { return };
        for (server_id, latest) in self.fleet.of_owner(owner_id) {
            let (status, of) = (ServerStatus::Online, self.post.instance_id);
            self.send(topic, || Some(What::Status { server_id, status, of }));
            if let Some(latest) = latest {
                self.sample(owner_id, &latest);
            }
        }
    }

    /// Handles the messages on a topic one after the other, for as long as it has subscribers.
    async fn listen(self, topic: Topic, subject: String, ear: Arc<Ear>) {
        let (exchange, ear) = (&self, ear.as_ref());
        let hear = |mut deliveries: Subscription| async move {
            exchange.listening.opened(topic, ear);
            while let Some(delivery) = deliveries.next().await {
                let told = exchange.post.read::<Told>(delivery.payload).await;
                let told = told.ok().filter(|told| told.from != exchange.post.instance_id);
                if let (Some(told), Some(feeds)) = (told, exchange.feeds.get()) {
                    exchange.deliver(feeds, topic, ear, told.what);
                }
            }
        };
        self.post.serve(subject, hear).await;
    }

    fn deliver(&self, feeds: &Feeds, topic: Topic, ear: &Ear, what: What) {
        match (topic, what) {
            (_, What::Metrics(text)) => feeds.deliver(topic, Frame::Metrics(text.into())),
            (_, What::Event(text)) => feeds.deliver(topic, Frame::Event(text.into())),
            (_, What::Notice) => feeds.deliver(topic, Frame::Notice),
            (_, What::Nudge) => feeds.wake(topic),
            (Topic::Server(server_id), What::Status { status, of, .. }) => {
                // The end of another session says nothing about the session that is here.
                let is_here = self.fleet.presence(server_id).is_some();
                let is_past = is_here && status != ServerStatus::Online;
                if !is_past && ear.hears(Heard::now(status, Some(of))) && !is_here {
                    feeds.show_status(server_id, status);
                }
            }
            (Topic::Presence(owner_id), What::Status { server_id, status, of }) => {
                self.abroad.status(owner_id, server_id, Heard::now(status, Some(of)));
                feeds.wake(topic);
            }
            (Topic::Presence(owner_id), What::Sample { server_id, sample }) => match codec::decode(&sample.0, None) {
                Ok(stored) => {
                    let snapshot = Arc::new(Snapshot::of(server_id, stored.measured()));
                    self.abroad.sample(owner_id, snapshot, self.clock.now());
                }
                Err(error) => tracing::warn!(%error, "cannot read a sample of another instance"),
            },
            (_, What::Status { .. } | What::Sample { .. }) => {}
        }
    }
}

impl Relay for Exchange {
    fn open(&self, feeds: Feeds) {
        _ = self.feeds.set(feeds);
        tokio::spawn(self.clone().send_all());
        tokio::spawn(self.clone().tell_interest());
        tokio::spawn(self.clone().hear_interest());
    }

    fn is_watched(&self, topic: Topic) -> bool {
        self.interest.is_watched(topic)
    }

    fn publish(&self, topic: Topic, frame: &Frame) {
        self.send(topic, || Some(What::of(frame)));
    }

    fn nudge(&self, topic: Topic) {
        self.send(topic, || Some(What::Nudge));
    }

    fn status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus, of: Option<Uuid>) -> bool {
        let of = of.unwrap_or(self.post.instance_id);
        for topic in [Topic::Server(server_id), Topic::Presence(owner_id)] {
            self.send(topic, || Some(What::Status { server_id, status, of }));
        }
        let heard = Heard::now(status, Some(of));
        self.abroad.status(owner_id, server_id, heard);
        self.listening.ear(Topic::Server(server_id)).is_none_or(|ear| ear.hears(heard))
    }

    fn sample(&self, owner_id: Uuid, snapshot: &Snapshot) {
        self.send(Topic::Presence(owner_id), || {
            let sample = codec::encode_with_open(&snapshot.sample, &snapshot.open)
                .inspect_err(|error| tracing::error!(%error, "cannot encode a sample"));
            Some(What::Sample { server_id: snapshot.server_id, sample: Blob(sample.ok()?) })
        });
    }

    fn enter(&self, topic: Topic) -> bool {
        let Some(name) = topic.name() else { return false };
        self.listening.enter(topic, |ear| {
            if let Topic::Presence(owner_id) = topic {
                self.abroad.follow(owner_id);
            }
            tokio::spawn(self.clone().listen(topic, self.post.subjects.feed(&name), ear)).abort_handle()
        });
        true
    }

    fn leave(&self, topic: Topic) {
        self.listening.leave(topic, || {
            if let Topic::Presence(owner_id) = topic {
                self.abroad.forget(owner_id);
            }
        });
    }

    fn settled<'a>(&'a self, topics: &'a [Topic]) -> Settled<'a> {
        Box::pin(async move {
            if self.post.is_up() {
                self.listening.settled(topics, SETTLED_WITHIN).await;
            }
        })
    }

    fn shows(&self, server_id: Uuid, status: ServerStatus) {
        if let Some(ear) = self.listening.ear(Topic::Server(server_id)) {
            ear.shows(Heard::now(status, None));
        }
    }

    fn watched_servers(&self) -> Vec<Uuid> {
        let servers = self.listening.topics().into_iter().filter_map(|topic| match topic {
            Topic::Server(server_id) => Some(server_id),
            _ => None,
        });
        servers.filter(|server_id| self.fleet.presence(*server_id).is_none()).collect()
    }

    fn put_right(&self, server_id: Uuid, is_online: bool, asked_at: Instant) {
        let status = if is_online { ServerStatus::Online } else { ServerStatus::Offline };
        let Some(ear) = self.listening.ear(Topic::Server(server_id)) else { return };
        if ear.reads(Heard::now(status, None), asked_at)
            && let Some(feeds) = self.feeds.get()
        {
            feeds.show_status(server_id, status);
        }
    }
}
