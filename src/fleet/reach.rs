//! How far the knowledge of a fleet reaches: [`Whole`] is that of the only instance, [`Abroad`] that of one of several.

use std::sync::Arc;

use dashmap::DashMap;
use signalbox_history::network::Traffic;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::abroad::{Abroad, Told};
use super::{Glance, Presence, Server, Snapshot};

/// What is known here of every server.
pub(super) type Servers = DashMap<Uuid, Server>;

/// What a latest sample tells together with the one before it, and how far apart the two are.
pub(super) type Between = Option<(Traffic, i64)>;

pub(super) trait Reach: Send + Sync + 'static {
    /// A session let go of a server. Gives whether it was the one that held it.
    fn offline(&self, servers: &Servers, server_id: Uuid, session_id: Uuid) -> bool;

    /// Takes a sample as the latest, if it is. Gives whether it is the latest now.
    fn record(&self, servers: &Servers, snapshot: Arc<Snapshot>, told: Between, now: Timestamp) -> bool;

    /// What was told from elsewhere.
    fn told(&self, server_id: Uuid) -> Told;

    /// A server was deleted.
    fn forget(&self, server_id: Uuid);

    /// Takes the latest sample that is kept of a server that was last seen then; none where nothing is kept.
    fn recall(&self, servers: &Servers, kept: Kept);

    /// Whether more may be kept of a server than is known of it, by when the database says that it was last seen.
    fn lacks_sample(&self, glance: &Glance, seen_at: Option<Timestamp>) -> bool;

    /// Whether what was seen of a server here is all that there is.
    fn is_sure_of(&self, presence: Option<Presence>) -> bool;
}

/// What is kept of a server.
#[derive(Debug, Clone)]
pub struct Kept {
    pub server_id: Uuid,
    pub owner_id: Uuid,
    /// The latest sample; none where there is none.
    pub latest: Option<Arc<Snapshot>>,
    pub last_seen_at: Option<Timestamp>,
}

/// Of all servers, from their first session on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Whole;

impl Reach for Whole {
    fn offline(&self, servers: &Servers, server_id: Uuid, session_id: Uuid) -> bool {
        let Some(mut server) = servers.get_mut(&server_id) else { return false };
        let held = server.session_id == Some(session_id);
        if held {
            server.session_id = None;
        }
        held
    }

    fn record(&self, servers: &Servers, snapshot: Arc<Snapshot>, told: Between, now: Timestamp) -> bool {
        servers.entry(snapshot.server_id).or_default().newest.take(snapshot, told, now)
    }

    fn told(&self, _: Uuid) -> Told {
        Told::default()
    }

    fn forget(&self, _: Uuid) {}

    /// The one who read it has recorded it.
    fn recall(&self, servers: &Servers, kept: Kept) {
        if kept.latest.is_none() {
            servers.entry(kept.server_id).or_default().lacks_samples = true;
        }
    }

    fn lacks_sample(&self, glance: &Glance, _: Option<Timestamp>) -> bool {
        glance.latest.is_none()
    }

    fn is_sure_of(&self, _: Option<Presence>) -> bool {
        true
    }
}

/// Of the servers whose sessions are here. Another instance may have one of them next, so nothing is known of it for long;
/// of the rest the database tells, and the others.
impl Reach for Abroad {
    fn offline(&self, servers: &Servers, server_id: Uuid, session_id: Uuid) -> bool {
        let left = servers.remove_if(&server_id, |_, server| server.session_id == Some(session_id));
        let Some((_, server)) = left else { return false };
        self.inherit(server_id, server);
        true
    }

    fn record(&self, servers: &Servers, snapshot: Arc<Snapshot>, told: Between, now: Timestamp) -> bool {
        let server = servers.get_mut(&snapshot.server_id).filter(|server| server.session_id.is_some());
        server.is_some_and(|mut server| server.newest.take(snapshot, told, now))
    }

    fn told(&self, server_id: Uuid) -> Told {
        self.glance(server_id)
    }

    fn forget(&self, server_id: Uuid) {
        self.forget_server(server_id);
    }

    /// That nothing is kept is not known for long: somewhere else it may send something at any time.
    fn recall(&self, _: &Servers, kept: Kept) {
        self.remember(kept);
    }

    /// The others tell of those that somebody watches here; of what was before, the database knows more.
    fn lacks_sample(&self, glance: &Glance, seen_at: Option<Timestamp>) -> bool {
        let is_here = glance.presence.is_some() && glance.latest.is_some();
        !is_here && seen_at > glance.heard_of_at
    }

    fn is_sure_of(&self, presence: Option<Presence>) -> bool {
        presence.is_some()
    }
}
