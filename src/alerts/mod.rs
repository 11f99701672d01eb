//! Thresholds and the alerts that they raise.
//!
//! Each server that has thresholds has an evaluator, an actor. It gets everything that happens on its server and evaluates
//! one input at a time: it writes the changes of alerts, together with the notifications, before it takes the next input.
//!
//! - [`rule`] (pure): when a threshold fires and when it has recovered; its vocabulary is in
//!   [`alert_words`](crate::alert_words)
//! - [`measurement`] (pure): reads the value for a threshold from a sample
//! - `threshold_state`, `watch`: the thresholds of a server and their states, which turn inputs into changes of alerts
//! - `evaluator`: the actor around them; `inbox`: its input queue; `sample_budget`: how much may wait in all of
//!   them; `alert_writer`: how it reads and writes
//! - `assignment`: why this instance evaluates a server; `assigner`: which servers it evaluates;
//!   `assigned_servers`: the same with several instances
//! - `of_schedules`: the alerts of schedules, which no evaluator opens

pub mod containers;
pub mod measurement;
pub mod rule;
pub mod silence;
pub mod text;

mod absence;
mod alert_builder;
mod alert_writer;
mod assigned_servers;
mod assigner;
mod assignment;
mod container_rules;
mod evaluator;
mod inbox;
mod latest_states;
mod notes;
mod of_schedules;
mod patience;
mod quiet;
mod reboots;
mod sample_budget;
mod threshold_state;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::{Actor, ArbiterHandle};
use futures_util::future::join_all;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;
use signalbox_protocol::sample::{TopProcesses, Unread};
use tokio::sync::{Mutex, oneshot};
use uuid::Uuid;

use self::alert_writer::AlertWriter;
use self::assigned_servers::AssignedServers;
use self::assigner::{All, Assigner};
use self::assignment::{Assignment, heard_before};
use self::evaluator::Evaluator;
use self::inbox::{Change, Inbox, Input};
use self::latest_states::LatestStates;
use self::patience::Patience;
use self::watch::Watch;
use crate::audit::Actor as Author;
use crate::auth::access::Access;
use crate::clock::Clock;
use crate::feeds::Feeds;
use crate::fleet::{Fleet, Snapshot};
use crate::metrics::query::History;
use crate::notify::Notifier;
use crate::shards::Shards;
use crate::store::{Alert, RuleScope, Store, StoreError, WatchedServer};

/// The servers whose rules have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All servers of this owner.
    Owner(Uuid),
    Server(Uuid),
}

/// Whether a sample is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Live,
    /// Sent later, by an agent that catches up.
    Late,
}

/// How long the caller of a change waits until the evaluators have applied it. They cannot while the database is
/// unavailable; the change itself is stored in any case.
const HEEDED_WITHIN: Duration = Duration::from_secs(5);

/// The pause after a database error.
const HEED_AGAIN_AFTER: Duration = Duration::from_secs(2);

const DAY_MS: i64 = 24 * 3600 * 1000;

/// A handle to the evaluators; cheap to clone.
#[derive(Clone)]
pub struct Alerts {
    writer: AlertWriter,
    arbiter: ArbiterHandle,
    /// Held from loading rules until they are handed out, so that the newest rules are handed out last.
    loading: Arc<Mutex<()>>,
    /// Decides which servers this instance evaluates.
    assigner: Arc<dyn Assigner>,
    gone_after: Duration,
    states: LatestStates,
}

/// What an agent sends with a sample that the snapshot does not contain.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    pub processes: Option<Arc<TopProcesses>>,
    /// What exists on the machine and could not be read.
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
    /// Says who may see the servers of alerts.
    pub access: Access,
    /// How long agents have to reconnect after the service started or paused, before they count as offline.
    pub patience: Duration,
    /// How long a target may be missing from samples before its alert ends.
    pub gone_after: Duration,
}

