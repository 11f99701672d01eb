//! Starts, finds and cancels jobs, and takes what agents say of them.

use std::sync::Arc;
use std::time::Duration;

use dashmap::{DashMap, DashSet};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::ServiceMessage;
use tokio::sync::watch;
use uuid::Uuid;

use super::job::{End, Job};
use super::mirrors::failed;
use super::takeover::Batches;
use super::{JobStatus, told};
use crate::audit::Actor;
use crate::cluster::Cluster;
use crate::fleet::Fleet;
use crate::ledger::{Ledger, LedgerError};
use crate::registry::{CallError, RegistryHandle};
use crate::store::{Command, CommandChange, CommandWrite, Store, StoreError};

/// Commands of one server that may run at a time, as far as the service is concerned.
pub(super) const MOST_RUNNING: usize = 256;

/// When to look again whether an agent that is away has come back.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Beyond a command's own time limit: its agent takes a moment to end it and to say so.
const BEYOND_TIMEOUT: Duration = Duration::from_secs(3);

/// Between two attempts to store an end while the database is away.
pub(super) const STORE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A command that somebody wants to run.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub server_id: Uuid,
    /// Whose server it is.
    pub owner_id: Uuid,
    pub actor: Actor,
    pub command: String,
    pub stdin: Option<String>,
    pub timeout_seconds: u32,
}

impl NewJob {
    pub(super) fn into_row(self, status: JobStatus, batch_id: Option<Uuid>) -> Command {
        let now = Timestamp::now();
        Command {
            id: Uuid::now_v7(),
            server_id: self.server_id,
            batch_id,
            owner_id: self.owner_id,
            user_id: self.actor.user_id.unwrap_or_default(),
            login_id: self.actor.login_id,
            username: self.actor.username.to_string(),
            address: self.actor.address,
            command: self.command,
            // Once it is sent nobody needs it any more, and it may be a secret.
            stdin: self.stdin.filter(|_| status == JobStatus::Queued),
            timeout_seconds: i32::try_from(self.timeout_seconds).unwrap_or(i32::MAX),
            status: status.name().to_owned(),
            exit_code: None,
            duration_ms: None,
            is_truncated: false,
            output: None,
            output_parts: None,
            error_code: None,
            error_detail: None,
            created_at: now.into(),
            started_at: (status == JobStatus::Running).then_some(now.into()),
            finished_at: None,
        }
    }
}

/// Why a command was not run, or nobody can say what became of it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("too many commands run on this server already")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the service is stopping")]
    Stopping,
}

impl From<LedgerError> for RunError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Store(error) => Self::Store(error),
            LedgerError::Stopped => Self::Stopping,
        }
    }
}

/// Every command that runs, behind cheap clones.
#[derive(Clone)]
pub struct Jobs {
    pub(super) store: Store,
    pub(super) ledger: Ledger<CommandChange>,
    registry: RegistryHandle,
    /// Reaches the agents of this instance alone.
    pub(super) here: RegistryHandle,
    fleet: Fleet,
    pub(super) cluster: Cluster,
    pub(super) running: Arc<DashMap<Uuid, Arc<Job>>>,
    /// Which jobs other instances are told of, and which instances.
    pub(super) lent: Arc<DashSet<(Uuid, Uuid)>>,
    /// Servers whose agents are about to be here, and by how many handshakes.
    pub(super) arriving: Arc<DashMap<Uuid, usize>>,
    pub(super) batches: Batches,
    is_stopping: Arc<watch::Sender<bool>>,
}

