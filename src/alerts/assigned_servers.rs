//! Decides which servers one of several instances evaluates: those whose sessions it holds, and those without a session
//! that are in its shards.
//!
//! An instance reads open and pending alerts after the database names it as the evaluator, and an instance that is no
//! longer named cannot write. So no alert is lost or opened twice, in whatever order sessions and instances come and go.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::assigner::Assigner;
use super::assignment::{Assignment, patient_until};
use super::inbox::{Change, Inbox, Input};
use super::{Alerts, HEED_AGAIN_AFTER};
use crate::shards::Shards;
use crate::store::{OfflineServers, RuleScope, StoreError, WatchedServer};

/// How long agents that connect are gathered, so that a fleet that reconnects is read in a few queries. Their samples wait
/// until then.
const GATHERED_FOR: Duration = Duration::from_millis(20);

/// Servers read in one query.
const AT_ONCE: usize = 500;

/// How often to look for servers without a session.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The shortest time between two looks, for when thousands of agents disconnect.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(200);

/// The servers that this instance evaluates.
pub(super) struct AssignedServers {
    shards: Shards,
    patience_ms: i64,
    /// The sessions of this instance that the database contains, by server.
    sessions: DashMap<Uuid, Uuid>,
    /// The inboxes of servers that have just connected; inputs wait there until the thresholds are loaded.
    waiting: Mutex<HashMap<Uuid, Arc<Inbox>>>,
    has_arrived: Notify,
    look: Notify,
}

impl AssignedServers {
    pub fn new(shards: Shards, patience_ms: i64) -> Self {
        Self {
            shards,
            patience_ms,
            sessions: DashMap::new(),
            waiting: Mutex::default(),
            has_arrived: Notify::new(),
            look: Notify::new(),
        }
    }

    /// Returns the session of a server, if this instance holds it.
    pub fn home(&self, server_id: Uuid) -> Option<Uuid> {
        self.sessions.get(&server_id).map(|session| *session)
    }

    /// Lets a server with a session here wait until its thresholds are loaded, in place of its evaluator. Returns what resolves when
    /// that has ended.
    fn waits(&self, alerts: &Alerts, server_id: Uuid, session_id: Uuid) -> Option<oneshot::Receiver<()>> {
        let inbox = alerts.writer.new_inbox(Assignment::SessionHolder(session_id), i64::MAX);
        let ended = alerts.register(server_id, inbox.clone());
        if let Some(states) = alerts.states.of_session(server_id, session_id) {
            inbox.put(Input::KeptStates(states));
        }
        self.waiting.lock().insert(server_id, inbox);
        self.has_arrived.notify_one();
        ended
    }
}

impl Assigner for AssignedServers {
    fn begin<'a>(self: Arc<Self>, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>> {
        actix::spawn(alerts.clone().welcome(self.clone()));
        actix::spawn(alerts.clone().look_after(self));
        Box::pin(ready(Ok(())))
    }

    fn replace_all(&self, alerts: &Alerts) -> Vec<oneshot::Receiver<()>> {
        let mut ended = Vec::new();
        let sessions: Vec<(Uuid, Uuid)> = self.sessions.iter().map(|entry| (*entry.key(), *entry.value())).collect();
        for (server_id, session_id) in sessions {
            // One that waits already is read after this.
            if alerts.inbox(server_id).is_none_or(|inbox| inbox.is_evaluated()) {
                ended.extend(self.waits(alerts, server_id, session_id));
            }
        }
        for (_, inbox) in alerts.inboxes(true) {
            if matches!(inbox.assignment, Assignment::ShardOwner { .. }) {
                ended.extend(inbox.order(Change::Gone));
            }
        }
        ended
    }

    /// Those that wait are read as soon as rules are handed out again, and [`Alerts::look`] finds the servers without a session.
    fn begin_again<'a>(&'a self, _: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>> {
        self.look_soon();
        Box::pin(ready(Ok(())))
    }

    /// Servers without a session are found by [`Alerts::look`].
    fn assignment_of(&self, server: &WatchedServer) -> Option<Assignment> {
        self.home(server.server_id).filter(|id| server.session_id == Some(*id)).map(Assignment::SessionHolder)
    }

    fn look_soon(&self) {
        self.look.notify_one();
    }

    fn arrived(&self, alerts: &Alerts, server_id: Uuid, session_id: Uuid) {
        self.sessions.insert(server_id, session_id);
        _ = self.waits(alerts, server_id, session_id);
    }

    fn departed(&self, alerts: &Alerts, server_id: Uuid) {
        self.sessions.remove(&server_id);
        if let Some(inbox) =
            alerts.inbox(server_id).filter(|inbox| matches!(inbox.assignment, Assignment::SessionHolder(_)))
        {
            alerts.leave(server_id, &inbox);
            // The server may be in this instance's shard.
            self.look_soon();
        }
    }
}

