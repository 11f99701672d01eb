//! The jobs that this instance has: its own and its replicas, until their end is stored.

use std::sync::Arc;

use dashmap::DashMap;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::JobStatus;
use super::job::{End, Job};
use super::output_places::OutputPlaces;
use crate::shares::Gate;

/// Every job that this instance has; cheap to clone.
#[derive(Clone)]
pub(super) struct RunningJobs {
    jobs: Arc<DashMap<Uuid, Arc<Job>>>,
    /// The places that the output of all of them takes.
    outputs: Gate,
}

impl RunningJobs {
    pub fn new(outputs: Gate) -> Self {
        Self { jobs: Arc::default(), outputs }
    }

    /// Adds a job. Returns it, or the one that is already there with its id.
    pub fn remember(&self, job: Job) -> Arc<Job> {
        let id = job.id();
        let with_places = || {
            let places = OutputPlaces::new(&self.outputs, job.row.owner_id);
            Arc::new(job.with_places(places))
        };
        self.jobs.entry(id).or_insert_with(with_places).clone()
    }

    /// Returns a job that runs, or whose end is not stored yet.
    pub fn find(&self, server_id: Uuid, id: Uuid) -> Option<Arc<Job>> {
        let job = self.jobs.get(&id).map(|entry| entry.value().clone());
        job.filter(|job| job.row.server_id == server_id)
    }

    pub fn contains(&self, id: Uuid) -> bool {
        self.jobs.contains_key(&id)
    }

    pub fn all(&self) -> Vec<Arc<Job>> {
        self.jobs.iter().map(|entry| entry.value().clone()).collect()
    }

    /// Returns how many commands of a server this instance owns.
    pub fn count_local(&self, server_id: Uuid) -> usize {
        let is_its = |job: &Job| job.row.server_id == server_id && !job.is_remote();
        self.jobs.iter().filter(|entry| is_its(entry.value())).count()
    }

    pub fn forget(&self, id: Uuid) {
        self.jobs.remove(&id);
    }

    /// Removes a job, if another instance owns it.
    pub fn forget_replica(&self, id: Uuid) {
        self.jobs.remove_if(&id, |_, job| job.is_remote());
    }

    /// Removes the jobs that are not needed.
    pub fn retain(&self, is_needed: impl Fn(&Arc<Job>) -> bool) {
        self.jobs.retain(|_, job| is_needed(job));
    }

    /// Ends a job that will not run, and removes it, unless it was sent.
    pub fn dismiss(&self, id: Uuid, status: JobStatus, at: Timestamp) {
        if let Some((_, job)) = self.jobs.remove_if(&id, |_, job| !job.is_sent()) {
            job.end(End::without_result(status, None, at));
        }
    }

    /// Ends and removes the jobs of a deleted server, so that nobody waits for them.
    pub fn forget_server(&self, server_id: Uuid, at: Timestamp) {
        for job in self.all().into_iter().filter(|job| job.row.server_id == server_id) {
            job.end(End::without_result(JobStatus::Lost, None, at));
            self.forget(job.id());
        }
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::agent::{CommandOutput, Stream};

    use super::*;
    use crate::commands::NewJob;
    use crate::shares::line::{Limits, Stay};
    use crate::shares::sizes::OUTPUT_BYTES;

    fn job(owner_id: Uuid) -> Job {
        let new = NewJob::of_make(Uuid::now_v7(), owner_id);
        Job::new(new.into_row(JobStatus::Running, None, Timestamp::now()))
    }

    /// A job says these lines, and ends. Returns its output as it is stored, and whether that is truncated.
    fn says(job: &Job, lines: usize) -> (String, bool) {
        for line in 0..lines {
            let data = format!("{line:015}\n");
            job.add(&CommandOutput { command_id: job.id(), stream: Stream::Stdout, data, offset: None });
        }
        job.end(End::without_result(JobStatus::Succeeded, None, Timestamp::now()));
        let stored = job.to_stored().unwrap();
        (String::from_utf8(stored.output.unwrap_or_default()).unwrap(), stored.is_truncated)
    }

    #[test]
    fn the_output_of_one_account_leaves_room_for_that_of_others() {
        let outputs = Gate::new("outputs", Limits { places: 8, waiting: 0, stay: Stay::Long });
        let running = RunningJobs::new(outputs.clone());
        let (owner, neighbour) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let lines = 3 * OUTPUT_BYTES / 16;

        let jobs: Vec<Arc<Job>> = (0..8).map(|_| running.remember(job(owner))).collect();
        let kept: Vec<(String, bool)> = jobs.iter().map(|one| says(one, lines)).collect();
        let other = running.remember(job(neighbour));
        let theirs = says(&other, OUTPUT_BYTES / 16);

        assert_eq!((kept[0].0.len(), kept[0].1), (16 * lines, false));
        let (first, last) = (format!("{:015}\n", 0), format!("{:015}\n", lines - 1));
        for (text, is_truncated) in &kept[2..] {
            assert!(*is_truncated && text.len() < OUTPUT_BYTES, "{} bytes", text.len());
            assert!(text.starts_with(&first) && text.ends_with(&last));
        }
        assert_eq!((theirs.0.len(), theirs.1), (OUTPUT_BYTES, false));
        assert_eq!(outputs.inside(), 5, "half of the places, and the one of the neighbour");
    }

    #[test]
    fn what_a_job_takes_is_free_when_it_is_forgotten() {
        let outputs = Gate::new("outputs", Limits { places: 8, waiting: 0, stay: Stay::Long });
        let running = RunningJobs::new(outputs.clone());
        let remembered = running.remember(job(Uuid::nil()));
        says(&remembered, OUTPUT_BYTES / 16);
        assert_eq!(outputs.inside(), 1);

        running.forget(remembered.id());
        drop(remembered);

        assert_eq!(outputs.inside(), 0);
    }
}
