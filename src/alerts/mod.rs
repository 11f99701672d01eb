//! Thresholds and the alerts that they raise.
//!
//! A server that has thresholds has an evaluator, an actor. It is told of everything that happens on its server, looks
//! at one thing at a time, and what comes of it is written, with what people are to be told, before it looks at the next.
//!
//! - [`rule`] (pure): when a threshold fires and when it has recovered; its words are [`alert_words`](crate::alert_words)
//! - [`reading`] (pure): what a threshold reads from a sample
//! - `watched`, `watch`: the thresholds of a server and where each stands: in goes what happened, out come changes
//! - `evaluator`: the actor around that; `inbox`: what waits for it; `desk`: where it writes
//! - `seat`: by what right a server is watched here; `seating`: which those are; `seats`: where there are several instances

pub mod containers;
pub mod reading;
pub mod rule;
pub mod silence;
pub mod text;

mod absence;
mod desk;
mod evaluator;
mod inbox;
mod opening;
mod patience;
mod quiet;
mod reboots;
mod seat;
mod seating;
mod seats;
mod trouble;
mod watch;
mod watched;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::{Actor, ArbiterHandle};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;
use signalbox_protocol::sample::{TopProcesses, Unread};
use tokio::sync::Mutex;
use uuid::Uuid;

use self::desk::Desk;
use self::evaluator::Evaluator;
use self::inbox::{Change, Inbox, Input};
use self::patience::Patience;
use self::seat::{Seat, heard_before};
use self::seating::{All, Seating};
use self::seats::Seats;
use self::watch::Watch;
use crate::audit::Actor as Author;
use crate::clock::Clock;
use crate::feeds::Feeds;
use crate::fleet::{Fleet, Snapshot};
use crate::metrics::query::History;
use crate::notify::Notifier;
use crate::shards::Shards;
use crate::store::{Alert, RuleScope, Store, StoreError, WatchedServer};

/// Whose rules have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of all servers of this owner.
    Owner(Uuid),
    Server(Uuid),
}

/// Whether a sample is of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Live,
    /// From an agent that catches up.
    Late,
}

/// How long somebody who changed something waits for the evaluators to go by it. They stand still while the database is
/// away; what was changed is kept all the same.
const HEEDED_WITHIN: Duration = Duration::from_secs(5);

/// How long to leave a database alone that has just failed.
const HEED_AGAIN_AFTER: Duration = Duration::from_secs(2);

const DAY_MS: i64 = 24 * 3600 * 1000;

/// The evaluators, behind cheap clones.
#[derive(Clone)]
pub struct Alerts {
    desk: Desk,
    arbiter: ArbiterHandle,
    /// Whoever loads rules hands them out before the next may load: the newest come last.
    loading: Arc<Mutex<()>>,
    /// Which servers are watched here.
    seating: Arc<dyn Seating>,
    gone_after: Duration,
}

/// What an agent sends with a sample that is not part of its snapshot.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    pub processes: Option<Arc<TopProcesses>>,
    /// What is there and could not be read.
    pub unread: Vec<Unread>,
}

/// What the evaluators need.
pub struct Parts {
    pub clock: Clock,
    pub store: Store,
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub history: History,
    pub notifier: Notifier,
    /// After a start, and after a pause, agents have so long to come back before they are missed.
    pub patience: Duration,
    /// For so long a target may be missing from samples before its alert ends.
    pub gone_after: Duration,
}

impl Alerts {
    /// Those of all servers, which is for the only instance. Evaluators live on the arbiter of the calling thread.
    pub fn alone(parts: Parts) -> Self {
        Self::seated(parts, Arc::new(All))
    }

    /// Those of the servers that are this instance's, which is one of several: whose sessions are here, or that lie in its
    /// shards and have none.
    pub fn among_others(parts: Parts, shards: Shards) -> Self {
        let patience_ms = i64::try_from(parts.patience.as_millis()).unwrap_or(i64::MAX);
        Self::seated(parts, Arc::new(Seats::new(shards, patience_ms)))
    }

