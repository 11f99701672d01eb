//! One command while it runs.

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{CommandOutput, RequestError, Stream};
use signalbox_protocol::frontend::CommandEnded;
use tokio::sync::watch;
use uuid::Uuid;

use super::JobStatus;
use super::locus::{Locus, Progress as Sending, Standing};
use super::output::{Next, Output, Piece, Stored};
use super::output_places::OutputPlaces;
use crate::store::{Command, CommandEnd};

/// A command that was sent, or is about to be. Everyone who waits for it or watches it shares it.
pub struct Job {
    /// Its row, as it was when the command was sent.
    pub row: Command,
    /// Locked only for a moment, so that reading the state never waits for the output. Code that needs both locks takes that
    /// of the output first.
    standing: Mutex<Standing>,
    /// Complete for everyone who takes the lock after the end is known.
    output: Mutex<GatheredOutput>,
    progress: watch::Sender<Progress>,
}

/// Output that is gathered while the command runs.
#[derive(Default)]
struct GatheredOutput {
    output: Output,
    /// `None` for a job that this instance does not keep.
    places: Option<OutputPlaces>,
}

impl GatheredOutput {
    /// Adds a piece, as far as there is room for it.
    fn add(&mut self, stream: Stream, text: &str, offset: Option<u64>) {
        let needed = self.output.size_with(text);
        let most = self.places.as_mut().map_or(usize::MAX, |places| places.reserve(needed));
        self.output.add_within(most, stream, text, offset);
    }
}

/// How far a job is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of output so far.
    pub output: u64,
    pub has_ended: bool,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub status: JobStatus,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<u64>,
    pub is_truncated: bool,
    /// Why it was not run, or failed without a result.
    pub error: Option<RequestError>,
    pub at: Timestamp,
}

impl End {
    /// An end without a result. `at` is by the clock that all instances share, as every time of a command.
    pub fn without_result(status: JobStatus, error: Option<RequestError>, at: Timestamp) -> Self {
        Self { status, exit_code: None, duration_ms: None, is_truncated: false, error, at }
    }
}

impl Job {
    /// A job that is to be sent.
    pub fn new(row: Command) -> Self {
        Self::at(Locus::Queued, row)
    }

    /// A job that has ended, from its row.
    pub fn ended_before(row: Command) -> Self {
        let job = Self::sent_before(row);
        job.end_as_stored(&job.row);
        job
    }

    /// A job whose agent is connected to another instance: this instance receives what happens, and stores nothing.
    pub fn replica(row: Command) -> Self {
        let is_running = JobStatus::of(&row.status) == JobStatus::Running;
        Self::at(Locus::Remote(if is_running { Sending::Sent } else { Sending::Waiting }), row)
    }

    /// A job that an earlier run of the service sent.
    pub fn sent_before(row: Command) -> Self {
        let is_cancel_requested = row.is_cancel_requested;
        let job = Self::at(Locus::Here, row);
        if is_cancel_requested {
            job.request_cancel();
        }
        job
    }

    fn at(locus: Locus, row: Command) -> Self {
        let (standing, output) = (Mutex::new(Standing::new(locus)), Mutex::default());
        Self { row, standing, output, progress: watch::Sender::new(Progress::default()) }
    }

    /// The same job, whose output takes these places.
    pub(super) fn with_places(mut self, places: OutputPlaces) -> Self {
        self.output.get_mut().places = Some(places);
        self
    }

    /// Returns which instance owns it, and whether it was sent.
    pub fn locus(&self) -> Locus {
        self.standing().locus()
    }

    /// Returns whether it was sent to its agent.
    pub fn is_sent(&self) -> bool {
        matches!(self.locus(), Locus::Here | Locus::Remote(Sending::Sent))
    }

    /// Returns whether its agent is connected to another instance.
    pub fn is_remote(&self) -> bool {
        matches!(self.locus(), Locus::Remote(_))
    }

    pub fn is_cancel_requested(&self) -> bool {
        self.standing().is_cancel_requested()
    }

