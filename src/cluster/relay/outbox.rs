//! Messages that wait to be sent to other instances. A sender never waits: what does not fit is lost.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::message::RelayEvent;
use crate::feeds::Topic;

/// Messages that may wait: as many as one connection carries in a tenth of a second.
const MAX_EVENTS: usize = 8_192;

/// Bytes that may wait.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Messages in the order in which they were put in.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<(Topic, RelayEvent)>,
    bytes: usize,
    /// How many of them are metrics.
    metrics: usize,
}

impl Outbox {
    /// Returns the topics of the events that are lost for want of room.
    pub fn put(&self, topic: Topic, what: RelayEvent) -> Vec<Topic> {
        let displaced = self.waiting.lock().put(topic, what);
        self.news.notify_one();
        displaced
    }

    /// Returns the next message, and waits until there is one. For one task only.
    pub async fn next(&self) -> (Topic, RelayEvent) {
        loop {
            let next = self.waiting.lock().take(0);
            if let Some(next) = next {
                return next;
            }
            self.news.notified().await;
        }
    }
}

impl Waiting {
    /// If there is no room, drops the oldest metrics first. If there are none, drops the new message if it is metrics,
    /// otherwise the oldest message. Returns the topics of dropped events.
    fn put(&mut self, topic: Topic, what: RelayEvent) -> Vec<Topic> {
        let mut displaced = Vec::new();
        while self.is_too_full_for(&what) {
            let oldest = match self.metrics {
                0 if what.is_metrics() => {
                    lost(&what);
                    return displaced;
                }
                0 => 0,
                _ => self.messages.iter().position(|(_, waiting)| waiting.is_metrics()).unwrap_or_default(),
            };
            if let Some((topic, dropped)) = self.take(oldest) {
                lost(&dropped);
                displaced.extend((!dropped.is_metrics()).then_some(topic));
            }
        }
        self.bytes += what.bytes();
        self.metrics += usize::from(what.is_metrics());
        self.messages.push_back((topic, what));
        displaced
    }

    fn take(&mut self, place: usize) -> Option<(Topic, RelayEvent)> {
        let (topic, what) = self.messages.remove(place)?;
        self.bytes -= what.bytes();
        self.metrics -= usize::from(what.is_metrics());
        Some((topic, what))
    }

    /// An empty queue takes a message of any size.
    fn is_too_full_for(&self, what: &RelayEvent) -> bool {
        !self.messages.is_empty() && (self.messages.len() >= MAX_EVENTS || self.bytes + what.bytes() > MAX_BYTES)
    }
}

/// Counts a message that is not sent to other instances.
pub(super) fn lost(what: &RelayEvent) {
    let kind = if what.is_metrics() { "metrics" } else { "event" };
    metrics::counter!("signalbox_exchange_frames_dropped_total", "kind" => kind).increment(1);
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn put(waiting: &mut Waiting, what: RelayEvent) {
        waiting.put(Topic::Server(Uuid::nil()), what);
    }

    fn texts(waiting: &Waiting) -> Vec<&str> {
        let text = |(_, what): &'_ (Topic, RelayEvent)| match what {
            RelayEvent::Metrics(_) => "metrics",
            RelayEvent::Event(_) => "event",
            _ => "other",
        };
        waiting.messages.iter().map(text).collect()
    }

    #[test]
    fn metrics_give_way_to_events_and_the_oldest_first() {
        let mut waiting = Waiting::default();
        put(&mut waiting, RelayEvent::Event("first".into()));
        (1..MAX_EVENTS).for_each(|number| put(&mut waiting, RelayEvent::Metrics(number.to_string())));

        put(&mut waiting, RelayEvent::Event("last".into()));

        assert_eq!(waiting.messages.len(), MAX_EVENTS);
        assert!(matches!(waiting.messages.get(1), Some((_, RelayEvent::Metrics(text))) if text == "2"));
        (1..MAX_EVENTS).for_each(|_| put(&mut waiting, RelayEvent::Event("more".into())));
        assert!(!texts(&waiting).contains(&"metrics"));
        assert_eq!(waiting.metrics, 0);
        put(&mut waiting, RelayEvent::Metrics("too late".into()));
        assert!(!texts(&waiting).contains(&"metrics"));
    }

    #[test]
    fn events_that_are_dropped_are_named() {
        let mut waiting = Waiting::default();
        let alerts = Topic::Alerts(Uuid::nil());
        assert!(waiting.put(alerts, RelayEvent::Event("first".into())).is_empty());
        put(&mut waiting, RelayEvent::Metrics("metrics".into()));
        (2..MAX_EVENTS).for_each(|_| put(&mut waiting, RelayEvent::Event("more".into())));

        assert!(waiting.put(alerts, RelayEvent::Event("instead of the metrics".into())).is_empty());
        assert_eq!(waiting.put(alerts, RelayEvent::Event("instead of the first".into())), [alerts]);
    }

    #[test]
    fn large_messages_wait_up_to_a_bound_and_an_even_larger_one_waits_alone() {
        let mut waiting = Waiting::default();
        let large = || RelayEvent::Metrics("x".repeat(MAX_BYTES / 4));
        (0..6).for_each(|_| put(&mut waiting, large()));
        assert_eq!((waiting.messages.len(), waiting.bytes), (4, MAX_BYTES));

        put(&mut waiting, RelayEvent::Event("x".repeat(MAX_BYTES + 1)));

        assert_eq!(texts(&waiting), ["event"]);
        assert!(waiting.take(0).is_some());
        assert_eq!((waiting.bytes, waiting.metrics), (0, 0));
    }
}
