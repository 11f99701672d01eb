//! One command for many servers.
//!
//! A batch is stored with all its commands before the first is sent. A task then keeps as many running as it may, and
//! sends no more once one has failed, where that was asked, or when it is called off. After a restart of the service it
//! goes on with those that still wait; those that were sent are never sent again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::job::Job;
use super::jobs::{Jobs, NewJob, RunError};
use super::{JobStatus, told};
use crate::audit::{Actor, Entry};
use crate::store::{Command, CommandBatch, CommandWrite, StoreError};

/// How much longer than a command's own time limit a server may keep its turn.
const BEYOND_TIMEOUT: Duration = Duration::from_secs(30);

/// A command for many servers.
#[derive(Debug, Clone)]
pub struct NewBatch {
    pub owner_id: Uuid,
    pub actor: Actor,
    pub server_ids: Vec<Uuid>,
    pub command: String,
    pub stdin: Option<String>,
    pub timeout_seconds: u32,
    /// How many servers run it at a time.
    pub concurrency: u16,
    /// Whether one that fails keeps those that still wait from running.
    pub stop_on_failure: bool,
}

impl Jobs {
    /// Stores a batch and begins to run it.
    pub async fn start_batch(&self, new: NewBatch) -> Result<CommandBatch, RunError> {
        let batch = CommandBatch {
            id: Uuid::now_v7(),
            owner_id: new.owner_id,
            username: new.actor.username.to_string(),
            command: new.command.clone(),
            timeout_seconds: i32::try_from(new.timeout_seconds).unwrap_or(i32::MAX),
            concurrency: i32::from(new.concurrency),
            stop_on_failure: new.stop_on_failure,
            is_cancelled: false,
            created_at: Timestamp::now().into(),
            finished_at: None,
        };
        let job = |server_id: &Uuid| NewJob {
            server_id: *server_id,
            owner_id: new.owner_id,
            actor: new.actor.clone(),
            command: new.command.clone(),
            stdin: new.stdin.clone(),
            timeout_seconds: new.timeout_seconds,
        };
        let rows: Vec<Command> =
            new.server_ids.iter().map(|id| job(id).into_row(JobStatus::Queued, Some(batch.id))).collect();
        let entry = told::batch_started(&batch, new.actor, rows.len());
        self.ledger.write(CommandWrite::NewBatch(Box::new(batch.clone()), rows.clone()), vec![entry]).await?;
        self.run_batch(batch.clone(), rows, false);
        Ok(batch)
    }

    /// Goes on with the batches that an earlier run of the service left.
    pub async fn resume_batches(&self) -> Result<(), StoreError> {
        for batch in self.store.unfinished_batches().await? {
            let rows = self.store.batch_commands(batch.id).await?;
            let has_failed = rows.iter().any(|row| has_failed(JobStatus::of(&row.status)));
            let queued = rows.into_iter().filter(|row| JobStatus::of(&row.status) == JobStatus::Queued).collect();
            tracing::info!(batch.id = %batch.id, "a batch goes on");
            self.run_batch(batch, queued, has_failed);
        }
        Ok(())
    }

    /// Calls a batch off: what waits does not run, what runs is ended.
    pub async fn cancel_batch(&self, batch: &CommandBatch, actor: Actor) -> Result<(), RunError> {
        let batch_id = batch.id;
        let entry = told::batch_cancelled(batch, actor.clone());
        self.ledger.write(CommandWrite::BatchCancelled { batch_id }, vec![entry]).await?;
        if let Some(is_cancelled) = self.batches.get(&batch_id) {
            is_cancelled.send_replace(true);
        }
        let rows = self.store.batch_commands(batch_id).await?;
        for row in rows.iter().filter(|row| JobStatus::of(&row.status) == JobStatus::Running) {
            if let Some(job) = self.find(row.server_id, row.id) {
                // One whose agent is away goes on until it is back, or its time is over.
                _ = self.cancel(&job, actor.clone()).await;
            }
        }
        Ok(())
    }

    fn run_batch(&self, batch: CommandBatch, queue: Vec<Command>, has_failed: bool) {
        let is_cancelled = watch::Sender::new(batch.is_cancelled);
        let called_off = is_cancelled.subscribe();
        self.batches.insert(batch.id, is_cancelled);
        let run = BatchRun {
            jobs: self.clone(),
            batch,
            queue: queue.into(),
            running: JoinSet::new(),
            has_failed,
            called_off,
        };
        tokio::spawn(run.to_its_end());
    }
}

