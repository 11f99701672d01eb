//! One command for many servers.
//!
//! A batch is stored with all its commands before the first is sent. A task ([`BatchRun`]) then runs it. After a restart
//! of the service the batch continues with its queued commands; commands that were sent are never sent again. With several
//! instances, each runs the batches that it started. It also takes over batches whose instance has ended, and batches that
//! their instance does not run because the database failed when it started or took over the batch.

use std::sync::Arc;
use std::time::Duration;

use dashmap::{DashMap, Entry as Slot};
use futures_util::future::try_join_all;
use signalbox_protocol::signed::Signed;
use tokio::sync::watch;
use uuid::Uuid;

use super::batch_run::{BatchRun, Course, Means};
use super::jobs::RunError;
use super::locus::Locus;
use super::new_job::NewJob;
use super::writer::STORE_AGAIN_AFTER;
use super::{JobStatus, entries};
use crate::audit::{Actor, Entry};
use crate::cluster::Cluster;
use crate::periodic::every;
use crate::store::{Command, CommandBatch, CommandWrite, Once, StoreError};

/// How often this instance checks the state of its batches, and looks for batches that no instance runs.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// How often a single instance looks for batches that it stored and does not run.
const RESUME_EVERY: Duration = Duration::from_secs(10);

/// How long to wait until an agent takes the request to end a command. The agent gets it again when it reconnects.
const ASKED_WITHIN: Duration = Duration::from_secs(30);

/// A command for many servers.
#[derive(Debug, Clone)]
pub struct NewBatch {
    pub owner_id: Uuid,
    pub actor: Actor,
    pub servers: Vec<BatchServer>,
    pub command: String,
    pub stdin: Option<String>,
    /// What operators signed for all its servers.
    pub signed: Option<Signed>,
    pub timeout_seconds: u32,
    /// How many servers run it at the same time.
    pub concurrency: u16,
    /// Whether a failed command keeps the queued ones from running.
    pub stop_on_failure: bool,
}

/// A server of a batch. Its command belongs to its owner, as every command on it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchServer {
    pub server_id: Uuid,
    pub owner_id: Uuid,
}

/// The command of a batch for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    pub command_id: Uuid,
    pub server_id: Uuid,
}

/// The batches that this instance runs, with the directive for each.
#[derive(Clone, Default)]
struct ActiveBatches(Arc<DashMap<Uuid, watch::Sender<Course>>>);

/// The claim that this instance runs a batch, released when dropped.
pub(super) struct Claim {
    active: ActiveBatches,
    batch_id: Uuid,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.active.0.remove(&self.batch_id);
    }
}

impl ActiveBatches {
    /// Registers that this instance runs a batch, with its directive. Returns `None` if it already runs it.
    fn claim(&self, batch_id: Uuid, course: watch::Sender<Course>) -> Option<Claim> {
        match self.0.entry(batch_id) {
            Slot::Occupied(_) => None,
            Slot::Vacant(vacant) => {
                vacant.insert(course);
                Some(Claim { active: self.clone(), batch_id })
            }
        }
    }

    fn ids(&self) -> Vec<Uuid> {
        self.0.iter().map(|entry| *entry.key()).collect()
    }

    /// Changes the directive of a batch, if this instance runs it.
    fn direct(&self, batch_id: Uuid, course: Course) {
        if let Some(batch) = self.0.get(&batch_id) {
            batch.send_if_modified(|now| std::mem::replace(now, course) != course);
        }
    }
}

/// Starts, runs and cancels batches; cheap to clone.
#[derive(Clone)]
pub struct Batches {
    means: Arc<Means>,
    cluster: Cluster,
    active: ActiveBatches,
}

impl Batches {
    pub(super) fn new(means: Arc<Means>, cluster: Cluster) -> Self {
        Self { means, cluster, active: ActiveBatches::default() }
    }

    /// Stores a batch and starts to run it. Returns the batch, and the command for each server.
    ///
    /// Continues if the caller is dropped: a batch that is stored is run.
    pub async fn start(&self, new: NewBatch) -> Result<(CommandBatch, Vec<BatchPlace>), RunError> {
        self.begin(Uuid::now_v7(), new, None, Vec::new()).await?.ok_or(RunError::Stopping)
    }

