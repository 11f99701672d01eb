//! Sends commands to their agents, on this instance or another.

use std::sync::Arc;

use uuid::Uuid;

use super::job::Job;
use super::local::LocalJobs;
use super::locus::Standing;
use super::remote_jobs::UnheldJobs;
use super::writer::JobWriter;
use crate::registry::CallError;

/// Sends to agents of this instance, and asks other instances to send to theirs.
pub(super) struct Dispatch {
    local: Arc<LocalJobs>,
    elsewhere: Arc<dyn UnheldJobs>,
    writer: Arc<JobWriter>,
}

impl Dispatch {
    pub fn new(local: Arc<LocalJobs>, elsewhere: Arc<dyn UnheldJobs>, writer: Arc<JobWriter>) -> Self {
        Self { local, elsewhere, writer }
    }

    /// Sends a job that is stored as running to its agent, on whichever instance. A job that cannot be sent is ended. It is
    /// never sent twice: if the outcome is not known, the job is followed like any other.
    pub async fn send(&self, job: &Arc<Job>, stdin: Option<String>) -> Result<(), CallError> {
        match self.local.execute(job, stdin.clone()).await {
            Ok(()) => {
                job.change(Standing::set_local);
                self.local.left(job).await;
                Ok(())
            }
            // It was not sent.
            Err(CallError::Offline) => self.elsewhere.send(job, stdin).await,
            Err(error) => {
                self.writer.conclude(job, self.writer.unsent(&error)).await;
                Err(error)
            }
        }
    }

    /// Returns whether the agent of a server is connected, on whichever instance. If that is not known, it returns true.
    pub async fn is_reachable(&self, server_id: Uuid) -> bool {
        self.local.is_here(server_id) || self.elsewhere.is_reachable(server_id).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::future::ready;
    use std::time::Duration;

    use futures_util::future::BoxFuture;
    use parking_lot::Mutex;
    use signalbox_protocol::Timestamp;

    use super::*;
    use crate::auth::access::Access;
    use crate::clock::Clock;
    use crate::commands::alone::Alone;
    use crate::commands::job::End;
    use crate::commands::locus::Locus;
    use crate::commands::remote_jobs::IsAwaited;
    use crate::commands::running::RunningJobs;
    use crate::commands::storage::StorageQuota;
    use crate::commands::{JobStatus, NewJob};
    use crate::feeds::Feeds;
    use crate::fleet::Fleet;
    use crate::registry::{Gone, NoPeers, Observer, RegistryHandle, Settings, Writing, Written};
    use crate::shares::Shares;
    use crate::store::{Command, Disconnected, Store, StoreError};

    /// No agent connects.
    struct Unseen;

    impl Observer for Unseen {
        fn replaced(&self, _: Uuid, _: Uuid, _: Uuid) {}

        fn online(&self, _: Uuid, _: Uuid, _: Uuid) {}

        fn last_seen_at(&self, _: Uuid) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn write(&self, _: Disconnected) -> Writing {
            Box::pin(ready(Written::Yes))
        }

        fn offline(&self, _: &Gone, _: Written) {}

        fn write_seen(&self) {}
    }

    /// Records what is sent through other instances.
    #[derive(Default)]
    struct Notes(Mutex<Vec<(Uuid, Option<String>)>>);

    impl UnheldJobs for Notes {
        fn is_reachable(&self, _: Uuid) -> BoxFuture<'_, bool> {
            Box::pin(ready(true))
        }

        fn expect_room(&self, _: Uuid) -> BoxFuture<'_, Result<(), CallError>> {
            Box::pin(ready(Ok(())))
        }

        fn send<'a>(&'a self, job: &'a Arc<Job>, stdin: Option<String>) -> BoxFuture<'a, Result<(), CallError>> {
            self.0.lock().push((job.id(), stdin));
            Box::pin(ready(Ok(())))
        }

