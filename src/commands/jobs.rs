//! Starts, finds, waits for and cancels commands.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use super::alone::Alone;
use super::approvals::Approvals;
use super::batch::Batches;
use super::batch_run::Means;
use super::dispatch::Dispatch;
use super::job::Job;
use super::local::{LocalJobs, MAX_RUNNING};
use super::locus::Standing;
use super::new_job::NewJob;
use super::published::PublishedJobs;
use super::remote::Homes;
use super::remote_jobs::{RemoteJobs, UnheldJobs};
use super::replicas::Replicas;
use super::reports::AgentReports;
use super::retention::Retention;
use super::runners::{Runners, SharedRunners};
use super::running::RunningJobs;
use super::schedules::Schedules;
use super::storage::StorageQuota;
use super::writer::JobWriter;
use super::{JobStatus, entries};
use crate::audit::Actor;
use crate::auth::access::Access;
use crate::batch_writer::BatchWriterError;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::cluster::remote::Remote;
use crate::fleet::Fleet;
use crate::registry::{CallError, RegistryHandle};
use crate::shares::Gate;
use crate::store::{Command, CommandWrite, Store, StoreError};

/// How often to check whether a disconnected agent has reconnected.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Added to a command's own time limit: its agent takes a moment to end it and to report that.
const BEYOND_TIMEOUT: Duration = Duration::from_secs(3);

/// Added to a command's own time limit: after that the service answers the caller, whatever the agent does.
const ANSWER_BEYOND_TIMEOUT: Duration = Duration::from_secs(10);

/// How long sending to an agent that reads normally takes at most. After that the agent is assumed to read nothing.
const SENT_WITHIN: Duration = Duration::from_secs(2);

/// Why a command was not run, or why its outcome is not known.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("too many commands are already running on this server")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the service is stopping")]
    Stopping,
}

impl From<BatchWriterError> for RunError {
    fn from(error: BatchWriterError) -> Self {
        match error {
            BatchWriterError::Store(error) => Self::Store(error),
            BatchWriterError::Stopped => Self::Stopping,
        }
    }
}

/// Runs, finds and cancels commands; cheap to clone.
#[derive(Clone)]
pub struct Jobs {
    clock: Clock,
    store: Store,
    running: RunningJobs,
    writer: Arc<JobWriter>,
    quota: Arc<StorageQuota>,
    local: Arc<LocalJobs>,
    elsewhere: Arc<dyn UnheldJobs>,
    dispatch: Arc<Dispatch>,
    reports: Arc<AgentReports>,
    batches: Arc<Batches>,
    approvals: Approvals,
    schedules: Schedules,
    retention: Arc<Retention>,
    is_stopping: Arc<watch::Sender<bool>>,
    /// The runtime of the thread on which commands are written and the registry runs, so that sending waits for no other
    /// thread.
    runtime: Handle,
}

/// What [`Jobs`] is built from.
pub struct Parts {
    pub clock: Clock,
    pub store: Store,
    pub access: Access,
    pub registry: RegistryHandle,
    pub fleet: Fleet,
    pub cluster: Cluster,
    /// The places that the output of running commands takes.
    pub outputs: Gate,
}

/// The parts that a single instance and one of several have in common.
struct Base {
    clock: Clock,
    store: Store,
    access: Access,
    cluster: Cluster,
    running: RunningJobs,
    quota: Arc<StorageQuota>,
    writer: Arc<JobWriter>,
    local: Arc<LocalJobs>,
}

impl Base {
    fn of(parts: Parts) -> Self {
        let Parts { clock, store, access, registry, fleet, cluster, outputs } = parts;
        let (running, quota) = (RunningJobs::new(outputs), Arc::new(StorageQuota::new(store.clone())));
        let writer = Arc::new(JobWriter::new(clock.clone(), store.clone(), running.clone(), quota.clone()));
        let local = Arc::new(LocalJobs::new(registry, access.clone(), fleet, running.clone(), writer.clone()));
        Self { clock, store, access, cluster, running, quota, writer, local }
    }
}

impl Jobs {
    /// For a single instance. Must be called where tasks can be spawned.
    pub fn alone(parts: Parts) -> Self {
        let base = Base::of(parts);
        let (store, running, writer) = (base.store.clone(), base.running.clone(), base.writer.clone());
        let alone = Arc::new(Alone { store, running, writer });
        Self::with(base, alone.clone(), alone)
    }

    /// For one of several instances. Must be called where tasks can be spawned.
    pub fn among_others(parts: Parts, remote: Remote) -> Self {
        let base = Base::of(parts);
        let runners = SharedRunners { store: base.store.clone(), instance_id: base.cluster.instance_id };
        let elsewhere = RemoteJobs {
            store: base.store.clone(),
            homes: Homes::new(remote),
            running: base.running.clone(),
            writer: base.writer.clone(),
            local: base.local.clone(),
            looking_up: Arc::default(),
        };
        Self::with(base, Arc::new(elsewhere), Arc::new(runners))
    }