    fn seated(parts: Parts, seating: Arc<dyn Seating>) -> Self {
        let (patience, gone_after) = (Patience::new(parts.clock.clone(), parts.patience), parts.gone_after);
        let desk = Desk::new(parts, patience);
        let (arbiter, loading) = (actix::Arbiter::current(), Arc::default());
        Self { desk, arbiter, loading, seating, gone_after }
    }

    /// Starts an evaluator for every server that has thresholds and is watched here.
    pub async fn start(&self) -> Result<(), StoreError> {
        self.seating.clone().begin(self).await
    }

    /// A sample came. Nothing happens where nothing is watched.
    pub fn sample(&self, snapshot: &Arc<Snapshot>, beside: Beside, lane: Lane, now: Timestamp) {
        let Some(inbox) = self.inbox(snapshot.server_id) else { return };
        if lane == Lane::Late && now.millis_since(snapshot.sample.timestamp) > inbox.late_window_ms() {
            return;
        }
        inbox.put(Input::Sample { snapshot: snapshot.clone(), beside, lane });
    }

    /// An agent tells what happened on its machine.
    pub fn happened(&self, server_id: Uuid, event: &Event) {
        if let Some(inbox) = self.inbox(server_id) {
            inbox.put(Input::Event(event.clone()));
        }
    }

    /// An agent is back whose machine was started again since it was there.
    /// `at` is the time of the event that says so.
    pub fn rebooted(&self, server_id: Uuid, at: Timestamp) {
        if let Some(inbox) = self.inbox(server_id) {
            inbox.put(Input::Rebooted { at });
        }
    }

    /// A session holds the server from now on, in the database too.
    pub fn arrived(&self, server_id: Uuid, session_id: Uuid) {
        self.seating.arrived(self, server_id, session_id);
    }

    /// No session here holds the server any more.
    pub fn departed(&self, server_id: Uuid) {
        self.seating.departed(self, server_id);
    }

    /// An agent came or went: the fleet knows which.
    pub fn presence(&self, server_id: Uuid) {
        if let Some(inbox) = self.inbox(server_id) {
            inbox.wake();
        }
    }

