//! The trait through which the feeds reach other instances.

use std::future::ready;
use std::pin::Pin;
use std::time::Instant;

use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use super::{FeedFrame, Feeds, Topic};
use crate::fleet::Snapshot;

/// The future of [`Relay::settled`].
pub type Settled<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Carries events to the instances on which their topics are watched. Publishers never wait for it.
pub trait Relay: Send + Sync + 'static {
    /// Starts to relay, for as long as this instance runs. Events from other instances are delivered to `feeds`.
    fn open(&self, feeds: Feeds);

    /// Returns whether a topic is watched on another instance.
    fn is_watched(&self, topic: Topic) -> bool;

    /// Returns the topics that are watched on other instances.
    fn watched_elsewhere(&self) -> Vec<Topic>;

    /// Sends a frame to the other instances on which a topic is watched.
    fn publish(&self, topic: Topic, frame: &FeedFrame);

    /// Wakes the subscribers of a topic on other instances, for something that is not in their queues.
    fn nudge(&self, topic: Topic);

    /// Takes in that an agent has connected to an instance or disconnected from it: `of`, or this one if that is `None`.
    /// Returns whether the server's subscribers on this instance have to get the status.
    fn status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus, of: Option<Uuid>) -> bool;

    /// Publishes the latest sample of a server to subscribers to all servers of its owner.
    fn sample(&self, owner_id: Uuid, snapshot: &Snapshot);

    /// Takes in that a topic has one more subscriber here. Returns whether it crosses instances; then [`Self::leave`] must
    /// follow.
    fn enter(&self, topic: Topic) -> bool;

    /// Takes in that a topic has one subscriber less here.
    fn leave(&self, topic: Topic);

    /// Resolves when this instance receives the events of these topics from others, so that no change is missed after a later
    /// read.
    fn settled<'a>(&'a self, topics: &'a [Topic]) -> Settled<'a>;

    /// Takes in the status of a server that a dashboard got when it was opened.
    fn shows(&self, server_id: Uuid, status: ServerStatus);

    /// Returns the servers that are watched on this instance and whose sessions it does not hold.
    fn watched_servers(&self) -> Vec<Uuid>;

    /// Takes in the status of a server that the database had at `asked_at`, and corrects it for subscribers that have another.
    fn correct(&self, server_id: Uuid, is_online: bool, asked_at: Instant);
}

/// The relay of a single instance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NoRelay;

impl Relay for NoRelay {
    fn open(&self, _: Feeds) {}

    fn is_watched(&self, _: Topic) -> bool {
        false
    }

    fn watched_elsewhere(&self) -> Vec<Topic> {
        Vec::new()
    }

    fn publish(&self, _: Topic, _: &FeedFrame) {}

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

    fn correct(&self, _: Uuid, _: bool, _: Instant) {}
}