    fn with(base: Base, elsewhere: Arc<dyn UnheldJobs>, runners: Arc<dyn Runners>) -> Self {
        let Base { clock, store, access, cluster, running, quota, writer, local } = base;
        let dispatch = Arc::new(Dispatch::new(local.clone(), elsewhere.clone(), writer.clone()));
        let reports = AgentReports::new(
            clock.clone(),
            store.clone(),
            running.clone(),
            writer.clone(),
            local.clone(),
            elsewhere.clone(),
        );
        let retention = Retention {
            clock: clock.clone(),
            store: store.clone(),
            shards: cluster.shards.clone(),
            running: running.clone(),
            writer: writer.clone(),
            quota: quota.clone(),
        };
        let means = Means {
            clock: clock.clone(),
            store: store.clone(),
            access: access.clone(),
            running: running.clone(),
            writer: writer.clone(),
            quota: quota.clone(),
            local: local.clone(),
            dispatch: dispatch.clone(),
            elsewhere: elsewhere.clone(),
            runners,
        };
        let batches = Arc::new(Batches::new(Arc::new(means), cluster.clone()));
        let approvals = Approvals {
            clock: clock.clone(),
            store: store.clone(),
            batches: batches.clone(),
            cluster: cluster.clone(),
        };
        let schedules =
            Schedules { clock: clock.clone(), store: store.clone(), access, batches: batches.clone(), cluster };
        Self {
            clock,
            store,
            running,
            writer,
            quota,
            local,
            elsewhere,
            dispatch,
            reports: Arc::new(reports),
            batches,
            approvals,
            schedules,
            retention: Arc::new(retention),
            is_stopping: Arc::new(watch::Sender::new(false)),
            runtime: Handle::current(),
        }
    }

    /// Returns what handles the messages of agents about commands.
    pub fn reports(&self) -> &Arc<AgentReports> {
        &self.reports
    }

    pub fn batches(&self) -> &Batches {
        &self.batches
    }

    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    pub fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    /// Stores a command and sends it. Resolves when it was sent or could not be, or after `limit` if its agent reads nothing.
    ///
    /// Continues if the caller is dropped: a command that is stored is sent.
    pub async fn run(&self, new: NewJob, limit: Duration) -> Result<Arc<Job>, RunError> {
        self.quota.expect_room(new.owner_id).await?;
        // An agent in its handshake is shown as online already: its session keeps the command until it is admitted.
        let is_with_us = self.local.is_with_us(new.server_id);
        if !is_with_us {
            self.elsewhere.expect_room(new.server_id).await?;
        }
        let stdin = new.stdin.clone();
        let job = self.running.remember(Job::new(new.into_row(JobStatus::Running, None, self.clock.now())));
        if !is_with_us {
            job.change(Standing::set_remote);
        }
        // Counted after it was added, so that of many at the same time none is overlooked.
        if self.running.count_local(job.row.server_id) > MAX_RUNNING {
            self.running.forget(job.id());
            return Err(RunError::TooMany);
        }
        let (writer, quota, dispatch) = (self.writer.clone(), self.quota.clone(), self.dispatch.clone());
        let remembered = job.clone();
        let (stored, is_stored) = oneshot::channel();
        let mut sending = self.runtime.spawn(async move {
            writer.store_new(&job).await?;
            _ = stored.send(());
            quota.wrote(job.row.owner_id, job.row.command.len());
            dispatch.send(&job, stdin).await?;
            Ok(job)
        });
        let overdue = async {
            // The limit counts from the moment when the command is stored: until then it may still be refused.
            _ = is_stored.await;
            tokio::time::sleep(limit.max(SENT_WITHIN)).await;
        };
        tokio::select! {
            biased;
            sent = &mut sending => sent.unwrap_or(Err(RunError::Stopping)),
            () = overdue => Ok(remembered),
        }
    }

    /// Returns how long a caller waits at most for a command with this time limit.
    pub fn answer_within(timeout_seconds: u32) -> Duration {
        Duration::from_secs(timeout_seconds.into()) + ANSWER_BEYOND_TIMEOUT
    }

    /// Returns a job of this instance that runs, or whose end is not stored yet.
    pub fn find(&self, server_id: Uuid, id: Uuid) -> Option<Arc<Job>> {
        self.running.find(server_id, id)
    }

    /// Returns a job of any instance that runs, or whose end is not stored yet, with its output so far.
    pub async fn find_anywhere(&self, server_id: Uuid, id: Uuid) -> Result<Option<Arc<Job>>, StoreError> {
        match self.find(server_id, id) {
            Some(job) => Ok(Some(job)),
            None => self.elsewhere.find(server_id, id).await,
        }
    }

