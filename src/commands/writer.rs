//! What happens to commands is written many at a time.

use std::sync::Arc;
use std::time::Duration;

use super::entries;
use super::job::{End, Job};
use super::running::RunningJobs;
use super::storage::StorageQuota;
use crate::audit::Entry;
use crate::ledger::{Change, Haste, Ledger, LedgerError};
use crate::store::{CommandChange, CommandWrite, Store, StoreError};

/// Between two attempts to store an end while the database is away.
pub(super) const STORE_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Change for CommandChange {
    /// Whether there was something to change.
    type Outcome = bool;

    async fn write(store: &Store, changes: &[Self]) -> Result<Vec<bool>, StoreError> {
        store.write_commands(changes).await
    }

    /// The caller of a command has been answered when its end is written, and often sends the next one, which does not wait
    /// for that: it is written first, and the end while it runs.
    fn haste(&self) -> Haste {
        match self.write {
            CommandWrite::New(_) => Haste::Urgent,
            CommandWrite::Ended(_) => Haste::Patient,
            CommandWrite::NewBatch(..)
            | CommandWrite::Told
            | CommandWrite::Started { .. }
            | CommandWrite::Skipped { .. }
            | CommandWrite::Dropped { .. }
            | CommandWrite::BatchEnded { .. }
            | CommandWrite::BatchCancelled { .. } => Haste::Usual,
        }
    }
}

/// Writes commands, behind cheap clones.
#[derive(Clone)]
pub(super) struct JobWriter {
    ledger: Ledger<CommandChange>,
    running: RunningJobs,
    quota: Arc<StorageQuota>,
}

impl JobWriter {
    /// Must be called where tasks can be spawned.
    pub fn new(store: Store, running: RunningJobs, quota: Arc<StorageQuota>) -> Self {
        Self { ledger: Ledger::start(store), running, quota }
    }

    /// Resolves when it is durable, with what the audit log is told of it. Gives whether there was something to change.
    pub async fn write(&self, write: CommandWrite, entries: Vec<Entry>) -> Result<bool, LedgerError> {
        self.ledger.write(CommandChange { write, entries }).await
    }

    /// Stores a command that is about to be sent; one that cannot be stored is forgotten.
    pub async fn store_new(&self, job: &Job) -> Result<(), LedgerError> {
        let write = CommandWrite::New(Box::new(job.row.clone()));
        if let Err(error) = self.write(write, vec![entries::started(&job.row)]).await {
            self.running.forget(job.id());
            return Err(error);
        }
        Ok(())
    }

    /// Ends a job from our side. It is stored even if the caller goes away.
    pub async fn conclude(&self, job: &Arc<Job>, end: End) {
        if job.end(end) {
            let (writer, job) = (self.clone(), job.clone());
            _ = tokio::spawn(async move { writer.store_end(&job).await }).await;
        }
    }

    /// Stores how a job ended, however long the database is away, and forgets it then.
    pub async fn store_end(&self, job: &Job) {
        let Some(end) = job.to_stored() else { return };
        let entry = entries::ended(&job.row, &end);
        while let Err(error) = self.write(CommandWrite::Ended(Box::new(end.clone())), vec![entry.clone()]).await {
            tracing::error!(job.id = %end.id, %error, "a command's end could not be stored");
            if matches!(error, LedgerError::Stopped) {
                return;
            }
            tokio::time::sleep(STORE_AGAIN_AFTER).await;
        }
        self.running.forget(end.id);
        let output = end.output.as_ref().map_or(0, Vec::len) + end.output_parts.as_ref().map_or(0, String::len);
        self.quota.wrote(job.row.owner_id, output);
    }

    /// Somebody else stores how it ended.
    pub async fn until_stored(&self, job: &Job) {
        while self.running.contains(job.id()) {
            tokio::time::sleep(STORE_AGAIN_AFTER).await;
        }
    }
}
