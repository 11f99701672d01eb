//! Jobs that this instance does not have, or whose agents are not connected to it: it sends them through other instances,
//! and follows them there. A single instance uses [`Alone`](super::alone::Alone) instead.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use signalbox_protocol::Timestamp;
use tokio::time::timeout;
use uuid::Uuid;

use super::JobStatus;
use super::job::{End, Job};
use super::local::LocalJobs;
use super::locus::Standing;
use super::peer_messages::{Followed, Start, WantedCommand};
use super::remote::Homes;
use super::retention::before;
use super::running::RunningJobs;
use super::writer::{JobWriter, STORE_AGAIN_AFTER};
use crate::bus::BusError;
use crate::registry::CallError;
use crate::store::{Command, Store, StoreError};

/// How long the viewer of a command waits for the output so far.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(2);

/// A command that was stored within this time may still be on its way from another instance. All instances write times by
/// the shared clock, as each last read it.
const LATELY: Duration = Duration::from_secs(10);

/// Whether somebody still waits for an outcome.
pub(super) type IsAwaited<'a> = &'a (dyn Fn() -> bool + Send + Sync);

/// How to handle jobs that this instance does not have or cannot send.
pub(super) trait UnheldJobs: Send + Sync + 'static {
    /// Returns whether the agent of a server is connected to another instance. If that is not known, it returns true.
    fn is_reachable(&self, server_id: Uuid) -> BoxFuture<'_, bool>;

    /// Checks whether a command may be sent to a server whose agent is not connected to this instance.
    fn expect_room(&self, server_id: Uuid) -> BoxFuture<'_, Result<(), CallError>>;

    /// Sends a job whose agent is not connected to this instance. A job that cannot be sent is ended.
    fn send<'a>(&'a self, job: &'a Arc<Job>, stdin: Option<String>) -> BoxFuture<'a, Result<(), CallError>>;

    /// Returns a running job that this instance does not have yet, with its output so far.
    fn find(&self, server_id: Uuid, id: Uuid) -> BoxFuture<'_, Result<Option<Arc<Job>>, StoreError>>;

    /// Returns the job of an unfinished row that this instance does not have yet, with its output so far.
    fn take_up(&self, row: Command) -> BoxFuture<'_, Arc<Job>>;

    /// Returns the job of an unfinished row whose agent is not connected to this instance.
    fn job_of(&self, row: Command) -> Job;

    /// Returns whether a command that its agent does not hold may still be on its way to it; `found` is its job on this
    /// instance, if there is one.
    fn may_come(&self, found: Option<&Job>, row: &Command, now: Timestamp) -> bool;

    /// Returns which of these batches were cancelled; only those that this instance may not have learnt of.
    fn called_off(&self, batch_ids: HashSet<Uuid>) -> BoxFuture<'_, Result<HashSet<Uuid>, StoreError>>;

    /// Stores the end of a command whose job this instance does not have, unless its end is already stored. Tries to find that out
    /// while `is_awaited`, and returns an error if it is not known then.
    fn store_end_of<'a>(
        &'a self,
        server_id: Uuid,
        id: Uuid,
        end: End,
        is_awaited: IsAwaited<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Jobs of agents that are connected to other instances; cheap to clone.
#[derive(Clone)]
pub(super) struct RemoteJobs {
    pub store: Store,
    pub homes: Homes,
    pub running: RunningJobs,
    pub writer: Arc<JobWriter>,
    pub local: Arc<LocalJobs>,
    /// Held while the command of a reported result is looked up: an agent that invents results takes one connection to the
    /// database, and not all.
    pub looking_up: Arc<tokio::sync::Mutex<()>>,
}

impl RemoteJobs {
    /// Asks the owner of a server to publish these jobs. Returns those that it has.
    pub async fn follow(&self, server_id: Uuid, jobs: &[Arc<Job>]) -> Vec<Followed> {
        if self.local.is_with_us(server_id) {
            return Vec::new();
        }
        let wanted = |job: &Arc<Job>| WantedCommand {
            id: job.id(),
            place: job.output_end(),
            is_called_off: job.is_cancel_requested(),
        };
        let followed = self.homes.follow(server_id, jobs.iter().map(wanted).collect()).await.unwrap_or_default();
        for followed in &followed {
            let Some(job) = jobs.iter().find(|job| job.id() == followed.id) else { continue };
            if let Some(at) = followed.started_at {
                job.change(|standing| standing.begin(at));
            }
            job.change(Standing::mark_sent);
        }
        followed
    }

    /// Returns whether the database says that an instance has the agent of a server. If that is not known, it returns true.
    async fn is_held(&self, server_id: Uuid) -> bool {
        !self.store.held_among(&[server_id]).await.is_ok_and(|held| held.is_empty())
    }

    /// Returns the row of a command; retries while that `is_awaited` and the database is unavailable.
    async fn row(&self, server_id: Uuid, id: Uuid, is_awaited: IsAwaited<'_>) -> Result<Option<Command>, StoreError> {
        loop {
            match self.look_up(server_id, id).await {
                Ok(row) => return Ok(row),
                Err(error) if !is_awaited() => return Err(error),
                Err(error) => {
                    tracing::error!(job.id = %id, %error, "a command that has ended could not be looked up, will try again")
                }
            }
            tokio::time::sleep(STORE_AGAIN_AFTER).await;
        }
    }