impl Alerts {
    /// Evaluates all servers, for a single instance. Evaluators run on the arbiter of the calling thread.
    pub fn alone(parts: Parts) -> Self {
        Self::seated(parts, Arc::new(All))
    }

    /// Evaluates this instance's servers, for one of several instances: those with a session here, and those without any
    /// session that are in its shards.
    pub fn among_others(parts: Parts, shards: Shards) -> Self {
        let patience_ms = i64::try_from(parts.patience.as_millis()).unwrap_or(i64::MAX);
        Self::seated(parts, Arc::new(AssignedServers::new(shards, patience_ms)))
    }

    fn seated(parts: Parts, assigner: Arc<dyn Assigner>) -> Self {
        let (patience, gone_after) = (Patience::new(parts.clock.clone(), parts.patience), parts.gone_after);
        let writer = AlertWriter::new(parts, patience);
        let (arbiter, loading) = (actix::Arbiter::current(), Arc::default());
        Self { writer, arbiter, loading, assigner, gone_after, states: LatestStates::default() }
    }

    /// Starts an evaluator for every server that has thresholds and belongs to this instance.
    pub async fn start(&self) -> Result<(), StoreError> {
        self.assigner.clone().begin(self).await
    }

    /// Passes a sample to the server's evaluator, if it has one.
    pub fn sample(&self, snapshot: &Arc<Snapshot>, beside: Beside, freshness: Freshness, now: Timestamp) {
        let Some(inbox) = self.inbox(snapshot.server_id) else { return };
        if freshness == Freshness::Late && now.millis_since(snapshot.sample.timestamp) > inbox.late_window_ms() {
            return;
        }
        inbox.put(Input::Sample { snapshot: snapshot.clone(), beside, freshness });
    }

    /// Passes an event that the agent reported in this session to the server's evaluator.
    pub fn happened(&self, server_id: Uuid, session_id: Uuid, event: &Event) {
        self.states.keep(server_id, session_id, event);
        if let Some(inbox) = self.inbox(server_id) {
            inbox.put(Input::Event(event.clone()));
        }
    }

    /// Takes in that an agent has reconnected after its machine rebooted. `at` is the time of the recorded event.
    pub fn rebooted(&self, server_id: Uuid, at: Timestamp) {
        if let Some(inbox) = self.inbox(server_id) {
            inbox.put(Input::Rebooted { at });
        }
    }

    /// Takes in that a session of this instance holds the server, and that the database says so.
    pub fn arrived(&self, server_id: Uuid, session_id: Uuid) {
        self.assigner.arrived(self, server_id, session_id);
    }

    /// Takes in that no session of this instance holds the server any more.
    pub fn departed(&self, server_id: Uuid) {
        self.states.forget(server_id);
        self.assigner.departed(self, server_id);
    }

    /// Wakes the evaluator after an agent connected or disconnected; it asks the fleet which.
    pub fn presence(&self, server_id: Uuid) {
        if let Some(inbox) = self.inbox(server_id) {
            inbox.wake();
        }
    }

