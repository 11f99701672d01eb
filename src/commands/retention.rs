//! Gives up commands that will not end any more, and removes old ones.

use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::running::RunningJobs;
use super::storage::StorageQuota;
use super::writer::JobWriter;
use crate::clock::Clock;
use crate::shards::Shards;
use crate::store::{Store, StoreError};

/// A command that was started longer ago than this is lost: it is more than the longest time limit of a command. If the
/// agent still reports a result, that counts.
const GIVE_UP_AFTER: Duration = Duration::from_secs(25 * 3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Gives up commands that will not end any more, and removes old ones.
pub(super) struct Retention {
    pub clock: Clock,
    pub store: Store,
    pub shards: Shards,
    pub running: RunningJobs,
    pub writer: Arc<JobWriter>,
    pub quota: Arc<StorageQuota>,
}

impl Retention {
    pub async fn apply(&self, kept_days: u32) -> Result<(), StoreError> {
        let (now, certain) = (self.clock.now(), self.clock.certain());
        let overdue = before(certain, GIVE_UP_AFTER);
        for job in self.running.all().into_iter().filter(|job| !job.is_remote()) {
            if job.started_at().is_some_and(|at| at < overdue) && !job.is_over() {
                self.writer.conclude(&job, self.writer.lost()).await;
            }
        }
        // One of several instances does this for all.
        if !self.shards.holds(Uuid::nil()) {
            return Ok(());
        }
        self.store.give_up_commands(overdue, now).await?;
        while self.store.forget_commands(before(certain, DAY * kept_days)).await? > 0 {}
        self.store.forget_approvals(before(certain, DAY * kept_days)).await?;
        self.quota.trim_all().await
    }
}

pub(super) fn before(now: Timestamp, age: Duration) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
}
