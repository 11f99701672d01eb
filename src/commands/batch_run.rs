//! A batch while it runs: a task keeps as many of its commands running as its concurrency allows. It sends no more after
//! the batch was cancelled, or after one has failed if the batch stops on failure, and none to a server on which its user may not
//! run commands any more.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use signalbox_protocol::Timestamp;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

use super::batch::Claim;
use super::dispatch::Dispatch;
use super::job::Job;
use super::jobs::RunError;
use super::local::LocalJobs;
use super::remote_jobs::UnheldJobs;
use super::runners::Runners;
use super::running::RunningJobs;
use super::storage::StorageQuota;
use super::writer::{JobWriter, STORE_AGAIN_AFTER};
use super::{JobStatus, entries};
use crate::audit::Entry;
use crate::auth::access::{Access, Action, Right};
use crate::clock::Clock;
use crate::store::{Command, CommandBatch, CommandEnd, CommandWrite, Store};

/// How much longer than the command's own time limit a server may occupy its place.
const BEYOND_TIMEOUT: Duration = Duration::from_secs(30);

/// After a restart of the service its agents reconnect, with pauses of at most a minute between two attempts. Until then
/// the batch waits for agents that are not connected; afterwards their commands fail.
const AGENTS_ARE_BACK_WITHIN: Duration = Duration::from_secs(75);

/// What a batch needs to run.
pub(super) struct Means {
    pub clock: Clock,
    pub store: Store,
    pub access: Access,
    pub running: RunningJobs,
    pub writer: Arc<JobWriter>,
    pub quota: Arc<StorageQuota>,
    pub local: Arc<LocalJobs>,
    pub dispatch: Arc<Dispatch>,
    pub elsewhere: Arc<dyn UnheldJobs>,
    pub runners: Arc<dyn Runners>,
}

/// The directive for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    On,
    /// Queued commands do not run.
    CalledOff,
    /// Another instance runs it.
    TakenOver,
}

/// A batch while it runs here.
pub(super) struct BatchRun {
    means: Arc<Means>,
    _claim: Claim,
    batch: CommandBatch,
    queue: VecDeque<Command>,
    running: JoinSet<Turn>,
    /// Commands that have ended, but whose end may not be stored.
    unstored: Vec<Uuid>,
    has_failed: bool,
    course: watch::Receiver<Course>,
    /// Until then a server whose agent is not connected keeps its place in the queue.
    patient_until: Instant,
}

impl BatchRun {
    /// A batch run without commands.
    pub fn new(means: Arc<Means>, claim: Claim, batch: CommandBatch, course: watch::Receiver<Course>) -> Self {
        Self {
            means,
            _claim: claim,
            batch,
            queue: VecDeque::new(),
            running: JoinSet::new(),
            unstored: Vec::new(),
            has_failed: false,
            course,
            patient_until: Instant::now(),
        }
    }

    /// Queues the commands of a new batch.
    pub fn fill(&mut self, rows: Vec<Command>) {
        self.queue = rows.into();
    }

    /// Continues a batch whose commands are as an earlier run of the service left them.
    pub fn take_up(&mut self, rows: Vec<Command>) {
        self.patient_until = Instant::now() + AGENTS_ARE_BACK_WITHIN;
        for row in rows {
            self.take_up_one(row);
        }
    }

    fn take_up_one(&mut self, row: Command) {
        match JobStatus::of(&row.status) {
            JobStatus::Queued => self.queue.push_back(row),
            JobStatus::Running => {
                let is_here = self.means.local.is_here(row.server_id);
                let job = if is_here { Job::sent_before(row) } else { self.means.elsewhere.job_of(row) };
                let job = self.means.running.remember(job);
                if self.batch.is_cancelled {
                    job.request_cancel();
                }
                self.running.spawn(turn(job));
            }
            // Cancelled while it was queued: somebody chose that it does not run.
            JobStatus::Cancelled if row.started_at.is_none() => {}
            ended => self.has_failed |= has_failed(ended),
        }
    }

    /// Returns whether somebody cancelled the batch.
    pub fn is_called_off(&self) -> bool {
        *self.course.borrow() == Course::CalledOff
    }

    pub async fn run_to_its_end(mut self) {
        let outcome = self.run_all().await;
        if let Err(error) = outcome {
            tracing::error!(batch.id = %self.batch.id, %error, "a batch could not continue");
        }
    }

