//! Thresholds and the alerts that they raise.
//!
//! A server that has thresholds has an evaluator, an actor. It is told of everything that happens on its server, looks
//! at one thing at a time, and what comes of it is written, with what people are to be told, before it looks at the next.
//!
//! - [`rule`] (pure): when a threshold fires and when it has recovered     - [`kind`]: the words
//! - [`reading`] (pure): what a threshold reads from a sample
//! - `watched`, `watch`: the thresholds of a server and where each stands: in goes what happened, out come changes
//! - `evaluator`: the actor around that; `inbox`: what waits for it; `desk`: where it writes
//! - `seat`: by what right a server is watched here; `seats`: which those are, where there are several instances

pub mod containers;
pub mod kind;
pub mod reading;
pub mod rule;
pub mod silence;
pub mod text;

mod absence;
mod desk;
mod evaluator;
mod inbox;
mod opening;
mod quiet;
mod seat;
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
use signalbox_protocol::sample::TopProcesses;
use tokio::sync::Mutex;
use uuid::Uuid;

use self::desk::Desk;
use self::evaluator::Evaluator;
use self::inbox::{Change, Inbox, Input};
use self::seat::{Seat, heard_before};
use self::seats::Seats;
use self::watch::Watch;
use crate::audit::Actor as Author;
use crate::cluster::Cluster;
use crate::feeds::Feeds;
use crate::fleet::{Fleet, Snapshot};
use crate::metrics::query::History;
use crate::notify::Notifier;
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

/// How often what is too old is looked for.
const TIDY_EVERY: Duration = Duration::from_secs(3600);

const DAY_MS: i64 = 24 * 3600 * 1000;

/// The evaluators, behind cheap clones.
#[derive(Clone)]
pub struct Alerts {
    desk: Desk,
    arbiter: ArbiterHandle,
    /// Whoever loads rules hands them out before the next may load: the newest come last.
    loading: Arc<Mutex<()>>,
    /// Which servers are watched here; none where there is no other instance, and all are.
    seats: Option<Arc<Seats>>,
}

/// What the evaluators need.
pub struct Parts {
    pub store: Store,
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub history: History,
    pub notifier: Notifier,
    /// Agents have until it has passed to come back before they are missed.
    pub patience: Duration,
}

impl Alerts {
    /// Starts an evaluator for every server that has thresholds, on the arbiter of the calling thread; where there are
    /// several instances, for those that are this one's.
    pub async fn start(parts: Parts, cluster: &Cluster) -> Result<Self, StoreError> {
        let Parts { store, fleet, feeds, history, notifier, patience } = parts;
        let patience_ms = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
        let patient_until = Timestamp::from_millis(Timestamp::now().as_millis().saturating_add(patience_ms));
        let desk = Desk::new(store, fleet, feeds, history, notifier, patient_until);
        let seats = (!cluster.is_alone()).then(|| Arc::new(Seats::new(cluster.shards.clone(), patience_ms)));
        let alerts = Self { desk, arbiter: actix::Arbiter::current(), loading: Arc::default(), seats: seats.clone() };
        if let Some(seats) = seats {
            alerts.keep_seats(&seats);
            return Ok(alerts);
        }
        for server in alerts.desk.store.watched_servers(RuleScope::All).await? {
            alerts.begin(server, Seat::Alone, true);
        }
        Ok(alerts)
    }

    /// A sample came. Nothing happens where nothing is watched.
    pub fn sample(&self, snapshot: &Arc<Snapshot>, processes: Option<&Arc<TopProcesses>>, lane: Lane, now: Timestamp) {
        let Some(inbox) = self.inbox(snapshot.server_id) else { return };
        if lane == Lane::Late && now.millis_since(snapshot.sample.timestamp) > inbox.late_window_ms() {
            return;
        }
        inbox.put(Input::Sample { snapshot: snapshot.clone(), processes: processes.cloned(), lane });
    }

    /// An agent tells what happened on its machine.
    pub fn happened(&self, server_id: Uuid, event: &Event) {
        if let Some(inbox) = self.inbox(server_id) {
            inbox.put(Input::Event(event.clone()));
        }
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
    /// that cannot be read it is tried again in the background, because what was changed is kept.
    pub async fn rules_changed(&self, scope: Scope) -> Result<(), StoreError> {
        let heeded = self.heed(scope).await;
        if heeded.is_err() {
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
        heeded
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
        if let Some(seats) = &self.seats {
            seats.look_soon();
        }
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

    /// Somebody resolves an alert by hand; what is resolved already stays as it is.
    pub async fn resolve(&self, owner_id: Uuid, id: Uuid, author: &Author) -> Result<Option<Alert>, StoreError> {
        let Some((alert, is_new)) = self.desk.store.resolve_alert(owner_id, id, author).await? else { return Ok(None) };
        if is_new {
            self.desk.tell_and_notify(&alert);
            let heeded = self.inbox(alert.server_id).map(|inbox| inbox.order(Change::Acted(Box::new(alert.clone()))));
            if let Some(Ok(heeded)) = heeded {
                _ = tokio::time::timeout(HEEDED_WITHIN, heeded).await;
            }
        }
        Ok(Some(alert))
    }

    /// An alert was resolved by hand, maybe on another instance: its evaluator goes by that, if it is here.
    pub async fn acted(&self, id: Uuid) -> Result<(), StoreError> {
        let Some(alert) = self.desk.store.alert(id).await? else { return Ok(()) };
        if let Some(Ok(heeded)) = self.inbox(alert.server_id).map(|inbox| inbox.order(Change::Acted(Box::new(alert)))) {
            _ = tokio::time::timeout(HEEDED_WITHIN, heeded).await;
        }
        Ok(())
    }

    /// Removes what was resolved longer ago than is kept, now and then.
    pub async fn keep_tidy(self, kept_days: u32) {
        loop {
            let kept_ms = i64::from(kept_days) * DAY_MS;
            let before = Timestamp::from_millis(Timestamp::now().as_millis().saturating_sub(kept_ms));
            loop {
                match self.desk.store.forget_alerts(before).await {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "old alerts could not be removed");
                        break;
                    }
                }
            }
            tokio::time::sleep(TIDY_EVERY).await;
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
                let seat = match &self.seats {
                    None => Some(Seat::Alone),
                    // One without a session is found by whoever looks after it.
                    Some(seats) => {
                        seats.home(server.server_id).filter(|id| server.session_id == Some(*id)).map(Seat::Home)
                    }
                };
                self.begin(server, seat?, false);
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
        let watch = Watch::new(server, Timestamp::now());
        inbox.set_late_window_ms(watch.late_window_ms());
        let desk = self.desk.clone();
        Evaluator::start_in_arbiter(&self.arbiter, move |_| Evaluator::new(desk, watch, inbox, replays));
    }
}
