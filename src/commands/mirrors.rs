//! Mirrors of jobs whose agents other instances hold.
//!
//! There is one for each command that somebody here needs: who waits for it, watches it, or runs its batch. Its home
//! tells what happens. Once a second every home is asked to go on with that, as it may have changed; what no home tells of
//! is looked up in the database. A mirror that nobody needs any more is forgotten, and its home finds so by itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use futures_util::future::join3;
use futures_util::{StreamExt, stream};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::RequestError;
use tokio::time::{MissedTickBehavior, interval, timeout};
use uuid::Uuid;

use super::JobStatus;
use super::job::{End, Job};
use super::jobs::Jobs;
use super::lent;
use super::shared::{Follow, Followed, Happened, Start, Wanted};
use super::tidy::before;
use crate::bus::BusError;
use crate::cluster::remote::Remote;
use crate::cluster::remote::message::Taken;
use crate::registry::CallError;
use crate::store::{Command, StoreError};

/// How often it is looked after the mirrors.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Homes that are asked at a time.
const ASKED_AT_ONCE: usize = 64;

/// How long somebody who looks at a command waits for its output so far.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(2);

/// Every so many looks it is looked for commands that were never sent.
const LOOK_FOR_ORPHANS_EVERY: u32 = 60;

/// A command that was stored so long ago has been sent, or never will be.
const SENT_WITHIN: Duration = Duration::from_secs(60);

/// Jobs by their servers.
type ByServer = HashMap<Uuid, Vec<Arc<Job>>>;

impl Jobs {
    /// Whether the agent of a server can be reached, wherever it is. What cannot be known counts as there.
    pub(super) async fn is_reachable(&self, server_id: Uuid) -> bool {
        match self.cluster.remote() {
            _ if self.is_here(server_id) => true,
            Some(remote) => remote.is_there(server_id).await.unwrap_or(true),
            None => false,
        }
    }

