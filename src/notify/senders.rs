//! Who else sends what lies in the outbox.

use std::future::ready;
use std::time::Duration;

use futures_util::future::BoxFuture;
use signalbox_protocol::Timestamp;

use crate::store::{Store, StoreError};

/// Those who send, as one of them sees them.
pub trait Senders: Send + Sync + 'static {
    /// How long it may be before the outbox is looked at, though nothing is due and nobody nudges.
    fn longest_sleep(&self) -> Duration;

    /// Has what was being sent when the service ended sent at once, where that is nobody else's.
    fn take_over(&self, store: Store, now: Timestamp) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// There is one.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnlySender;

impl Senders for OnlySender {
    /// The clock of the machine may be put right meanwhile.
    fn longest_sleep(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn take_over(&self, store: Store, now: Timestamp) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(async move { store.release_claims(now).await })
    }
}

/// There are several, each for the channels of its share.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneOfSenders;

impl Senders for OneOfSenders {
    /// Others queue for channels of this one, and a nudge from there may be lost.
    fn longest_sleep(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// What others are sending is theirs, and what one of them left behind is free when its time has come.
    fn take_over(&self, _: Store, _: Timestamp) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }
}
