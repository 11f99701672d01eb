//! Which instance runs which batch.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::store::{CommandBatch, Store, StoreError};

/// How often to ask the database whether an agent has reconnected to another instance.
const LOOK_ELSEWHERE_AFTER: Duration = Duration::from_secs(1);

/// What an instance that runs batches knows of the others. A single instance uses [`Alone`](super::alone::Alone) instead
/// of [`SharedRunners`].
pub(super) trait Runners: Send + Sync + 'static {
    /// Returns the runner that the rows of batches started here name.
    fn runner(&self) -> Option<Uuid>;

    /// Returns the batches of an earlier run of the service that this one continues at once.
    fn left_behind(&self) -> BoxFuture<'_, Result<Vec<CommandBatch>, StoreError>>;

    /// Returns those of these servers whose agents are connected to other instances.
    fn held_among<'a>(&'a self, away: &'a [Uuid]) -> BoxFuture<'a, Result<HashSet<Uuid>, StoreError>>;

    /// Returns how often to check whether a disconnected agent has reconnected.
    fn look_again_after(&self) -> Duration;
}

/// The batches of one of several instances.
pub(super) struct SharedRunners {
    pub store: Store,
    pub instance_id: Uuid,
}

impl Runners for SharedRunners {
    fn runner(&self) -> Option<Uuid> {
        Some(self.instance_id)
    }

    /// None: batches without a runner are claimed later.
    fn left_behind(&self) -> BoxFuture<'_, Result<Vec<CommandBatch>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn held_among<'a>(&'a self, away: &'a [Uuid]) -> BoxFuture<'a, Result<HashSet<Uuid>, StoreError>> {
        Box::pin(self.store.held_among(away))
    }

    fn look_again_after(&self) -> Duration {
        LOOK_ELSEWHERE_AFTER
    }
}
