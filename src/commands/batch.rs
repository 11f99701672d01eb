//! One command for many servers.
//!
//! A batch is stored with all its commands before the first is sent. A task then keeps as many running as it may, and
//! sends no more once one has failed, where that was asked, or when it is called off. After a restart of the service it
//! goes on with those that still wait; those that were sent are never sent again.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

use super::job::Job;
use super::jobs::{Jobs, LOOK_AGAIN_AFTER, NewJob, RunError, STORE_AGAIN_AFTER};
use super::takeover::Place;
use super::{JobStatus, told};
use crate::audit::{Actor, Entry};
use crate::store::{Command, CommandBatch, CommandChange, CommandWrite, StoreError};

/// How much longer than a command's own time limit a server may keep its turn.
const BEYOND_TIMEOUT: Duration = Duration::from_secs(30);

/// After a restart of the service its agents come back by themselves, a minute apart at most, their longest pause between
/// two attempts: until then one that is not there is waited for, and no other after it has to.
const AGENTS_ARE_BACK_WITHIN: Duration = Duration::from_secs(75);

/// The same where they may be back on any instance, which the database is asked for.
const LOOK_ELSEWHERE_AFTER: Duration = Duration::from_secs(1);

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

/// An agent that takes nothing for so long must not hold on to the task that tells it of a cancellation.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