    /// Starts a batch with this id, if nobody has for the same reason before. Returns whether it did. The entries are written
    /// only then.
    pub(super) async fn start_once(
        &self,
        id: Uuid,
        new: NewBatch,
        once: Once,
        entries: Vec<Entry>,
    ) -> Result<bool, RunError> {
        Ok(self.begin(id, new, Some(once), entries).await?.is_some())
    }

    async fn begin(
        &self,
        id: Uuid,
        new: NewBatch,
        once: Option<Once>,
        mut entries: Vec<Entry>,
    ) -> Result<Option<(CommandBatch, Vec<BatchPlace>)>, RunError> {
        let now = self.means.clock.now();
        let batch = CommandBatch {
            id,
            owner_id: new.owner_id,
            username: new.actor.username.to_string(),
            token_id: new.actor.token.as_ref().map(|token| token.id),
            command: new.command.clone(),
            timeout_seconds: i32::try_from(new.timeout_seconds).unwrap_or(i32::MAX),
            concurrency: i32::from(new.concurrency),
            stop_on_failure: new.stop_on_failure,
            is_cancelled: false,
            instance_id: self.means.runners.runner(),
            created_at: now.into(),
            finished_at: None,
        };
        let job = |server: &BatchServer| NewJob {
            server_id: server.server_id,
            owner_id: server.owner_id,
            actor: new.actor.clone(),
            command: new.command.clone(),
            stdin: new.stdin.clone(),
            signed: new.signed.clone(),
            timeout_seconds: new.timeout_seconds,
        };
        let rows: Vec<Command> =
            new.servers.iter().map(|server| job(server).into_row(JobStatus::Queued, Some(batch.id), now)).collect();
        entries.push(entries::batch_started(&batch, new.actor, rows.len()));
        // Claimed before it is stored: otherwise `look_after` could find it without a runner and take it up.
        let Some(mut run) = self.prepare(batch.clone()) else { return Ok(None) };
        let means = self.means.clone();
        let begun = tokio::spawn(async move {
            let write = CommandWrite::NewBatch(Box::new(batch.clone()), rows.clone(), once);
            if !means.writer.write(write, entries).await? {
                return Ok(None);
            }
            means.quota.wrote(batch.owner_id, batch.command.len());
            rows.iter().for_each(|row| means.quota.wrote(row.owner_id, row.command.len()));
            let place = |row: &Command| BatchPlace { command_id: row.id, server_id: row.server_id };
            let places = rows.iter().map(place).collect();
            run.fill(rows);
            tokio::spawn(run.run_to_its_end());
            Ok(Some((batch, places)))
        });
        begun.await.unwrap_or(Err(RunError::Stopping))
    }

    /// Continues the batches that an earlier run of the service left, and those that this one stored without an answer of the
    /// database.
    pub async fn resume_all(&self) -> Result<(), StoreError> {
        for batch in self.means.runners.left_behind().await? {
            self.resume(batch).await?;
        }
        Ok(())
    }

    async fn resume(&self, batch: CommandBatch) -> Result<(), StoreError> {
        let batch_id = batch.id;
        let Some(mut run) = self.prepare(batch) else { return Ok(()) };
        // Another run of it may have ended, or somebody cancelled it, after it was read and before it was claimed.
        let standing = self.means.store.batch_standings(&[batch_id]).await?.pop();
        let Some(standing) = standing.filter(|standing| !standing.has_ended) else { return Ok(()) };
        let rows = self.means.store.batch_commands(batch_id).await?;
        tracing::info!(batch.id = %batch_id, "a batch continues");
        run.take_up(rows);
        // Read after its jobs were remembered: a cancellation before that did not find them.
        if standing.is_cancelled || run.is_called_off() {
            self.cancelled(batch_id);
        }
        tokio::spawn(run.run_to_its_end());
        Ok(())
    }

    /// Returns a batch run without commands; `None` if this instance already runs the batch.
    fn prepare(&self, batch: CommandBatch) -> Option<BatchRun> {
        let course = watch::Sender::new(if batch.is_cancelled { Course::CalledOff } else { Course::On });
        let told = course.subscribe();
        let claim = self.active.claim(batch.id, course)?;
        Some(BatchRun::new(self.means.clone(), claim, batch, told))
    }

