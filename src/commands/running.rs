//! The jobs that this instance has: its own and its replicas, until their end is stored.

use std::sync::Arc;

use dashmap::DashMap;
use uuid::Uuid;

use super::JobStatus;
use super::job::{End, Job};

/// Every job that this instance has; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct RunningJobs(Arc<DashMap<Uuid, Arc<Job>>>);

impl RunningJobs {
    /// Adds a job. Returns it, or the one that is already there with its id.
    pub fn remember(&self, job: Job) -> Arc<Job> {
        self.0.entry(job.id()).or_insert_with(|| Arc::new(job)).clone()
    }

    /// Returns a job that runs, or whose end is not stored yet.
    pub fn find(&self, server_id: Uuid, id: Uuid) -> Option<Arc<Job>> {
        let job = self.0.get(&id).map(|entry| entry.value().clone());
        job.filter(|job| job.row.server_id == server_id)
    }

    pub fn contains(&self, id: Uuid) -> bool {
        self.0.contains_key(&id)
    }

    pub fn all(&self) -> Vec<Arc<Job>> {
        self.0.iter().map(|entry| entry.value().clone()).collect()
    }

    /// Returns how many commands of a server this instance owns.
    pub fn count_local(&self, server_id: Uuid) -> usize {
        let is_its = |job: &Job| job.row.server_id == server_id && !job.is_remote();
        self.0.iter().filter(|entry| is_its(entry.value())).count()
    }

    pub fn forget(&self, id: Uuid) {
        self.0.remove(&id);
    }

    /// Removes a job, if another instance owns it.
    pub fn forget_replica(&self, id: Uuid) {
        self.0.remove_if(&id, |_, job| job.is_remote());
    }

    /// Removes the jobs that are not needed.
    pub fn retain(&self, is_needed: impl Fn(&Arc<Job>) -> bool) {
        self.0.retain(|_, job| is_needed(job));
    }

    /// Ends a job that will not run, and removes it, unless it was sent.
    pub fn dismiss(&self, id: Uuid, status: JobStatus) {
        if let Some((_, job)) = self.0.remove_if(&id, |_, job| !job.is_sent()) {
            job.end(End::without_result(status, None));
        }
    }

    /// Ends and removes the jobs of a deleted server, so that nobody waits for them.
    pub fn forget_server(&self, server_id: Uuid) {
        for job in self.all().into_iter().filter(|job| job.row.server_id == server_id) {
            job.end(End::without_result(JobStatus::Lost, None));
            self.forget(job.id());
        }
    }
}