    /// Returns when it was sent, or was about to be.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.standing().began().or(self.row.started_at.map(Timestamp::from))
    }

    /// Applies a transition to the state. Returns whether it was accepted: see [`Standing`].
    pub(super) fn change(&self, transition: impl FnOnce(&mut Standing) -> bool) -> bool {
        transition(&mut self.standing())
    }

    /// Records a request to cancel it. Returns whether this is the first one.
    pub fn request_cancel(&self) -> bool {
        self.change(Standing::request_cancel)
    }

    pub fn id(&self) -> Uuid {
        self.row.id
    }

    /// Adds a piece of output.
    pub fn add(&self, piece: &CommandOutput) {
        self.extend(|gathered| gathered.add(piece.stream, &piece.data, piece.offset));
    }

    /// Adds pieces of output that another instance published.
    pub fn add_all(&self, pieces: &[Piece]) {
        self.extend(|gathered| {
            for piece in pieces {
                gathered.add(piece.stream, &piece.text, Some(piece.offset));
            }
        });
    }

    fn extend(&self, add: impl FnOnce(&mut GatheredOutput)) {
        let output = {
            // Locked first: code that sees the end from now on waits for the output that is added here.
            let mut gathered = self.output.lock();
            if self.is_over() {
                return;
            }
            add(&mut gathered);
            gathered.output.end()
        };
        self.progress.send_modify(|progress| progress.output = output);
    }

    /// Ends it with the end that another instance has stored.
    pub fn end_as_stored(&self, row: &Command) {
        let error = row.error_code.as_deref();
        let end = End {
            status: JobStatus::of(&row.status),
            exit_code: row.exit_code,
            duration_ms: row.duration_ms.and_then(|millis| u64::try_from(millis).ok()),
            is_truncated: row.is_truncated,
            error: error.map(|code| RequestError {
                reason: row.error_reason.clone(),
                ..RequestError::new(code, row.error_detail.as_deref().unwrap_or_default())
            }),
            at: row.finished_at.map_or_else(Timestamp::now, Timestamp::from),
        };
        let output = {
            let mut gathered = self.output.lock();
            if !self.change(|standing| standing.finish(end)) {
                return;
            }
            gathered.output = Stored::of(row).into_output();
            gathered.output.end()
        };
        self.progress.send_replace(Progress { output, has_ended: true });
    }

    /// Ends it. Returns whether this was the first end; a second one changes nothing.
    pub fn end(&self, end: End) -> bool {
        let is_first = self.change(|standing| standing.finish(end));
        if is_first {
            self.progress.send_modify(|progress| progress.has_ended = true);
        }
        is_first
    }

    /// Returns how it ended, if it has.
    pub fn ended(&self) -> Option<End> {
        self.standing().end().cloned()
    }

    /// Returns whether it has ended.
    pub fn is_over(&self) -> bool {
        self.standing().end().is_some()
    }

    /// Returns the output so far.
    pub fn output(&self) -> Output {
        self.output.lock().output.clone()
    }

    /// Returns whether a part of the output so far was not kept.
    pub fn is_cut(&self) -> bool {
        self.output.lock().output.is_cut()
    }

    /// Returns the bytes of output so far.
    pub fn output_end(&self) -> u64 {
        self.output.lock().output.end()
    }

    /// Returns output from byte `place` on, about `most` bytes, and the place after it.
    pub fn read(&self, place: u64, most: usize) -> (Vec<Next>, u64) {
        self.output.lock().output.read(place, most)
    }

    /// Resolves when there is output after `place`, or the job has ended.
    pub async fn beyond(&self, place: u64) -> Progress {
        let mut progress = self.progress.subscribe();
        let reached = progress.wait_for(|progress| progress.output > place || progress.has_ended).await;
        // An error is impossible, because the job owns the sender.
        reached.map(|progress| *progress).unwrap_or_default()
    }

    /// Resolves when it has ended.
    pub async fn has_ended(&self) {
        self.beyond(u64::MAX).await;
    }

    /// Returns its end as viewers get it; while it runs, a result with the status `running`.
    pub fn result(&self) -> CommandEnded {
        let gathered = self.output.lock();
        let end = self.ended();
        CommandEnded {
            command_id: self.row.id,
            status: end.as_ref().map_or(JobStatus::Running, |end| end.status).name().to_owned(),
            exit_code: end.as_ref().and_then(|end| end.exit_code),
            duration_ms: end.as_ref().and_then(|end| end.duration_ms),
            truncated: end.as_ref().is_some_and(|end| end.is_truncated) || gathered.output.is_cut(),
            error: end.and_then(|end| end.error),
        }
    }

    /// Returns its end as it is stored; `None` while it runs.
    pub fn to_stored(&self) -> Option<CommandEnd> {
        let gathered = self.output.lock();
        let end = self.ended()?;
        let stored = gathered.output.to_stored();
        let output_parts = serde_json::to_string(&stored.parts).ok().filter(|_| !stored.parts.is_empty());
        Some(CommandEnd {
            id: self.row.id,
            server_id: self.row.server_id,
            status: end.status.name(),
            exit_code: end.exit_code,
            duration_ms: end.duration_ms.map(|millis| i64::try_from(millis).unwrap_or(i64::MAX)),
            is_truncated: end.is_truncated || gathered.output.is_cut(),
            output: output_parts.is_some().then(|| stored.text.into_bytes()),
            output_parts,
            error_reason: end.error.as_ref().and_then(|error| error.reason.clone()),
            error: end.error.map(|error| (error.code, error.detail)),
            at: end.at,
        })
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::NewJob;

    fn job() -> Job {
        let new = NewJob::of_make(Uuid::now_v7(), Uuid::nil());
        Job::new(new.into_row(JobStatus::Running, None, Timestamp::now()))
    }

    fn says(job: &Job, data: &str) {
        job.add(&CommandOutput { command_id: job.id(), stream: Stream::Stdout, data: data.to_owned(), offset: None });
    }

    #[test]
    fn reading_the_state_does_not_wait_for_the_output() {
        let job = job();
        let output = job.output.lock();

        assert!(job.change(Standing::mark_sent) && job.request_cancel());
        assert!(job.is_sent() && job.is_cancel_requested() && !job.is_remote() && !job.is_over());
        assert!(job.end(End::without_result(JobStatus::Lost, None, Timestamp::now())));

        drop(output);
        assert!(job.is_over());
    }

    #[test]
    fn output_after_the_end_is_ignored() {
        let job = job();
        says(&job, "before");
        job.end(End::without_result(JobStatus::Succeeded, None, Timestamp::now()));

        says(&job, " and after");

        assert_eq!((job.output_end(), job.output().to_stored().text.as_str()), (6, "before"));
    }

    #[test]
    fn once_the_end_is_known_the_output_is_complete() {
        let job = std::sync::Arc::new(job());
        let sent = job.clone();
        let agent = std::thread::spawn(move || {
            (0..1_000).for_each(|_| says(&sent, "x"));
        });
        job.end(End::without_result(JobStatus::Succeeded, None, Timestamp::now()));

        let (then, stored) = (job.output_end(), job.to_stored().unwrap());
        agent.join().unwrap();

        assert_eq!(job.output_end(), then);
        assert_eq!(stored.output.map_or(0, |output| output.len() as u64), then);
    }
}
