//! Jobs here that other instances have mirrors of.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use signalbox_protocol::agent::Execute;
use uuid::Uuid;

use super::job::Job;
use super::jobs::{Jobs, MOST_RUNNING};
use super::mirrors::failed;
use super::output::Next;
use super::shared::{Follow, Followed, Happened, Start};
use super::told;
use crate::cluster::remote::Remote;
use crate::cluster::remote::message::Taken;
use crate::registry::CallError;

/// Bytes of output in one message.
const MESSAGE_BYTES: usize = 128 * 1024;

/// How often it is looked whether there is still something to tell.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Who is told of which command, given up when dropped.
struct Place {
    jobs: Jobs,
    id: Uuid,
    reader: Uuid,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs.lent.remove(&(self.id, self.reader));
    }
}

impl Jobs {
    /// Sends a command that another instance has stored. What it comes to is told there, and stored here.
    pub async fn start_for(&self, start: Start) -> Result<(), CallError> {
        let Start { reader, row, stdin } = start;
        let job = self.remember(Job::new(row.into()));
        if job.ended().is_some() || (job.is_sent() && !job.is_mirror()) {
            // It was given up before it came.
            return Err(CallError::Offline);
        }
        job.take_home();
        if let Some(at) = job.row.started_at {
            job.begin(at.into());
        }
        let sent = match self.count_of(job.row.server_id) {
            0..=MOST_RUNNING => {
                self.lend(&job, reader, 0);
                self.execute_here(&job, stdin).await
            }
            _ => Err(CallError::Busy),
        };
        match &sent {
            Ok(()) => self.is_on_its_way(&job).await,
            Err(error) => self.conclude(&job, failed(error)).await,
        }
        sent
    }

    /// Whether one more command may run on a server here.
    pub fn has_room(&self, server_id: Uuid) -> bool {
        self.count_of(server_id) < MOST_RUNNING
    }

    /// Tells another instance of these commands from now on, as far as they are here.
    pub fn follow_for(&self, server_id: Uuid, follow: &Follow) -> Vec<Followed> {
        let mut followed = Vec::new();
        for wanted in &follow.wanted {
            let Some(job) = self.find(server_id, wanted.id).filter(|job| !job.is_mirror()) else { continue };
            if wanted.is_called_off && job.call_off() {
                let (jobs, job) = (self.clone(), job.clone());
                tokio::spawn(async move { jobs.ask_to_end(&job).await });
            }
            if job.is_sent() || job.ended().is_some() {
                let place = job.output_end();
                followed.push(Followed { id: wanted.id, started_at: job.started_at(), place });
                self.lend(&job, follow.reader, wanted.place);
            }
        }
        followed
    }

    /// Tells a reader what happens to a job, unless it is told already.
    fn lend(&self, job: &Arc<Job>, reader: Uuid, place: u64) {
        let Some(remote) = self.cluster.remote().cloned() else { return };
        if !self.lent.insert((job.id(), reader)) {
            return;
        }
        let (job, kept) = (job.clone(), Place { jobs: self.clone(), id: job.id(), reader });
        tokio::spawn(async move {
            tell_of(&remote, &job, reader, place).await;
            drop(kept);
        });
    }
}

/// What an agent gets to run a job.
pub(super) fn execute(job: &Job, stdin: Option<String>) -> Execute {
    Execute {
        command_id: job.row.id,
        command: job.row.command.clone(),
        stdin,
        timeout_seconds: u32::try_from(job.row.timeout_seconds).unwrap_or_default(),
        by: Some(told::actor(&job.row).to_string()),
    }
}

/// Tells a reader what happens to a job, until it has ended or the reader needs it no more. Whoever was not told, because
/// something was lost on the way, asks again from where it is.
async fn tell_of(remote: &Remote, job: &Job, reader: Uuid, mut place: u64) {
    loop {
        match tokio::time::timeout(LOOK_EVERY, job.beyond(place)).await {
            // Its agent went to another instance, which tells of it from now on.
            Err(_) if job.is_mirror() => return,
            Err(_) => continue,
            Ok(_) => {}
        }
        let (message, next) = happened(job, place);
        if message.end.is_some() {
            _ = remote.tell_of(reader, &message).await;
            return;
        }
        place = next;
        let told = remote.tell_of(reader, &message);
        tokio::pin!(told);
        let taken = tokio::select! {
            biased;
            taken = &mut told => taken,
            () = job.has_ended() => {
                // Most commands end right behind their last words: nobody waits for the answer in between.
                let (message, next) = happened(job, place);
                if message.end.is_some() {
                    _ = join(told, remote.tell_of(reader, &message)).await;
                    return;
                }
                let taken = told.await;
                if taken == Ok(Taken::More) {
                    place = next;
                    remote.tell_of(reader, &message).await
                } else {
                    taken
                }
            }
        };
        if taken != Ok(Taken::More) {
            return;
        }
    }
}