impl Jobs {
    /// Stores a batch and begins to run it.
    ///
    /// Goes on when whoever asked has gone: what is stored is run.
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
            instance_id: self.runner(),
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
        // Before it is stored: from then on whoever finds that it is not run here takes it up.
        let Some(mut run) = self.prepare_batch(batch.clone()) else { return Err(RunError::Stopping) };
        let jobs = self.clone();
        let begun = tokio::spawn(async move {
            let write = CommandWrite::NewBatch(Box::new(batch.clone()), rows.clone());
            jobs.ledger.write(CommandChange { write, entries: vec![entry] }).await?;
            run.queue = rows.into();
            tokio::spawn(run.run_to_its_end());
            Ok(batch)
        });
        begun.await.unwrap_or(Err(RunError::Stopping))
    }

    /// Goes on with the batches that an earlier run of the service left: with those that wait and, as they have their
    /// turn still, with those that run. Of several instances each takes over what no other one runs, later.
    pub async fn resume_batches(&self) -> Result<(), StoreError> {
        if self.cluster.is_alone() {
            for batch in self.store.unfinished_batches().await? {
                self.resume(batch).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn resume(&self, batch: CommandBatch) -> Result<(), StoreError> {
        let batch_id = batch.id;
        let Some(mut run) = self.prepare_batch(batch) else { return Ok(()) };
        let rows = self.store.batch_commands(batch_id).await?;
        tracing::info!(batch.id = %batch_id, "a batch goes on");
        run.patient_until = Instant::now() + AGENTS_ARE_BACK_WITHIN;
        for row in rows {
            run.take_up(row);
        }
        tokio::spawn(run.run_to_its_end());
        Ok(())
    }

    /// Calls a batch off: what waits does not run, what runs is ended.
    pub async fn cancel_batch(&self, batch: &CommandBatch, actor: Actor) -> Result<(), RunError> {
        let batch_id = batch.id;
        let entry = told::batch_cancelled(batch, actor.clone());
        self.ledger
            .write(CommandChange { write: CommandWrite::BatchCancelled { batch_id }, entries: vec![entry] })
            .await?;
        self.direct(batch_id, Course::CalledOff);
        let rows = self.store.batch_commands(batch_id).await?;
        let running = rows.iter().filter(|row| JobStatus::of(&row.status) == JobStatus::Running);
        let found: Vec<_> = running.clone().filter_map(|row| self.find(row.server_id, row.id)).collect();
        // All of them first: one that cannot be told now is told when it is sent, or when its agent is back.
        for job in &found {
            job.call_off();
        }
        for job in found {
            let (jobs, actor) = (self.clone(), actor.clone());
            tokio::spawn(async move { tokio::time::timeout(TOLD_WITHIN, jobs.cancel(&job, actor)).await });
        }
        if !self.cluster.is_alone() {
            // Those that other instances have in hand, which call them off when they hear of it.
            let elsewhere = running.filter(|row| self.find(row.server_id, row.id).is_none());
            let entries: Vec<Entry> = elsewhere.map(|row| told::cancelled(row, actor.clone())).collect();
            if !entries.is_empty() {
                self.ledger.write(CommandChange { write: CommandWrite::Told, entries }).await?;
            }
        }
        Ok(())
    }

    /// A batch with nothing to do yet; none of one that is run here already.
    fn prepare_batch(&self, batch: CommandBatch) -> Option<BatchRun> {
        let course = watch::Sender::new(if batch.is_cancelled { Course::CalledOff } else { Course::On });
        let told = course.subscribe();
        Some(BatchRun {
            _place: self.place_for(batch.id, course)?,
            jobs: self.clone(),
            batch,
            queue: VecDeque::new(),
            running: JoinSet::new(),
            has_failed: false,
            course: told,
            patient_until: Instant::now(),
        })
    }
}

/// What is to become of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    On,
    /// What waits does not run.
    CalledOff,
    /// Another instance runs it.
    TakenOver,
}

struct BatchRun {
    jobs: Jobs,
    _place: Place,
    batch: CommandBatch,
    queue: VecDeque<Command>,
    running: JoinSet<JobStatus>,
    has_failed: bool,
    course: watch::Receiver<Course>,
    /// Until then a server without its agent keeps its place.
    patient_until: Instant,
}

impl BatchRun {
    /// Takes up a command where an earlier run of the service left it.
    fn take_up(&mut self, row: Command) {
        match JobStatus::of(&row.status) {
            JobStatus::Queued => self.queue.push_back(row),
            JobStatus::Running => {
                let job = if self.jobs.is_here(row.server_id) || self.jobs.cluster.is_alone() {
                    Job::sent_before(row)
                } else {
                    Job::mirror(row)
                };
                let job = self.jobs.remember(job);
                if self.batch.is_cancelled {
                    job.call_off();
                }
                self.running.spawn(turn(job));
            }
            ended => self.has_failed |= has_failed(ended),
        }
    }

    async fn run_to_its_end(mut self) {
        let outcome = self.run_all().await;
        if let Err(error) = outcome {
            tracing::error!(batch.id = %self.batch.id, %error, "a batch could not go on");
        }
    }

    async fn run_all(&mut self) -> Result<(), RunError> {
        loop {
            if *self.course.borrow() == Course::TakenOver {
                // What is being sent is sent to its end.
                self.running.detach_all();
                return Ok(());
            }
            if let Some(status) = self.reason_to_stop() {
                let waiting = std::mem::take(&mut self.queue);
                let (batch_id, by) = (self.batch.id, self.batch.instance_id);
                let skipped = CommandWrite::Skipped { batch_id, status: status.name(), at: Timestamp::now(), by };
                self.write(skipped, Vec::new()).await?;
                waiting.iter().for_each(|row| self.jobs.dismiss(row.id, status));
            }
            self.fill_up().await?;
            if self.running.is_empty() && self.queue.is_empty() {
                break;
            }
            let is_queued = !self.queue.is_empty();
            let pause = if self.jobs.cluster.is_alone() { LOOK_AGAIN_AFTER } else { LOOK_ELSEWHERE_AFTER };
            tokio::select! {
                biased;
                Some(ended) = self.running.join_next() => self.note(ended),
                Ok(()) = self.course.changed() => {}
                () = tokio::time::sleep(pause), if is_queued && self.looks_again() => {}
            }
            // Those that ended meanwhile too, so that one transaction starts as many.
            while let Some(ended) = self.running.try_join_next() {
                self.note(ended);
            }
        }
        let (batch_id, by) = (self.batch.id, self.batch.instance_id);
        self.write(CommandWrite::BatchEnded { batch_id, at: Timestamp::now(), by }, Vec::new()).await
    }

    fn note(&mut self, ended: Result<JobStatus, JoinError>) {
        self.has_failed |= has_failed(ended.unwrap_or(JobStatus::Lost));
    }

    /// What becomes of those that wait, if they are not to run.
    fn reason_to_stop(&self) -> Option<JobStatus> {
        if self.queue.is_empty() {
            return None;
        }
        let is_called_off = *self.course.borrow() == Course::CalledOff;
        match (is_called_off, self.batch.stop_on_failure && self.has_failed) {
            (true, _) => Some(JobStatus::Cancelled),
            (false, true) => Some(JobStatus::Skipped),
            (false, false) => None,
        }
    }

    /// Whether an agent that was not there may be there in a moment.
    fn looks_again(&self) -> bool {
        self.running.is_empty() || self.is_patient()
    }

    fn is_patient(&self) -> bool {
        Instant::now() < self.patient_until
    }

    /// Sends as many as have room.
    async fn fill_up(&mut self) -> Result<(), RunError> {
        loop {
            let some = self.next_in_line().await?;
            if some.is_empty() {
                return Ok(());
            }
            // Of those that were cancelled while they waited none starts, and there is still room.
            self.start(some).await?;
        }
    }

    /// As many of those that wait as have room.
    async fn next_in_line(&mut self) -> Result<Vec<Command>, RunError> {
        let concurrency = usize::try_from(self.batch.concurrency).unwrap_or(1).max(1);
        let room = concurrency.saturating_sub(self.running.len()).min(self.queue.len());
        if room == 0 || !self.is_patient() {
            return Ok(self.queue.drain(..room).collect());
        }
        let held = self.held_elsewhere().await?;
        let (mut next, mut later) = (Vec::new(), VecDeque::new());
        for row in self.queue.drain(..) {
            let is_there = self.jobs.is_here(row.server_id) || held.contains(&row.server_id);
            if next.len() < room && is_there {
                next.push(row);
            } else {
                later.push_back(row);
            }
        }
        self.queue = later;
        Ok(next)
    }

    /// Of those that wait: whose agents other instances hold.
    async fn held_elsewhere(&self) -> Result<HashSet<Uuid>, RunError> {
        let away = self.queue.iter().map(|row| row.server_id).filter(|server_id| !self.jobs.is_here(*server_id));
        let away: Vec<Uuid> = if self.jobs.cluster.is_alone() { Vec::new() } else { away.collect() };
        loop {
            match self.jobs.store.held_among(&away).await {
                Ok(held) => return Ok(held),
                Err(error) => self.wait_for_the_database(error.into()).await?,
            }
        }
    }

    /// Sends these, all stored in one transaction.
    async fn start(&mut self, some: Vec<Command>) -> Result<(), RunError> {
        let (at, by) = (Timestamp::now(), self.batch.instance_id);
        let ids: Vec<Uuid> = some.iter().map(|row| row.id).collect();
        self.write(CommandWrite::Started { ids: ids.clone(), at, by }, Vec::new()).await?;
        // One that was cancelled while it waited did not start.
        let started = loop {
            match self.jobs.store.running_among(&ids, by).await {
                Ok(started) => break started,
                Err(error) => self.wait_for_the_database(error.into()).await?,
            }
        };
        let some: Vec<Command> = some.into_iter().filter(|row| started.contains(&row.id)).collect();
        self.write(CommandWrite::Told, some.iter().map(told::started).collect()).await?;
        let is_called_off = *self.course.borrow() == Course::CalledOff;
        for mut row in some {
            let stdin = row.stdin.take();
            row.status = JobStatus::Running.name().to_owned();
            row.started_at = Some(at.into());
            let job = self.jobs.remember(Job::new(row));
            job.begin(at);
            if is_called_off {
                job.call_off();
            }
            self.running.spawn(run_one(self.jobs.clone(), job, stdin));
        }
        Ok(())
    }

    /// However long the database is away: a batch that is half-way must not be given up.
    async fn write(&self, write: CommandWrite, entries: Vec<Entry>) -> Result<(), RunError> {
        while let Err(error) =
            self.jobs.ledger.write(CommandChange { write: write.clone(), entries: entries.clone() }).await
        {
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

async fn run_one(jobs: Jobs, job: Arc<Job>, stdin: Option<String>) -> JobStatus {
    match jobs.send(&job, stdin).await {
        Ok(()) => turn(job).await,
        Err(_) => JobStatus::Failed,
    }
}

/// Waits for the end of a job, as long as it has its turn.
async fn turn(job: Arc<Job>) -> JobStatus {
    let own_limit = Duration::from_secs(u64::try_from(job.row.timeout_seconds).unwrap_or_default());
    // An agent that is away must not hold up the others for ever; its result is stored when it comes.
    _ = tokio::time::timeout(own_limit + BEYOND_TIMEOUT, job.has_ended()).await;
    job.ended().map_or(JobStatus::Lost, |end| end.status)
}

fn has_failed(status: JobStatus) -> bool {
    status.is_final() && status != JobStatus::Succeeded
}
