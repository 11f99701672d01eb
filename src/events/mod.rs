//! The stored events of servers. This module writes the events that agents report, several in one transaction. The store
//! writes connections and disconnections, in the transaction in which a session takes or leaves its server.
//!
//! An agent may be hostile: the service accepts a limited number of events at once and per hour, and keeps a limited number
//! of the newest. Dropped events are counted, and recorded by a separate event.

pub mod annotations;
pub mod availability;
pub mod beats;
mod pace;

use std::time::Duration;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use self::availability::{Availability, Standing, Turn, availability};
use self::beats::{Beat, Grid, beats};
use self::pace::{Limit, Paces};
use crate::clock::Clock;
use crate::periodic::every;
use crate::shards::Shards;
use crate::store::{NewServerEvent, ServerEvent, Store, StoreError, Visibility, presence_kind};

/// The kinds of events that the service accepts from agents. All others are its own, so that no agent can forge its
/// presence.
const TOLD_BY_AGENTS: [&str; 1] = ["container"];

/// The kind of the event that says how many events were dropped before it.
const DROPPED: &str = "dropped";

/// Events of an agent that are accepted: a host that starts has some dozens of containers.
const AGENT_LIMIT: Limit = Limit { burst: 120.0, an_hour: 720.0 };

/// The newest events of a server that are kept: two weeks at the accepted rate, or years of an ordinary server.
const MAX_PER_SERVER: u64 = 10_000;

/// Events of all servers that wait to be written.
const MAX_WAITING: usize = 4_096;

/// Events of one transaction.
const AT_ONCE: usize = 512;

/// How long an event waits for others, to be written together.
const GATHERED_FOR: Duration = Duration::from_millis(250);

/// The pause after a database error.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How often to look for servers that have not reconnected since no instance was watching them.
const MISS_EVERY: Duration = Duration::from_secs(60);

/// Every how many of these looks to remove old and excess events.
const TIDY_EVERY: u32 = 60;

const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// Accepts events; cheap to clone.
#[derive(Clone)]
pub struct ServerEvents {
    store: Store,
    clock: Clock,
    waiting: mpsc::Sender<Message>,
    /// How many more events are accepted of the agent of each server.
    agents: Paces,
    /// How many more annotations are accepted of each account.
    writers: Paces,
    /// After so many days events are removed.
    kept_days: u32,
}

/// What the writer receives.
enum Message {
    Event(NewServerEvent),
    /// Asks that all events before it are written now. It is answered when they are durable.
    Flush(oneshot::Sender<()>),
}

/// The availability of a server in a range, and how often its machine rebooted.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub availability: Availability,
    pub reboots: u64,
}

/// The availability of one of many servers, as a bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub server_id: Uuid,
    pub beats: Vec<Beat>,
    pub availability: Availability,
}

impl ServerEvents {
    /// Starts the writer on the calling thread.
    pub fn start(store: Store, clock: Clock, kept_days: u32) -> Self {
        let (waiting, events) = mpsc::channel(MAX_WAITING);
        actix::spawn(write_all(store.clone(), events));
        let (agents, writers) = (Paces::new(AGENT_LIMIT), Paces::new(annotations::WRITER_LIMIT));
        Self { store, clock, waiting, agents, writers, kept_days }
    }

    /// Takes in an event that the agent reported.
    pub fn told(&self, server_id: Uuid, event: &Event) {
        if !TOLD_BY_AGENTS.contains(&event.kind.as_str()) {
            return;
        }
        let at = self.clock.now();
        match self.agents.take(server_id) {
            None => return dropped(),
            Some(0) => {}
            Some(count) => self.put(NewServerEvent::new(server_id, DROPPED, at, json!({ "count": count }))),
        }
        self.put(NewServerEvent::new(server_id, &event.kind, at, Value::Object(event.fields.clone())));
    }

    fn put(&self, event: NewServerEvent) {
        if self.waiting.try_send(Message::Event(event)).is_err() {
            // The database is unavailable, and the queue is full.
            dropped();
        }
    }

    /// Returns when every event that was accepted before is durable.
    pub async fn flush(&self) {
        let (done, durable) = oneshot::channel();
        // If the writer has ended, no event waits.
        if self.waiting.send(Message::Flush(done)).await.is_ok() {
            _ = durable.await;
        }
    }

    /// Returns the availability of a server in a range.
    pub async fn report(&self, server_id: Uuid, start: Timestamp, end: Timestamp) -> Result<Report, StoreError> {
        let events = self.store.presence_events(server_id, start, end).await?;
        let turns: Vec<Turn> = events.iter().map(turn_of).collect();
        let reboots = self.store.count_reboots(server_id, start, end).await?;
        Ok(Report { availability: availability(&turns, start, end), reboots })
    }

    /// Returns the bars of these visible servers up to `now`, in their order.
    pub async fn bars(
        &self,
        visible: &Visibility,
        server_ids: &[Uuid],
        grid: Grid,
        now: Timestamp,
    ) -> Result<Vec<Bar>, StoreError> {
        let found = self.store.presence_of_servers(visible, server_ids, grid.start, now).await?;
        let bar = |server_id: &Uuid| {
            let events = found.get(server_id).map(Vec::as_slice).unwrap_or_default();
            let turns: Vec<Turn> = events.iter().map(turn_of).collect();
            Bar {
                server_id: *server_id,
                beats: beats(&turns, grid, now),
                availability: availability(&turns, grid.start, now),
            }
        };
        Ok(server_ids.iter().map(bar).collect())
    }

