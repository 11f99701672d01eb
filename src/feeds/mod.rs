//! Topics, their subscribers, and the delivery of events to them.
//!
//! An event is serialised once, with the header of its frame, and shared by reference count. Each subscriber has a short
//! queue. Its actor gets one [`Wake`] when the queue has something, and takes all of it. An actor that would only pass
//! texts on lets its socket take them ([`Texts`]), and is woken only for the rest. So a slow reader costs no more than a
//! full queue: the oldest metrics are dropped first, and a reader that takes nothing for a long time is evicted.
//!
//! Each instance has its own feeds. A [`Relay`] carries events to the other instances on which their topics are watched.

mod pace;
mod queue;
mod relay;
mod text;
mod topic;

use std::collections::{HashSet, VecDeque};
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
use pace::{Pace, WakeTime};
use queue::{Call, Offer, Queue};
use relay::NoRelay;
pub use relay::{Relay, Settled};
pub use text::Text;
pub use topic::{PACKED, Topic};

/// A message on its way to subscribers.
#[derive(Debug, Clone)]
pub enum FeedFrame {
    /// A slow reader may lose it, because the next one replaces it.
    Metrics(Text),
    /// Dropped only if the queue is full of events.
    Event(Text),
    /// The topic has changed and has to be read again. One that waits in the queue covers later ones.
    Notice,
    /// What the subscriber's user may do has changed, and has to be checked again. One that waits covers later ones.
    Rights,
}

/// Why the service closes a socket.
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
            Self::Unauthorized => "no longer authorised",
            Self::ServerDeleted => "the server was deleted",
            Self::Restarting => "the service is restarting",
            Self::TooSlow => "the reader is too slow",
        }
    }
}

/// Tells a subscriber that its queue has something to take.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct Wake;

/// Topics and their subscribers; cheap to clone.
#[derive(Clone)]
pub struct Feeds {
    topics: Arc<DashMap<Topic, Audience>>,
    next_id: Arc<AtomicU64>,
    is_stopping: Arc<AtomicBool>,
    /// Carries topics to other instances.
    relay: Arc<dyn Relay>,
}

/// The subscribers of a topic.
#[derive(Clone, Default)]
struct Audience {
    /// Copied on change and shared for reading, so that publishing holds no lock while it delivers to subscribers.
    queues: Arc<Vec<Arc<Queue>>>,
    pace: Arc<Pace>,
}

impl Default for Feeds {
    /// The feeds of a single instance.
    fn default() -> Self {
        Self::by(Arc::new(NoRelay))
    }
}

/// A subscription to some topics, which ends when dropped.
pub struct Subscription {
    feeds: Feeds,
    topics: Vec<Topic>,
    queue: Arc<Queue>,
    /// Its entries with the relay.
    _places: Vec<RelayGuard>,
}

/// The texts of a subscription, for a socket that sends them without its actor.
pub struct Texts(Arc<Queue>);

/// An entry with the relay for a topic that crosses instances, which ends when dropped.
struct RelayGuard {
    relay: Arc<dyn Relay>,
    topic: Topic,
}

impl Drop for RelayGuard {
    fn drop(&mut self) {
        self.relay.leave(self.topic);
    }
}

impl Feeds {
    /// The feeds of one of several instances. Must be called in a runtime, which runs the relay from then on.
    pub fn among_others(relay: Arc<dyn Relay>) -> Self {
        let feeds = Self::by(relay.clone());
        relay.open(feeds.clone());
        feeds
    }

    fn by(relay: Arc<dyn Relay>) -> Self {
        Self { topics: Arc::default(), next_id: Arc::default(), is_stopping: Arc::default(), relay }
    }

    /// Returns the relay to other instances.
    pub fn relay(&self) -> &Arc<dyn Relay> {
        &self.relay
    }

    /// Subscribes an actor to topics. When it gets a `wake`, it takes the frames with [`Subscription::take`].
    pub fn subscribe(&self, topics: Vec<Topic>, wake: Recipient<Wake>) -> Subscription {
        let queue = Arc::new(Queue::new(self.next_id.fetch_add(1, Ordering::Relaxed), wake));
        for topic in &topics {
            let mut audience = self.topics.entry(*topic).or_default();
            Arc::make_mut(&mut audience.queues).push(queue.clone());
        }
        if self.is_stopping.load(Ordering::SeqCst) {
            queue.close(Closing::Restarting);
        }
        // After the local subscription, so that events relayed from now on find it.
        let entered = topics.iter().filter(|topic| self.relay.enter(**topic));
        let places = entered.map(|topic| RelayGuard { relay: self.relay.clone(), topic: *topic }).collect();
        Subscription { feeds: self.clone(), topics, queue, _places: places }
    }

    /// Returns whether the topic has a subscriber on any instance: if not, an event does not have to be serialised.
    pub fn is_watched(&self, topic: Topic) -> bool {
        self.topics.contains_key(&topic) || self.relay.is_watched(topic)
    }

