//! Writes the changes of many commands at once.

use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::agent::RequestError;
use tokio::sync::Notify;
use uuid::Uuid;

use super::job::{End, Job};
use super::running::RunningJobs;
use super::storage::StorageQuota;
use super::{JobStatus, entries};
use crate::audit::{Actor, Entry};
use crate::batch_writer::{BatchWriter, BatchWriterError, Change, Haste};
use crate::clock::Clock;
use crate::registry::CallError;
use crate::store::{CommandChange, CommandWrite, Store, StoreError};

/// The pause between two attempts to write while the database is unavailable.
pub(super) const STORE_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Change for CommandChange {
    /// Whether a row was changed.
    type Outcome = bool;

    async fn write(store: &Store, changes: &[Self]) -> Result<Vec<bool>, StoreError> {
        store.write_commands(changes).await
    }

    /// When the end of a command is written, its caller has been answered, and often sends the next command at once. The new
    /// command is written first, and the end while it runs.
    fn haste(&self) -> Haste {
        match self.write {
            CommandWrite::New(_) => Haste::Urgent,
            _ if self.can_wait => Haste::Patient,
            _ => Haste::Usual,
        }
    }
}

/// Writes commands; cheap to clone.
#[derive(Clone)]
pub(super) struct JobWriter {
    clock: Clock,
    batch_writer: BatchWriter<CommandChange>,
    running: RunningJobs,
    quota: Arc<StorageQuota>,
    /// Notified when the end of a job is stored.
    stored: Arc<Notify>,
}

impl JobWriter {
    /// Must be called where tasks can be spawned.
    pub fn new(clock: Clock, store: Store, running: RunningJobs, quota: Arc<StorageQuota>) -> Self {
        Self { clock, batch_writer: BatchWriter::start(store), running, quota, stored: Arc::default() }
    }

    /// Writes a change with its audit entries. Returns whether a row was changed, when all of it is durable.
    pub async fn write(&self, write: CommandWrite, entries: Vec<Entry>) -> Result<bool, BatchWriterError> {
        self.batch_writer.write(CommandChange { write, entries, can_wait: false }).await
    }

    /// Stores a command that is about to be sent. If that fails, its job is removed.
    pub async fn store_new(&self, job: &Job) -> Result<(), BatchWriterError> {
        let write = CommandWrite::New(Box::new(job.row.clone()));
        if let Err(error) = self.write(write, vec![entries::started(&job.row)]).await {
            self.running.forget(job.id());
            return Err(error);
        }
        Ok(())
    }

    /// Stores that somebody asks to end a command.
    pub async fn store_cancel(&self, job: &Job, actor: Actor) -> Result<(), BatchWriterError> {
        let entry = entries::cancelled(&job.row, actor);
        self.write(CommandWrite::CancelRequested { id: job.id() }, vec![entry]).await.map(drop)
    }

    /// Returns the end of a command that could not be sent.
    pub fn unsent(&self, error: &CallError) -> End {
        let error = RequestError::new(error.code(), &error.to_string());
        End::without_result(JobStatus::Failed, Some(error), self.clock.now())
    }

    /// Returns the end of a command whose outcome nobody will report.
    pub fn lost(&self) -> End {
        End::without_result(JobStatus::Lost, None, self.clock.now())
    }

    /// Ends a job without its agent. The end is stored even if the caller is dropped.
    pub async fn conclude(&self, job: &Arc<Job>, end: End) {
        if job.end(end) {
            let (writer, job) = (self.clone(), job.clone());
            _ = tokio::spawn(async move { writer.store_end_of(&job, false).await }).await;
        }
    }

    /// Stores the end of a job whose agent has reported it, then removes the job. Retries for as long as the database is unavailable.
    pub async fn store_end(&self, job: &Job) {
        self.store_end_of(job, true).await;
    }

    async fn store_end_of(&self, job: &Job, can_wait: bool) {
        let Some(end) = job.to_stored() else { return };
        let entry = entries::ended(&job.row, &end);
        let change = || CommandChange {
            write: CommandWrite::Ended(Box::new(end.clone())),
            entries: vec![entry.clone()],
            can_wait,
        };
        while let Err(error) = self.batch_writer.write(change()).await {
            tracing::error!(job.id = %end.id, %error, "the end of a command could not be stored");
            if matches!(error, BatchWriterError::Stopped) {
                return;
            }
            tokio::time::sleep(STORE_AGAIN_AFTER).await;
        }
        self.running.forget(end.id);
        self.stored.notify_waiters();
        let output = end.output.as_ref().map_or(0, Vec::len) + end.output_parts.as_ref().map_or(0, String::len);
        self.quota.wrote(job.row.owner_id, output);
    }

    /// Waits until another task has stored the end of a job.
    pub async fn until_stored(&self, id: Uuid) {
        loop {
            // Listens before it looks, so that no notice is missed.
            let stored = self.stored.notified();
            if !self.running.contains(id) {
                return;
            }
            // Jobs are also forgotten without being stored, as with a deleted server.
            _ = tokio::time::timeout(STORE_AGAIN_AFTER, stored).await;
        }
    }
}