    /// Records servers as missing that do not reconnect after the service did not run, and removes old and excess events.
    pub async fn keep(self, shards: Shards, patience: Duration) {
        tokio::time::sleep(patience).await;
        let patience_ms = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
        let mut turns = (0..TIDY_EVERY).cycle();
        every(MISS_EVERY, async || {
            let now = self.clock.now();
            let share = shards.share();
            if !share.is_empty()
                && let Err(error) = self.store.miss_servers(&share, now.plus_millis(-patience_ms), now).await
            {
                tracing::warn!(%error, "servers that have not reconnected could not be read, will try again");
            }
            // One of several instances does this for all.
            if turns.next() == Some(0) && shards.holds(Uuid::nil()) {
                self.tidy().await;
            }
        })
        .await;
    }

    async fn tidy(&self) {
        self.agents.tidy();
        self.writers.tidy();
        let before = self.clock.certain().plus_millis(-i64::from(self.kept_days).saturating_mul(DAY_MS));
        let removed = async {
            while self.store.forget_events(before).await? > 0 {}
            self.store.trim_events(MAX_PER_SERVER).await
        };
        if let Err(error) = removed.await {
            tracing::warn!(%error, "old events could not be removed");
        }
    }
}

fn dropped() {
    metrics::counter!("signalbox_server_events_dropped_total").increment(1);
}

fn turn_of(event: &ServerEvent) -> Turn {
    let standing = match event.kind.as_str() {
        presence_kind::ONLINE => Standing::Up,
        presence_kind::OFFLINE => Standing::Down,
        _ => Standing::Unknown,
    };
    let detail: Value = serde_json::from_str(&event.detail).unwrap_or_default();
    let reason = detail.get("reason").and_then(Value::as_str).map(str::to_owned);
    Turn { at: event.at.into(), standing, reason }
}

/// Writes events as they arrive, several in one transaction, until every handle is dropped.
async fn write_all(store: Store, mut messages: mpsc::Receiver<Message>) {
    while let Some((events, flush)) = gather(&mut messages).await {
        while !events.is_empty()
            && let Err(error) = store.record_events(&events).await
        {
            if error.is_closed() {
                return;
            }
            tracing::warn!(%error, events = events.len(), "events could not be written, will try again");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        if let Some(done) = flush {
            // Nobody receives it if the caller has stopped waiting.
            _ = done.send(());
        }
    }
}

/// Returns the next events to write together, and the flush that ended the wait for more of them. `None` if every
/// handle is dropped.
async fn gather(messages: &mut mpsc::Receiver<Message>) -> Option<(Vec<NewServerEvent>, Option<oneshot::Sender<()>>)> {
    let (mut events, mut next) = (Vec::new(), messages.recv().await?);
    let until = Instant::now() + GATHERED_FOR;
    loop {
        match next {
            Message::Event(event) => events.push(event),
            Message::Flush(done) => return Some((events, Some(done))),
        }
        if events.len() == AT_ONCE {
            return Some((events, None));
        }
        match timeout_at(until, messages.recv()).await {
            Ok(Some(message)) => next = message,
            Ok(None) | Err(_) => return Some((events, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: i64) -> Message {
        Message::Event(NewServerEvent::new(Uuid::nil(), "container", Timestamp::from_millis(number), json!({})))
    }

    /// Returns the times of the next events to write together, and whether a flush ended the wait for more.
    async fn gathered(messages: &mut mpsc::Receiver<Message>) -> Option<(Vec<i64>, bool)> {
        let (events, flush) = gather(messages).await?;
        Some((events.iter().map(|event| event.at.as_millis()).collect(), flush.is_some()))
    }

    #[tokio::test(start_paused = true)]
    async fn events_wait_for_others_and_a_flush_ends_the_wait() {
        let (sender, mut messages) = mpsc::channel(8);
        let began = Instant::now();
        for message in [event(1), event(2), Message::Flush(oneshot::channel().0), event(3)] {
            assert!(sender.try_send(message).is_ok());
        }

        assert_eq!(gathered(&mut messages).await, Some((vec![1, 2], true)));
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(gathered(&mut messages).await, Some((vec![3], false)));
        assert!(began.elapsed() >= GATHERED_FOR);
        drop(sender);
        assert_eq!(gathered(&mut messages).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn enough_events_wait_for_no_others() {
        let (sender, mut messages) = mpsc::channel(MAX_WAITING);
        let began = Instant::now();
        for number in 0..=i64::try_from(AT_ONCE).unwrap() {
            assert!(sender.try_send(event(number)).is_ok());
        }

        let (first, _) = gathered(&mut messages).await.unwrap();

        assert_eq!((first.len(), began.elapsed()), (AT_ONCE, Duration::ZERO));
        assert_eq!(gathered(&mut messages).await.unwrap().0, [512]);
    }
}