    /// Takes in that the service is stopping: from here on no agent counts as offline.
    pub fn stop(&self) {
        self.writer.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Whether nothing is evaluated any more. The database may be closed then, which is no error.
    fn is_stopping(&self) -> bool {
        self.writer.is_stopping.load(Ordering::SeqCst)
    }

    /// Returns a future that resolves when every input of a server so far is evaluated and its changes are written; `None`
    /// if that is already so.
    pub fn idle(&self, server_id: Uuid) -> Option<impl Future<Output = ()> + use<>> {
        let inbox = self.inbox(server_id).filter(|inbox| inbox.is_busy())?;
        Some(async move { inbox.idle().await })
    }

    /// Loads thresholds, tags or servers that have changed. Returns when the evaluators have applied them, or after
    /// [`HEEDED_WITHIN`]. If they cannot be read it retries in the background: the change itself is stored, so the caller
    /// gets no error.
    pub async fn rules_changed(&self, scope: Scope) {
        self.retried(move |alerts| async move { alerts.reload(scope).await }).await;
    }

    /// Takes in that the database has lost changes, as after a failover. Evaluators count on alerts that are not stored any more,
    /// and have ended some that are open again. So every server is evaluated again, as after a restart of the service.
    pub async fn rewound(&self) {
        self.retried(|alerts| async move { alerts.begin_again().await }).await;
    }

    /// Reads thresholds once, and if that fails in the background until they are read.
    async fn retried<F>(&self, read: impl Fn(Self) -> F + 'static)
    where
        F: Future<Output = Result<(), StoreError>>,
    {
        if let Err(error) = read(self.clone()).await {
            if self.is_stopping() {
                return;
            }
            tracing::warn!(%error, "thresholds could not be read, will try again");
            let alerts = self.clone();
            actix::spawn(async move {
                loop {
                    tokio::time::sleep(HEED_AGAIN_AFTER).await;
                    match read(alerts.clone()).await {
                        Ok(()) => break,
                        Err(_) if alerts.is_stopping() => break,
                        Err(error) => tracing::error!(%error, "thresholds could not be read, will try again"),
                    }
                }
            });
        }
    }

    async fn begin_again(&self) -> Result<(), StoreError> {
        let _turn = self.loading.lock().await;
        // What they are writing is written before the alerts are read.
        let ended = join_all(self.assigner.replace_all(self));
        _ = tokio::time::timeout(HEEDED_WITHIN, ended).await;
        self.assigner.begin_again(self).await
    }

    async fn reload(&self, scope: Scope) -> Result<(), StoreError> {
        let waiting = {
            let _turn = self.loading.lock().await;
            let (scope, only) = match scope {
                Scope::Owner(id) => (RuleScope::Owner(id), None),
                Scope::Server(id) => (RuleScope::Server(id), Some(id)),
            };
            let servers = self.writer.store.watched_servers(scope).await?;
            let gone = only.filter(|_| servers.is_empty()).and_then(|id| self.inbox(id));
            if let Some(Ok(gone)) = gone.map(|inbox| inbox.order(Change::Gone)) {
                // Nobody has to wait for its end.
                drop(gone);
            }
            servers.into_iter().filter_map(|server| self.hand_out(server)).collect::<Vec<_>>()
        };
        self.assigner.look_soon();
        let heeded = async {
            for done in waiting {
                // An error means that the evaluator has ended, which is fine.
                _ = done.await;
            }
        };
        _ = tokio::time::timeout(HEEDED_WITHIN, heeded).await;
        Ok(())
    }

    /// Acknowledges an alert. Returns the alert as it is then; `None` if the owner has no such alert. One that is already
    /// acknowledged or resolved stays unchanged.
    pub async fn acknowledge(&self, owner_id: Uuid, id: Uuid, author: &Author) -> Result<Option<Alert>, StoreError> {
        let found = self.writer.store.acknowledge_alert(owner_id, id, author, self.now()).await?;
        // Also after a call that changed nothing: the database's answer to an earlier one may have been lost.
        if let Some(alert) = &found {
            self.writer.tell(alert).await;
        }
        Ok(found)
    }

    /// Resolves an alert for a person. Returns it; `None` if the owner has no such alert. One that is already resolved stays
    /// unchanged. Its evaluator learns of it by [`Alerts::resolved`].
    pub async fn resolve(&self, owner_id: Uuid, id: Uuid, author: &Author) -> Result<Option<Alert>, StoreError> {
        let found = self.writer.store.resolve_alert(owner_id, id, author, self.now()).await?;
        // Also after a call that changed nothing: the database's answer to an earlier one may have been lost.
        if let Some(alert) = &found {
            self.writer.tell_and_notify(alert).await;
        }
        Ok(found)
    }

    /// Informs the evaluator, if this instance has it, that a person resolved an alert.
    pub async fn resolved(&self, id: Uuid) -> Result<(), StoreError> {
        let Some(alert) = self.writer.store.find_alert(id).await? else { return Ok(()) };
        if let Some(Ok(heeded)) = self.inbox(alert.server_id).map(|inbox| inbox.order(Change::Acted(Box::new(alert)))) {
            _ = tokio::time::timeout(HEEDED_WITHIN, heeded).await;
        }
        Ok(())
    }

    /// Removes alerts that were resolved more than `kept_days` days ago.
    pub async fn tidy(&self, kept_days: u32) {
        let kept_ms = i64::from(kept_days) * DAY_MS;
        let before = self.writer.patience.clock.certain().plus_millis(kept_ms.saturating_neg());
        let removed = async {
            while self.writer.store.forget_alerts(before).await? > 0 {}
            Ok::<_, StoreError>(())
        };
        if let Err(error) = removed.await {
            tracing::warn!(%error, "old alerts could not be removed");
        }
    }

    fn now(&self) -> Timestamp {
        self.writer.patience.clock.now()
    }

    fn inbox(&self, server_id: Uuid) -> Option<Arc<Inbox>> {
        self.writer.inboxes.get(&server_id).map(|entry| entry.value().clone())
    }

    /// Registers an inbox for a server, and asks the evaluator of the one before to end. Returns what resolves when it has; `None` if
    /// there is none.
    fn register(&self, server_id: Uuid, inbox: Arc<Inbox>) -> Option<oneshot::Receiver<()>> {
        let before = self.writer.inboxes.insert(server_id, inbox)?;
        let is_evaluated = before.is_evaluated();
        before.order(Change::Gone).ok().filter(|_| is_evaluated)
    }

    /// Returns the servers whose inboxes have, or do not have, an evaluator.
    fn inboxes(&self, is_evaluated: bool) -> Vec<(Uuid, Arc<Inbox>)> {
        let all = self.writer.inboxes.iter().map(|entry| (*entry.key(), entry.value().clone()));
        all.filter(|(_, inbox)| inbox.is_evaluated() == is_evaluated).collect()
    }

    /// Sends rules to the server's evaluator, or starts one if the server has thresholds and belongs to this instance.
    fn hand_out(&self, server: WatchedServer) -> Option<oneshot::Receiver<()>> {
        match self.inbox(server.server_id).map(|inbox| inbox.order(Change::Rules(Box::new(server.clone())))) {
            Some(Ok(done)) => Some(done),
            // There is no evaluator, or it has just ended.
            Some(Err(_)) | None => {
                let assignment = self.assigner.assignment_of(&server)?;
                self.begin(server, assignment, false);
                None
            }
        }
    }

    fn begin(&self, server: WatchedServer, assignment: Assignment, replays: bool) {
        if server.is_watched() {
            let inbox = self.writer.new_inbox(assignment, 0);
            let latest = self.writer.fleet.latest_and_distance(server.server_id);
            // First, so that a list that arrives now is not missed.
            self.writer.inboxes.insert(server.server_id, inbox.clone());
            if let Some(states) = self.states.of(server.server_id) {
                inbox.put(Input::KeptStates(states));
            }
            self.evaluate(server, inbox, replays, latest);
        }
    }

    /// Starts an evaluator for an inbox that is already registered. `latest` is the sample before the first one in the inbox, or
    /// rarely that one; a replay finds its own.
    fn evaluate(
        &self,
        mut server: WatchedServer,
        inbox: Arc<Inbox>,
        replays: bool,
        latest: Option<(Arc<Snapshot>, i64)>,
    ) {
        inbox.set_evaluated();
        if let Assignment::SessionHolder(_) = inbox.assignment {
            server.last_seen_at = heard_before(&server);
        }
        let watch = Watch::new(server, self.gone_after, self.now()).after(latest);
        inbox.set_late_window_ms(watch.late_window_ms());
        let writer = self.writer.clone();
        Evaluator::start_in_arbiter(&self.arbiter, move |_| Evaluator::new(writer, watch, inbox, replays));
    }
}
