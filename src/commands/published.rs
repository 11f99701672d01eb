//! Publishes this instance's jobs to other instances, which have replicas of them.

use std::sync::Arc;
use std::time::Duration;

use dashmap::{DashMap, Entry};
use futures_util::future::join;
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use super::job::Job;
use super::local::{LocalJobs, MAX_RUNNING};
use super::locus::Standing;
use super::output::Next;
use super::peer_messages::{CommandUpdate, Follow, Followed, Start};
use super::remote::Homes;
use super::running::RunningJobs;
use super::writer::JobWriter;
use crate::cluster::remote::message::Demand;
use crate::registry::CallError;

/// Bytes of output in one message.
const MESSAGE_BYTES: usize = 128 * 1024;

/// How often to check whether the job still belongs to this instance.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A command, and an instance to which it is published.
type Key = (Uuid, Uuid);

/// The publications that are under way, each with the offset from which its reader asked for output last.
type Publications = Arc<DashMap<Key, watch::Sender<u64>>>;

/// One of these, removed when dropped.
struct PublicationGuard {
    all: Publications,
    key: Key,
}

impl Drop for PublicationGuard {
    fn drop(&mut self) {
        self.all.remove(&self.key);
    }
}

/// Sends commands for other instances and publishes what happens to them; cheap to clone.
#[derive(Clone)]
pub struct PublishedJobs {
    homes: Homes,
    running: RunningJobs,
    writer: Arc<JobWriter>,
    local: Arc<LocalJobs>,
    publications: Publications,
}

impl PublishedJobs {
    pub(super) fn new(homes: Homes, running: RunningJobs, writer: Arc<JobWriter>, local: Arc<LocalJobs>) -> Self {
        Self { homes, running, writer, local, publications: Arc::default() }
    }

    /// Sends a command that another instance has stored. Its end is published there, and stored here.
    pub async fn start(&self, start: Start) -> Result<(), CallError> {
        let Start { reader, row, stdin } = start;
        let job = self.running.remember(Job::new(row.into()));
        if !job.change(Standing::accept) {
            // It was given up before this request arrived.
            return Err(CallError::Offline);
        }
        if let Some(at) = job.row.started_at {
            job.change(|standing| standing.begin(at.into()));
        }
        let sent = match self.running.count_local(job.row.server_id) {
            0..=MAX_RUNNING => {
                self.publish(&job, reader, 0);
                self.local.execute(&job, stdin).await
            }
            _ => Err(CallError::Busy),
        };
        match &sent {
            Ok(()) => self.local.left(&job).await,
            Err(error) => self.writer.conclude(&job, self.writer.unsent(error)).await,
        }
        sent
    }

    /// Returns whether one more command may run on a server of this instance.
    pub fn has_room(&self, server_id: Uuid) -> bool {
        self.running.count_local(server_id) < MAX_RUNNING
    }

    /// Publishes these commands to another instance from now on, if this instance has them. Returns those that it has.
    pub fn follow(&self, server_id: Uuid, follow: &Follow) -> Vec<Followed> {
        let mut followed = Vec::new();
        for wanted in &follow.wanted {
            let found = self.running.find(server_id, wanted.id);
            let Some(job) = found.filter(|job| !job.is_remote()) else { continue };
            if wanted.is_called_off && job.request_cancel() {
                let (local, job) = (self.local.clone(), job.clone());
                tokio::spawn(async move { local.ask_to_end(&job).await });
            }
            if job.is_sent() || job.is_over() {
                let place = job.output_end();
                followed.push(Followed { id: wanted.id, started_at: job.started_at(), place });
                self.publish(&job, follow.reader, wanted.place);
            }
        }
        followed
    }

    /// Records that another instance asks to end a command. Returns whether its agent has to be asked: nobody asked before, or
    /// this instance does not have the command.
    pub fn request_cancel(&self, server_id: Uuid, id: Uuid) -> bool {
        // Recorded in the job, because the agent may be disconnected when it is asked.
        self.running.find(server_id, id).is_none_or(|job| job.request_cancel())
    }

