//! Batches where there are several instances: one that is called off elsewhere, and one whose instance has ended.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use super::batch::Course;
use super::jobs::Jobs;
use crate::store::StoreError;

/// How often it is looked how batches stand, and for those that nobody runs.
const LOOK_EVERY: Duration = Duration::from_secs(3);

impl Jobs {
    /// Takes over batches whose instance has ended, and heeds what became of those that run here.
    pub(super) async fn keep_batches(self) {
        if self.cluster.is_alone() {
            return;
        }
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if let Err(error) = self.look_at_batches().await {
                tracing::warn!(%error, "batches could not be looked at, will try again");
            }
        }
    }

    async fn look_at_batches(&self) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = self.batches.iter().map(|entry| *entry.key()).collect();
        for batch in self.store.batch_standings(&ids).await? {
            if batch.instance_id != self.runner() {
                tracing::warn!(batch.id = %batch.id, "another instance took a batch over");
                self.direct(batch.id, Course::TakenOver);
            } else if batch.is_cancelled {
                self.batch_called_off(batch.id);
            }
        }
        if self.cluster.is_draining() {
            return Ok(());
        }
        for batch in self.store.claim_batches(self.cluster.instance_id).await? {
            self.resume(batch).await?;
        }
        Ok(())
    }

    /// Somebody called a batch off, on whichever instance: what waits here does not run, what runs here is ended.
    pub fn batch_called_off(&self, batch_id: Uuid) {
        self.direct(batch_id, Course::CalledOff);
        for job in self.all() {
            if job.row.batch_id != Some(batch_id) || job.ended().is_some() || !job.call_off() {
                continue;
            }
            // Homes of mirrors hear of it as well, at the latest when they are asked to go on. One that cannot be told
            // now is told when it is sent, or when its agent is back.
            if job.is_sent() && !job.is_mirror() {
                let jobs = self.clone();
                tokio::spawn(async move { jobs.ask_to_end(&job).await });
            }
        }
    }

    /// Tells a batch that is run here what is to become of it.
    pub(super) fn direct(&self, batch_id: Uuid, course: Course) {
        if let Some(batch) = self.batches.get(&batch_id) {
            batch.send_if_modified(|now| std::mem::replace(now, course) != course);
        }
    }

    /// By whom batches are run here, where there are several.
    pub(super) fn runner(&self) -> Option<Uuid> {
        (!self.cluster.is_alone()).then_some(self.cluster.instance_id)
    }
}
