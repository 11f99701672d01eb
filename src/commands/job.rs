//! One command while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{CommandOutput, RequestError};
use signalbox_protocol::frontend::CommandEnded;
use tokio::sync::watch;
use uuid::Uuid;

use super::JobStatus;
use super::output::{Next, Output, Piece, Stored};
use crate::store::{Command, CommandEnd};

/// A command that was sent, or is about to be: who waits for it and who watches it share it.
pub struct Job {
    /// Its row, as it was when the command was sent.
    pub row: Command,
    /// When its turn came, where the row was read before.
    began: OnceLock<Timestamp>,
    is_sent: AtomicBool,
    is_called_off: AtomicBool,
    /// Its agent is another instance's: it is told what happens, and stores nothing.
    is_mirror: AtomicBool,
    state: Mutex<State>,
    progress: watch::Sender<Progress>,
}

#[derive(Default)]
struct State {
    output: Output,
    end: Option<End>,
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
    /// Why it came to nothing.
    pub error: Option<RequestError>,
    pub at: Timestamp,
}

impl End {
    /// An end without a result.
    pub fn without_result(status: JobStatus, error: Option<RequestError>) -> Self {
        Self { status, exit_code: None, duration_ms: None, is_truncated: false, error, at: Timestamp::now() }
    }
}

impl Job {
    pub fn new(row: Command) -> Self {
        Self {
            row,
            began: OnceLock::new(),
            is_sent: AtomicBool::new(false),
            is_called_off: AtomicBool::new(false),
            is_mirror: AtomicBool::new(false),
            state: Mutex::default(),
            progress: watch::Sender::new(Progress::default()),
        }
    }

    /// A job that has ended, as it is stored.
    pub fn ended_before(row: Command) -> Self {
        let job = Self::sent_before(row);
        job.end_as_stored(&job.row);
        job
    }

    /// A job whose agent is another instance's.
    pub fn mirror(row: Command) -> Self {
        let is_sent = JobStatus::of(&row.status) == JobStatus::Running;
        let job = Self::new(row);
        job.is_sent.store(is_sent, Ordering::SeqCst);
        job.give_away();
        job
    }

    /// A job that an earlier run of the service sent.
    pub fn sent_before(row: Command) -> Self {
        let job = Self::new(row);
        job.mark_sent();
        job
    }

    /// Its turn has come.
    pub fn begin(&self, at: Timestamp) {
        _ = self.began.set(at);
    }