        fn find(&self, _: Uuid, _: Uuid) -> BoxFuture<'_, Result<Option<Arc<Job>>, StoreError>> {
            Box::pin(ready(Ok(None)))
        }

        fn take_up(&self, row: Command) -> BoxFuture<'_, Arc<Job>> {
            Box::pin(ready(Arc::new(self.job_of(row))))
        }

        fn job_of(&self, row: Command) -> Job {
            Job::replica(row)
        }

        fn may_come(&self, _: Option<&Job>, _: &Command, _: Timestamp) -> bool {
            false
        }

        fn called_off(&self, batch_ids: HashSet<Uuid>) -> BoxFuture<'_, Result<HashSet<Uuid>, StoreError>> {
            Box::pin(ready(Ok(batch_ids)))
        }

        fn store_end_of<'a>(
            &'a self,
            _: Uuid,
            _: Uuid,
            _: End,
            _: IsAwaited<'a>,
        ) -> BoxFuture<'a, Result<(), StoreError>> {
            Box::pin(ready(Ok(())))
        }
    }

    struct Scene {
        store: Store,
        running: RunningJobs,
        writer: Arc<JobWriter>,
        local: Arc<LocalJobs>,
        _directory: tempfile::TempDir,
    }

    impl Scene {
        async fn new() -> Self {
            Self::with(Clock::default()).await
        }

        async fn with(clock: Clock) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let config = crate::config::Config::new(directory.path());
            let store = Store::open(&config.database_url(), config.database).await.unwrap();
            let settings = Settings { clock: clock.clone(), silence_limit: Duration::from_secs(60) };
            let registry = RegistryHandle::start(settings, Arc::new(Unseen), Arc::new(NoPeers));
            let outputs = Shares::new(&config.shares).outputs;
            let (running, quota) = (RunningJobs::new(outputs), Arc::new(StorageQuota::new(store.clone())));
            let writer = Arc::new(JobWriter::new(clock, store.clone(), running.clone(), quota));
            let access = Access::without_grants(store.clone(), Feeds::default());
            let local = Arc::new(LocalJobs::new(registry, access, Fleet::default(), running.clone(), writer.clone()));
            Self { store, running, writer, local, _directory: directory }
        }

        fn alone(&self) -> Alone {
            Alone { store: self.store.clone(), running: self.running.clone(), writer: self.writer.clone() }
        }

        fn dispatch(&self, elsewhere: Arc<dyn UnheldJobs>) -> Dispatch {
            Dispatch::new(self.local.clone(), elsewhere, self.writer.clone())
        }
    }

    fn row(status: JobStatus) -> Command {
        let new = NewJob::of_make(Uuid::now_v7(), Uuid::nil());
        new.into_row(status, None, Timestamp::now())
    }

    #[actix::test]
    async fn a_command_for_an_agent_elsewhere_is_sent_there_with_its_input() {
        let (scene, notes) = (Scene::new().await, Arc::new(Notes::default()));
        let dispatch = scene.dispatch(notes.clone());
        let job = scene.running.remember(Job::new(row(JobStatus::Running)));

        assert_eq!(dispatch.send(&job, Some("input".to_owned())).await, Ok(()));

        assert_eq!(*notes.0.lock(), [(job.id(), Some("input".to_owned()))]);
        assert!(!job.is_over() && dispatch.is_reachable(job.row.server_id).await);
    }

    #[actix::test]
    async fn on_a_single_instance_a_command_without_an_agent_fails() {
        let scene = Scene::new().await;
        let dispatch = scene.dispatch(Arc::new(scene.alone()));
        let job = scene.running.remember(Job::new(row(JobStatus::Running)));

        assert_eq!(dispatch.send(&job, None).await, Err(CallError::Offline));

        let end = job.ended().unwrap();
        assert_eq!((end.status, end.error.unwrap().code), (JobStatus::Failed, CallError::Offline.code().to_owned()));
        assert!(!dispatch.is_reachable(job.row.server_id).await);
        assert!(!scene.running.contains(job.id()), "its end is stored");
    }

    #[actix::test]
    async fn a_command_ends_at_a_time_of_the_clock_by_which_it_was_started() {
        let clock = Clock::behind_the_database(3_600_000);
        let scene = Scene::with(clock.clone()).await;
        let dispatch = scene.dispatch(Arc::new(scene.alone()));
        let job = scene.running.remember(Job::new(row(JobStatus::Running)));
        let started_at = clock.now();

        assert_eq!(dispatch.send(&job, None).await, Err(CallError::Offline));

        let ended_at = job.ended().unwrap().at;
        assert!((started_at..=clock.now()).contains(&ended_at), "{started_at}, {ended_at}");
    }

    #[actix::test]
    async fn a_single_instance_knows_every_command() {
        let scene = Scene::new().await;
        let (alone, running, queued) = (scene.alone(), row(JobStatus::Running), row(JobStatus::Queued));
        let batch_ids = HashSet::from([Uuid::nil()]);

        assert_eq!(alone.expect_room(running.server_id).await, Err(CallError::Offline));
        assert!(alone.find(running.server_id, running.id).await.unwrap().is_none());
        assert!(!alone.may_come(None, &running, Timestamp::now()));
        assert!(alone.called_off(batch_ids).await.unwrap().is_empty());

        let job = alone.take_up(running).await;
        assert_eq!((job.locus(), alone.take_up(queued).await.locus()), (Locus::Here, Locus::Queued));
        assert!(scene.running.contains(job.id()));
    }
}