    async fn run_all(&mut self) -> Result<(), RunError> {
        loop {
            if *self.course.borrow() == Course::TakenOver {
                // Commands that are being sent are still sent.
                self.running.detach_all();
                return Ok(());
            }
            if let Some(status) = self.reason_to_stop() {
                let waiting = std::mem::take(&mut self.queue);
                let (batch_id, by) = (self.batch.id, self.batch.instance_id);
                let at = self.means.clock.now();
                let skipped = CommandWrite::Skipped { batch_id, status: status.name(), at, by };
                self.write(skipped, Vec::new()).await?;
                waiting.iter().for_each(|row| self.means.running.dismiss(row.id, status, at));
            }
            self.fill_up().await?;
            if self.running.is_empty() && self.queue.is_empty() {
                break;
            }
            let is_queued = !self.queue.is_empty();
            let pause = self.means.runners.look_again_after();
            tokio::select! {
                biased;
                Some(ended) = self.running.join_next() => self.note(ended),
                Ok(()) = self.course.changed() => {}
                () = tokio::time::sleep(pause), if is_queued && self.looks_again() => {}
            }
            // Takes all that have ended, so that one transaction starts as many new ones.
            while let Some(ended) = self.running.try_join_next() {
                self.note(ended);
            }
        }
        // A reader of a batch that has ended learns how each command ended.
        for id in std::mem::take(&mut self.unstored) {
            self.means.writer.until_stored(id).await;
        }
        let (batch_id, by) = (self.batch.id, self.batch.instance_id);
        self.write(CommandWrite::BatchEnded { batch_id, at: self.means.clock.now(), by }, Vec::new()).await
    }

    fn note(&mut self, turn: Result<Turn, JoinError>) {
        let Ok(Turn { ended, status }) = turn else {
            self.has_failed = true;
            return;
        };
        self.has_failed |= has_failed(status);
        self.unstored.retain(|id| self.means.running.contains(*id));
        self.unstored.extend(ended);
    }

    /// Returns the status of the queued commands if they must not run.
    fn reason_to_stop(&self) -> Option<JobStatus> {
        if self.queue.is_empty() {
            return None;
        }
        match (self.is_called_off(), self.batch.stop_on_failure && self.has_failed) {
            (true, _) => Some(JobStatus::Cancelled),
            (false, true) => Some(JobStatus::Skipped),
            (false, false) => None,
        }
    }

    /// Returns whether to check again soon for an agent that was not connected.
    fn looks_again(&self) -> bool {
        self.running.is_empty() || self.is_patient()
    }

    fn is_patient(&self) -> bool {
        Instant::now() < self.patient_until
    }

    /// Sends as many commands as the concurrency allows.
    async fn fill_up(&mut self) -> Result<(), RunError> {
        loop {
            let some = self.next_in_line().await?;
            if some.is_empty() {
                return Ok(());
            }
            // Commands that were cancelled while queued do not start, so there may still be room.
            let some = self.still_allowed(some).await?;
            self.start(some).await?;
            if self.reason_to_stop().is_some() {
                return Ok(());
            }
        }
    }

    /// Returns those of these queued commands that their user may still run, and ends the others.
    async fn still_allowed(&mut self, some: Vec<Command>) -> Result<Vec<Command>, RunError> {
        let (mut allowed, mut refused) = (Vec::with_capacity(some.len()), Vec::new());
        for row in some {
            if self.is_allowed(&row).await? { allowed.push(row) } else { refused.push(row) }
        }
        if refused.is_empty() {
            return Ok(allowed);
        }
        // Together, so that they are few transactions.
        let refusing: Vec<_> = refused.iter().map(|row| self.refuse(row)).collect();
        try_join_all(refusing).await?;
        self.has_failed |= self.has_failure_among(&refused).await?;
        Ok(allowed)
    }

    /// Returns whether any of these is stored as failed, and not deleted with its server or cancelled while queued. A write that was
    /// repeated does not tell that.
    async fn has_failure_among(&self, refused: &[Command]) -> Result<bool, RunError> {
        let ids: Vec<Uuid> = refused.iter().map(|row| row.id).collect();
        loop {
            match self.means.store.standings(&ids).await {
                Ok(stored) => return Ok(stored.values().any(|status| JobStatus::of(status) == JobStatus::Failed)),
                Err(error) => self.wait_for_the_database(error.into()).await?,
            }
        }
    }

    async fn is_allowed(&self, row: &Command) -> Result<bool, RunError> {
        loop {
            let by = (row.user_id, row.login_id.filter(|_| row.token_name.is_some()));
            match self.means.access.may_still(by, row.server_id, Action::Use(Right::Commands)).await {
                Ok(is_allowed) => return Ok(is_allowed),
                Err(error) => self.wait_for_the_database(error.into()).await?,
            }
        }
    }

    /// Ends a queued command that must not run.
    async fn refuse(&self, row: &Command) -> Result<(), RunError> {
        let at = self.means.clock.now();
        let end = right_ended(row, at);
        let entry = entries::ended(row, &end);
        self.write(CommandWrite::Ended(Box::new(end)), vec![entry]).await?;
        self.means.running.dismiss(row.id, JobStatus::Failed, at);
        Ok(())
    }

