//! The way of topics to other instances, as the feeds see it.

use std::future::ready;
use std::pin::Pin;
use std::time::Instant;

use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use super::{Feeds, Frame, Topic};
use crate::fleet::Snapshot;

/// What becomes true later.
pub type Settled<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Carries what happens to topics to the instances on which somebody watches them. Nobody who publishes waits for it.
pub trait Relay: Send + Sync + 'static {
    /// Carries from now on, for as long as this instance lives. What comes is for those who watch `feeds`.
    fn open(&self, feeds: Feeds);

    /// Whether somebody watches a topic on another instance.
    fn is_watched(&self, topic: Topic) -> bool;

    /// Sends a frame to the other instances on which a topic is watched.
    fn publish(&self, topic: Topic, frame: &Frame);

    /// Has those who watch a topic on other instances look for what lies elsewhere.
    fn nudge(&self, topic: Topic);

    /// An agent came to an instance, or went from it; to this one or from it, unless another is named. Gives whether those
    /// who watch the server here are to be told.
    fn status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus, of: Option<Uuid>) -> bool;

    /// The latest sample of a server, for those who watch all servers of its owner.
    fn sample(&self, owner_id: Uuid, snapshot: &Snapshot);

    /// One more watches a topic here. Gives whether it crosses instances, and is to be left again.
    fn enter(&self, topic: Topic) -> bool;

    /// One fewer watches a topic here.
    fn leave(&self, topic: Topic);

    /// Comes back when what happens to these elsewhere is heard here: what is read after that is followed by what changes.
    fn settled<'a>(&'a self, topics: &'a [Topic]) -> Settled<'a>;

    /// A dashboard was told this of a server at its opening.
    fn shows(&self, server_id: Uuid, status: ServerStatus);

    /// The servers that somebody watches here and whose sessions are not here.
    fn watched_servers(&self) -> Vec<Uuid>;

    /// What the database said of a server to a question of then: tells those who watch it here if they know otherwise.
    fn put_right(&self, server_id: Uuid, is_online: bool, asked_at: Instant);
}

/// There is no other instance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NoRelay;

impl Relay for NoRelay {
    fn open(&self, _: Feeds) {}

    fn is_watched(&self, _: Topic) -> bool {
        false
    }

    fn publish(&self, _: Topic, _: &Frame) {}

    fn nudge(&self, _: Topic) {}

    fn status(&self, _: Uuid, _: Uuid, _: ServerStatus, _: Option<Uuid>) -> bool {
        true
    }

    fn sample(&self, _: Uuid, _: &Snapshot) {}

    fn enter(&self, _: Topic) -> bool {
        false
    }

    fn leave(&self, _: Topic) {}

    fn settled<'a>(&'a self, _: &'a [Topic]) -> Settled<'a> {
        Box::pin(ready(()))
    }

    fn shows(&self, _: Uuid, _: ServerStatus) {}

    fn watched_servers(&self) -> Vec<Uuid> {
        Vec::new()
    }

    fn put_right(&self, _: Uuid, _: bool, _: Instant) {}
}