    /// Delivers a frame to every subscriber of a topic, on all instances, without waiting for any.
    pub fn publish(&self, topic: Topic, frame: FeedFrame) {
        self.relay.publish(topic, &frame);
        self.deliver(topic, frame);
    }

    /// Delivers a frame to the subscribers of this instance only.
    pub fn deliver(&self, topic: Topic, frame: FeedFrame) {
        let audience = self.topics.get(&topic).map(|entry| entry.value().clone());
        let Some(Audience { queues, pace }) = audience else { return };
        let turn = match frame {
            FeedFrame::Metrics(_) => pace.turn(Instant::now()),
            FeedFrame::Event(_) | FeedFrame::Notice | FeedFrame::Rights => WakeTime::Now,
        };
        let call = if turn == WakeTime::Now { Call::Now } else { Call::Later };
        for queue in queues.iter() {
            if queue.offer(frame.clone(), call) == Offer::Evicted {
                metrics::counter!("signalbox_subscribers_evicted_total").increment(1);
                self.remove(topic, queue.id);
            }
        }
        match turn {
            WakeTime::Now => {}
            WakeTime::After(rest) => self.call_after(rest, topic, pace),
            // The planned call came while the frame was being queued, and may have missed it.
            WakeTime::Planned(number) if number != pace.count() => self.call(topic),
            WakeTime::Planned(_) => {}
        }
    }

    /// Delivers a frame to the subscribers of this instance to such topics.
    pub fn deliver_where(&self, is_such: impl Fn(&Topic) -> bool, frame: &FeedFrame) {
        let topics: Vec<Topic> = self.topics.iter().map(|entry| *entry.key()).filter(is_such).collect();
        topics.into_iter().for_each(|topic| self.deliver(topic, frame.clone()));
    }

    /// Plans to wake the subscribers of a topic for the metrics that wait.
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

    /// Publishes that an agent has connected or disconnected.
    pub fn publish_status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus) {
        self.tell_status(server_id, owner_id, status, None);
    }

    /// Publishes that an agent is offline because the instance that held it has died.
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

    /// Sends the status of a server's agent to the server's subscribers on this instance.
    pub fn show_status(&self, server_id: Uuid, status: ServerStatus) {
        let topic = Topic::Server(server_id);
        if !self.topics.contains_key(&topic) {
            return;
        }
        match Encoding::Json.encode(&FeedMessage::Status { status }) {
            Ok(bytes) => self.deliver(topic, FeedFrame::Event(ByteString::try_from(bytes).unwrap_or_default().into())),
            Err(error) => tracing::error!(%error, "a status could not be encoded"),
        }
    }

    /// Returns the logins that have open sockets on this instance.
    pub fn watched_logins(&self) -> Vec<Uuid> {
        self.watched(|topic| if let Topic::Login(id) = topic { Some(id) } else { None })
    }

    /// Returns the servers whose deletion ends sockets on this instance.
    pub fn watched_servers(&self) -> Vec<Uuid> {
        self.watched(|topic| if let Topic::ServerEnd(id) = topic { Some(id) } else { None })
    }

    /// Returns the servers whose metrics somebody watches, on any instance.
    pub fn watched_metrics(&self) -> HashSet<Uuid> {
        let server_of = |topic: Topic| if let Topic::Server(id) = topic { Some(id) } else { None };
        let elsewhere = self.relay.watched_elsewhere().into_iter().filter_map(server_of);
        self.watched(server_of).into_iter().chain(elsewhere).collect()
    }

    fn watched(&self, id_of: impl Fn(Topic) -> Option<Uuid>) -> Vec<Uuid> {
        self.topics.iter().filter_map(|entry| id_of(*entry.key())).collect()
    }

    /// Wakes every subscriber of a topic, on all instances, for something that is not in its queue.
    pub fn nudge(&self, topic: Topic) {
        self.relay.nudge(topic);
        self.wake(topic);
    }

    /// Wakes the subscribers of this instance only.
    pub fn wake(&self, topic: Topic) {
        for queue in self.subscribers(topic).iter() {
            queue.wake();
        }
    }

    /// Closes every socket that is subscribed to a topic.
    pub fn close(&self, topic: Topic, closing: Closing) {
        for queue in self.subscribers(topic).iter() {
            queue.close(closing);
        }
    }

    /// Takes in that the service is stopping: closes every socket, and every further one that subscribes.
    pub fn close_all(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.close(Topic::Service, Closing::Restarting);
    }

    /// Returns how many sockets are open: each subscribes to `Topic::Service`.
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
    /// Takes all waiting frames, oldest first. Also returns the reason if the socket has to be closed after them.
    pub fn take(&self) -> (VecDeque<FeedFrame>, Option<Closing>) {
        self.queue.take()
    }

    /// Returns the texts of this subscription, for the socket. From now on texts wake the task that polls them, and the actor
    /// is woken only for the rest. When the actor takes that, it also takes the texts before it.
    pub fn texts(&self) -> Texts {
        self.queue.pass_the_actor_by();
        Texts(self.queue.clone())
    }
}

impl Texts {
    /// Returns the oldest text.
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