    /// Whether a command may be sent to a server whose agent is not here.
    pub(super) async fn check_elsewhere(&self, server_id: Uuid) -> Result<(), CallError> {
        let Some(remote) = self.cluster.remote() else { return Err(CallError::Offline) };
        match remote.has_room(server_id).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(CallError::Busy),
            Err(BusError::NoResponder) => Err(CallError::Offline),
            Err(_) => {
                let held = self.store.held_among(&[server_id]).await;
                let is_offline = held.is_ok_and(|held| held.is_empty());
                Err(if is_offline { CallError::Offline } else { CallError::Unreachable })
            }
        }
    }

    /// Has a job that is stored as running sent by the home of its server. It is never tried twice: where nobody knows
    /// what came of it, the job is followed like any other.
    pub(super) async fn send_elsewhere(&self, job: &Arc<Job>, stdin: Option<String>) -> Result<(), CallError> {
        let Some(remote) = self.cluster.remote() else { return Err(CallError::Offline) };
        job.give_away();
        let start = Start { reader: self.cluster.instance_id, row: (&job.row).into(), stdin };
        let error = match remote.start(job.row.server_id, start).await {
            Ok(Ok(())) => {
                self.is_on_its_way(job).await;
                return Ok(());
            }
            // Its home has stored that.
            Ok(Err(error)) => {
                job.end(failed(&error));
                return Err(error);
            }
            Err(BusError::NoResponder) => CallError::Offline,
            Err(BusError::TooLarge) => CallError::Unreachable,
            Err(error @ (BusError::Timeout | BusError::Away | BusError::Malformed)) => {
                tracing::warn!(job.id = %job.id(), %error, "nobody knows whether a command was sent");
                job.mark_sent();
                return Ok(());
            }
        };
        self.conclude(job, failed(&error)).await;
        Err(error)
    }

    /// A job that runs on whichever instance, or whose end is not stored yet, with its output so far.
    pub async fn find_anywhere(&self, server_id: Uuid, id: Uuid) -> Result<Option<Arc<Job>>, StoreError> {
        let found = self.find(server_id, id);
        if found.is_some() || self.cluster.is_alone() {
            return Ok(found);
        }
        let row = self.store.find_command(server_id, id).await?;
        let Some(row) = row.filter(|row| JobStatus::of(&row.status) == JobStatus::Running) else { return Ok(None) };
        let job = self.remember(Job::mirror(row));
        self.catch_up(&job).await;
        Ok(Some(job))
    }

    /// Has the home of a job tell of it at once, and waits for what it has so far.
    pub(super) async fn catch_up(&self, job: &Arc<Job>) {
        let Some(remote) = self.cluster.remote() else { return };
        let followed = self.follow(remote, job.row.server_id, std::slice::from_ref(job)).await;
        if let Some(place) = followed.first().map(|followed| followed.place).filter(|place| *place > 0) {
            _ = timeout(CAUGHT_UP_WITHIN, job.beyond(place - 1)).await;
        }
    }

    /// Asks the home of a server to tell of these jobs, and gives those that it tells of.
    async fn follow(&self, remote: &Remote, server_id: Uuid, jobs: &[Arc<Job>]) -> Vec<Followed> {
        if self.is_with_us(server_id) {
            return Vec::new();
        }
        let wanted =
            |job: &Arc<Job>| Wanted { id: job.id(), place: job.output_end(), is_called_off: job.is_called_off() };
        let follow = Follow { reader: self.cluster.instance_id, wanted: jobs.iter().map(wanted).collect() };
        let followed = remote.follow(server_id, follow).await.unwrap_or_default();
        for followed in &followed {
            let Some(job) = jobs.iter().find(|job| job.id() == followed.id) else { continue };
            if let Some(at) = followed.started_at {
                job.begin(at);
            }
            job.mark_sent();
        }
        followed
    }

    /// Takes what the home of a command tells of it.
    fn take(&self, happened: Happened) -> Taken {
        let job = self.find(happened.server_id, happened.id).filter(|job| job.is_mirror());
        let Some(job) = job else { return Taken::Enough };
        job.mark_sent();
        job.add_all(&happened.pieces);
        if let Some(end) = happened.end {
            job.end(end);
        }
        Taken::More
    }

    /// Does what there is to do where there are several instances, for as long as this one lives.
    pub async fn keep_company(self) {
        join3(self.clone().hear(), self.clone().keep_mirrors(), self.keep_batches()).await;
    }

    /// Listens to what other instances tell of their commands.
    async fn hear(self) {
        if let Some(remote) = self.cluster.remote().cloned() {
            remote.hear(|happened| self.take(happened)).await;
        }
    }

    /// Looks after the mirrors.
    async fn keep_mirrors(self) {
        let Some(remote) = self.cluster.remote().cloned() else { return };
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut count = 0_u32;
        loop {
            looks.tick().await;
            count = count.wrapping_add(1);
            let outcome = async {
                self.look_after(&remote).await?;
                if count.is_multiple_of(LOOK_FOR_ORPHANS_EVERY) { self.give_up_orphans().await } else { Ok(()) }
            };
            if let Err(error) = outcome.await {
                tracing::debug!(%error, "commands of other instances could not be looked at");
            }
        }
    }

    async fn look_after(&self, remote: &Remote) -> Result<(), StoreError> {
        self.sort_out();
        let (ended, mut running) = self.mirrors();
        let asked = stream::iter(running.drain()).map(|(server_id, jobs)| async move {
            let followed = self.follow(remote, server_id, &jobs).await;
            let is_untold = |job: &Arc<Job>| followed.iter().all(|followed| followed.id != job.id());
            jobs.into_iter().filter(is_untold).collect::<Vec<_>>()
        });
        let mut unsure: Vec<Arc<Job>> = asked.buffer_unordered(ASKED_AT_ONCE).concat().await;
        unsure.extend(ended);
        self.look_up(unsure).await
    }

    /// Gives away what is not here any more, and forgets what nobody needs.
    fn sort_out(&self) {
        self.running.retain(|_, job| {
            let is_ours = self.is_with_us(job.row.server_id);
            if !is_ours && job.is_sent() && job.ended().is_none() {
                job.give_away();
            }
            // Nobody has it but this map.
            let is_needed = Arc::strong_count(job) > 1 || job.is_called_off() || job.ended().is_some();
            !job.is_mirror() || is_needed
        });
    }

    /// Mirrors that have ended, and those that have not by their servers.
    fn mirrors(&self) -> (Vec<Arc<Job>>, ByServer) {
        let (mut ended, mut running) = (Vec::new(), ByServer::new());
        for job in self.all().into_iter().filter(|job| job.is_mirror()) {
            if is_being_sent(&job) {
                continue;
            }
            match job.ended() {
                Some(_) => ended.push(job),
                None => running.entry(job.row.server_id).or_default().push(job),
            }
        }
        (ended, running)
    }

    /// Ends mirrors as the database says, and forgets those whose end it knows.
    async fn look_up(&self, mirrors: Vec<Arc<Job>>) -> Result<(), StoreError> {
        if mirrors.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = mirrors.iter().map(|job| job.id()).collect();
        let standings = self.store.standings(&ids).await?;
        for job in mirrors {
            match standings.get(&job.id()).map(|status| JobStatus::of(status)) {
                // Its server was deleted.
                None => _ = job.end(End::without_result(JobStatus::Lost, None)),
                Some(JobStatus::Queued | JobStatus::Running) => continue,
                Some(_) if job.ended().is_none() => {
                    let Some(row) = self.store.find_command(job.row.server_id, job.id()).await? else { continue };
                    job.end_as_stored(&row);
                }
                Some(_) => {}
            }
            self.running.remove_if(&job.id(), |_, job| job.is_mirror());
        }
        Ok(())
    }

    /// Commands of agents here that were stored by an instance that ended before it sent them.
    async fn give_up_orphans(&self) -> Result<(), StoreError> {
        for row in self.store.running_since(before(Timestamp::now(), SENT_WITHIN)).await? {
            self.give_up_unless_here(row).await;
        }
        Ok(())
    }

    /// Gives a command up that its agent does not hold, unless it was sent meanwhile.
    pub(super) async fn give_up_unless_here(&self, row: Command) {
        if self.is_here(row.server_id) && self.find(row.server_id, row.id).is_none_or(|job| job.is_mirror()) {
            tracing::warn!(server.id = %row.server_id, job.id = %row.id, "a command was never sent");
            let job = self.remember(Job::sent_before(row));
            job.take_home();
            self.conclude(&job, End::without_result(JobStatus::Lost, None)).await;
        }
    }

    /// Whether the agent of a server is here, or about to be.
    fn is_with_us(&self, server_id: Uuid) -> bool {
        self.is_here(server_id) || self.arriving.contains_key(&server_id)
    }

    /// An agent says which commands it holds: it is here in a moment, or is refused.
    pub(super) fn arrives(&self, server_id: Uuid) -> Arriving {
        Arriving::new(&self.arriving, server_id)
    }

    /// What is known of a job leaves for its agent.
    pub(super) async fn execute_here(&self, job: &Job, stdin: Option<String>) -> Result<(), CallError> {
        self.here.execute(job.row.server_id, lent::execute(job, stdin)).await
    }
}

