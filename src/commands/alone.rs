//! Commands where there is one instance: what is not known here is known to nobody.

use std::collections::HashSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::JobStatus;
use super::elsewhere::Elsewhere;
use super::job::{End, Job};
use super::jobs::LOOK_AGAIN_AFTER;
use super::local::failed;
use super::runners::Runners;
use super::running::RunningJobs;
use super::writer::JobWriter;
use crate::registry::CallError;
use crate::store::{Command, CommandBatch, Store, StoreError};

/// There is nobody else.
pub(super) struct Alone {
    pub store: Store,
    pub running: RunningJobs,
    pub writer: Arc<JobWriter>,
}

impl Elsewhere for Alone {
    fn is_reachable(&self, _: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(ready(false))
    }

    fn expect_room(&self, _: Uuid) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(ready(Err(CallError::Offline)))
    }

    fn send<'a>(&'a self, job: &'a Arc<Job>, _: Option<String>) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            self.writer.conclude(job, failed(&CallError::Offline)).await;
            Err(CallError::Offline)
        })
    }

    fn find(&self, _: Uuid, _: Uuid) -> BoxFuture<'_, Result<Option<Arc<Job>>, StoreError>> {
        Box::pin(ready(Ok(None)))
    }

    fn take_up(&self, row: Command) -> BoxFuture<'_, Arc<Job>> {
        Box::pin(ready(self.running.remember(self.job_of(row))))
    }

    fn job_of(&self, row: Command) -> Job {
        match JobStatus::of(&row.status) {
            // Sent by an earlier run of the service: its agent may still come.
            JobStatus::Running => Job::sent_before(row),
            _ => Job::new(row),
        }
    }

    fn may_come(&self, _: Option<&Job>, _: &Command, _: Timestamp) -> bool {
        false
    }

    fn called_off(&self, _: HashSet<Uuid>) -> BoxFuture<'_, Result<HashSet<Uuid>, StoreError>> {
        Box::pin(ready(Ok(HashSet::new())))
    }

    /// It was stored before, or its server was deleted.
    fn store_end_of(&self, _: Uuid, _: Uuid, _: End) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

impl Runners for Alone {
    fn runner(&self) -> Option<Uuid> {
        None
    }

    /// With those that wait and, as they have their turn still, with those that run.
    fn left_behind(&self) -> BoxFuture<'_, Result<Vec<CommandBatch>, StoreError>> {
        Box::pin(self.store.unfinished_batches())
    }

    fn held_among<'a>(&'a self, _: &'a [Uuid]) -> BoxFuture<'a, Result<HashSet<Uuid>, StoreError>> {
        Box::pin(ready(Ok(HashSet::new())))
    }

    fn look_again_after(&self) -> Duration {
        LOOK_AGAIN_AFTER
    }
}
