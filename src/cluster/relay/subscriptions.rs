//! The topics that have subscribers here, and how the other instances learn of them.
//!
//! An instance first listens on the subject of a topic, then announces it to the others. Each announcement states the
//! present state, and one task sends all of them, so the last one about a topic is true.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::bus::client::BusClient;
use crate::cluster::interest::{AT_ONCE, InterestChange, InterestMessage, pack};
use crate::feeds::Topic;
use crate::fleet::remote_cache::RemoteStatus;

/// The topics with subscribers on this instance.
#[derive(Default)]
pub(super) struct LocalSubscriptions {
    topics: DashMap<Topic, WatchedTopic>,
    /// Topics whose subscribers came or went since the last announcement.
    changed: Mutex<HashSet<Topic>>,
    news: Notify,
}

/// A topic with subscribers.
struct WatchedTopic {
    watchers: usize,
    subscription: Arc<TopicSubscription>,
    task: AbortHandle,
}

/// Listens on the subject of a topic.
#[derive(Default)]
pub(super) struct TopicSubscription {
    /// The instance listens: it misses nothing that is published from now on.
    is_open: AtomicBool,
    /// The others know that this instance listens.
    is_told: watch::Sender<bool>,
    /// The status of the server's agent that the dashboards of the topic know.
    known: Mutex<Option<RemoteStatus>>,
}

impl TopicSubscription {
    /// Notes that an agent came or went. Returns whether the dashboards need to be informed.
    pub fn hears(&self, heard: RemoteStatus) -> bool {
        let mut known = self.known.lock();
        let is_news = heard.follows(*known);
        if is_news {
            *known = Some(heard);
        }
        is_news
    }

    /// Notes the status that a dashboard got when it opened, if none is known yet.
    pub fn shows(&self, heard: RemoteStatus) {
        self.known.lock().get_or_insert(heard);
    }

    /// Notes what the database answered to a query sent at `asked_at`. Returns whether the dashboards need to be
    /// corrected.
    pub fn reads(&self, read: RemoteStatus, asked_at: Instant) -> bool {
        let mut known = self.known.lock();
        let is_wrong = known.is_some_and(|known| known.at < asked_at && known.is_online() != read.is_online());
        if is_wrong || known.is_none() {
            *known = Some(read);
        }
        is_wrong
    }
}

impl LocalSubscriptions {
    /// Adds a subscriber to a topic. For the first one, `listen` starts the task that listens.
    pub fn enter(&self, topic: Topic, listen: impl FnOnce(Arc<TopicSubscription>) -> AbortHandle) {
        let mut watched = self.topics.entry(topic).or_insert_with(|| {
            let subscription = Arc::new(TopicSubscription::default());
            WatchedTopic { watchers: 0, subscription: subscription.clone(), task: listen(subscription) }
        });
        watched.watchers += 1;
    }

    /// Removes a subscriber from a topic. After the last one, calls `left`.
    pub fn leave(&self, topic: Topic, left: impl FnOnce()) {
        let ended = self.topics.remove_if_mut(&topic, |_, watched| {
            watched.watchers -= 1;
            let is_last = watched.watchers == 0;
            if is_last {
                left();
            }
            is_last
        });
        if let Some((_, watched)) = ended {
            watched.task.abort();
            self.change(topic);
        }
    }

    /// Notes that this instance listens on a topic: it misses nothing that is published from now on.
    pub fn opened(&self, topic: Topic, subscription: &TopicSubscription) {
        subscription.is_open.store(true, Ordering::SeqCst);
        self.change(topic);
    }

    /// The listener of a topic.
    pub fn subscription(&self, topic: Topic) -> Option<Arc<TopicSubscription>> {
        Some(self.topics.get(&topic)?.subscription.clone())
    }

    /// All topics with subscribers.
    pub fn topics(&self) -> Vec<Topic> {
        self.topics.iter().map(|entry| *entry.key()).collect()
    }

    pub fn len(&self) -> usize {
        self.topics.len()
    }

    /// Returns when the others know of these topics, or after `within`.
    pub async fn settled(&self, topics: &[Topic], within: Duration) {
        let ears: Vec<Arc<TopicSubscription>> = topics.iter().filter_map(|topic| self.subscription(*topic)).collect();
        let all = async {
            for subscription in ears {
                _ = subscription.is_told.subscribe().wait_for(|is_told| *is_told).await;
            }
        };
        _ = tokio::time::timeout(within, all).await;
    }

    /// Returns when there is a change to announce.
    pub async fn has_news(&self) {
        self.news.notified().await;
    }

    /// Announces what has changed.
    pub async fn tell_changes(&self, bus_client: &BusClient) {
        let changed = std::mem::take(&mut *self.changed.lock());
        let (watched, left): (Vec<Topic>, Vec<Topic>) = changed.into_iter().partition(|topic| self.hears(*topic));
        for some in left.chunks(AT_ONCE) {
            _ = tell(bus_client, InterestChange::Left(pack(some))).await;
        }
        self.tell_watched(bus_client, &watched).await;
    }

    /// Announces all topics.
    pub async fn tell_all(&self, bus_client: &BusClient) {
        let mut topics = self.topics();
        topics.retain(|topic| self.hears(*topic));
        self.tell_watched(bus_client, &topics).await;
    }

    async fn tell_watched(&self, bus_client: &BusClient, topics: &[Topic]) {
        for some in topics.chunks(AT_ONCE) {
            if tell(bus_client, InterestChange::Watched(pack(some))).await {
                some.iter()
                    .filter_map(|topic| self.subscription(*topic))
                    .for_each(|subscription| _ = subscription.is_told.send_replace(true));
            }
        }
    }

    fn hears(&self, topic: Topic) -> bool {
        self.topics.get(&topic).is_some_and(|watched| watched.subscription.is_open.load(Ordering::SeqCst))
    }

    fn change(&self, topic: Topic) {
        self.changed.lock().insert(topic);
        self.news.notify_one();
    }
}

/// Returns whether the message was sent.
pub(super) async fn tell(bus_client: &BusClient, what: InterestChange) -> bool {
    bus_client
        .tell(bus_client.subjects.interest(), &InterestMessage { from: bus_client.instance_id, what })
        .await
        .is_ok()
}