    async fn look_up(&self, server_id: Uuid, id: Uuid) -> Result<Option<Command>, StoreError> {
        let _turn = self.looking_up.lock().await;
        self.store.find_command(server_id, id).await
    }
}

impl UnheldJobs for RemoteJobs {
    fn is_reachable(&self, server_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(async move { self.homes.is_there(server_id).await.unwrap_or(true) })
    }

    fn expect_room(&self, server_id: Uuid) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            match self.homes.has_room(server_id, self.is_held(server_id)).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(CallError::Busy),
                Err(BusError::NoResponder) => Err(CallError::Offline),
                Err(_) if self.is_held(server_id).await => Err(CallError::Unreachable),
                Err(_) => Err(CallError::Offline),
            }
        })
    }

    /// Asks the owner of the server to send it.
    fn send<'a>(&'a self, job: &'a Arc<Job>, stdin: Option<String>) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            job.change(Standing::set_remote);
            let start = Start { reader: self.homes.reader(), row: (&job.row).into(), stdin };
            let server_id = job.row.server_id;
            let error = match self.homes.start(server_id, start, self.is_held(server_id)).await {
                Ok(Ok(())) => {
                    self.local.left(job).await;
                    return Ok(());
                }
                // The owner has stored this end.
                Ok(Err(error)) => {
                    job.end(self.writer.unsent(&error));
                    return Err(error);
                }
                Err(BusError::NoResponder) => CallError::Offline,
                // It was not sent either.
                Err(BusError::TooLarge | BusError::Away) => CallError::Unreachable,
                Err(error @ (BusError::Timeout | BusError::Malformed)) => {
                    tracing::warn!(job.id = %job.id(), %error, "it is not known whether a command was sent");
                    job.change(Standing::mark_sent);
                    return Ok(());
                }
            };
            self.writer.conclude(job, self.writer.unsent(&error)).await;
            Err(error)
        })
    }

    fn find(&self, server_id: Uuid, id: Uuid) -> BoxFuture<'_, Result<Option<Arc<Job>>, StoreError>> {
        Box::pin(async move {
            let row = self.store.find_command(server_id, id).await?;
            let Some(row) = row.filter(|row| JobStatus::of(&row.status) == JobStatus::Running) else { return Ok(None) };
            Ok(Some(self.take_up(row).await))
        })
    }

    fn take_up(&self, row: Command) -> BoxFuture<'_, Arc<Job>> {
        Box::pin(async move {
            let job = self.running.remember(self.job_of(row));
            let followed = self.follow(job.row.server_id, std::slice::from_ref(&job)).await;
            if let Some(place) = followed.first().map(|followed| followed.place).filter(|place| *place > 0) {
                _ = timeout(CAUGHT_UP_WITHIN, job.beyond(place - 1)).await;
            }
            job
        })
    }

    fn job_of(&self, row: Command) -> Job {
        Job::replica(row)
    }

    /// True for a recent command: another instance may be sending it, or it was sent after the agent listed its commands in a
    /// slow handshake.
    fn may_come(&self, found: Option<&Job>, row: &Command, now: Timestamp) -> bool {
        may_come(found, row, now)
    }

    fn called_off(&self, batch_ids: HashSet<Uuid>) -> BoxFuture<'_, Result<HashSet<Uuid>, StoreError>> {
        Box::pin(async move {
            if batch_ids.is_empty() {
                return Ok(batch_ids);
            }
            let standings = self.store.batch_standings(&batch_ids.into_iter().collect::<Vec<_>>()).await?;
            Ok(standings.into_iter().filter(|batch| batch.is_cancelled).map(|batch| batch.id).collect())
        })
    }

    /// The job was handed over a moment ago, because its agent seemed to have disconnected.
    fn store_end_of<'a>(
        &'a self,
        server_id: Uuid,
        id: Uuid,
        end: End,
        is_awaited: IsAwaited<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let has_ended = |row: &Command| !matches!(JobStatus::of(&row.status), JobStatus::Running | JobStatus::Lost);
            let Some(row) = self.row(server_id, id, is_awaited).await?.filter(|row| !has_ended(row)) else {
                return Ok(());
            };
            let job = self.running.remember(Job::sent_before(row));
            job.change(Standing::set_local);
            if job.end(end) {
                self.writer.store_end(&job).await;
            }
            Ok(())
        })
    }
}

fn may_come(found: Option<&Job>, row: &Command, now: Timestamp) -> bool {
    found.is_none_or(Job::is_remote) && is_recent(row, now)
}

/// Returns whether a command was stored so recently that it may still be on its way.
fn is_recent(row: &Command, now: Timestamp) -> bool {
    row.started_at.is_none_or(|at| Timestamp::from(at) > before(now, LATELY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::NewJob;

    fn started(at: Timestamp) -> Command {
        let new = NewJob::of_make(Uuid::now_v7(), Uuid::nil());
        new.into_row(JobStatus::Running, None, at)
    }

    #[test]
    fn a_command_that_another_instance_sent_recently_is_not_lost_yet() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let (fresh, old) = (started(now), started(before(now, 2 * LATELY)));

        assert!(may_come(None, &fresh, now));
        assert!(may_come(Some(&Job::replica(fresh.clone())), &fresh, now));
        assert!(!may_come(Some(&Job::sent_before(fresh.clone())), &fresh, now), "it was sent from here");
        assert!(!may_come(Some(&Job::replica(old.clone())), &old, now));
        assert!(!may_come(None, &old, now));
    }
}
