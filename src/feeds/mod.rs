//! Who watches what, and how an event reaches them.
//!
//! An event is serialised once, with the header of its frame, and shared by reference count. Each subscriber has a short
//! queue of its own; the actor behind it is sent one [`Wake`] when something lies there, and takes all of it. An actor
//! that would only pass texts on lets its socket take them ([`Texts`]), and hears of the rest alone. So a slow reader
//! costs a full queue and no more: the oldest metrics go first, and a reader that takes nothing for a long time is
//! evicted.
//!
//! Of several instances each has feeds of its own. What happens on one is carried to others by a [`Relay`], where
//! somebody watches it there.

mod pace;
mod queue;
mod relay;
mod text;
mod topic;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix::{Message, Recipient};
use bytestring::ByteString;
use dashmap::DashMap;
use signalbox_protocol::frontend::{FeedMessage, ServerStatus};
use signalbox_protocol::{Encoding, close};
use uuid::Uuid;

use crate::store::Swept;
use pace::{Pace, Turn};
use queue::{Call, Offer, Queue};
use relay::NoRelay;
pub use relay::{Relay, Settled};
pub use text::Text;
pub use topic::{PACKED, Topic};

/// A message on its way to subscribers.
#[derive(Debug, Clone)]
pub enum Frame {
    /// May be lost to a slow reader: the next one says it anew.
    Metrics(Text),
    /// Is lost only when the queue is full of its like.
    Event(Text),
    /// What is watched has changed, and is to be read again: one that waits stands for all. The reader says it on.
    Notice,
}

/// Why sockets are closed from our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    Unauthorized,
    ServerDeleted,
    Restarting,
    TooSlow,
}

impl Closing {
    pub fn code(self) -> u16 {
        match self {
            Self::Unauthorized => close::UNAUTHORIZED,
            Self::ServerDeleted => close::SERVER_DELETED,
            Self::Restarting => close::RESTARTING,
            Self::TooSlow => close::OVERLOADED,
        }
    }

    pub fn reason(self) -> &'static str {
        match self {
            Self::Unauthorized => "not authorised any more",
            Self::ServerDeleted => "the server was deleted",
            Self::Restarting => "the service restarts",
            Self::TooSlow => "too slow",
        }
    }
}

/// Something lies in the subscriber's queue: take it.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct Wake;

/// Topics and their subscribers, behind cheap clones.
#[derive(Clone)]
pub struct Feeds {
    topics: Arc<DashMap<Topic, Audience>>,
    next_id: Arc<AtomicU64>,
    is_stopping: Arc<AtomicBool>,
    /// The way to other instances.
    relay: Arc<dyn Relay>,
}

/// Those who watch a topic.
#[derive(Clone, Default)]
struct Audience {
    /// Copied on change and shared for reading: publishing holds no lock while it visits subscribers.
    queues: Arc<Vec<Arc<Queue>>>,
    pace: Arc<Pace>,
}

impl Default for Feeds {
    /// Those of the only instance.
    fn default() -> Self {
        Self::by(Arc::new(NoRelay))
    }
}

/// A place in some feeds, given up when dropped.
pub struct Subscription {
    feeds: Feeds,
    topics: Vec<Topic>,
    queue: Arc<Queue>,
    /// What other instances know it by.
    _places: Vec<Place>,
}

/// The texts of a subscription, for a socket that sends them without its actor.
pub struct Texts(Arc<Queue>);

/// A place at a topic that crosses instances, given up when dropped.
struct Place {
    relay: Arc<dyn Relay>,
    topic: Topic,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.relay.leave(self.topic);
    }
}

impl Feeds {
    /// Those of one instance of several. Must be called in a runtime, which carries what happens from then on.
    pub fn among_others(relay: Arc<dyn Relay>) -> Self {
        let feeds = Self::by(relay.clone());
        relay.open(feeds.clone());
        feeds
    }

    fn by(relay: Arc<dyn Relay>) -> Self {
        Self { topics: Arc::default(), next_id: Arc::default(), is_stopping: Arc::default(), relay }
    }

    /// The way to other instances.
    pub fn relay(&self) -> &Arc<dyn Relay> {
        &self.relay
    }

    /// Subscribes `wake`'s actor to topics. The actor takes what comes with [`Subscription::take`].
    pub fn subscribe(&self, topics: Vec<Topic>, wake: Recipient<Wake>) -> Subscription {
        let queue = Arc::new(Queue::new(self.next_id.fetch_add(1, Ordering::Relaxed), wake));
        for topic in &topics {
            let mut audience = self.topics.entry(*topic).or_default();
            Arc::make_mut(&mut audience.queues).push(queue.clone());
        }
        if self.is_stopping.load(Ordering::SeqCst) {
            queue.close(Closing::Restarting);
        }
        // Behind the places here, so that what is heard from now on finds them.
        let entered = topics.iter().filter(|topic| self.relay.enter(**topic));
        let places = entered.map(|topic| Place { relay: self.relay.clone(), topic: *topic }).collect();
        Subscription { feeds: self.clone(), topics, queue, _places: places }
    }

    /// Whether anybody watches: if not, an event need not be serialised.
    pub fn is_watched(&self, topic: Topic) -> bool {
        self.topics.contains_key(&topic) || self.relay.is_watched(topic)
    }

    /// Hands a frame to every subscriber of a topic, wherever it is, without waiting for any.
    pub fn publish(&self, topic: Topic, frame: Frame) {
        self.relay.publish(topic, &frame);
        self.deliver(topic, frame);
    }