    /// Takes as many queued commands as the concurrency allows.
    async fn next_in_line(&mut self) -> Result<Vec<Command>, RunError> {
        let concurrency = usize::try_from(self.batch.concurrency).unwrap_or(1).max(1);
        let room = concurrency.saturating_sub(self.running.len()).min(self.queue.len());
        if room == 0 || !self.is_patient() {
            return Ok(self.queue.drain(..room).collect());
        }
        let held = self.held_elsewhere().await?;
        let (mut next, mut later) = (Vec::new(), VecDeque::new());
        for row in self.queue.drain(..) {
            let is_there = self.means.local.is_here(row.server_id) || held.contains(&row.server_id);
            if next.len() < room && is_there {
                next.push(row);
            } else {
                later.push_back(row);
            }
        }
        self.queue = later;
        Ok(next)
    }

    /// Returns the servers of queued commands whose agents are connected to other instances.
    async fn held_elsewhere(&self) -> Result<HashSet<Uuid>, RunError> {
        let away = self.queue.iter().map(|row| row.server_id).filter(|server_id| !self.means.local.is_here(*server_id));
        let away: Vec<Uuid> = away.collect();
        loop {
            match self.means.runners.held_among(&away).await {
                Ok(held) => return Ok(held),
                Err(error) => self.wait_for_the_database(error.into()).await?,
            }
        }
    }

    /// Sends these commands, after storing all of them as running in one transaction.
    async fn start(&mut self, some: Vec<Command>) -> Result<(), RunError> {
        if some.is_empty() {
            return Ok(());
        }
        let (at, by) = (self.means.clock.now(), self.batch.instance_id);
        let ids: Vec<Uuid> = some.iter().map(|row| row.id).collect();
        self.write(CommandWrite::Started { ids: ids.clone(), at, by }, Vec::new()).await?;
        // A command that was cancelled while queued was not started.
        let started = loop {
            match self.means.store.running_among(&ids, by).await {
                Ok(started) => break started,
                Err(error) => self.wait_for_the_database(error.into()).await?,
            }
        };
        let some: Vec<Command> = some.into_iter().filter(|row| started.contains(&row.id)).collect();
        self.write(CommandWrite::AuditOnly, some.iter().map(entries::started).collect()).await?;
        for mut row in some {
            let stdin = row.stdin.take();
            row.status = JobStatus::Running.name().to_owned();
            row.started_at = Some(at.into());
            let job = self.means.running.remember(Job::new(row));
            job.change(|standing| standing.begin(at));
            // Read after the job was remembered: a cancellation before that did not find it.
            if self.is_called_off() {
                job.request_cancel();
            }
            self.running.spawn(run_one(self.means.dispatch.clone(), job, stdin));
        }
        Ok(())
    }

    /// Writes, and retries for as long as the database is unavailable: a batch must not stop half-way.
    async fn write(&self, write: CommandWrite, entries: Vec<Entry>) -> Result<(), RunError> {
        while let Err(error) = self.means.writer.write(write.clone(), entries.clone()).await {
            self.wait_for_the_database(error.into()).await?;
        }
        Ok(())
    }

    async fn wait_for_the_database(&self, error: RunError) -> Result<(), RunError> {
        if matches!(error, RunError::Stopping) {
            return Err(error);
        }
        tracing::error!(batch.id = %self.batch.id, %error, "a batch waits for the database");
        tokio::time::sleep(STORE_AGAIN_AFTER).await;
        Ok(())
    }
}

/// What became of a command's turn.
struct Turn {
    /// The command, if it has ended.
    ended: Option<Uuid>,
    status: JobStatus,
}

async fn run_one(dispatch: Arc<Dispatch>, job: Arc<Job>, stdin: Option<String>) -> Turn {
    match dispatch.send(&job, stdin).await {
        Ok(()) => turn(job).await,
        Err(_) => Turn { ended: job.ended().map(|_| job.id()), status: JobStatus::Failed },
    }
}

/// Waits until a job has ended, at most for as long as it may occupy its place.
async fn turn(job: Arc<Job>) -> Turn {
    let own_limit = Duration::from_secs(u64::try_from(job.row.timeout_seconds).unwrap_or_default());
    // A disconnected agent must not delay the others forever; its result is stored when it arrives.
    _ = tokio::time::timeout(own_limit + BEYOND_TIMEOUT, job.has_ended()).await;
    match job.ended() {
        Some(end) => Turn { ended: Some(job.id()), status: end.status },
        None => Turn { ended: None, status: JobStatus::Lost },
    }
}

/// The end of a queued command whose user may not run it any more.
fn right_ended(row: &Command, at: Timestamp) -> CommandEnd {
    let error = ("forbidden".to_owned(), "the right to run commands on this server ended".to_owned());
    CommandEnd {
        id: row.id,
        server_id: row.server_id,
        status: JobStatus::Failed.name(),
        exit_code: None,
        duration_ms: None,
        is_truncated: false,
        output: None,
        output_parts: None,
        error: Some(error),
        error_reason: None,
        at,
    }
}

fn has_failed(status: JobStatus) -> bool {
    status.is_final() && status != JobStatus::Succeeded
}