/// The handshake of an agent, for as long as it lasts. There may be two of one agent.
#[must_use]
pub struct Arriving {
    arriving: Arc<DashMap<Uuid, usize>>,
    server_id: Uuid,
}

impl Arriving {
    fn new(arriving: &Arc<DashMap<Uuid, usize>>, server_id: Uuid) -> Self {
        *arriving.entry(server_id).or_default() += 1;
        Self { arriving: arriving.clone(), server_id }
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.arriving.alter(&self.server_id, |_, handshakes| handshakes.saturating_sub(1));
        self.arriving.remove_if(&self.server_id, |_, handshakes| *handshakes == 0);
    }
}

/// Whether it is being stored or sent by this instance at this moment: nobody else knows of it yet.
fn is_being_sent(job: &Job) -> bool {
    !job.is_sent() && job.ended().is_none() && JobStatus::of(&job.row.status) == JobStatus::Running
}

/// That a command was not sent.
pub(super) fn failed(error: &CallError) -> End {
    End::without_result(JobStatus::Failed, Some(RequestError::new(error.code(), &error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_about_to_be_here_for_as_long_as_one_of_its_handshakes_lasts() {
        let (arriving, server_id) = (Arc::<DashMap<Uuid, usize>>::default(), Uuid::now_v7());

        let first = Arriving::new(&arriving, server_id);
        let second = Arriving::new(&arriving, server_id);
        drop(first);

        assert!(arriving.contains_key(&server_id));
        drop(second);
        assert!(arriving.is_empty());
    }
}