    /// Returns a job to watch: a running one, or one that has ended, from its row.
    pub async fn watch(&self, server_id: Uuid, id: Uuid) -> Result<Option<Arc<Job>>, StoreError> {
        if let Some(job) = self.find(server_id, id) {
            return Ok(Some(job));
        }
        let Some(row) = self.store.find_command(server_id, id).await? else { return Ok(None) };
        Ok(Some(match JobStatus::of(&row.status) {
            JobStatus::Queued | JobStatus::Running => self.elsewhere.take_up(row).await,
            _ => Arc::new(Job::ended_before(row)),
        }))
    }

    /// Waits until the job has ended, at most for `limit`. Returns `Disconnected` if its agent is not connected after the
    /// command's own time limit, because its outcome is not known then.
    pub async fn wait(&self, job: &Job, limit: Duration) -> Result<(), RunError> {
        if limit.is_zero() {
            return Ok(());
        }
        let own_limit = Duration::from_secs(u64::try_from(job.row.timeout_seconds).unwrap_or_default());
        let patience = limit.min(own_limit + BEYOND_TIMEOUT);
        let stopped = async { _ = self.is_stopping.subscribe().wait_for(|is_stopping| *is_stopping).await };
        let waited = async {
            if tokio::time::timeout(patience, job.has_ended()).await.is_ok() {
                return Ok(());
            }
            let overdue = async {
                while self.dispatch.is_reachable(job.row.server_id).await {
                    tokio::time::sleep(LOOK_AGAIN_AFTER).await;
                }
            };
            tokio::select! {
                biased;
                () = job.has_ended() => Ok(()),
                () = overdue => Err(CallError::Disconnected.into()),
                () = tokio::time::sleep(limit.saturating_sub(patience)) => Ok(()),
            }
        };
        tokio::select! {
            waited = waited => waited,
            // The command continues on its server, and the agent keeps the result.
            () = stopped => Ok(()),
        }
    }

    /// Asks the agent to end a job, for `actor`. The job has ended when its result arrives. An agent that is not connected is
    /// asked when it reconnects.
    pub async fn cancel(&self, job: &Job, actor: Actor) -> Result<(), RunError> {
        if job.is_over() {
            return Ok(());
        }
        self.writer.store_cancel(job, actor).await?;
        job.request_cancel();
        Ok(self.local.ask_to_end(job).await?)
    }

    /// Cancels a command that is queued in its batch. Returns the command as it is then.
    pub async fn cancel_queued(&self, server_id: Uuid, id: Uuid, actor: Actor) -> Result<Option<Command>, RunError> {
        let Some(row) = self.store.find_command(server_id, id).await? else { return Ok(None) };
        let at = self.clock.now();
        let entries = vec![entries::cancelled(&row, actor.clone())];
        if self.writer.write(CommandWrite::Dropped { id, server_id, at }, entries).await? {
            self.running.dismiss(id, JobStatus::Cancelled, at);
            // Built here and not read again, so that nothing can fail after the cancellation.
            let status = JobStatus::Cancelled.name().to_owned();
            return Ok(Some(Command { status, stdin: None, finished_at: Some(at.into()), ..row }));
        }
        let row = self.store.find_command(server_id, id).await?;
        // It was started in the meantime: it is ended as soon as it is sent.
        if row.as_ref().is_some_and(|row| JobStatus::of(&row.status) == JobStatus::Running)
            && let Some(job) = self.find_anywhere(server_id, id).await?
        {
            self.cancel(&job, actor).await?;
        }
        Ok(row)
    }

    /// Takes in that the service is stopping: ends every wait.
    pub fn stop(&self) {
        self.is_stopping.send_replace(true);
    }

    /// Gives up commands that will not end any more, and removes those older than `kept_days` days.
    pub async fn tidy(&self, kept_days: u32) {
        if let Err(error) = self.retention.apply(kept_days).await {
            tracing::warn!(%error, "old commands could not be removed");
        }
    }

    /// Takes in that a server was deleted with its commands: ends every wait for them.
    pub fn forget_server(&self, server_id: Uuid) {
        self.running.forget_server(server_id, self.clock.now());
    }

    /// Returns what answers other instances about this instance's jobs.
    pub fn published(&self, remote: Remote) -> PublishedJobs {
        PublishedJobs::new(Homes::new(remote), self.running.clone(), self.writer.clone(), self.local.clone())
    }

    /// Keeps replicas and batches in step with other instances, for as long as this one runs.
    pub async fn keep_company(self, remote: Remote) {
        let Self { clock, store, running, writer, local, batches, .. } = self;
        let homes = Homes::new(remote);
        let remote = RemoteJobs { store, homes, running, writer, local, looking_up: Arc::default() };
        join(Replicas { clock, remote }.keep(), batches.keep()).await;
    }
}
