//! Which servers a fleet covers: [`SoleReach`] for a single instance, [`RemoteCache`] for one of several.

use std::sync::Arc;

use dashmap::DashMap;
use signalbox_history::network::Traffic;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::remote_cache::{RemoteCache, RemoteState};
use super::{Presence, Recency, Server, ServerView, Snapshot};

/// The state of every server on this instance.
pub(super) type Servers = DashMap<Uuid, Server>;

/// The traffic between the latest sample and the one before it, and the milliseconds between them.
pub(super) type Between = Option<(Traffic, i64)>;

pub(super) trait Reach: Send + Sync + 'static {
    /// Takes in that a session has left a server. Returns whether it was the one that held it.
    fn offline(&self, servers: &Servers, server_id: Uuid, session_id: Uuid) -> bool;

    /// Makes a sample the latest, unless there is a newer one. Of a server whose session is elsewhere every sample is older.
    fn record(&self, servers: &Servers, snapshot: Arc<Snapshot>, told: Between, now: Timestamp) -> Recency;

    /// Returns what other instances published about a server.
    fn remote_state(&self, server_id: Uuid) -> RemoteState;

    /// Removes a server that was deleted.
    fn forget(&self, server_id: Uuid);

    /// Takes in what the database has of a server.
    fn recall(&self, servers: &Servers, kept: Kept);

    /// Returns whether the database may have a newer sample than `glance`. `seen_at` is when the server was last seen
    /// according to the database.
    fn lacks_sample(&self, view: &ServerView, seen_at: Option<Timestamp>) -> bool;

    /// Returns whether this process alone decides on a server's presence.
    fn is_sure_of(&self, presence: Option<Presence>) -> bool;
}

/// What the database has of a server.
#[derive(Debug, Clone)]
pub struct Kept {
    pub server_id: Uuid,
    pub owner_id: Uuid,
    /// The latest sample, if there is one.
    pub latest: Option<Arc<Snapshot>>,
    pub last_seen_at: Option<Timestamp>,
}

/// Covers all servers, from their first session on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SoleReach;

impl Reach for SoleReach {
    fn offline(&self, servers: &Servers, server_id: Uuid, session_id: Uuid) -> bool {
        let Some(mut server) = servers.get_mut(&server_id) else { return false };
        let held = server.session_id == Some(session_id);
        if held {
            server.session_id = None;
        }
        held
    }

    fn record(&self, servers: &Servers, snapshot: Arc<Snapshot>, told: Between, now: Timestamp) -> Recency {
        servers.entry(snapshot.server_id).or_default().newest.take(snapshot, told, now)
    }

    fn remote_state(&self, _: Uuid) -> RemoteState {
        RemoteState::default()
    }

    fn forget(&self, _: Uuid) {}

    /// Records only that there is no sample: the caller has recorded one that exists.
    fn recall(&self, servers: &Servers, kept: Kept) {
        if kept.latest.is_none() {
            servers.entry(kept.server_id).or_default().lacks_samples = true;
        }
    }

    fn lacks_sample(&self, view: &ServerView, _: Option<Timestamp>) -> bool {
        view.latest.is_none()
    }

    fn is_sure_of(&self, _: Option<Presence>) -> bool {
        true
    }
}

/// Covers the servers whose sessions this instance holds, for as long as it does. The database and the cache have the
/// others.
impl Reach for RemoteCache {
    fn offline(&self, servers: &Servers, server_id: Uuid, session_id: Uuid) -> bool {
        let left = servers.remove_if(&server_id, |_, server| server.session_id == Some(session_id));
        let Some((_, server)) = left else { return false };
        self.inherit(server_id, server);
        true
    }

    fn record(&self, servers: &Servers, snapshot: Arc<Snapshot>, told: Between, now: Timestamp) -> Recency {
        let server = servers.get_mut(&snapshot.server_id).filter(|server| server.session_id.is_some());
        server.map_or(Recency::Older, |mut server| server.newest.take(snapshot, told, now))
    }

    fn remote_state(&self, server_id: Uuid) -> RemoteState {
        self.view(server_id)
    }

    fn forget(&self, server_id: Uuid) {
        self.forget_server(server_id);
    }

    /// Does not record that there is no sample, because the server may send one to another instance at any time.
    fn recall(&self, _: &Servers, kept: Kept) {
        self.remember(kept);
    }

    /// True if the database has seen a server later than the other instances last published, unless its session is here.
    fn lacks_sample(&self, view: &ServerView, seen_at: Option<Timestamp>) -> bool {
        let is_here = view.presence.is_some() && view.latest.is_some();
        !is_here && seen_at > view.heard_of_at
    }

    fn is_sure_of(&self, presence: Option<Presence>) -> bool {
        presence.is_some()
    }
}
