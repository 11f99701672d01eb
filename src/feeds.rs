//! Who watches what, and how an event reaches them.
//!
//! An event is serialised once and shared by reference count. Each subscriber has a short queue of its own; the actor
//! behind it is sent one [`Wake`] when something lies there, and takes all of it. So a slow reader costs a full queue
//! and no more: the oldest metrics go first, and a reader that takes nothing for a long time is evicted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix::{Message, Recipient};
use bytestring::ByteString;
use dashmap::DashMap;
use signalbox_protocol::close;
use uuid::Uuid;

/// Frames that wait for one reader: at a sample a second, more than half a minute.
const QUEUE: usize = 40;

/// Bytes that wait for one reader: a snapshot is a kilobyte, but may be megabytes.
const QUEUE_BYTES: usize = 2 * 1024 * 1024;

/// A reader that has taken nothing for so long while its queue is full is evicted.
const PATIENCE: Duration = Duration::from_secs(60);

/// What can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// What happens to a server.
    Server(Uuid),
    /// The end of a server's record: nothing else.
    ServerEnd(Uuid),
    /// What happens to the alerts of all servers of an owner.
    Alerts(Uuid),
    /// A log that is streamed: nothing but nudges.
    Log(Uuid),
    /// What happens to a login: nothing but its end.
    Login(Uuid),
    /// What happens to the service: nothing but its end.
    Service,
}

/// A message on its way to subscribers.
#[derive(Debug, Clone)]
pub enum Frame {
    /// May be lost to a slow reader: the next one says it anew.
    Metrics(ByteString),
    /// Is lost only when the queue is full of its like.
    Event(ByteString),
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
#[derive(Clone, Default)]
pub struct Feeds {
    /// Copied on change and shared for reading: publishing holds no lock while it visits subscribers.
    topics: Arc<DashMap<Topic, Arc<Vec<Arc<Queue>>>>>,
    next_id: Arc<AtomicU64>,
    is_stopping: Arc<AtomicBool>,
}

/// One subscriber's queue.
struct Queue {
    id: u64,
    wake: Recipient<Wake>,
    woken: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    frames: VecDeque<Frame>,
    closing: Option<Closing>,
    /// Since when the reader has taken nothing although the queue was full.
    full_since: Option<Instant>,
}

/// A place in some feeds, given up when dropped.
pub struct Subscription {
    feeds: Feeds,
    topics: Vec<Topic>,
    queue: Arc<Queue>,
}

impl Feeds {
    /// Subscribes `wake`'s actor to topics. The actor takes what comes with [`Subscription::take`].
    pub fn subscribe(&self, topics: Vec<Topic>, wake: Recipient<Wake>) -> Subscription {
        let queue = Arc::new(Queue {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            wake,
            woken: AtomicBool::new(false),
            waiting: Mutex::default(),
        });
        for topic in &topics {
            let mut subscribers = self.topics.entry(*topic).or_default();
            Arc::make_mut(&mut subscribers).push(queue.clone());
        }
        if self.is_stopping.load(Ordering::SeqCst) {
            queue.close(Closing::Restarting);
        }
        Subscription { feeds: self.clone(), topics, queue }
    }

    /// Whether anybody watches: if not, an event need not be serialised.
    pub fn is_watched(&self, topic: Topic) -> bool {
        self.topics.contains_key(&topic)
    }

    /// Hands a frame to every subscriber of a topic, without waiting for any.
    pub fn publish(&self, topic: Topic, frame: Frame) {
        for queue in self.subscribers(topic).iter() {
            if queue.offer(frame.clone()) == Offer::Evicted {
                metrics::counter!("signalbox_subscribers_evicted_total").increment(1);
                self.remove(topic, queue.id);
            }
        }
    }

    /// Wakes every subscriber of a topic to look for what lies elsewhere.
    pub fn nudge(&self, topic: Topic) {
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
        self.topics.get(&topic).map(|entry| entry.value().clone()).unwrap_or_default()
    }

