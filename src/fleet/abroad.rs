//! What other instances tell of the servers that they hold.
//!
//! It is kept while somebody watches the owner of the servers here, and it may be lost on the way: so whatever was read
//! from the database later than it was heard counts for more.

use std::sync::Arc;
use std::time::Instant;

use dashmap::{DashMap, DashSet};
use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use super::reach::Kept;
use super::{Newest, Server, Snapshot};

/// Servers that are remembered: more than one instance is ever to show. Of others the database tells.
const MOST: usize = 200_000;

/// What is heard of servers, behind cheap clones.
#[derive(Clone, Default)]
pub struct Abroad {
    /// Whose servers are listened for.
    owners: Arc<DashSet<Uuid>>,
    servers: Arc<DashMap<Uuid, Told>>,
}

/// What was told of a server.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    owner_id: Uuid,
    pub heard: Option<Heard>,
    /// The agent's last sign of life that was told.
    pub last_seen_at: Option<Timestamp>,
    pub newest: Newest,
}

/// What was heard of an agent's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    pub status: ServerStatus,
    /// The instance that holds the session, or held it; none where that is not known.
    pub from: Option<Uuid>,
    pub at: Instant,
}

impl Heard {
    pub fn now(status: ServerStatus, from: Option<Uuid>) -> Self {
        Self { status, from, at: Instant::now() }
    }

    pub fn is_online(self) -> bool {
        self.status == ServerStatus::Online
    }

    /// Whether this may take the place of what was heard before. An instance that says that its session has ended has
    /// nothing to say of a session that another one holds by now.
    pub fn follows(self, before: Option<Self>) -> bool {
        let Some(before) = before else { return true };
        let is_of_another = self.from.zip(before.from).is_some_and(|(from, holder)| from != holder);
        self.is_online() || !before.is_online() || !is_of_another
    }
}

impl Abroad {
    /// Listens for an owner's servers.
    pub fn follow(&self, owner_id: Uuid) {
        self.owners.insert(owner_id);
    }

    /// Nobody watches an owner's servers here any more.
    pub fn forget(&self, owner_id: Uuid) {
        self.owners.remove(&owner_id);
        self.servers.retain(|_, told| told.owner_id != owner_id);
    }

    /// A server was deleted.
    pub(super) fn forget_server(&self, server_id: Uuid) {
        self.servers.remove(&server_id);
    }

    /// An agent came or went.
    pub fn status(&self, owner_id: Uuid, server_id: Uuid, heard: Heard) {
        self.change(owner_id, server_id, |told| {
            if heard.follows(told.heard) {
                told.heard = Some(heard);
            }
        });
    }

    /// A sample came to the instance that holds the server.
    pub fn sample(&self, owner_id: Uuid, snapshot: Arc<Snapshot>, now: Timestamp) {
        self.take(owner_id, snapshot, Some(now), now);
    }

    /// What the database has of a server that was last seen then.
    pub(super) fn remember(&self, kept: Kept) {
        let Kept { server_id, owner_id, latest, last_seen_at } = kept;
        match latest {
            // What the instance that has the server says counts for more than what is of another time.
            Some(snapshot) => self.take(owner_id, snapshot, last_seen_at, Timestamp::from_millis(i64::MAX)),
            None => self.change(owner_id, server_id, |told| told.last_seen_at = told.last_seen_at.max(last_seen_at)),
        }
    }

    fn take(&self, owner_id: Uuid, snapshot: Arc<Snapshot>, seen_at: Option<Timestamp>, now: Timestamp) {
        // Before anything is locked: a sample may have a thousand interfaces.
        let before = self.servers.get(&snapshot.server_id).map(|told| told.newest.clone());
        let tells = before.unwrap_or_default().tells(&snapshot);
        self.change(owner_id, snapshot.server_id, |told| {
            told.last_seen_at = told.last_seen_at.max(seen_at);
            told.newest.take(snapshot, tells, now);
        });
    }

    /// A session here has ended: what was known of its server stays for those who watch it.
    pub(super) fn inherit(&self, server_id: Uuid, server: Server) {
        self.change(server.owner_id, server_id, |told| {
            if server.newest.latest.is_some() {
                told.last_seen_at = told.last_seen_at.max(server.last_seen_at);
                told.newest = server.newest;
            }
        });
    }

    pub(super) fn glance(&self, server_id: Uuid) -> Told {
        self.servers.get(&server_id).map(|told| told.value().clone()).unwrap_or_default()
    }

    fn change(&self, owner_id: Uuid, server_id: Uuid, change: impl FnOnce(&mut Told)) {
        if !self.owners.contains(&owner_id) {
            return;
        }
        if !self.servers.contains_key(&server_id) && self.servers.len() >= MOST {
            metrics::counter!("signalbox_exchange_servers_refused_total").increment(1);
            return;
        }
        let mut told = self.servers.entry(server_id).or_default();
        told.owner_id = owner_id;
        change(&mut told);
    }
}
