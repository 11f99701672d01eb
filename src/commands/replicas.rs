//! Replicas of jobs whose agents are connected to other instances.
//!
//! There is one for each command that is needed here: somebody waits for it or watches it, or its batch runs here. Its
//! owner publishes what happens. Once a second every owner is asked to continue, because the owner may have changed; jobs
//! that no owner publishes are looked up in the database. A replica that is not needed any more is dropped, and the answer
//! to the owner's next message says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use futures_util::{StreamExt, stream};
use uuid::Uuid;

use super::JobStatus;
use super::job::{End, Job};
use super::locus::Standing;
use super::peer_messages::CommandUpdate;
use super::remote_jobs::RemoteJobs;
use super::retention::before;
use crate::clock::Clock;
use crate::cluster::remote::message::Demand;
use crate::periodic::every;
use crate::store::StoreError;

/// How often the replicas are checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Owners that are asked at the same time.
const ASKED_AT_ONCE: usize = 64;

/// Every how many checks to look for commands that were never sent.
const LOOK_FOR_ORPHANS_EVERY: u32 = 60;

/// A command that was stored longer ago than this has been sent, or never will be.
const SENT_WITHIN: Duration = Duration::from_secs(60);

/// Jobs by their servers.
type ByServer = HashMap<Uuid, Vec<Arc<Job>>>;

/// Keeps the replicas equal to their owners' jobs.
pub(super) struct Replicas {
    pub clock: Clock,
    pub remote: RemoteJobs,
}

impl Replicas {
    /// Runs for as long as this instance does.
    pub async fn keep(self) {
        join(self.remote.homes.hear(|happened| self.take(happened)), self.look_after_all()).await;
    }

    /// Applies what the owner of a command has published.
    fn take(&self, happened: CommandUpdate) -> Demand {
        let job = self.remote.running.find(happened.server_id, happened.id).filter(|job| job.is_remote());
        let Some(job) = job else { return Demand::Enough };
        job.change(Standing::mark_sent);
        job.add_all(&happened.pieces);
        if let Some(end) = happened.end {
            job.end(end);
        }
        Demand::More
    }

    async fn look_after_all(&self) {
        let mut count = 0_u32;
        every(LOOK_EVERY, async || {
            count = count.wrapping_add(1);
            let outcome = async {
                self.look_after().await?;
                if count.is_multiple_of(LOOK_FOR_ORPHANS_EVERY) { self.give_up_orphans().await } else { Ok(()) }
            };
            if let Err(error) = outcome.await {
                tracing::debug!(%error, "commands of other instances could not be checked, will try again");
            }
        })
        .await;
    }

    async fn look_after(&self) -> Result<(), StoreError> {
        self.sort_out();
        let (ended, mut running) = sorted(self.remote.running.all());
        let asked = stream::iter(running.drain()).map(|(server_id, jobs)| async move {
            let followed = self.remote.follow(server_id, &jobs).await;
            let is_untold = |job: &Arc<Job>| followed.iter().all(|followed| followed.id != job.id());
            jobs.into_iter().filter(is_untold).collect::<Vec<_>>()
        });
        let mut unsure: Vec<Arc<Job>> = asked.buffer_unordered(ASKED_AT_ONCE).concat().await;
        unsure.extend(ended);
        self.look_up(unsure).await
    }

    /// Turns jobs whose agents have left this instance into replicas, and drops replicas that are not needed.
    fn sort_out(&self) {
        self.remote.running.retain(|job| {
            if !self.remote.local.is_with_us(job.row.server_id) {
                job.change(Standing::follow_agent);
            }
            // A count of 1 means that only this map has it.
            let is_needed = Arc::strong_count(job) > 1 || job.is_cancel_requested() || job.is_over();
            !job.is_remote() || is_needed
        });
    }

    /// Ends replicas whose end is in the database, and drops them.
    async fn look_up(&self, replicas: Vec<Arc<Job>>) -> Result<(), StoreError> {
        if replicas.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = replicas.iter().map(|job| job.id()).collect();
        let standings = self.remote.store.standings(&ids).await?;
        for job in replicas {
            match standings.get(&job.id()).map(|status| JobStatus::of(status)) {
                // Its server was deleted.
                None => _ = job.end(End::without_result(JobStatus::Lost, None, self.clock.now())),
                Some(JobStatus::Queued | JobStatus::Running) => continue,
                Some(_) if !job.is_over() => {
                    let Some(row) = self.remote.store.find_command(job.row.server_id, job.id()).await? else {
                        continue;
                    };
                    job.end_as_stored(&row);
                }
                Some(_) => {}
            }
            self.remote.running.forget_replica(job.id());
        }
        Ok(())
    }

    /// Gives up commands for agents of this instance that were stored by an instance that ended before it sent them.
    async fn give_up_orphans(&self) -> Result<(), StoreError> {
        for row in self.remote.store.running_since(before(self.clock.now(), SENT_WITHIN)).await? {
            self.remote.local.give_up_unless_here(row).await;
        }
        Ok(())
    }
}

/// Returns the replicas among these jobs: those that have ended, and by server those that have not.
fn sorted(jobs: Vec<Arc<Job>>) -> (Vec<Arc<Job>>, ByServer) {
    let (mut ended, mut running) = (Vec::new(), ByServer::new());
    for job in jobs.into_iter().filter(|job| job.is_remote() && !is_being_sent(job)) {
        if job.is_over() {
            ended.push(job);
        } else {
            running.entry(job.row.server_id).or_default().push(job);
        }
    }
    (ended, running)
}

/// Returns whether this instance is storing or sending it at this moment, so that no other instance has it yet.
fn is_being_sent(job: &Job) -> bool {
    !job.is_sent() && !job.is_over() && JobStatus::of(&job.row.status) == JobStatus::Running
}