impl Jobs {
    /// Must be called where tasks can be spawned.
    pub fn new(store: Store, registry: RegistryHandle, fleet: Fleet, cluster: Cluster) -> Self {
        Self {
            ledger: Ledger::start(store.clone()),
            store,
            here: registry.here(),
            registry,
            fleet,
            cluster,
            running: Arc::default(),
            lent: Arc::default(),
            arriving: Arc::default(),
            batches: Arc::default(),
            is_stopping: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Stores a command and sends it. When this resolves it is on its way, or never will be.
    ///
    /// Goes on when whoever asked has gone: what is stored is sent.
    pub async fn run(&self, new: NewJob) -> Result<Arc<Job>, RunError> {
        let is_here = self.is_here(new.server_id);
        if !is_here {
            self.check_elsewhere(new.server_id).await?;
        }
        let stdin = new.stdin.clone();
        let job = self.remember(Job::new(new.into_row(JobStatus::Running, None)));
        if !is_here {
            job.give_away();
        }
        // Counted with this one in it: of many that come at once none is overlooked.
        if self.count_of(job.row.server_id) > MOST_RUNNING {
            self.running.remove(&job.id());
            return Err(RunError::TooMany);
        }
        let jobs = self.clone();
        let sent = tokio::spawn(async move {
            let entry = told::started(&job.row);
            if let Err(error) = jobs
                .ledger
                .write(CommandChange { write: CommandWrite::New(Box::new(job.row.clone())), entries: vec![entry] })
                .await
            {
                jobs.running.remove(&job.id());
                return Err(error.into());
            }
            jobs.send(&job, stdin).await?;
            Ok(job)
        });
        sent.await.unwrap_or(Err(RunError::Stopping))
    }

    /// How many commands of a server run here.
    pub(super) fn count_of(&self, server_id: Uuid) -> usize {
        let is_its = |job: &Job| job.row.server_id == server_id && !job.is_mirror();
        self.running.iter().filter(|entry| is_its(entry.value())).count()
    }

    /// Sends a job that is stored as running. One that cannot be sent has ended.
    pub(super) async fn send(&self, job: &Arc<Job>, stdin: Option<String>) -> Result<(), CallError> {
        match self.execute_here(job, stdin.clone()).await {
            Ok(()) => {
                job.take_home();
                self.is_on_its_way(job).await;
                Ok(())
            }
            // It has not left.
            Err(CallError::Offline) if !self.cluster.is_alone() => self.send_elsewhere(job, stdin).await,
            Err(error) => {
                self.conclude(job, failed(&error)).await;
                Err(error)
            }
        }
    }

    /// A job has left for its agent.
    pub(super) async fn is_on_its_way(&self, job: &Job) {
        job.mark_sent();
        if job.is_called_off() {
            // Called off before it was sent, so its agent did not know it yet.
            _ = self.ask_to_end(job).await;
        }
    }

    /// Tells whoever watches it that a job will not run.
    pub(super) fn dismiss(&self, id: Uuid, status: JobStatus) {
        if let Some((_, job)) = self.running.remove_if(&id, |_, job| !job.is_sent()) {
            job.end(End::without_result(status, None));
        }
    }

    /// The job of this id: this one, unless somebody watches it already.
    pub(super) fn remember(&self, job: Job) -> Arc<Job> {
        self.running.entry(job.id()).or_insert_with(|| Arc::new(job)).clone()
    }

    /// A job that runs, or whose end is not stored yet.
    pub fn find(&self, server_id: Uuid, id: Uuid) -> Option<Arc<Job>> {
        let job = self.running.get(&id).map(|entry| entry.value().clone());
        job.filter(|job| job.row.server_id == server_id)
    }

    /// A job to watch: one that runs, or one that has ended as it is stored.
    pub async fn watch(&self, server_id: Uuid, id: Uuid) -> Result<Option<Arc<Job>>, StoreError> {
        if let Some(job) = self.find(server_id, id) {
            return Ok(Some(job));
        }
        let Some(row) = self.store.find_command(server_id, id).await? else { return Ok(None) };
        Ok(Some(match JobStatus::of(&row.status) {
            JobStatus::Queued | JobStatus::Running if !self.cluster.is_alone() => {
                let job = self.remember(Job::mirror(row));
                self.catch_up(&job).await;
                job
            }
            JobStatus::Queued => self.remember(Job::new(row)),
            // Sent by an earlier run of the service: its agent may still come.
            JobStatus::Running => self.remember(Job::sent_before(row)),
            _ => Arc::new(Job::ended_before(row)),
        }))
    }

    /// Waits until the job has ended, at most so long. When its agent is away and its own time limit is over, nobody can
    /// say what became of it.
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
                while self.is_reachable(job.row.server_id).await {
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
            // What runs goes on, and its agent keeps the result.
            () = stopped => Ok(()),
        }
    }

    /// Asks the agent to end a job, for `actor`. It has ended when its result is here. An agent that is away is asked
    /// when it is back.
    pub async fn cancel(&self, job: &Job, actor: Actor) -> Result<(), RunError> {
        if job.ended().is_some() {
            return Ok(());
        }
        self.store.record(told::cancelled(&job.row, actor)).await?;
        job.call_off();
        Ok(self.ask_to_end(job).await?)
    }

    pub(super) async fn ask_to_end(&self, job: &Job) -> Result<(), CallError> {
        let cancel = ServiceMessage::Cancel { command_id: job.id() };
        match self.registry.link(job.row.server_id).send(cancel).await {
            Err(CallError::Offline) => Ok(()),
            outcome => outcome,
        }
    }

    /// An agent is there again: it is asked to end what was called off while it was away.
    pub async fn remind(&self, server_id: Uuid) {
        for job in self.all().into_iter().filter(|job| job.row.server_id == server_id && job.is_called_off()) {
            // If it went again, it is asked the next time.
            _ = self.ask_to_end(&job).await;
        }
    }

    /// Keeps a command from running that still waits in its batch, and gives the command as it stands.
    pub async fn cancel_queued(&self, server_id: Uuid, id: Uuid, actor: Actor) -> Result<Option<Command>, RunError> {
        self.ledger
            .write(CommandChange {
                write: CommandWrite::Dropped { id, server_id, at: Timestamp::now() },
                entries: Vec::new(),
            })
            .await?;
        let row = self.store.find_command(server_id, id).await?;
        match row.as_ref().map(|row| (JobStatus::of(&row.status), row)) {
            Some((JobStatus::Cancelled, row)) => {
                self.dismiss(id, JobStatus::Cancelled);
                self.store.record(told::cancelled(row, actor)).await?;
            }
            // Its turn has come meanwhile: it is asked to end as soon as it is sent.
            Some((JobStatus::Running, _)) => {
                if let Some(job) = self.find_anywhere(server_id, id).await? {
                    self.cancel(&job, actor).await?;
                }
            }
            _ => {}
        }
        Ok(row)
    }

    /// The service stops: nobody waits any longer.
    pub fn stop(&self) {
        self.is_stopping.send_replace(true);
    }

    /// Whether the agent of a server is connected to this instance.
    pub(super) fn is_here(&self, server_id: Uuid) -> bool {
        self.fleet.is_here(server_id)
    }

    /// Ends a job from our side. It is stored though whoever waits for that goes away.
    pub(super) async fn conclude(&self, job: &Arc<Job>, end: End) {
        if job.end(end) {
            let (jobs, job) = (self.clone(), job.clone());
            _ = tokio::spawn(async move { jobs.store_end(&job).await }).await;
        }
    }

    /// Somebody else stores how it ended.
    pub(super) async fn until_stored(&self, job: &Job) {
        while self.running.contains_key(&job.id()) {
            tokio::time::sleep(STORE_AGAIN_AFTER).await;
        }
    }

    /// Stores how a job ended, however long the database is away, and forgets it then.
    pub(super) async fn store_end(&self, job: &Job) {
        let Some(end) = job.to_stored() else { return };
        let entry = told::ended(&job.row, &end);
        while let Err(error) = self
            .ledger
            .write(CommandChange { write: CommandWrite::Ended(Box::new(end.clone())), entries: vec![entry.clone()] })
            .await
        {
            tracing::error!(job.id = %end.id, %error, "a command's end could not be stored");
            if matches!(error, LedgerError::Stopped) {
                return;
            }
            tokio::time::sleep(STORE_AGAIN_AFTER).await;
        }
        self.running.remove(&end.id);
    }
}