/// What there is from a place on, as much as fits, with the end if that is all; and the place behind it.
fn happened(job: &Job, place: u64) -> (Happened, u64) {
    // Looked at first: what came until then is read after it.
    let end = job.ended();
    let (found, next) = job.read(place, MESSAGE_BYTES);
    let pieces = found.into_iter().filter_map(|next| match next {
        Next::Piece(piece) => Some(piece),
        // What lies between the places of two pieces.
        Next::LeftOut(_) => None,
    });
    let is_all = next == job.output_end();
    let (id, server_id) = (job.id(), job.row.server_id);
    (Happened { id, server_id, pieces: pieces.collect(), end: end.filter(|_| is_all) }, next)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use signalbox_protocol::agent::{CommandOutput, Stream};

    use super::*;
    use crate::audit::Actor;
    use crate::bus::local::LocalBus;
    use crate::bus::post::Post;
    use crate::bus::subject::Subjects;
    use crate::commands::JobStatus;
    use crate::commands::job::End;
    use crate::commands::jobs::NewJob;
    use crate::store::Command;

    fn row() -> Command {
        let actor = Actor::command_line();
        let (server_id, owner_id, command) = (Uuid::now_v7(), Uuid::nil(), "make".to_owned());
        NewJob { server_id, owner_id, actor, command, stdin: None, timeout_seconds: 60 }
            .into_row(JobStatus::Running, None)
    }

    async fn remote(bus: &LocalBus) -> (Remote, Uuid) {
        let id = Uuid::now_v7();
        let post = Post::open(Arc::new(bus.clone()), Subjects::new("test"), id).await.unwrap();
        (Remote::new(post), id)
    }

    fn says(job: &Job, stream: Stream, data: &str) {
        job.add(&CommandOutput { command_id: job.id(), stream, data: data.to_owned(), offset: None });
    }

    /// Somebody who takes what happens into a mirror.
    async fn reader(bus: &LocalBus, row: &Command) -> (Uuid, Arc<Job>) {
        let (remote, id) = remote(bus).await;
        let mirror = Arc::new(Job::mirror(row.clone()));
        let told = mirror.clone();
        tokio::spawn(async move {
            remote
                .hear(|happened| {
                    told.add_all(&happened.pieces);
                    happened.end.map(|end| told.end(end));
                    Taken::More
                })
                .await;
        });
        // It listens when it was heard of once.
        let (asking, _) = self::remote(bus).await;
        let nothing = Happened { id: Uuid::nil(), server_id: Uuid::nil(), pieces: Vec::new(), end: None };
        while asking.tell_of(id, &nothing).await.is_err() {
            tokio::task::yield_now().await;
        }
        (id, mirror)
    }

    #[tokio::test]
    async fn a_mirror_shows_what_the_job_shows() {
        let bus = LocalBus::default();
        let (home, _) = remote(&bus).await;
        let job = Arc::new(Job::new(row()));
        let (reader, mirror) = reader(&bus, &job.row).await;
        let telling = tokio::spawn({
            let job = job.clone();
            async move { tell_of(&home, &job, reader, 0).await }
        });

        for number in 0..200 {
            says(&job, if number % 3 == 0 { Stream::Stderr } else { Stream::Stdout }, &format!("{number}\n"));
            if number % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
        job.end(End::without_result(JobStatus::Succeeded, None));
        telling.await.unwrap();

        assert_eq!(mirror.output().to_stored(), job.output().to_stored());
        assert_eq!(mirror.ended(), job.ended());
    }

    #[tokio::test]
    async fn more_than_is_kept_is_told_with_its_gap() {
        let bus = LocalBus::default();
        let (home, _) = remote(&bus).await;
        let job = Job::new(row());
        let (reader, mirror) = reader(&bus, &job.row).await;
        for number in 0..40 {
            says(&job, Stream::Stdout, &number.to_string().repeat(32 * 1024));
        }
        job.end(End::without_result(JobStatus::Succeeded, None));

        tell_of(&home, &job, reader, 0).await;

        assert!(mirror.output().is_cut());
        assert!(mirror.output().to_stored().render() == job.output().to_stored().render());
        assert_eq!(mirror.ended(), job.ended());
    }

    #[tokio::test]
    async fn a_reader_that_has_gone_is_told_no_more() {
        let bus = LocalBus::default();
        let (home, _) = remote(&bus).await;
        let job = Job::new(row());
        says(&job, Stream::Stdout, "one\n");

        tell_of(&home, &job, Uuid::now_v7(), 0).await;

        assert_eq!(job.ended(), None);
    }

    #[tokio::test]
    async fn a_reader_that_wants_no_more_is_told_once() {
        let bus = LocalBus::default();
        let (home, _) = remote(&bus).await;
        let (other, reader) = remote(&bus).await;
        let heard = Arc::new(Mutex::new(0));
        let count = heard.clone();
        tokio::spawn(async move {
            other
                .hear(|_| {
                    *count.lock().unwrap() += 1;
                    Taken::Enough
                })
                .await;
        });
        let job = Job::new(row());
        says(&job, Stream::Stdout, "one\n");

        while *heard.lock().unwrap() == 0 {
            tell_of(&home, &job, reader, 0).await;
        }

        assert_eq!(*heard.lock().unwrap(), 1);
    }
}