    /// When it was sent, or was about to be.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.began.get().copied().or(self.row.started_at.map(Timestamp::from))
    }

    pub fn mark_sent(&self) {
        self.is_sent.store(true, Ordering::SeqCst);
    }

    /// Whether it has left for its agent.
    pub fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::SeqCst)
    }

    /// Somebody wants it to end, whether or not its agent can be told now. Gives whether nobody did before.
    pub fn call_off(&self) -> bool {
        !self.is_called_off.swap(true, Ordering::SeqCst)
    }

    pub fn is_called_off(&self) -> bool {
        self.is_called_off.load(Ordering::SeqCst)
    }

    /// Whether its agent is another instance's.
    pub fn is_mirror(&self) -> bool {
        self.is_mirror.load(Ordering::SeqCst)
    }

    /// Its agent is here. Of one that has ended, as its home said, this instance cannot know whether that is stored.
    pub fn take_home(&self) {
        if self.ended().is_none() {
            self.is_mirror.store(false, Ordering::SeqCst);
        }
    }

    /// Its agent is not here any more.
    pub fn give_away(&self) {
        self.is_mirror.store(true, Ordering::SeqCst);
    }

    pub fn id(&self) -> Uuid {
        self.row.id
    }

    /// Takes a piece of output.
    pub fn add(&self, piece: &CommandOutput) {
        self.extend(|output| output.add(piece.stream, &piece.data, piece.offset));
    }

    /// Takes pieces of output as another instance has them.
    pub fn add_all(&self, pieces: &[Piece]) {
        self.extend(|output| {
            for piece in pieces {
                output.add(piece.stream, &piece.text, Some(piece.offset));
            }
        });
    }

    fn extend(&self, add: impl FnOnce(&mut Output)) {
        let output = {
            let mut state = self.lock();
            if state.end.is_some() {
                return;
            }
            add(&mut state.output);
            state.output.end()
        };
        self.progress.send_modify(|progress| progress.output = output);
    }

    /// Ends it as somebody else has stored it.
    pub fn end_as_stored(&self, row: &Command) {
        let error = row.error_code.as_deref();
        let end = End {
            status: JobStatus::of(&row.status),
            exit_code: row.exit_code,
            duration_ms: row.duration_ms.and_then(|millis| u64::try_from(millis).ok()),
            is_truncated: row.is_truncated,
            error: error.map(|code| RequestError::new(code, row.error_detail.as_deref().unwrap_or_default())),
            at: row.finished_at.map_or_else(Timestamp::now, Timestamp::from),
        };
        let output = {
            let mut state = self.lock();
            if state.end.is_some() {
                return;
            }
            state.output = Stored::of(row).into_output();
            state.end = Some(end);
            state.output.end()
        };
        self.progress.send_replace(Progress { output, has_ended: true });
    }

    /// Ends it, once: a second end changes nothing. Gives whether this was the first.
    pub fn end(&self, end: End) -> bool {
        {
            let mut state = self.lock();
            if state.end.is_some() {
                return false;
            }
            state.end = Some(end);
        }
        self.progress.send_modify(|progress| progress.has_ended = true);
        true
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// The output so far.
    pub fn output(&self) -> Output {
        self.lock().output.clone()
    }

    /// Bytes of output so far.
    pub fn output_end(&self) -> u64 {
        self.lock().output.end()
    }

    /// Output from `place` on, and the place after it.
    pub fn read(&self, place: u64, most: usize) -> (Vec<Next>, u64) {
        self.lock().output.read(place, most)
    }

    /// Resolves when there is output after `place`, or the job has ended.
    pub async fn beyond(&self, place: u64) -> Progress {
        let mut progress = self.progress.subscribe();
        let reached = progress.wait_for(|progress| progress.output > place || progress.has_ended).await;
        // The sender lives as long as this borrow does.
        reached.map(|progress| *progress).unwrap_or_default()
    }

    /// Resolves when it has ended.
    pub async fn has_ended(&self) {
        self.beyond(u64::MAX).await;
    }

    /// How it ended, as whoever watches it is told; until then, that it runs.
    pub fn result(&self) -> CommandEnded {
        let state = self.lock();
        let end = state.end.clone();
        CommandEnded {
            command_id: self.row.id,
            status: end.as_ref().map_or(JobStatus::Running, |end| end.status).name().to_owned(),
            exit_code: end.as_ref().and_then(|end| end.exit_code),
            duration_ms: end.as_ref().and_then(|end| end.duration_ms),
            truncated: end.as_ref().is_some_and(|end| end.is_truncated) || state.output.is_cut(),
            error: end.and_then(|end| end.error),
        }
    }

    /// What is to be stored of its end; none while it runs.
    pub fn to_stored(&self) -> Option<CommandEnd> {
        let state = self.lock();
        let end = state.end.clone()?;
        let stored = state.output.to_stored();
        let output_parts = serde_json::to_string(&stored.parts).ok().filter(|_| !stored.parts.is_empty());
        Some(CommandEnd {
            id: self.row.id,
            server_id: self.row.server_id,
            status: end.status.name(),
            exit_code: end.exit_code,
            duration_ms: end.duration_ms.map(|millis| i64::try_from(millis).unwrap_or(i64::MAX)),
            is_truncated: end.is_truncated || state.output.is_cut(),
            output: output_parts.is_some().then(|| stored.text.into_bytes()),
            output_parts,
            error: end.error.map(|error| (error.code, error.detail)),
            at: end.at,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way, so a poisoned lock still guards sound data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
