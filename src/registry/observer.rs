//! What follows when sessions begin and end, as the registry decides it.

use std::pin::Pin;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::store::Disconnected;

/// The registry's actor calls this in the order of its decisions, so no method may wait.
pub trait Observer: Send + Sync + 'static {
    /// A newer session took a server over from an older one.
    fn replaced(&self, server_id: Uuid, older: Uuid, newer: Uuid);

    /// A session's server is online, and the database knows it.
    fn online(&self, server_id: Uuid, session_id: Uuid, owner_id: Uuid);

    /// When the service last heard from a server.
    fn last_seen_at(&self, server_id: Uuid) -> Timestamp;

    /// Writes that a session has given up its server. The future resolves soon, even if the database is away.
    fn write(&self, gone: Disconnected) -> Writing;

    /// A session has given up its server, and `written` says whether that was stored. A newer session may hold the
    /// server by now.
    fn offline(&self, gone: &Gone, written: Written);

    /// Stores when the online servers were last seen.
    fn write_seen(&self);
}

/// The outcome of writing that a session has ended.
pub type Writing = Pin<Box<dyn Future<Output = Written> + Send>>;

/// A session that gave up its server.
#[derive(Debug, Clone)]
pub struct Gone {
    pub owner_id: Uuid,
    pub disconnected: Disconnected,
}

/// Whether the end of a session was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It was written, or will be soon.
    Yes,
    /// It was written, and another instance holds the server.
    Moved,
    /// There was no room for it: try again.
    No,
}
