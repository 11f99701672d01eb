//! Events of this machine, on their way to the service.
//!
//! They are sent while there is a connection, and dropped while there is none: an event is news, and lasting information is in
//! the samples. A slow service loses the oldest, and learns how many.
//!
//! The states of all containers are not an event: the newest are kept, sent first on each connection, and sent again when they
//! change.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use signalbox_protocol::agent::Event;
use signalbox_protocol::container::{ContainerStates, STATES_KIND};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Events that wait to be sent: as many as the service takes at once. A host or an engine that starts has one of each container.
const MAX_WAITING: usize = 256;
/// The time between two reports of states: a container that restarts repeatedly would report hundreds of others each time.
const STATES_EVERY: Duration = Duration::from_secs(1);

/// The queue; cheap to clone.
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
    /// The states of all containers; none while they are unknown.
    states: Option<Arc<ContainerStates>>,
    /// The states that this connection was last sent, and when.
    told: Option<(Arc<ContainerStates>, Instant)>,
    /// How many of the events precede the states.
    before_states: usize,
}

/// What to do next.
enum Next {
    Event(Event),
    States(Arc<ContainerStates>),
    Wait(Option<Instant>),
}

/// While it exists, events are queued for its connection.
pub struct Connected {
    events: Events,
}

impl Events {
    /// Queues an event, if there is a connection.
    pub fn tell(&self, event: Event) {
        let mut waiting = self.lock();
        if !waiting.is_connected {
            return;
        }
        if waiting.events.len() >= MAX_WAITING {
            waiting.pop();
            waiting.dropped += 1;
        }
        waiting.events.push_back(event);
        drop(waiting);
        self.inner.news.notify_one();
    }

    /// Sets the states of all containers.
    pub fn tell_containers(&self, states: ContainerStates) {
        let mut waiting = self.lock();
        waiting.before_states = waiting.events.len();
        waiting.states = Some(Arc::new(states));
        drop(waiting);
        self.inner.news.notify_one();
    }

    /// The states are unknown from now on, and none are sent until they are known.
    pub fn forget_containers(&self) {
        self.lock().states = None;
    }

    /// Begins a connection. Earlier events are not sent.
    pub fn connect(&self) -> Connected {
        self.lock().begin(true);
        Connected { events: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.inner.waiting.lock()
    }
}

impl Waiting {
    /// Removes everything except the states.
    fn begin(&mut self, is_connected: bool) {
        *self = Self { is_connected, states: self.states.take(), ..Self::default() };
    }

    fn pop(&mut self) -> Option<Event> {
        self.before_states = self.before_states.saturating_sub(1);
        self.events.pop_front()
    }

    fn next(&mut self, now: Instant) -> Next {
        let due_at = self.states_due_at(now);
        if due_at.is_some_and(|at| at <= now)
            && let Some(states) = self.states.clone()
        {
            self.told = Some((states.clone(), now));
            return Next::States(states);
        }
        let Some(mut event) = self.pop() else { return Next::Wait(due_at) };
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            event.fields.insert("dropped".to_owned(), Value::from(dropped));
        }
        Next::Event(event)
    }

    /// When to send the states: after the events that precede them, unless this connection has no states yet.
    fn states_due_at(&self, now: Instant) -> Option<Instant> {
        let states = self.states.as_ref()?;
        let Some((told, told_at)) = &self.told else { return Some(now) };
        let is_other = (&told.containers, told.truncated) != (&states.containers, states.truncated);
        (is_other && self.before_states == 0).then(|| *told_at + STATES_EVERY)
    }
}

impl Connected {
    /// The next event; `dropped` says how many were lost before it.
    pub async fn next(&self) -> Event {
        loop {
            let next = self.events.lock().next(Instant::now());
            let news = self.events.inner.news.notified();
            match next {
                Next::Event(event) => return event,
                Next::States(states) => match event_of(&states) {
                    Ok(event) => return event,
                    Err(error) => tracing::error!(%error, "the states of containers could not be written"),
                },
                Next::Wait(None) => news.await,
                Next::Wait(Some(until)) => tokio::select! {
                    () = news => {}
                    () = sleep_until(until) => {}
                },
            }
        }
    }
}