    /// Records that a batch is cancelled, and in the audit log who ended each of its running commands. [`Self::cancelled`]
    /// ends them, on every instance.
    ///
    /// A repetition writes nothing twice, and completes an attempt that got no answer of the database. A batch that has ended stays as
    /// it is, but those of its commands that still run are ended.
    pub async fn cancel(&self, batch: &CommandBatch, actor: Actor) -> Result<(), RunError> {
        let batch_id = batch.id;
        let entry = entries::batch_cancelled(batch, actor.clone());
        self.means.writer.write(CommandWrite::BatchCancelled { batch_id }, vec![entry]).await?;
        // Before the audit log is written, so that no further command starts until then.
        self.cancelled(batch_id);
        if let Err(error) = self.tell_cancelled(batch_id, &actor).await {
            // The batch is cancelled, so the caller gets no error.
            tracing::warn!(%error, batch.id = %batch_id, "the audit log lacks the cancelled commands of a batch, will try again");
            let batches = self.clone();
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(STORE_AGAIN_AFTER).await;
                    match batches.tell_cancelled(batch_id, &actor).await {
                        Err(RunError::Store(_)) => {}
                        Ok(()) | Err(_) => break,
                    }
                }
            });
        }
        Ok(())
    }

    /// Records in the audit log who ended the running commands of a batch, once for each.
    async fn tell_cancelled(&self, batch_id: Uuid, actor: &Actor) -> Result<(), RunError> {
        let rows = self.means.store.batch_commands(batch_id).await?;
        let running = rows.iter().filter(|row| JobStatus::of(&row.status) == JobStatus::Running);
        let untold = running.filter(|row| !row.is_cancel_requested);
        let tell = |row: &Command| {
            let entry = entries::cancelled(row, actor.clone());
            self.means.writer.write(CommandWrite::CancelledWithBatch { id: row.id }, vec![entry])
        };
        // Together, so that they are few transactions.
        let telling: Vec<_> = untold.map(tell).collect();
        try_join_all(telling).await?;
        Ok(())
    }

    /// Continues batches that no task runs, for as long as the only instance runs.
    pub async fn keep_resuming(&self) {
        every(RESUME_EVERY, async || {
            if let Err(error) = self.resume_all().await {
                tracing::warn!(%error, "unfinished batches could not be checked, will try again");
            }
        })
        .await;
    }

    /// Takes over batches that no instance runs, and applies what other instances did to batches that run here.
    pub(super) async fn keep(&self) {
        every(LOOK_EVERY, async || {
            if let Err(error) = self.look_after().await {
                tracing::warn!(%error, "batches could not be checked, will try again");
            }
        })
        .await;
    }

    async fn look_after(&self) -> Result<(), StoreError> {
        for batch in self.means.store.batch_standings(&self.active.ids()).await? {
            if batch.instance_id != self.means.runners.runner() {
                tracing::warn!(batch.id = %batch.id, "another instance took a batch over");
                self.active.direct(batch.id, Course::TakenOver);
            } else if batch.is_cancelled {
                self.cancelled(batch.id);
            }
        }
        if self.cluster.is_draining() {
            return Ok(());
        }
        for batch in self.means.store.claim_batches(self.cluster.instance_id, &self.active.ids()).await? {
            let batch_id = batch.id;
            if let Err(error) = self.resume(batch).await {
                tracing::warn!(batch.id = %batch_id, %error, "a batch could not continue, will try again");
            }
        }
        Ok(())
    }

    /// Takes in that a batch was cancelled, on whichever instance: its queued commands do not run, and its running ones here
    /// are ended.
    pub fn cancelled(&self, batch_id: Uuid) {
        self.active.direct(batch_id, Course::CalledOff);
        for job in self.means.running.all() {
            if job.row.batch_id != Some(batch_id) || job.is_over() || !job.request_cancel() {
                continue;
            }
            // The owners of replicas learn of it too, at the latest with the next `Follow`. A job that cannot be ended now is
            // ended when it is sent or when its agent reconnects.
            if job.locus() == Locus::Here {
                let local = self.means.local.clone();
                // The limit keeps an agent that reads nothing from holding the task.
                tokio::spawn(async move { tokio::time::timeout(ASKED_WITHIN, local.ask_to_end(&job)).await });
            }
        }
    }
}