    /// Publishes a job to a reader from an offset on. A publication that is under way continues from there.
    fn publish(&self, job: &Arc<Job>, reader: Uuid, place: u64) {
        let key = (job.id(), reader);
        let asked = match self.publications.entry(key) {
            Entry::Occupied(publication) => {
                publication.get().send_replace(place);
                return;
            }
            Entry::Vacant(free) => {
                let (ask, asked) = watch::channel(place);
                free.insert(ask);
                asked
            }
        };
        let (job, homes) = (job.clone(), self.homes.clone());
        let publication = PublicationGuard { all: self.publications.clone(), key };
        tokio::spawn(async move {
            tell_of(&homes, &job, reader, asked).await;
            drop(publication);
        });
    }
}

/// Publishes to a reader what happens to a job, until it has ended or the reader does not need it any more. A reader that
/// missed a message, or has a new replica of the job, asks again from its own offset.
async fn tell_of(homes: &Homes, job: &Job, reader: Uuid, mut asked: watch::Receiver<u64>) {
    let mut place = *asked.borrow_and_update();
    loop {
        tokio::select! {
            Ok(()) = asked.changed() => place = place.min(*asked.borrow_and_update()),
            _ = timeout(LOOK_EVERY, job.beyond(place)) => {}
        }
        if job.output_end() <= place && job.ended().is_none() {
            if job.is_remote() {
                // Its agent has moved to another instance, which publishes the job from now on.
                return;
            }
            continue;
        }
        let (message, next) = happened(job, place);
        if message.end.is_some() {
            _ = homes.tell_of(reader, &message).await;
            return;
        }
        place = next;
        let told = homes.tell_of(reader, &message);
        tokio::pin!(told);
        let taken = tokio::select! {
            biased;
            taken = &mut told => taken,
            () = job.has_ended() => {
                // Most commands end right after their last output, so the end is sent without waiting for the answer.
                let (message, next) = happened(job, place);
                if message.end.is_some() {
                    _ = join(told, homes.tell_of(reader, &message)).await;
                    return;
                }
                let taken = told.await;
                if taken == Ok(Demand::More) {
                    place = next;
                    homes.tell_of(reader, &message).await
                } else {
                    taken
                }
            }
        };
        if taken != Ok(Demand::More) {
            return;
        }
    }
}

