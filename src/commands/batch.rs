//! One command for many servers.
//!
//! A batch is stored with all its commands before the first is sent. A task ([`BatchRun`]) then runs it. After a restart
//! of the service it goes on with those that still wait; those that were sent are never sent again. Where there are several
//! instances each runs the batches that it began, and takes over those whose instance has ended, and those that their
//! instance lost, because the database failed it when it began or took the batch over.

use std::sync::Arc;
use std::time::Duration;

use dashmap::{DashMap, Entry as Slot};
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
use crate::store::{Command, CommandBatch, CommandWrite, StoreError};

/// How often it is looked how batches stand, and for those that nobody runs.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// How long an agent may take to hear that a command is to end. It is asked again when it is back.
const ASKED_WITHIN: Duration = Duration::from_secs(30);

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

/// The command of a batch for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    pub command_id: Uuid,
    pub server_id: Uuid,
}

/// The batches that are run here, and what is to become of each.
#[derive(Clone, Default)]
struct ActiveBatches(Arc<DashMap<Uuid, watch::Sender<Course>>>);

/// That a batch is run here, given up when dropped.
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
    /// Makes known that a batch is run here, and what is to become of it; none where it is run here already.
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

    /// Tells a batch that is run here what is to become of it.
    fn direct(&self, batch_id: Uuid, course: Course) {
        if let Some(batch) = self.0.get(&batch_id) {
            batch.send_if_modified(|now| std::mem::replace(now, course) != course);
        }
    }
}

/// Begins, runs and cancels batches, behind cheap clones.
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

    /// Stores a batch and begins to run it.
    ///
    /// Goes on when the caller has gone: what is stored is run. Gives each server's command with it.
    pub async fn start(&self, new: NewBatch) -> Result<(CommandBatch, Vec<BatchPlace>), RunError> {
        let now = self.means.clock.now();
        let batch = CommandBatch {
            id: Uuid::now_v7(),
            owner_id: new.owner_id,
            username: new.actor.username.to_string(),
            command: new.command.clone(),
            timeout_seconds: i32::try_from(new.timeout_seconds).unwrap_or(i32::MAX),
            concurrency: i32::from(new.concurrency),
            stop_on_failure: new.stop_on_failure,
            is_cancelled: false,
            instance_id: self.means.runners.runner(),
            created_at: now.into(),
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
            new.server_ids.iter().map(|id| job(id).into_row(JobStatus::Queued, Some(batch.id), now)).collect();
        let entry = entries::batch_started(&batch, new.actor, rows.len());
        // Before it is stored: from then on whoever finds that it is not run here takes it up.
        let Some(mut run) = self.prepare(batch.clone()) else { return Err(RunError::Stopping) };
        let means = self.means.clone();
        let begun = tokio::spawn(async move {
            let write = CommandWrite::NewBatch(Box::new(batch.clone()), rows.clone());
            means.writer.write(write, vec![entry]).await?;
            means.quota.wrote(batch.owner_id, batch.command.len() * (rows.len() + 1));
            let place = |row: &Command| BatchPlace { command_id: row.id, server_id: row.server_id };
            let places = rows.iter().map(place).collect();
            run.fill(rows);
            tokio::spawn(run.run_to_its_end());
            Ok((batch, places))
        });
        begun.await.unwrap_or(Err(RunError::Stopping))
    }

    /// Goes on with the batches that an earlier run of the service left to this one.
    pub async fn resume_all(&self) -> Result<(), StoreError> {
        for batch in self.means.runners.left_behind().await? {
            self.resume(batch).await?;
        }
        Ok(())
    }

    async fn resume(&self, batch: CommandBatch) -> Result<(), StoreError> {
        let batch_id = batch.id;
        let Some(mut run) = self.prepare(batch) else { return Ok(()) };
        let rows = self.means.store.batch_commands(batch_id).await?;
        tracing::info!(batch.id = %batch_id, "a batch goes on");
        run.take_up(rows);
        tokio::spawn(run.run_to_its_end());
        Ok(())
    }

    /// A batch with nothing to do yet; none of one that is run here already.
    fn prepare(&self, batch: CommandBatch) -> Option<BatchRun> {
        let course = watch::Sender::new(if batch.is_cancelled { Course::CalledOff } else { Course::On });
        let told = course.subscribe();
        let claim = self.active.claim(batch.id, course)?;
        Some(BatchRun::new(self.means.clone(), claim, batch, told))
    }

    /// Notes that a batch is called off, and of each command that runs of it by whom it is ended. What ends them is
    /// [`Self::cancelled`], on every instance.
    pub async fn cancel(&self, batch: &CommandBatch, actor: Actor) -> Result<(), RunError> {
        let batch_id = batch.id;
        let entry = entries::batch_cancelled(batch, actor.clone());
        self.means.writer.write(CommandWrite::BatchCancelled { batch_id }, vec![entry]).await?;
        // At once, so that nothing more begins while the log is told.
        self.cancelled(batch_id);
        if let Err(error) = self.tell_cancelled(batch_id, &actor).await {
            // It is called off, and the answer says so.
            tracing::warn!(%error, batch.id = %batch_id, "the audit log names the running commands of a batch later");
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

    /// Tells the audit log who ends what runs of a batch.
    async fn tell_cancelled(&self, batch_id: Uuid, actor: &Actor) -> Result<(), RunError> {
        let rows = self.means.store.batch_commands(batch_id).await?;
        let running = rows.iter().filter(|row| JobStatus::of(&row.status) == JobStatus::Running);
        let entries: Vec<Entry> = running.map(|row| entries::cancelled(row, actor.clone())).collect();
        if !entries.is_empty() {
            self.means.writer.write(CommandWrite::Told, entries).await?;
        }
        Ok(())
    }

    /// Takes over batches that no instance runs, and heeds what became of those that run here.
    pub(super) async fn keep(&self) {
        every(LOOK_EVERY, async || {
            if let Err(error) = self.look_after().await {
                tracing::warn!(%error, "batches could not be looked at, will try again");
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
                tracing::warn!(batch.id = %batch_id, %error, "a batch could not go on, will try again");
            }
        }
        Ok(())
    }

    /// Somebody called a batch off, on whichever instance: what waits here does not run, what runs here is ended.
    pub fn cancelled(&self, batch_id: Uuid) {
        self.active.direct(batch_id, Course::CalledOff);
        for job in self.means.running.all() {
            if job.row.batch_id != Some(batch_id) || job.is_over() || !job.request_cancel() {
                continue;
            }
            // Homes of replicas hear of it as well, at the latest when they are asked to go on. One that cannot be told
            // now is told when it is sent, or when its agent is back.
            if job.locus() == Locus::Here {
                let local = self.means.local.clone();
                // An agent that takes nothing for so long must not hold on to the task.
                tokio::spawn(async move { tokio::time::timeout(ASKED_WITHIN, local.ask_to_end(&job)).await });
            }
        }
    }
}