    /// The service ends: from here on no agent is missed.
    pub fn stop(&self) {
        self.desk.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Comes back when what was told of a server has been looked at and what came of it is written; at once where that
    /// is so already.
    pub fn idle(&self, server_id: Uuid) -> Option<impl Future<Output = ()> + use<>> {
        let inbox = self.inbox(server_id).filter(|inbox| inbox.is_busy())?;
        Some(async move { inbox.idle().await })
    }

    /// Thresholds, tags or servers have changed: comes back when the evaluators go by what the database says now. Where
    /// that cannot be read it is tried again in the background: the change itself is made, so the caller gets no
    /// error.
    pub async fn rules_changed(&self, scope: Scope) {
        if let Err(error) = self.heed(scope).await {
            tracing::warn!(%error, "thresholds could not be read, will try again");
            let alerts = self.clone();
            actix::spawn(async move {
                loop {
                    tokio::time::sleep(HEED_AGAIN_AFTER).await;
                    match alerts.heed(scope).await {
                        Ok(()) => break,
                        Err(error) => tracing::error!(%error, "thresholds could not be read, will try again"),
                    }
                }
            });
        }
    }

    async fn heed(&self, scope: Scope) -> Result<(), StoreError> {
        let waiting = {
            let _turn = self.loading.lock().await;
            let (scope, only) = match scope {
                Scope::Owner(id) => (RuleScope::Owner(id), None),
                Scope::Server(id) => (RuleScope::Server(id), Some(id)),
            };
            let servers = self.desk.store.watched_servers(scope).await?;
            let gone = only.filter(|_| servers.is_empty()).and_then(|id| self.inbox(id));
            if let Some(Ok(gone)) = gone.map(|inbox| inbox.order(Change::Gone)) {
                // It ends by itself.
                drop(gone);
            }
            servers.into_iter().filter_map(|server| self.hand_out(server)).collect::<Vec<_>>()
        };
        self.seating.look_soon();
        let heeded = async {
            for done in waiting {
                // An evaluator that has ended watches nothing.
                _ = done.await;
            }
        };
        _ = tokio::time::timeout(HEEDED_WITHIN, heeded).await;
        Ok(())
    }

    /// Somebody looks after an alert. Gives it as it is then; none where the owner has no such alert. One that is
    /// acknowledged or resolved already stays as it is.
    pub async fn acknowledge(&self, owner_id: Uuid, id: Uuid, author: &Author) -> Result<Option<Alert>, StoreError> {
        let found = self.desk.store.acknowledge_alert(owner_id, id, author).await?;
        if let Some((alert, true)) = &found {
            self.desk.tell(alert);
        }
        Ok(found.map(|(alert, _)| alert))
    }

    /// Somebody resolves an alert by hand; what is resolved already stays as it is. Its evaluator goes by
    /// [`Alerts::resolved`].
    pub async fn resolve(&self, owner_id: Uuid, id: Uuid, author: &Author) -> Result<Option<Alert>, StoreError> {
        let Some((alert, is_new)) = self.desk.store.resolve_alert(owner_id, id, author).await? else { return Ok(None) };
        if is_new {
            self.desk.tell_and_notify(&alert);
        }
        Ok(Some(alert))
    }

    /// An alert was resolved by hand: its evaluator goes by that, if it is here.
    pub async fn resolved(&self, id: Uuid) -> Result<(), StoreError> {
        let Some(alert) = self.desk.store.alert(id).await? else { return Ok(()) };
        if let Some(Ok(heeded)) = self.inbox(alert.server_id).map(|inbox| inbox.order(Change::Acted(Box::new(alert)))) {
            _ = tokio::time::timeout(HEEDED_WITHIN, heeded).await;
        }
        Ok(())
    }

    /// Removes what was resolved longer ago than is kept.
    pub async fn tidy(&self, kept_days: u32) {
        let kept_ms = i64::from(kept_days) * DAY_MS;
        let before = self.desk.patience.clock.certain().plus_millis(kept_ms.saturating_neg());
        let removed = async {
            while self.desk.store.forget_alerts(before).await? > 0 {}
            Ok::<_, StoreError>(())
        };
        if let Err(error) = removed.await {
            tracing::warn!(%error, "old alerts could not be removed");
        }
    }

    fn inbox(&self, server_id: Uuid) -> Option<Arc<Inbox>> {
        self.desk.inboxes.get(&server_id).map(|entry| entry.value().clone())
    }

    /// Tells the evaluator of a server what it is to go by, or begins one where something is to be watched.
    fn hand_out(&self, server: WatchedServer) -> Option<tokio::sync::oneshot::Receiver<()>> {
        match self.inbox(server.server_id).map(|inbox| inbox.order(Change::Rules(Box::new(server.clone())))) {
            Some(Ok(done)) => Some(done),
            // None, or one that has just ended.
            Some(Err(_)) | None => {
                let seat = self.seating.seat_of(&server)?;
                self.begin(server, seat, false);
                None
            }
        }
    }

    fn begin(&self, server: WatchedServer, seat: Seat, replays: bool) {
        if server.is_watched() {
            let inbox = Arc::new(Inbox::new(seat, 0));
            self.desk.inboxes.insert(server.server_id, inbox.clone());
            self.evaluate(server, inbox, replays);
        }
    }

    /// Begins an evaluator behind an inbox that is in its place.
    fn evaluate(&self, mut server: WatchedServer, inbox: Arc<Inbox>, replays: bool) {
        if let Seat::Home(_) = inbox.seat {
            server.last_seen_at = heard_before(&server);
        }
        let watch = Watch::new(server, self.gone_after, self.desk.patience.clock.now());
        inbox.set_late_window_ms(watch.late_window_ms());
        let desk = self.desk.clone();
        Evaluator::start_in_arbiter(&self.arbiter, move |_| Evaluator::new(desk, watch, inbox, replays));
    }
}