fn event_of(states: &ContainerStates) -> serde_json::Result<Event> {
    let fields = serde_json::from_value(serde_json::to_value(states)?)?;
    Ok(Event { kind: STATES_KIND.to_owned(), fields })
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.events.lock().begin(false);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;
    use signalbox_protocol::container::ContainerState;

    use super::*;

    fn event(number: usize) -> Event {
        let fields = json!({"number": number}).as_object().unwrap().clone();
        Event { kind: "test".to_owned(), fields }
    }

    fn states(names: &[&str]) -> ContainerStates {
        let named = |name: &&str| ContainerState { name: (*name).to_owned(), ..ContainerState::default() };
        ContainerStates { containers: names.iter().map(named).collect(), ..ContainerStates::default() }
    }

    /// The names of the next event, which must be one of states.
    async fn next_names(connected: &Connected) -> Vec<String> {
        let event = connected.next().await;
        assert_eq!(event.kind, "containers");
        let states: ContainerStates = serde_json::from_value(Value::Object(event.fields)).unwrap();
        states.containers.into_iter().map(|container| container.name).collect()
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
        (0..MAX_WAITING + 3).for_each(|number| events.tell(event(number)));

        let first = connected.next().await;
        let second = connected.next().await;

        assert_eq!((&first.fields["number"], &first.fields["dropped"]), (&json!(3), &json!(3)));
        assert_eq!(second, event(4));
    }

    #[tokio::test]
    async fn states_are_kept_for_each_connection_and_come_first() {
        let events = Events::default();
        events.tell_containers(states(&["old"]));
        events.tell_containers(states(&["web"]));

        for _ in 0..2 {
            let connected = events.connect();
            events.tell(event(1));
            assert_eq!(next_names(&connected).await, ["web"]);
            assert_eq!(connected.next().await, event(1));
            assert_eq!(connected.next().now_or_never(), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn states_are_sent_when_they_change_after_earlier_events_and_not_too_often() {
        let events = Events::default();
        let connected = events.connect();
        events.tell_containers(states(&["web"]));
        assert_eq!(next_names(&connected).await, ["web"]);
        let told_at = Instant::now();

        events.tell_containers(states(&["web"]));
        assert_eq!(connected.next().now_or_never(), None, "the same as before");
        events.tell(event(1));
        events.tell_containers(states(&["db", "web"]));
        events.tell(event(2));

        assert_eq!(connected.next().await, event(1));
        assert_eq!(connected.next().await, event(2));
        assert_eq!(next_names(&connected).await, ["db", "web"]);
        assert_eq!(told_at.elapsed(), STATES_EVERY);
        tokio::time::advance(STATES_EVERY).await;
        events.tell(event(3));
        events.tell_containers(states(&[]));
        events.tell(event(4));
        assert_eq!(connected.next().await, event(3));
        assert!(next_names(&connected).await.is_empty());
        assert_eq!(connected.next().await, event(4));
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_states_are_not_sent() {
        let events = Events::default();
        events.tell_containers(states(&["web"]));
        events.forget_containers();
        let connected = events.connect();
        assert_eq!(connected.next().now_or_never(), None);

        events.tell_containers(states(&["web"]));
        assert_eq!(next_names(&connected).await, ["web"]);
        events.tell_containers(states(&[]));
        events.forget_containers();
        tokio::time::advance(2 * STATES_EVERY).await;

        assert_eq!(connected.next().now_or_never(), None);
        events.tell_containers(states(&["web"]));
        assert_eq!(connected.next().now_or_never(), None, "as it was sent");
    }
}
