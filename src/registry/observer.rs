//! What follows from sessions' coming and going, as the registry sees it.

use std::pin::Pin;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::store::Disconnected;

/// Is told what the registry decides, in that order and by its actor: nothing here may wait.
pub trait Observer: Send + Sync + 'static {
    /// A newer session took a server over from an older one.
    fn replaced(&self, server_id: Uuid, older: Uuid, newer: Uuid);

    /// A session's server is online, and the database knows it.
    fn online(&self, server_id: Uuid, session_id: Uuid, owner_id: Uuid);

    /// When a server was last heard of.
    fn last_seen_at(&self, server_id: Uuid) -> Timestamp;

    /// Writes that a session has let go of its server. It comes back soon, even if the database is away.
    fn write(&self, gone: Disconnected) -> Writing;

    /// A session has let go of its server, and this became of writing it. A newer one may hold the server by now.
    fn offline(&self, gone: &Gone, written: Written);

    /// Writes when the servers that are online were last heard of.
    fn write_seen(&self);
}

/// What became of writing that a session has gone.
pub type Writing = Pin<Box<dyn Future<Output = Written> + Send>>;

/// A session that let go of its server.
#[derive(Debug, Clone)]
pub struct Gone {
    pub owner_id: Uuid,
    pub disconnected: Disconnected,
}

/// Whether it is written that a session has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is, or will be soon.
    Yes,
    /// It is, and another instance holds the server.
    Moved,
    /// There was no room for it: it is to be tried again.
    No,
}
