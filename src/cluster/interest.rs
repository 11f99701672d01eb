//! The topics that have subscribers on other instances.
//!
//! Each instance announces its topics: at once when subscribers come or go, and all of them periodically, which repairs
//! lost messages. The topics of an instance that falls silent are forgotten soon after.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::bus::blob::Blob;
use crate::feeds::{PACKED, Topic};

/// How long an announcement is valid: two of the periodic ones may be lost.
pub const BELIEVED_FOR: Duration = Duration::from_secs(15);

/// Topics in one message.
pub const AT_ONCE: usize = 5_000;

/// The limit of remembered pairs of topic and instance: some 100 MB. Further topics are not sent to their instances
/// live.
const MAX_TOPICS: usize = 1_000_000;

/// Messages between instances about the topics that have subscribers.
#[derive(Debug, Serialize, Deserialize)]
pub struct InterestMessage {
    pub from: Uuid,
    pub what: InterestChange,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum InterestChange {
    /// These topics have subscribers.
    Watched(Blob),
    /// These topics have no subscribers any more.
    Left(Blob),
    /// Asks the others to announce all their topics.
    Ask,
}

/// Topics in a compact encoding.
pub fn pack(topics: &[Topic]) -> Blob {
    Blob(topics.iter().filter_map(|topic| topic.packed()).flatten().collect())
}

/// The topics of [`pack`], without those that this version does not know.
fn unpack(packed: &Blob) -> impl Iterator<Item = Topic> {
    packed.0.chunks_exact(PACKED).take(AT_ONCE).filter_map(Topic::unpack)
}

/// Whether messages of the topic are alerts, which nothing repeats.
pub(super) fn is_of_alerts(topic: &Topic) -> bool {
    matches!(topic, Topic::Alerts(_))
}

/// Which topics have subscribers on which other instances. Clones are cheap.
#[derive(Clone)]
pub struct Interest {
    topics: Arc<DashMap<Topic, Vec<Interested>>>,
    count: Arc<AtomicUsize>,
    most: usize,
    /// Topics of alerts of which an announcement expired: alerts since then may not have been sent. One for each account at
    /// most.
    expired: Arc<Mutex<HashSet<Topic>>>,
}

impl Default for Interest {
    fn default() -> Self {
        Self { topics: Arc::default(), count: Arc::default(), most: MAX_TOPICS, expired: Arc::default() }
    }
}

/// An instance on which a topic has subscribers.
#[derive(Debug, Clone, Copy)]
struct Interested {
    instance_id: Uuid,
    until: Instant,
}

impl Interest {
    /// Whether a topic has subscribers on another instance.
    pub fn is_watched(&self, topic: Topic) -> bool {
        let Some(interested) = self.topics.get(&topic) else { return false };
        let now = Instant::now();
        interested.iter().any(|interested| interested.until > now)
    }

    /// The topics that have subscribers on other instances.
    pub fn topics(&self) -> Vec<Topic> {
        let now = Instant::now();
        let is_valid = |interested: &Vec<Interested>| interested.iter().any(|interested| interested.until > now);
        self.topics.iter().filter(|entry| is_valid(entry.value())).map(|entry| *entry.key()).collect()
    }

    /// The number of topics with subscribers elsewhere.
    pub fn len(&self) -> usize {
        self.topics.len()
    }

    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// Notes that an instance has subscribers for these topics, valid until `until`. Returns the topics that are new, or that
    /// had expired.
    pub fn watched(&self, instance_id: Uuid, packed: &Blob, until: Instant) -> Vec<Topic> {
        let (mut new, now) = (Vec::new(), Instant::now());
        for topic in unpack(packed) {
            let mut interested = self.topics.entry(topic).or_default();
            if let Some(known) = interested.iter_mut().find(|known| known.instance_id == instance_id) {
                if std::mem::replace(&mut known.until, until) <= now {
                    self.note_expired([topic]);
                    new.push(topic);
                }
            } else if self.count.load(Ordering::Relaxed) < self.most {
                interested.push(Interested { instance_id, until });
                self.count.fetch_add(1, Ordering::Relaxed);
                new.push(topic);
            } else {
                metrics::counter!("signalbox_interest_refused_total").increment(1);
                drop(interested);
                self.topics.remove_if(&topic, |_, interested| interested.is_empty());
            }
        }
        new
    }

    /// Notes that an instance has no subscribers for these topics any more.
    pub fn left(&self, instance_id: Uuid, packed: &Blob) {
        for topic in unpack(packed) {
            self.retain(topic, |interested| interested.instance_id != instance_id);
        }
    }