    fn remove(&self, topic: Topic, id: u64) {
        if let Some(mut subscribers) = self.topics.get_mut(&topic) {
            Arc::make_mut(&mut subscribers).retain(|queue| queue.id != id);
        }
        self.topics.remove_if(&topic, |_, subscribers| subscribers.is_empty());
    }
}

impl Subscription {
    /// Everything that came since the last time, oldest first, and whether the socket is to be closed after it.
    pub fn take(&self) -> (VecDeque<Frame>, Option<Closing>) {
        // Lowered before the queue is emptied: what comes in between wakes once more, for nothing at worst.
        self.queue.woken.store(false, Ordering::SeqCst);
        let mut waiting = self.queue.lock();
        waiting.full_since = None;
        (std::mem::take(&mut waiting.frames), waiting.closing)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        for topic in &self.topics {
            self.feeds.remove(*topic, self.queue.id);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Offer {
    Taken,
    Evicted,
}

impl Queue {
    fn offer(&self, frame: Frame) -> Offer {
        {
            let mut waiting = self.lock();
            if waiting.closing.is_some() {
                return Offer::Taken;
            }
            while waiting.is_too_full_for(&frame) {
                let full_since = *waiting.full_since.get_or_insert_with(Instant::now);
                if full_since.elapsed() > PATIENCE {
                    waiting.frames.clear();
                    waiting.closing = Some(Closing::TooSlow);
                    return Offer::Evicted;
                }
                waiting.make_room();
            }
            waiting.frames.push_back(frame);
        }
        self.wake();
        Offer::Taken
    }

    fn close(&self, closing: Closing) {
        {
            let mut waiting = self.lock();
            waiting.closing.get_or_insert(closing);
            if matches!(closing, Closing::Unauthorized | Closing::ServerDeleted) {
                // Not theirs to see any more.
                waiting.frames.clear();
            }
        }
        self.wake();
    }

    fn wake(&self) {
        // At most one `Wake` is on its way, so that the mailbox never fills. Should it be refused all the same, the
        // next frame tries again.
        if !self.woken.swap(true, Ordering::SeqCst) && self.wake.try_send(Wake).is_err() {
            self.woken.store(false, Ordering::SeqCst);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        // Nothing in here can panic half-way, so a poisoned lock still guards sound data.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Frame {
    fn bytes(&self) -> usize {
        match self {
            Self::Metrics(text) | Self::Event(text) => text.len(),
        }
    }
}

impl Waiting {
    /// An empty queue takes any frame.
    fn is_too_full_for(&self, frame: &Frame) -> bool {
        let bytes: usize = self.frames.iter().map(Frame::bytes).sum();
        !self.frames.is_empty() && (self.frames.len() >= QUEUE || bytes + frame.bytes() > QUEUE_BYTES)
    }

    /// Drops the oldest metrics, or the oldest event where there are no metrics.
    fn make_room(&mut self) {
        metrics::counter!("signalbox_feed_frames_dropped_total").increment(1);
        let metrics = self.frames.iter().position(|frame| matches!(frame, Frame::Metrics(_)));
        self.frames.remove(metrics.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use actix::{Actor, Context, Handler};

    use super::*;

    /// An actor that never takes what it is woken for.
    struct Sleeper;

    impl Actor for Sleeper {
        type Context = Context<Self>;
    }

    impl Handler<Wake> for Sleeper {
        type Result = ();

        fn handle(&mut self, _: Wake, _: &mut Self::Context) {}
    }

    fn text(frame: &Frame) -> &str {
        match frame {
            Frame::Metrics(text) | Frame::Event(text) => text,
        }
    }

    #[actix::test]
    async fn a_slow_reader_loses_the_oldest_metrics_and_no_event() {
        let feeds = Feeds::default();
        let topic = Topic::Server(Uuid::nil());
        let subscription = feeds.subscribe(vec![topic], Sleeper.start().recipient());

        feeds.publish(topic, Frame::Event("event".into()));
        for number in 0..QUEUE + 5 {
            feeds.publish(topic, Frame::Metrics(number.to_string().into()));
        }
        let (frames, closing) = subscription.take();

        assert_eq!(frames.len(), QUEUE);
        assert_eq!(frames.front().map(text), Some("event"));
        assert_eq!(frames.get(1).map(text), Some("6"));
        assert_eq!(frames.back().map(text), Some((QUEUE + 4).to_string().as_str()));
        assert_eq!(closing, None);
    }

    #[actix::test]
    async fn a_dropped_subscription_leaves_its_topics() {
        let feeds = Feeds::default();
        let topics = vec![Topic::Service, Topic::Login(Uuid::nil())];
        let subscription = feeds.subscribe(topics, Sleeper.start().recipient());
        assert!(feeds.is_watched(Topic::Service));

        drop(subscription);

        assert!(!feeds.is_watched(Topic::Service));
        assert!(!feeds.is_watched(Topic::Login(Uuid::nil())));
    }

    #[actix::test]
    async fn closing_reaches_every_watcher_of_the_topic_alone() {
        let feeds = Feeds::default();
        let (watched, other) = (Topic::Server(Uuid::from_u128(1)), Topic::Server(Uuid::from_u128(2)));
        let hit = feeds.subscribe(vec![watched], Sleeper.start().recipient());
        let spared = feeds.subscribe(vec![other], Sleeper.start().recipient());

        feeds.close(watched, Closing::ServerDeleted);

        assert_eq!(hit.take().1, Some(Closing::ServerDeleted));
        assert_eq!(spared.take().1, None);
    }
}