/// Returns a message with as much output from offset `place` on as fits, with the end if that is all of it, and the offset
/// after it.
fn happened(job: &Job, place: u64) -> (CommandUpdate, u64) {
    // Read first, so that the output until then is complete.
    let end = job.ended();
    let (found, next) = job.read(place, MESSAGE_BYTES);
    let pieces = found.into_iter().filter_map(|next| match next {
        Next::Piece(piece) => Some(piece),
        // The offsets of the pieces show the gap.
        Next::LeftOut(_) => None,
    });
    let is_all = next == job.output_end();
    let (id, server_id) = (job.id(), job.row.server_id);
    (CommandUpdate { id, server_id, pieces: pieces.collect(), end: end.filter(|_| is_all) }, next)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use signalbox_protocol::Timestamp;
    use signalbox_protocol::agent::{CommandOutput, Stream};

    use super::*;
    use crate::audit::Actor;
    use crate::bus::client::BusClient;
    use crate::bus::local::LocalBus;
    use crate::bus::subject::Subjects;
    use crate::cluster::remote::Remote;
    use crate::commands::job::End;
    use crate::commands::{JobStatus, NewJob};
    use crate::store::Command;

    fn row() -> Command {
        let actor = Actor::command_line();
        let (server_id, owner_id, command) = (Uuid::now_v7(), Uuid::nil(), "make".to_owned());
        NewJob { server_id, owner_id, actor, command, stdin: None, signed: None, timeout_seconds: 60 }.into_row(
            JobStatus::Running,
            None,
            Timestamp::now(),
        )
    }

    fn asked(place: u64) -> watch::Receiver<u64> {
        watch::channel(place).1
    }

    async fn homes(bus: &LocalBus) -> (Homes, Uuid) {
        let id = Uuid::now_v7();
        let bus_client = BusClient::open(Arc::new(bus.clone()), Subjects::new("test"), id).await.unwrap();
        (Homes::new(Remote::new(bus_client)), id)
    }

    fn says(job: &Job, stream: Stream, data: &str) {
        job.add(&CommandOutput { command_id: job.id(), stream, data: data.to_owned(), offset: None });
    }

    /// An instance that applies what is published to a replica.
    async fn reader(bus: &LocalBus, row: &Command) -> (Uuid, Arc<Job>) {
        let (homes, id) = homes(bus).await;
        let replica = Arc::new(Job::replica(row.clone()));
        let told = replica.clone();
        tokio::spawn(async move {
            homes
                .hear(|happened| {
                    told.add_all(&happened.pieces);
                    happened.end.map(|end| told.end(end));
                    Demand::More
                })
                .await;
        });
        // It listens once it has answered.
        let (asking, _) = self::homes(bus).await;
        let nothing = CommandUpdate { id: Uuid::nil(), server_id: Uuid::nil(), pieces: Vec::new(), end: None };
        while asking.tell_of(id, &nothing).await.is_err() {
            tokio::task::yield_now().await;
        }
        (id, replica)
    }

    #[tokio::test]
    async fn a_replica_equals_the_job() {
        let bus = LocalBus::default();
        let (home, _) = homes(&bus).await;
        let job = Arc::new(Job::new(row()));
        let (reader, replica) = reader(&bus, &job.row).await;
        let telling = tokio::spawn({
            let job = job.clone();
            async move { tell_of(&home, &job, reader, asked(0)).await }
        });

        for number in 0..200 {
            says(&job, if number % 3 == 0 { Stream::Stderr } else { Stream::Stdout }, &format!("{number}\n"));
            if number % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
        job.end(End::without_result(JobStatus::Succeeded, None, Timestamp::now()));
        telling.await.unwrap();

        assert_eq!(replica.output().to_stored(), job.output().to_stored());
        assert_eq!(replica.ended(), job.ended());
    }

    #[tokio::test]
    async fn output_beyond_the_limit_is_published_with_its_gap() {
        let bus = LocalBus::default();
        let (home, _) = homes(&bus).await;
        let job = Job::new(row());
        let (reader, replica) = reader(&bus, &job.row).await;
        for number in 0..40 {
            says(&job, Stream::Stdout, &number.to_string().repeat(32 * 1024));
        }
        job.end(End::without_result(JobStatus::Succeeded, None, Timestamp::now()));

        tell_of(&home, &job, reader, asked(0)).await;

        assert!(replica.output().is_cut());
        assert!(replica.output().to_stored().render() == job.output().to_stored().render());
        assert_eq!(replica.ended(), job.ended());
    }

    #[tokio::test]
    async fn publishing_to_a_reader_that_has_gone_ends() {
        let bus = LocalBus::default();
        let (home, _) = homes(&bus).await;
        let job = Job::new(row());
        says(&job, Stream::Stdout, "one\n");

        tell_of(&home, &job, Uuid::now_v7(), asked(0)).await;

        assert_eq!(job.ended(), None);
    }

    #[tokio::test]
    async fn a_reader_that_wants_no_more_gets_one_message() {
        let bus = LocalBus::default();
        let (home, _) = homes(&bus).await;
        let (other, reader) = homes(&bus).await;
        let heard = Arc::new(Mutex::new(0));
        let count = heard.clone();
        tokio::spawn(async move {
            other
                .hear(|_| {
                    *count.lock() += 1;
                    Demand::Enough
                })
                .await;
        });
        let job = Job::new(row());
        says(&job, Stream::Stdout, "one\n");

        while *heard.lock() == 0 {
            tell_of(&home, &job, reader, asked(0)).await;
        }

        assert_eq!(*heard.lock(), 1);
    }
}
