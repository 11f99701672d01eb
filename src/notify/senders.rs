//! Whether other instances send messages of the same outbox.

use std::future::ready;
use std::time::Duration;

use futures_util::future::BoxFuture;
use signalbox_protocol::Timestamp;

use crate::store::{Store, StoreError};

/// All senders of the outbox, as one of them sees them.
pub trait Senders: Send + Sync + 'static {
    /// Returns how long the dispatcher may sleep when nothing is due and nobody nudges it.
    fn longest_sleep(&self) -> Duration;

    /// At startup, releases the messages that this service was sending when it ended, if no other instance can be sending them.
    fn take_over(&self, store: Store, now: Timestamp) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// A single instance.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnlySender;

impl Senders for OnlySender {
    /// Bounded, because the machine's clock may be corrected during that time.
    fn longest_sleep(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn take_over(&self, store: Store, now: Timestamp) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(async move { store.release_claims(now).await })
    }
}

/// One of several instances, each of which sends on the channels of its shard.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneOfSenders;

impl Senders for OneOfSenders {
    /// Short, because other instances queue messages for this one's channels, and their nudge may be lost.
    fn longest_sleep(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// Releases nothing: others may be sending, and the claim of an instance that died expires.
    fn take_over(&self, _: Store, _: Timestamp) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }
}
