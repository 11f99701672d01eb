//! What happens on servers and is kept: what agents tell is written here, some at a time; that they come and go is written by
//! the store, with what it tells, where a session takes or leaves its server.
//!
//! An agent may be hostile: each has so many events at once and so many an hour, and no more than the newest of them are
//! kept. What is left out is counted, and told by an event of its own.

pub mod availability;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;
use tokio::sync::mpsc;
use uuid::Uuid;

use self::availability::{Availability, Standing, Turn, availability};
use crate::clock::Clock;
use crate::periodic::every;
use crate::shards::Shards;
use crate::store::{NewServerEvent, ServerEvent, Store, StoreError, presence_kind};

/// Kinds that agents tell and that are kept. All others are the service's own: no agent makes up its own presence.
const TOLD_BY_AGENTS: [&str; 1] = ["container"];

/// Says how many events were left out before it.
const DROPPED: &str = "dropped";

/// Events of a server that are kept at once: a host that starts has some dozens of containers.
const BURST: f64 = 120.0;

/// Events of a server that are kept an hour in the long run.
const AN_HOUR: f64 = 720.0;

/// The newest events of a server that are kept: two weeks of as many as are taken, or years of an ordinary one.
const MOST_OF_A_SERVER: u64 = 10_000;

/// Events of all servers that wait to be written.
const MOST_WAITING: usize = 4_096;

/// Events of one transaction.
const AT_ONCE: usize = 512;

/// How long an event waits for others to be written with.
const GATHERED_FOR: Duration = Duration::from_millis(250);

/// How long to leave a database alone that has just failed.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How often servers are looked for that have not come back since nobody looked after them.
const MISS_EVERY: Duration = Duration::from_secs(60);

/// In how many of these what is too old or too much is removed.
const TIDY_EVERY: u32 = 60;

const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// Takes events, behind cheap clones.
#[derive(Clone)]
pub struct ServerEvents {
    store: Store,
    clock: Clock,
    waiting: mpsc::Sender<NewServerEvent>,
    paces: Arc<DashMap<Uuid, Pace>>,
}

/// How long a server was there in a range, and how often its machine was started again.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub availability: Availability,
    pub reboots: u64,
}

/// How many more events of a server are taken.
#[derive(Debug)]
struct Pace {
    left: f64,
    since: Instant,
    dropped: u64,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { left: BURST, since: now, dropped: 0 }
    }

    /// Takes one more. Gives how many were left out before it; none where this one is left out, too.
    fn take(&mut self, now: Instant) -> Option<u64> {
        self.refill(now);
        if self.left < 1.0 {
            self.dropped += 1;
            return None;
        }
        self.left -= 1.0;
        Some(std::mem::take(&mut self.dropped))
    }

    fn refill(&mut self, now: Instant) {
        let hours = now.duration_since(self.since).as_secs_f64() / 3_600.0;
        (self.left, self.since) = ((self.left + hours * AN_HOUR).min(BURST), now);
    }

    /// Whether it is as one that has just begun.
    fn is_fresh(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.dropped == 0 && self.left >= BURST
    }
}

impl ServerEvents {
    /// Starts the writer on the calling thread.
    pub fn start(store: Store, clock: Clock) -> Self {
        let (waiting, events) = mpsc::channel(MOST_WAITING);
        actix::spawn(write_all(store.clone(), events));
        Self { store, clock, waiting, paces: Arc::default() }
    }

    /// An agent tells what happened on its machine.
    pub fn told(&self, server_id: Uuid, event: &Event) {
        if !TOLD_BY_AGENTS.contains(&event.kind.as_str()) {
            return;
        }
        let (now, at) = (Instant::now(), self.clock.now());
        let left_out = self.paces.entry(server_id).or_insert_with(|| Pace::new(now)).take(now);
        match left_out {
            None => return dropped(),
            Some(0) => {}
            Some(count) => self.put(NewServerEvent::new(server_id, DROPPED, at, json!({ "count": count }))),
        }
        self.put(NewServerEvent::new(server_id, &event.kind, at, Value::Object(event.fields.clone())));
    }

    fn put(&self, event: NewServerEvent) {
        if self.waiting.try_send(event).is_err() {
            // The database is away, and as many wait for it as may.
            dropped();
        }
    }

    /// How long a server was there.
    pub async fn report(&self, server_id: Uuid, start: Timestamp, end: Timestamp) -> Result<Report, StoreError> {
        let events = self.store.presence_events(server_id, start, end).await?;
        let turns: Vec<Turn> = events.iter().map(turn_of).collect();
        let reboots = self.store.count_reboots(server_id, start, end).await?;
        Ok(Report { availability: availability(&turns, start, end), reboots })
    }

    /// Calls servers missing that do not come back to a service that was away, and removes what is too old or too much.
    pub async fn keep(self, shards: Shards, kept_days: u32, patience: Duration) {
        tokio::time::sleep(patience).await;
        let patience_ms = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
        let mut turns = (0..TIDY_EVERY).cycle();
        every(MISS_EVERY, async || {
            let now = self.clock.now();
            let share = shards.share();
            if !share.is_empty()
                && let Err(error) = self.store.miss_servers(&share, now.plus_millis(-patience_ms), now).await
            {
                tracing::warn!(%error, "servers that have not come back could not be looked for");
            }
            // Of several instances one is enough.
            if turns.next() == Some(0) && shards.holds(Uuid::nil()) {
                self.tidy(kept_days).await;
            }
        })
        .await;
    }

    async fn tidy(&self, kept_days: u32) {
        let began = Instant::now();
        self.paces.retain(|_, pace| !pace.is_fresh(began));
        let before = self.clock.certain().plus_millis(-i64::from(kept_days).saturating_mul(DAY_MS));
        let removed = async {
            while self.store.forget_events(before).await? > 0 {}
            self.store.trim_events(MOST_OF_A_SERVER).await
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

/// Writes events as they come, some at a time, until every handle is gone.
async fn write_all(store: Store, mut events: mpsc::Receiver<NewServerEvent>) {
    let mut some = Vec::with_capacity(AT_ONCE);
    while events.recv_many(&mut some, AT_ONCE).await > 0 {
        tokio::time::sleep(GATHERED_FOR).await;
        while some.len() < AT_ONCE
            && let Ok(event) = events.try_recv()
        {
            some.push(event);
        }
        while let Err(error) = store.record_events(&some).await {
            tracing::warn!(%error, events = some.len(), "what happened could not be written, will try again");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        some.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let began = Instant::now();
        let mut pace = Pace::new(began);

        let taken = (0..1_000).filter(|_| pace.take(began).is_some()).count();

        assert_eq!(taken, 120);
        assert!(!pace.is_fresh(began));
        assert_eq!(pace.take(began + Duration::from_secs(6)), Some(880));
        assert_eq!(pace.take(began + Duration::from_secs(6)), None);
    }

    #[test]
    fn in_the_long_run_a_server_has_so_many_an_hour() {
        let began = Instant::now();
        let mut pace = Pace::new(began);

        let taken = (0..36_000).filter(|second| pace.take(began + Duration::from_secs(*second)).is_some()).count();

        assert_eq!(taken, 120 + 7_199);
    }

    #[test]
    fn a_server_that_was_quiet_is_forgotten() {
        let began = Instant::now();
        let mut pace = Pace::new(began);
        pace.take(began);

        assert!(pace.is_fresh(began + Duration::from_secs(10)));
    }
}
