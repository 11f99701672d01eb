//! Commands of a single instance: a job that it does not have does not exist.

use std::collections::HashSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::JobStatus;
use super::job::{End, Job};
use super::jobs::LOOK_AGAIN_AFTER;
use super::local::failed;
use super::remote_jobs::UnheldJobs;
use super::runners::Runners;
use super::running::RunningJobs;
use super::writer::JobWriter;
use crate::registry::CallError;
use crate::store::{Command, CommandBatch, Store, StoreError};

/// There are no other instances.
pub(super) struct Alone {
    pub store: Store,
    pub running: RunningJobs,
    pub writer: Arc<JobWriter>,
}

impl UnheldJobs for Alone {
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
            // An earlier run of the service sent it: its agent may still connect.
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

    /// Stores nothing: the end was stored before, or the server was deleted.
    fn store_end_of(&self, _: Uuid, _: Uuid, _: End) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

impl Runners for Alone {
    fn runner(&self) -> Option<Uuid> {
        None
    }

    /// All unfinished batches, with queued and with running commands.
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
