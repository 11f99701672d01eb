//! Which topics somebody watches on other instances.
//!
//! Each instance says what is watched there: at once what begins and ends, and everything again and again, so that what
//! was lost on the way is put right. Of an instance that says nothing more nothing is remembered a little later.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::bus::blob::Blob;
use crate::feeds::{PACKED, Topic};

/// How long an instance is believed: two of the lists that it tells again and again may be lost.
pub const BELIEVED_FOR: Duration = Duration::from_secs(15);

/// Topics that one message names.
pub const AT_ONCE: usize = 5_000;

/// Topics times instances that are remembered: some 100 MB. What comes then is not sent there live.
const MOST: usize = 1_000_000;

/// What instances tell each other of what is watched.
#[derive(Debug, Serialize, Deserialize)]
pub struct Told {
    pub from: Uuid,
    pub what: What,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum What {
    /// Somebody watches these.
    Watched(Blob),
    /// Nobody watches these any more.
    Left(Blob),
    /// Say what is watched with you.
    Ask,
}

/// Topics as few bytes.
pub fn pack(topics: &[Topic]) -> Blob {
    Blob(topics.iter().filter_map(|topic| topic.packed()).flatten().collect())
}

/// The topics that somebody packed, as far as they are known here.
fn unpack(packed: &Blob) -> impl Iterator<Item = Topic> {
    packed.0.chunks_exact(PACKED).take(AT_ONCE).filter_map(Topic::unpack)
}

/// Who watches what elsewhere, behind cheap clones.
#[derive(Clone)]
pub struct Interest {
    topics: Arc<DashMap<Topic, Vec<Interested>>>,
    count: Arc<AtomicUsize>,
    most: usize,
}

impl Default for Interest {
    fn default() -> Self {
        Self { topics: Arc::default(), count: Arc::default(), most: MOST }
    }
}

/// An instance on which somebody watches a topic.
#[derive(Debug, Clone, Copy)]
struct Interested {
    instance_id: Uuid,
    until: Instant,
}

impl Interest {
    /// Whether somebody watches a topic on another instance.
    pub fn is_watched(&self, topic: Topic) -> bool {
        let Some(interested) = self.topics.get(&topic) else { return false };
        let now = Instant::now();
        interested.iter().any(|interested| interested.until > now)
    }

    /// How many topics are watched elsewhere.
    pub fn len(&self) -> usize {
        self.topics.len()
    }

    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// Somebody watches these on an instance, until then if it is not said again. Gives those that are new.
    pub fn watched(&self, instance_id: Uuid, packed: &Blob, until: Instant) -> Vec<Topic> {
        let mut new = Vec::new();
        for topic in unpack(packed) {
            let mut interested = self.topics.entry(topic).or_default();
            if let Some(known) = interested.iter_mut().find(|known| known.instance_id == instance_id) {
                known.until = until;
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

    /// Nobody watches these on an instance any more.
    pub fn left(&self, instance_id: Uuid, packed: &Blob) {
        for topic in unpack(packed) {
            self.retain(topic, |interested| interested.instance_id != instance_id);
        }
    }

    /// Forgets what was not said again in time.
    pub fn forget_expired(&self, now: Instant) {
        let is_over = |interested: &Vec<Interested>| interested.iter().any(|interested| interested.until <= now);
        let over: Vec<Topic> = self.topics.iter().filter(|it| is_over(it.value())).map(|it| *it.key()).collect();
        over.into_iter().for_each(|topic| self.retain(topic, |interested| interested.until > now));
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
    fn a_topic_is_watched_until_the_last_instance_has_left_it() {
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
    fn what_is_not_said_again_is_forgotten() {
        let interest = Interest::default();
        let soon = Instant::now();
        interest.watched(Uuid::from_u128(1), &pack(&[server(1), server(2)]), soon);
        interest.watched(Uuid::from_u128(1), &pack(&[server(2)]), later());
        assert!(!interest.is_watched(server(1)));

        interest.forget_expired(soon);

        assert!(interest.is_watched(server(2)));
        assert_eq!((interest.len(), interest.count.load(Ordering::Relaxed)), (1, 1));
    }

    #[test]
    fn a_list_without_end_is_cut_off_and_nonsense_is_nothing() {
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
