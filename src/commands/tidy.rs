//! What is given up, and what is forgotten.

use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::JobStatus;
use super::job::{End, Job};
use super::jobs::Jobs;
use crate::store::StoreError;

/// A command whose agent has not been heard of for so long beyond the longest time limit of a command is lost; should
/// the agent come back with its result all the same, that counts.
const GIVE_UP_AFTER: Duration = Duration::from_secs(25 * 3600);

const LOOK_EVERY: Duration = Duration::from_secs(3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Jobs {
    /// Gives up what will not end any more, and removes what is older than is kept, now and then.
    pub async fn keep_tidy(self, kept_days: u32) {
        loop {
            if let Err(error) = self.tidy(kept_days).await {
                tracing::warn!(%error, "old commands could not be removed");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn tidy(&self, kept_days: u32) -> Result<(), StoreError> {
        let now = Timestamp::now();
        let overdue = before(now, GIVE_UP_AFTER);
        for job in self.all().into_iter().filter(|job| !job.is_mirror()) {
            if job.started_at().is_some_and(|at| at < overdue) && job.ended().is_none() {
                self.conclude(&job, End::without_result(JobStatus::Lost, None)).await;
            }
        }
        // Of several instances one is enough.
        if !self.cluster.shards.holds(Uuid::nil()) {
            return Ok(());
        }
        self.store.give_up_commands(overdue, now).await?;
        while self.store.forget_commands(before(now, DAY * kept_days)).await? > 0 {}
        Ok(())
    }

    /// A server was deleted, and its commands with it: nobody need wait for them.
    pub fn forget_server(&self, server_id: Uuid) {
        for job in self.all().into_iter().filter(|job| job.row.server_id == server_id) {
            job.end(End::without_result(JobStatus::Lost, None));
            self.running.remove(&job.id());
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Job>> {
        self.running.iter().map(|entry| entry.value().clone()).collect()
    }
}

pub(super) fn before(now: Timestamp, age: Duration) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
}