struct BatchRun {
    jobs: Jobs,
    batch: CommandBatch,
    queue: VecDeque<Command>,
    running: JoinSet<JobStatus>,
    has_failed: bool,
    called_off: watch::Receiver<bool>,
}

impl BatchRun {
    async fn to_its_end(mut self) {
        let outcome = self.run_all().await;
        if let Err(error) = outcome {
            tracing::error!(batch.id = %self.batch.id, %error, "a batch could not go on");
        }
        self.jobs.batches.remove(&self.batch.id);
    }

    async fn run_all(&mut self) -> Result<(), RunError> {
        loop {
            if let Some(status) = self.reason_to_stop() {
                let waiting = std::mem::take(&mut self.queue);
                let skipped =
                    CommandWrite::Skipped { batch_id: self.batch.id, status: status.name(), at: Timestamp::now() };
                self.write(skipped, Vec::new()).await?;
                waiting.iter().for_each(|row| self.jobs.dismiss(row.id, status));
            }
            self.fill_up().await?;
            let ended = tokio::select! {
                biased;
                ended = self.running.join_next() => ended,
                changed = self.called_off.changed(), if !self.queue.is_empty() => match changed {
                    Ok(()) => continue,
                    Err(_) => None,
                },
            };
            match ended {
                Some(status) => self.has_failed |= has_failed(status.unwrap_or(JobStatus::Lost)),
                None => break,
            }
        }
        self.write(CommandWrite::BatchEnded { batch_id: self.batch.id, at: Timestamp::now() }, Vec::new()).await
    }

    /// What becomes of those that wait, if they are not to run.
    fn reason_to_stop(&self) -> Option<JobStatus> {
        if self.queue.is_empty() {
            return None;
        }
        let is_called_off = *self.called_off.borrow();
        match (is_called_off, self.batch.stop_on_failure && self.has_failed) {
            (true, _) => Some(JobStatus::Cancelled),
            (false, true) => Some(JobStatus::Skipped),
            (false, false) => None,
        }
    }

    /// Sends as many as have room, all in one transaction.
    async fn fill_up(&mut self) -> Result<(), RunError> {
        let concurrency = usize::try_from(self.batch.concurrency).unwrap_or(1).max(1);
        let room = concurrency.saturating_sub(self.running.len()).min(self.queue.len());
        if room == 0 {
            return Ok(());
        }
        let some: Vec<Command> = self.queue.drain(..room).collect();
        let at = Timestamp::now();
        let ids: Vec<Uuid> = some.iter().map(|row| row.id).collect();
        let entries = some.iter().map(told::started).collect();
        self.write(CommandWrite::Started { ids: ids.clone(), at }, entries).await?;
        // One that was cancelled while it waited did not start.
        let started = self.jobs.store.running_among(&ids).await?;
        for mut row in some.into_iter().filter(|row| started.contains(&row.id)) {
            let stdin = row.stdin.take();
            row.status = JobStatus::Running.name().to_owned();
            row.started_at = Some(at.into());
            let job = self.jobs.remember(Job::new(row));
            self.running.spawn(run_one(self.jobs.clone(), job, stdin));
        }
        Ok(())
    }

    async fn write(&self, write: CommandWrite, entries: Vec<Entry>) -> Result<(), RunError> {
        Ok(self.jobs.ledger.write(write, entries).await?)
    }
}

async fn run_one(jobs: Jobs, job: Arc<Job>, stdin: Option<String>) -> JobStatus {
    if jobs.send(&job, stdin).await.is_ok() {
        let own_limit = Duration::from_secs(u64::try_from(job.row.timeout_seconds).unwrap_or_default());
        // An agent that is away must not hold up the others for ever; its result is stored when it comes.
        _ = tokio::time::timeout(own_limit + BEYOND_TIMEOUT, job.has_ended()).await;
    }
    job.ended().map_or(JobStatus::Lost, |end| end.status)
}

fn has_failed(status: JobStatus) -> bool {
    status.is_final() && status != JobStatus::Succeeded
}
