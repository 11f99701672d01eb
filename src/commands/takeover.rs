//! Batches where there are several instances: one that is called off elsewhere, one whose instance has ended, and one
//! that its instance lost, because the database failed it when it began or took the batch over.

use std::sync::Arc;
use std::time::Duration;

use dashmap::{DashMap, Entry};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use super::batch::Course;
use super::jobs::Jobs;
use crate::store::StoreError;

/// How often it is looked how batches stand, and for those that nobody runs.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The batches that are run here, and what is to become of each.
pub(super) type Batches = Arc<DashMap<Uuid, watch::Sender<Course>>>;

/// That a batch is run here, given up when dropped.
pub(super) struct Place {
    batches: Batches,
    batch_id: Uuid,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.batches.remove(&self.batch_id);
    }
}

impl Jobs {
    /// Makes known that a batch is run here, and what is to become of it; none where it is run here already.
    pub(super) fn place_for(&self, batch_id: Uuid, course: watch::Sender<Course>) -> Option<Place> {
        match self.batches.entry(batch_id) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                vacant.insert(course);
                Some(Place { batches: self.batches.clone(), batch_id })
            }
        }
    }

    /// Takes over batches that nobody runs, and heeds what became of those that run here.
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
        for batch in self.store.batch_standings(&self.run_here()).await? {
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
        for batch in self.store.claim_batches(self.cluster.instance_id, &self.run_here()).await? {
            let batch_id = batch.id;
            if let Err(error) = self.resume(batch).await {
                tracing::warn!(batch.id = %batch_id, %error, "a batch could not go on, will try again");
            }
        }
        Ok(())
    }

    fn run_here(&self) -> Vec<Uuid> {
        self.batches.iter().map(|entry| *entry.key()).collect()
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
