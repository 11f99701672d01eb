//! Carries what happens to topics to the instances on which somebody watches them.
//!
//! Nothing is sent of what nobody watches elsewhere. What comes is handed to those who watch it here, and never sent on.
//! It may be lost: metrics come again, and what agents' coming and going says is compared with the database.

mod listening;
mod message;
mod outbox;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};
use uuid::Uuid;

use super::interest::{self, BELIEVED_FOR, Interest};
use crate::bus::Delivery;
use crate::bus::blob::Blob;
use crate::bus::post::Post;
use crate::feeds::{Feeds, Frame, Topic};
use crate::fleet::abroad::Heard;
use crate::fleet::{Fleet, Snapshot};
use crate::metrics::codec;
use listening::{Ear, Listening};
use message::{Told, What};
use outbox::Outbox;

/// How often the bus is looked at: when it is back the others are told at once.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How many looks later everything is told again: a third of the time for which it is believed.
const LOOKS_A_LIST: u32 = 5;

/// When to listen again on a subject that could not be listened on.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// How long a dashboard that opens waits for the others to know of it. Without them it shows what the database says.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);

/// The way of topics between instances, behind cheap clones.
#[derive(Clone)]
pub struct Exchange {
    post: Post,
    fleet: Fleet,
    interest: Interest,
    outbox: Arc<Outbox>,
    listening: Arc<Listening>,
    /// Another instance wants to know what is watched here.
    asked: Arc<Notify>,
    /// Those who watch here; set when they are made.
    feeds: Arc<OnceLock<Feeds>>,
}

/// A place at a topic, given up when dropped.
pub struct Place {
    exchange: Exchange,
    topic: Topic,
}

impl Exchange {
    pub fn new(post: Post, fleet: Fleet) -> Self {
        Self {
            post,
            fleet,
            interest: Interest::default(),
            outbox: Arc::default(),
            listening: Arc::default(),
            asked: Arc::default(),
            feeds: Arc::default(),
        }
    }

    /// Carries from now on, for as long as this instance lives.
    pub fn open(&self, feeds: Feeds) {
        _ = self.feeds.set(feeds);
        tokio::spawn(self.clone().send_all());
        tokio::spawn(self.clone().tell_interest());
        tokio::spawn(self.clone().hear_interest());
    }

    /// Whether somebody watches a topic on another instance.
    pub fn is_watched(&self, topic: Topic) -> bool {
        self.interest.is_watched(topic)
    }

    /// Sends a frame to the other instances on which a topic is watched.
    pub fn publish(&self, topic: Topic, frame: &Frame) {
        self.send(topic, || Some(What::of(frame)));
    }

    pub fn nudge(&self, topic: Topic) {
        self.send(topic, || Some(What::Nudge));
    }