    /// Returns those of these topics whose alerts may not have been sent since an announcement expired. Each is returned once.
    pub fn take_expired(&self, topics: &[Topic]) -> Vec<Topic> {
        let mut expired = self.expired.lock();
        topics.iter().copied().filter(|topic| expired.remove(topic)).collect()
    }

    /// Forgets announcements that were not renewed in time.
    pub fn forget_expired(&self, now: Instant) {
        let is_over = |interested: &Vec<Interested>| interested.iter().any(|interested| interested.until <= now);
        let over: Vec<Topic> = self.topics.iter().filter(|it| is_over(it.value())).map(|it| *it.key()).collect();
        // Noted first: an announcement that comes now is not overlooked.
        self.note_expired(over.iter().copied());
        over.into_iter().for_each(|topic| self.retain(topic, |interested| interested.until > now));
    }

    fn note_expired(&self, topics: impl IntoIterator<Item = Topic>) {
        self.expired.lock().extend(topics.into_iter().filter(is_of_alerts));
    }

    fn retain(&self, topic: Topic, keeps: impl Fn(&Interested) -> bool) {
        self.topics.remove_if_mut(&topic, |_, interested| {
            let before = interested.len();
            interested.retain(&keeps);
            self.count.fetch_sub(before - interested.len(), Ordering::Relaxed);
            interested.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u128) -> Topic {
        Topic::Server(Uuid::from_u128(number))
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    #[test]
    fn a_topic_is_watched_until_the_last_instance_leaves_it() {
        let interest = Interest::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        interest.watched(one, &pack(&[server(1), server(2)]), later());
        assert_eq!(interest.watched(other, &pack(&[server(1), server(2)]), later()).len(), 2);
        assert_eq!(interest.watched(one, &pack(&[server(1), server(3)]), later()), [server(3)]);
        interest.left(other, &pack(&[server(2)]));

        interest.left(one, &pack(&[server(1), server(2), server(3)]));

        assert!(interest.is_watched(server(1)) && !interest.is_watched(server(2)));
        interest.left(other, &pack(&[server(1)]));
        assert!(!interest.is_watched(server(1)));
        assert_eq!((interest.len(), interest.count.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn an_announcement_that_is_not_renewed_is_forgotten() {
        let interest = Interest::default();
        let soon = Instant::now();
        interest.watched(Uuid::from_u128(1), &pack(&[server(1), server(2)]), soon);
        interest.watched(Uuid::from_u128(1), &pack(&[server(2)]), later());
        assert!(!interest.is_watched(server(1)));
        assert_eq!(interest.topics(), [server(2)]);

        interest.forget_expired(soon);

        assert!(interest.is_watched(server(2)));
        assert_eq!((interest.len(), interest.count.load(Ordering::Relaxed)), (1, 1));
    }

    #[test]
    fn topics_of_alerts_that_were_announced_too_late_are_named_once() {
        let interest = Interest::default();
        let alerts = |number| Topic::Alerts(Uuid::from_u128(number));
        let (soon, all) = (Instant::now(), [alerts(1), alerts(2), alerts(3), server(4)]);
        interest.watched(Uuid::nil(), &pack(&all), soon);
        interest.left(Uuid::nil(), &pack(&[alerts(3)]));
        // Not forgotten yet.
        assert_eq!(interest.watched(Uuid::nil(), &pack(&[alerts(1)]), later()), [alerts(1)]);
        interest.forget_expired(soon);

        assert_eq!(interest.watched(Uuid::nil(), &pack(&all), later()), [alerts(2), alerts(3), server(4)]);

        assert_eq!(interest.take_expired(&all), [alerts(1), alerts(2)]);
        assert!(interest.take_expired(&all).is_empty());
    }

    #[test]
    fn an_endless_list_is_cut_off_and_malformed_topics_are_ignored() {
        let interest = Interest { most: AT_ONCE + 10, ..Interest::default() };
        for part in 0..3 {
            let topics: Vec<Topic> = (0..AT_ONCE * 2).map(|it| server((part * AT_ONCE * 2 + it) as u128)).collect();
            interest.watched(Uuid::nil(), &pack(&topics), later());
        }
        assert_eq!((interest.len(), interest.count.load(Ordering::Relaxed)), (AT_ONCE + 10, AT_ONCE + 10));

        interest.watched(Uuid::nil(), &Blob(vec![9; 1_000]), later());
        interest.left(Uuid::nil(), &Blob(vec![1; 5]));

        assert_eq!(interest.len(), AT_ONCE + 10);
    }
}
