//! What happens on this machine, on its way to the service.
//!
//! Told while there is a connection, and forgotten while there is none: an event is news, and what is to be kept is in
//! the samples. A service that is slow loses the oldest, and is told how many.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use signalbox_protocol::agent::Event;
use tokio::sync::Notify;

/// Events that wait to be sent. A host that starts has some dozens of them in a second.
const MOST_WAITING: usize = 64;

/// The queue, behind cheap clones.
#[derive(Clone, Default)]
pub struct Events {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    is_connected: bool,
    events: VecDeque<Event>,
    dropped: u64,
}

/// While it lives, events are kept for the connection that holds it.
pub struct Connected {
    events: Events,
}

impl Events {
    /// Tells what happened, if there is anybody to hear it.
    pub fn tell(&self, event: Event) {
        let mut waiting = self.lock();
        if !waiting.is_connected {
            return;
        }
        if waiting.events.len() >= MOST_WAITING {
            waiting.events.pop_front();
            waiting.dropped += 1;
        }
        waiting.events.push_back(event);
        drop(waiting);
        self.inner.news.notify_one();
    }

    /// A connection begins. What happened before it is not told.
    pub fn connect(&self) -> Connected {
        *self.lock() = Waiting { is_connected: true, ..Waiting::default() };
        Connected { events: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connected {
    /// The next event; `dropped` says how many were lost before it.
    pub async fn next(&self) -> Event {
        loop {
            if let Some(event) = self.take() {
                return event;
            }
            self.events.inner.news.notified().await;
        }
    }

    fn take(&self) -> Option<Event> {
        let mut waiting = self.events.lock();
        let mut event = waiting.events.pop_front()?;
        let dropped = std::mem::take(&mut waiting.dropped);
        if dropped > 0 {
            event.fields.insert("dropped".to_owned(), Value::from(dropped));
        }
        Some(event)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        *self.events.lock() = Waiting::default();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;

    fn event(number: usize) -> Event {
        let fields = json!({"number": number}).as_object().unwrap().clone();
        Event { kind: "test".to_owned(), fields }
    }

    #[tokio::test]
    async fn events_come_in_order_and_only_while_somebody_is_connected() {
        let events = Events::default();
        events.tell(event(1));

        let connected = events.connect();
        events.tell(event(2));
        events.tell(event(3));

        assert_eq!(connected.next().await, event(2));
        assert_eq!(connected.next().await, event(3));
        assert_eq!(connected.next().now_or_never(), None);
        drop(connected);
        events.tell(event(4));
        assert_eq!(events.connect().next().now_or_never(), None);
    }

    #[tokio::test]
    async fn a_full_queue_loses_the_oldest_and_says_how_many() {
        let events = Events::default();
        let connected = events.connect();
        (0..MOST_WAITING + 3).for_each(|number| events.tell(event(number)));

        let first = connected.next().await;
        let second = connected.next().await;

        assert_eq!((&first.fields["number"], &first.fields["dropped"]), (&json!(3), &json!(3)));
        assert_eq!(second, event(4));
    }
}
