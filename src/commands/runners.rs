//! Who runs which batches.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::store::{CommandBatch, Store, StoreError};

/// How often the database is asked where an agent is that has not come back.
const LOOK_ELSEWHERE_AFTER: Duration = Duration::from_secs(1);

/// What those who run batches know of each other. Where an instance is alone [`Alone`](super::alone::Alone) stands in the
/// place of [`SharedRunners`].
pub(super) trait Runners: Send + Sync + 'static {
    /// By whom batches are run that begin here, as their rows name it.
    fn runner(&self) -> Option<Uuid>;

    /// The batches that an earlier run of the service left, and that this one goes on with at once.
    fn left_behind(&self) -> BoxFuture<'_, Result<Vec<CommandBatch>, StoreError>>;

    /// Of these servers, whose agents are not here: those whose agents others hold.
    fn held_among<'a>(&'a self, away: &'a [Uuid]) -> BoxFuture<'a, Result<HashSet<Uuid>, StoreError>>;

    /// When to look again whether an agent that is away has come back.
    fn look_again_after(&self) -> Duration;
}

/// Batches of one instance of several.
pub(super) struct SharedRunners {
    pub store: Store,
    pub instance_id: Uuid,
}

impl Runners for SharedRunners {
    fn runner(&self) -> Option<Uuid> {
        Some(self.instance_id)
    }

    /// Each takes over what no other one runs, later.
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