impl Alerts {
    async fn welcome(self, assigned: Arc<AssignedServers>) {
        loop {
            assigned.has_arrived.notified().await;
            sleep(GATHERED_FOR).await;
            let mut arrived: Vec<(Uuid, Arc<Inbox>)> =
                std::mem::take(&mut *assigned.waiting.lock()).into_iter().collect();
            while !arrived.is_empty() {
                let some = arrived.split_off(arrived.len().saturating_sub(AT_ONCE));
                while let Err(error) = self.assignment(&assigned, &some).await {
                    if self.is_stopping() {
                        return;
                    }
                    tracing::error!(%error, "thresholds could not be read, will try again");
                    sleep(HEED_AGAIN_AFTER).await;
                }
            }
        }
    }

    /// Starts to evaluate servers whose sessions this instance holds.
    async fn assignment(&self, assigned: &AssignedServers, arrived: &[(Uuid, Arc<Inbox>)]) -> Result<(), StoreError> {
        let _turn = self.loading.lock().await;
        let ids: Vec<Uuid> = arrived.iter().map(|(id, _)| *id).collect();
        let servers = self.writer.store.watched_servers(RuleScope::Servers(&ids)).await?;
        let mut servers: HashMap<Uuid, WatchedServer> =
            servers.into_iter().map(|server| (server.server_id, server)).collect();
        for (server_id, inbox) in arrived {
            let Assignment::SessionHolder(session_id) = inbox.assignment else { continue };
            let is_current = self.inbox(*server_id).is_some_and(|current| Arc::ptr_eq(&current, inbox));
            let is_here = is_current && assigned.home(*server_id) == Some(session_id);
            let server = servers.remove(server_id).filter(|_| is_here);
            match server {
                Some(server) if server.session_id != Some(session_id) => {
                    self.writer.lost.insert(session_id, *server_id);
                }
                // A change that people made in the meantime waits in the inbox.
                Some(server) if server.is_watched() || !inbox.close_if_empty() => {
                    self.evaluate(server, inbox.clone(), true, None);
                    continue;
                }
                Some(_) | None => {}
            }
            inbox.close();
            self.writer.ended(*server_id, inbox);
        }
        Ok(())
    }

    async fn look_after(self, assigned: Arc<AssignedServers>) {
        let mut held = HashMap::new();
        loop {
            self.find_again(&assigned);
            if let Err(error) = self.look(&assigned, &mut held).await {
                if self.is_stopping() {
                    return;
                }
                tracing::error!(%error, "servers without a session could not be read, will try again");
            }
            sleep(LOOK_AT_MOST_EVERY).await;
            _ = timeout(LOOK_EVERY, assigned.look.notified()).await;
        }
    }

    /// Retries sessions that the database did not contain a moment ago and that this instance still holds.
    fn find_again(&self, assigned: &AssignedServers) {
        let lost: Vec<(Uuid, Uuid)> = self.writer.lost.iter().map(|entry| (*entry.key(), *entry.value())).collect();
        for (session_id, server_id) in lost {
            self.writer.lost.remove(&session_id);
            if assigned.home(server_id) == Some(session_id) {
                assigned.arrived(self, server_id, session_id);
            }
        }
    }

    /// Starts and stops evaluating servers that have no session on any instance.
    async fn look(&self, assigned: &AssignedServers, held: &mut HashMap<Uuid, Arc<Inbox>>) -> Result<(), StoreError> {
        let share = assigned.shards.share();
        // Without a shard no server is this instance's, even while the database is unavailable.
        let there =
            if share.is_empty() { OfflineServers::default() } else { self.writer.store.unattended(&share).await? };
        held.retain(|server_id, inbox| {
            let is_same = matches!(inbox.assignment, Assignment::ShardOwner { last_seen_at, .. }
                if there.servers.get(server_id) == Some(&last_seen_at));
            if !is_same {
                self.leave(*server_id, inbox);
            }
            is_same && !inbox.is_closed()
        });
        let is_new = |id: &&Uuid| !held.contains_key(*id) && assigned.home(**id).is_none();
        let new: Vec<Uuid> = there.servers.keys().filter(is_new).copied().collect();
        for some in new.chunks(AT_ONCE) {
            let _turn = self.loading.lock().await;
            for server in self.writer.store.watched_servers(RuleScope::Servers(some)).await? {
                let (server_id, last_seen_at) = (server.server_id, server.last_seen_at);
                if server.session_id.is_some() {
                    continue;
                }
                let patient_until = patient_until(last_seen_at, there.since, assigned.patience_ms);
                let inbox = self.writer.new_inbox(Assignment::ShardOwner { last_seen_at, patient_until }, 0);
                if server.is_watched() && self.takes_place(server_id, &inbox) {
                    held.insert(server_id, inbox.clone());
                    self.evaluate(server, inbox, true, None);
                }
            }
        }
        Ok(())
    }

    /// Registers an inbox, unless this instance has got the server's session in the meantime. Returns whether it did.
    fn takes_place(&self, server_id: Uuid, inbox: &Arc<Inbox>) -> bool {
        match self.writer.inboxes.entry(server_id) {
            Entry::Occupied(entry) if matches!(entry.get().assignment, Assignment::SessionHolder(_)) => false,
            entry => {
                entry.insert(inbox.clone());
                true
            }
        }
    }

    /// Stops evaluating a server for the reason that this inbox stands for.
    fn leave(&self, server_id: Uuid, inbox: &Arc<Inbox>) {
        _ = inbox.order(Change::Gone);
        self.writer.ended(server_id, inbox);
    }
}
