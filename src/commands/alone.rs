//! Commands of a single instance: a job that it does not have was sent by an earlier run of the service, or does not exist.

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
use super::remote_jobs::{IsAwaited, UnheldJobs};
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

impl Alone {
    async fn running_row(&self, server_id: Uuid, id: Uuid) -> Result<Option<Command>, StoreError> {
        let row = self.store.find_command(server_id, id).await?;
        Ok(row.filter(|row| JobStatus::of(&row.status) == JobStatus::Running))
    }
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
            self.writer.conclude(job, self.writer.unsent(&CallError::Offline)).await;
            Err(CallError::Offline)
        })
    }

    fn find(&self, server_id: Uuid, id: Uuid) -> BoxFuture<'_, Result<Option<Arc<Job>>, StoreError>> {
        Box::pin(async move {
            let Some(row) = self.running_row(server_id, id).await? else { return Ok(None) };
            let job = self.take_up(row).await;
            // If it ended after its row was read, nobody would end this job.
            if self.running_row(server_id, id).await?.is_none() {
                self.running.forget(id);
                return Ok(None);
            }
            Ok(Some(job))
        })
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
    fn store_end_of<'a>(&'a self, _: Uuid, _: Uuid, _: End, _: IsAwaited<'a>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
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
