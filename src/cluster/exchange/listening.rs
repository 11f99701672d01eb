//! The topics that somebody watches here, and how the others hear of it.
//!
//! An instance listens on the subject of a topic first, and tells the others then. What it tells is what is so at that
//! moment: one task tells everything, so the last it says of a topic is true.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::bus::post::Post;
use crate::cluster::interest::{AT_ONCE, Told, What, pack};
use crate::feeds::Topic;
use crate::fleet::abroad::Heard;

/// What is watched here.
#[derive(Default)]
pub(super) struct Listening {
    topics: DashMap<Topic, Watched>,
    /// Topics that somebody began or ceased to watch since the others were told.
    changed: Mutex<HashSet<Topic>>,
    news: Notify,
}

/// A topic that somebody watches.
struct Watched {
    watchers: usize,
    ear: Arc<Ear>,
    task: AbortHandle,
}

/// What listens on the subject of a topic.
#[derive(Default)]
pub(super) struct Ear {
    /// Nothing that is told from now on is missed.
    is_open: AtomicBool,
    /// The others know that it listens.
    is_told: watch::Sender<bool>,
    /// What dashboards of the topic's server know of its agent.
    known: Mutex<Option<Heard>>,
}

impl Ear {
    /// Takes in that an agent came or went. Gives whether dashboards are to be told.
    pub fn hears(&self, heard: Heard) -> bool {
        let mut known = self.known.lock();
        let is_news = heard.follows(*known);
        if is_news {
            *known = Some(heard);
        }
        is_news
    }

    /// Takes in what a dashboard was told at its opening, if nothing is known.
    pub fn shows(&self, heard: Heard) {
        self.known.lock().get_or_insert(heard);
    }

    /// Takes in what the database said to a question of then. Gives whether dashboards are to be told.
    pub fn reads(&self, read: Heard, asked_at: Instant) -> bool {
        let mut known = self.known.lock();
        let is_wrong = known.is_some_and(|known| known.at < asked_at && known.is_online() != read.is_online());
        if is_wrong || known.is_none() {
            *known = Some(read);
        }
        is_wrong
    }
}

impl Listening {
    /// One more watches a topic. The first one has `listen` make a task that does.
    pub fn enter(&self, topic: Topic, listen: impl FnOnce(Arc<Ear>) -> AbortHandle) {
        let mut watched = self.topics.entry(topic).or_insert_with(|| {
            let ear = Arc::new(Ear::default());
            Watched { watchers: 0, ear: ear.clone(), task: listen(ear) }
        });
        watched.watchers += 1;
    }

    /// One fewer watches a topic. After the last one `left` is called.
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

    /// Nothing that is told on a topic from now on is missed.
    pub fn opened(&self, topic: Topic, ear: &Ear) {
        ear.is_open.store(true, Ordering::SeqCst);
        self.change(topic);
    }

    /// What listens on a topic.
    pub fn ear(&self, topic: Topic) -> Option<Arc<Ear>> {
        Some(self.topics.get(&topic)?.ear.clone())
    }

    /// All topics.
    pub fn topics(&self) -> Vec<Topic> {
        self.topics.iter().map(|entry| *entry.key()).collect()
    }

    pub fn len(&self) -> usize {
        self.topics.len()
    }

    /// Comes back when the others know that these are watched here, or after a while.
    pub async fn settled(&self, topics: &[Topic], within: Duration) {
        let ears: Vec<Arc<Ear>> = topics.iter().filter_map(|topic| self.ear(*topic)).collect();
        let all = async {
            for ear in ears {
                _ = ear.is_told.subscribe().wait_for(|is_told| *is_told).await;
            }
        };
        _ = tokio::time::timeout(within, all).await;
    }

    /// Comes back when there is something to tell.
    pub async fn has_news(&self) {
        self.news.notified().await;
    }

    /// Tells the others what has changed.
    pub async fn tell_changes(&self, post: &Post) {
        let changed = std::mem::take(&mut *self.changed.lock());
        let (watched, left): (Vec<Topic>, Vec<Topic>) = changed.into_iter().partition(|topic| self.hears(*topic));
        for some in left.chunks(AT_ONCE) {
            _ = tell(post, What::Left(pack(some))).await;
        }
        self.tell_watched(post, &watched).await;
    }

    /// Tells the others everything.
    pub async fn tell_all(&self, post: &Post) {
        let mut topics = self.topics();
        topics.retain(|topic| self.hears(*topic));
        self.tell_watched(post, &topics).await;
    }

    async fn tell_watched(&self, post: &Post, topics: &[Topic]) {
        for some in topics.chunks(AT_ONCE) {
            if tell(post, What::Watched(pack(some))).await {
                some.iter().filter_map(|topic| self.ear(*topic)).for_each(|ear| _ = ear.is_told.send_replace(true));
            }
        }
    }

    fn hears(&self, topic: Topic) -> bool {
        self.topics.get(&topic).is_some_and(|watched| watched.ear.is_open.load(Ordering::SeqCst))
    }

    fn change(&self, topic: Topic) {
        self.changed.lock().insert(topic);
        self.news.notify_one();
    }
}

/// Gives whether it is on its way.
pub(super) async fn tell(post: &Post, what: What) -> bool {
    post.tell(post.subjects.interest(), &Told { from: post.instance_id, what }).await.is_ok()
}