    /// An agent came to an instance, or went from it; to this one or from it, unless another is named. Gives whether those
    /// who watch the server here are to be told.
    pub fn status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus, of: Option<Uuid>) -> bool {
        let of = of.unwrap_or(self.post.instance_id);
        for topic in [Topic::Server(server_id), Topic::Presence(owner_id)] {
            self.send(topic, || Some(What::Status { server_id, status, of }));
        }
        let heard = Heard::now(status, Some(of));
        if let Some(abroad) = self.fleet.abroad() {
            abroad.status(owner_id, server_id, heard);
        }
        self.listening.ear(Topic::Server(server_id)).is_none_or(|ear| ear.hears(heard))
    }

    /// The latest sample of a server, for those who watch all servers of its owner.
    pub fn sample(&self, owner_id: Uuid, snapshot: &Snapshot) {
        self.send(Topic::Presence(owner_id), || {
            let sample =
                codec::encode(&snapshot.sample).inspect_err(|error| tracing::error!(%error, "a sample is lost"));
            Some(What::Sample { server_id: snapshot.server_id, sample: Blob(sample.ok()?) })
        });
    }

    fn send(&self, topic: Topic, what: impl FnOnce() -> Option<What>) {
        if self.interest.is_watched(topic)
            && let Some(what) = what()
        {
            self.outbox.put(topic, what);
        }
    }

    /// One more watches a topic here. None for one that does not cross instances.
    pub fn enter(&self, topic: Topic) -> Option<Place> {
        let name = topic.name()?;
        self.listening.enter(topic, |ear| {
            if let (Topic::Presence(owner_id), Some(abroad)) = (topic, self.fleet.abroad()) {
                abroad.follow(owner_id);
            }
            tokio::spawn(self.clone().listen(topic, self.post.subjects.feed(&name), ear)).abort_handle()
        });
        Some(Place { exchange: self.clone(), topic })
    }

    fn leave(&self, topic: Topic) {
        self.listening.leave(topic, || {
            if let (Topic::Presence(owner_id), Some(abroad)) = (topic, self.fleet.abroad()) {
                abroad.forget(owner_id);
            }
        });
    }

    /// Comes back when what happens to these elsewhere is heard here: what is read after that is followed by what changes.
    pub async fn settled(&self, topics: &[Topic]) {
        if self.post.is_up() {
            self.listening.settled(topics, SETTLED_WITHIN).await;
        }
    }

    /// A dashboard was told this of a server at its opening.
    pub fn shows(&self, server_id: Uuid, status: ServerStatus) {
        if let Some(ear) = self.listening.ear(Topic::Server(server_id)) {
            ear.shows(Heard::now(status, None));
        }
    }

    /// The servers that somebody watches here and whose sessions are not here.
    pub fn watched_servers(&self) -> Vec<Uuid> {
        let servers = self.listening.topics().into_iter().filter_map(|topic| match topic {
            Topic::Server(server_id) => Some(server_id),
            _ => None,
        });
        servers.filter(|server_id| self.fleet.presence(*server_id).is_none()).collect()
    }

    /// What the database said of a server to a question of then: tells those who watch it here if they know otherwise.
    pub fn put_right(&self, server_id: Uuid, is_online: bool, asked_at: Instant) {
        let status = if is_online { ServerStatus::Online } else { ServerStatus::Offline };
        let Some(ear) = self.listening.ear(Topic::Server(server_id)) else { return };
        if ear.reads(Heard::now(status, None), asked_at)
            && let Some(feeds) = self.feeds.get()
        {
            feeds.show_status(server_id, status);
        }
    }

    /// Sends what waits, one after the other: so the order of each topic holds.
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
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
        loop {
            match self.post.listen(self.post.subjects.interest()).await {
                Ok(mut deliveries) => {
                    listening::tell(&self.post, interest::What::Ask).await;
                    while let Some(delivery) = deliveries.next().await {
                        self.heed(delivery).await;
                    }
                }
                Err(error) => tracing::warn!(%error, "what other instances watch cannot be heard, will try again"),
            }
            sleep(LISTEN_AGAIN_AFTER).await;
        }
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

    /// Tells an instance that has just begun to watch all servers of an owner of those that are here: what came while it
    /// was on its way would be missed.
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

    /// Takes what is told on a topic, one after the other, for as long as somebody watches it.
    async fn listen(self, topic: Topic, subject: String, ear: Arc<Ear>) {
        loop {
            match self.post.listen(subject.clone()).await {
                Ok(mut deliveries) => {
                    self.listening.opened(topic, &ear);
                    while let Some(delivery) = deliveries.next().await {
                        let told = self.post.read::<Told>(delivery.payload).await;
                        let told = told.ok().filter(|told| told.from != self.post.instance_id);
                        if let (Some(told), Some(feeds)) = (told, self.feeds.get()) {
                            self.deliver(feeds, topic, &ear, told.what);
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "a topic of other instances cannot be heard, will try again"),
            }
            sleep(LISTEN_AGAIN_AFTER).await;
        }
    }

    fn deliver(&self, feeds: &Feeds, topic: Topic, ear: &Ear, what: What) {
        match (topic, what) {
            (_, What::Metrics(text)) => feeds.deliver(topic, Frame::Metrics(text.into())),
            (_, What::Event(text)) => feeds.deliver(topic, Frame::Event(text.into())),
            (_, What::Notice) => feeds.deliver(topic, Frame::Notice),
            (_, What::Nudge) => feeds.wake(topic),
            (Topic::Server(server_id), What::Status { status, of, .. }) => {
                // Whoever ends another session has nothing to say of the one that is here.
                let is_here = self.fleet.presence(server_id).is_some();
                let is_past = is_here && status != ServerStatus::Online;
                if !is_past && ear.hears(Heard::now(status, Some(of))) && !is_here {
                    feeds.show_status(server_id, status);
                }
            }
            (Topic::Presence(owner_id), What::Status { server_id, status, of }) => {
                if let Some(abroad) = self.fleet.abroad() {
                    abroad.status(owner_id, server_id, Heard::now(status, Some(of)));
                }
                feeds.wake(topic);
            }
            (Topic::Presence(owner_id), What::Sample { server_id, sample }) => match codec::decode(&sample.0) {
                Ok(sample) => {
                    let snapshot = Arc::new(Snapshot::new(server_id, sample));
                    if let Some(abroad) = self.fleet.abroad() {
                        abroad.sample(owner_id, snapshot, Timestamp::now());
                    }
                }
                Err(error) => tracing::warn!(%error, "a sample of another instance cannot be read"),
            },
            (_, What::Status { .. } | What::Sample { .. }) => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.exchange.leave(self.topic);
    }
}