    /// The same for those of this instance alone.
    pub fn deliver(&self, topic: Topic, frame: Frame) {
        let audience = self.topics.get(&topic).map(|entry| entry.value().clone());
        let Some(Audience { queues, pace }) = audience else { return };
        let turn = match frame {
            Frame::Metrics(_) => pace.turn(Instant::now()),
            Frame::Event(_) | Frame::Notice => Turn::Now,
        };
        let call = if turn == Turn::Now { Call::Now } else { Call::Later };
        for queue in queues.iter() {
            if queue.offer(frame.clone(), call) == Offer::Evicted {
                metrics::counter!("signalbox_subscribers_evicted_total").increment(1);
                self.remove(topic, queue.id);
            }
        }
        match turn {
            Turn::Now => {}
            Turn::After(rest) => self.call_after(rest, topic, pace),
            // It came while the frame was handed out, and may have missed it.
            Turn::Planned(number) if number != pace.count() => self.call(topic),
            Turn::Planned(_) => {}
        }
    }

    /// Plans to wake those who watch a topic for metrics that wait.
    fn call_after(&self, rest: Duration, topic: Topic, pace: Arc<Pace>) {
        let feeds = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(rest).await;
            pace.called(Instant::now());
            feeds.call(topic);
        });
    }

    fn call(&self, topic: Topic) {
        for queue in self.subscribers(topic).iter() {
            queue.call();
        }
    }

    /// Tells that an agent came or went.
    pub fn publish_status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus) {
        self.tell_status(server_id, owner_id, status, None);
    }

    /// Tells that an agent has gone with the instance that held it.
    pub fn publish_swept(&self, swept: Swept) {
        let Swept { server_id, owner_id, instance_id } = swept;
        self.tell_status(server_id, owner_id, ServerStatus::Offline, Some(instance_id));
    }

    fn tell_status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus, of: Option<Uuid>) {
        let is_news = self.relay.status(server_id, owner_id, status, of);
        self.wake(Topic::Presence(owner_id));
        if is_news {
            self.show_status(server_id, status);
        }
    }

    /// Tells those who watch a server on this instance whether its agent is connected.
    pub fn show_status(&self, server_id: Uuid, status: ServerStatus) {
        let topic = Topic::Server(server_id);
        if !self.topics.contains_key(&topic) {
            return;
        }
        match Encoding::Json.encode(&FeedMessage::Status { status }) {
            Ok(bytes) => self.deliver(topic, Frame::Event(ByteString::try_from(bytes).unwrap_or_default().into())),
            Err(error) => tracing::error!(%error, "a status could not be written"),
        }
    }

    /// The logins whose sockets are open here.
    pub fn watched_logins(&self) -> Vec<Uuid> {
        self.watched(|topic| if let Topic::Login(id) = topic { Some(id) } else { None })
    }

    /// The servers that sockets here end with.
    pub fn watched_servers(&self) -> Vec<Uuid> {
        self.watched(|topic| if let Topic::ServerEnd(id) = topic { Some(id) } else { None })
    }

    fn watched(&self, id_of: impl Fn(Topic) -> Option<Uuid>) -> Vec<Uuid> {
        self.topics.iter().filter_map(|entry| id_of(*entry.key())).collect()
    }

    /// Wakes every subscriber of a topic, wherever it is, to look for what lies elsewhere.
    pub fn nudge(&self, topic: Topic) {
        self.relay.nudge(topic);
        self.wake(topic);
    }

    /// The same for those of this instance alone.
    pub fn wake(&self, topic: Topic) {
        for queue in self.subscribers(topic).iter() {
            queue.wake();
        }
    }

    /// Closes every socket that watches a topic.
    pub fn close(&self, topic: Topic, closing: Closing) {
        for queue in self.subscribers(topic).iter() {
            queue.close(closing);
        }
    }

    /// The service stops: closes every socket, and any that still comes.
    pub fn close_all(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.close(Topic::Service, Closing::Restarting);
    }

    /// How many sockets are open: each watches the service.
    pub fn count(&self) -> usize {
        self.subscribers(Topic::Service).len()
    }

    fn subscribers(&self, topic: Topic) -> Arc<Vec<Arc<Queue>>> {
        self.topics.get(&topic).map(|entry| entry.value().queues.clone()).unwrap_or_default()
    }

    fn remove(&self, topic: Topic, id: u64) {
        if let Some(mut audience) = self.topics.get_mut(&topic) {
            Arc::make_mut(&mut audience.queues).retain(|queue| queue.id != id);
        }
        self.topics.remove_if(&topic, |_, audience| audience.queues.is_empty());
    }
}

impl Subscription {
    /// Everything that came since the last time, oldest first, and whether the socket is to be closed after it.
    pub fn take(&self) -> (VecDeque<Frame>, Option<Closing>) {
        self.queue.take()
    }

    /// From now on texts wake whoever polls these, and the actor only hears of the rest. When it takes that, it takes the
    /// texts before it, too.
    pub fn texts(&self) -> Texts {
        self.queue.pass_the_actor_by();
        Texts(self.queue.clone())
    }
}

impl Texts {
    /// The oldest text.
    pub fn poll_next(&self, cx: &Context<'_>) -> Poll<Text> {
        self.0.poll_text(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        for topic in &self.topics {
            self.feeds.remove(*topic, self.queue.id);
        }
    }
}

#[cfg(test)]
mod tests;
