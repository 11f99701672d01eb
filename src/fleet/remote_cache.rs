//! A cache of what other instances publish about the servers that they hold.
//!
//! It covers owners whose servers are watched on this instance. A message may be lost, so a value that was read from the
//! database after the last message takes precedence.

use std::sync::Arc;
use std::time::Instant;

use dashmap::{DashMap, DashSet};
use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use super::reach::Kept;
use super::{Newest, Server, Snapshot};

/// Servers in the cache: more than one instance will ever show. The database has the others.
const MAX_SERVERS: usize = 200_000;

/// The cache; cheap to clone.
#[derive(Clone, Default)]
pub struct RemoteCache {
    /// The owners whose servers are cached.
    owners: Arc<DashSet<Uuid>>,
    servers: Arc<DashMap<Uuid, RemoteState>>,
}

/// What was published about a server.
#[derive(Debug, Clone, Default)]
pub(super) struct RemoteState {
    owner_id: Uuid,
    pub heard: Option<RemoteStatus>,
    /// The last time at which the agent was seen, as published.
    pub last_seen_at: Option<Timestamp>,
    pub newest: Newest,
}

/// A status of an agent's session that was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteStatus {
    pub status: ServerStatus,
    /// The instance that holds the session, or held it; `None` if not known.
    pub from: Option<Uuid>,
    pub at: Instant,
}

impl RemoteStatus {
    pub fn now(status: ServerStatus, from: Option<Uuid>) -> Self {
        Self { status, from, at: Instant::now() }
    }

    pub fn is_online(self) -> bool {
        self.status == ServerStatus::Online
    }

    /// Returns whether this status replaces the earlier one. An instance that reports the end of its session cannot replace
    /// the status of a session that another instance holds by now.
    pub fn follows(self, before: Option<Self>) -> bool {
        let Some(before) = before else { return true };
        let is_of_another = self.from.zip(before.from).is_some_and(|(from, holder)| from != holder);
        self.is_online() || !before.is_online() || !is_of_another
    }
}

impl RemoteCache {
    /// Starts to cache an owner's servers.
    pub fn follow(&self, owner_id: Uuid) {
        self.owners.insert(owner_id);
    }

    /// Removes an owner's servers, because nobody watches them here any more.
    pub fn forget(&self, owner_id: Uuid) {
        self.owners.remove(&owner_id);
        self.servers.retain(|_, told| told.owner_id != owner_id);
    }

    /// Removes a server that was deleted.
    pub(super) fn forget_server(&self, server_id: Uuid) {
        self.servers.remove(&server_id);
    }

    /// Takes in that an agent has connected or disconnected.
    pub fn status(&self, owner_id: Uuid, server_id: Uuid, heard: RemoteStatus) {
        self.change(owner_id, server_id, |told| {
            if heard.follows(told.heard) {
                told.heard = Some(heard);
            }
        });
    }

    /// Takes in a sample that arrived at the instance that holds the server.
    pub fn sample(&self, owner_id: Uuid, snapshot: Arc<Snapshot>, now: Timestamp) {
        self.take(owner_id, snapshot, Some(now), now);
    }

    /// Takes in what the database has of a server.
    pub(super) fn remember(&self, kept: Kept) {
        let Kept { server_id, owner_id, latest, last_seen_at } = kept;
        match latest {
            // Taken as of the far future, so that it never replaces a newer sample that was published.
            Some(snapshot) => self.take(owner_id, snapshot, last_seen_at, Timestamp::from_millis(i64::MAX)),
            None => self.change(owner_id, server_id, |told| told.last_seen_at = told.last_seen_at.max(last_seen_at)),
        }
    }

    fn take(&self, owner_id: Uuid, snapshot: Arc<Snapshot>, seen_at: Option<Timestamp>, now: Timestamp) {
        // Computed before anything is locked: a sample may have a thousand interfaces.
        let before = self.servers.get(&snapshot.server_id).map(|told| told.newest.clone());
        let tells = before.unwrap_or_default().tells(&snapshot);
        self.change(owner_id, snapshot.server_id, |told| {
            told.last_seen_at = told.last_seen_at.max(seen_at);
            told.newest.take(snapshot, tells, now);
        });
    }

    /// Takes over what this instance knew of a server whose session has ended, for its subscribers.
    pub(super) fn inherit(&self, server_id: Uuid, server: Server) {
        self.change(server.owner_id, server_id, |told| {
            if server.newest.latest.is_some() {
                told.last_seen_at = told.last_seen_at.max(server.last_seen_at);
                told.newest = server.newest;
            }
        });
    }

    pub(super) fn view(&self, server_id: Uuid) -> RemoteState {
        self.servers.get(&server_id).map(|told| told.value().clone()).unwrap_or_default()
    }

    fn change(&self, owner_id: Uuid, server_id: Uuid, change: impl FnOnce(&mut RemoteState)) {
        if !self.owners.contains(&owner_id) {
            return;
        }
        if !self.servers.contains_key(&server_id) && self.servers.len() >= MAX_SERVERS {
            metrics::counter!("signalbox_exchange_servers_refused_total").increment(1);
            return;
        }
        let mut told = self.servers.entry(server_id).or_default();
        told.owner_id = owner_id;
        change(&mut told);
    }
}
