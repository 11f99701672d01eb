//! What terminals have shown, if the machine's owner wants it recorded.
//!
//! The path of a recording: [`Recordings::begin`] makes its file before the shell starts → the terminal writes each piece of
//! output to it before it sends the piece ([`Recording`]) → at the end the [`library`] has its hash, and [`reports`] tells the
//! service until it has noted the hash. So a terminal is recorded or there is none: one whose recording cannot begin is not
//! opened, and one whose recording cannot continue ends. What is typed is never recorded, only what the terminal shows of it.
//!
//! All files belong to one thread, and callers wait for it without blocking the agent. A disk that hangs ends the terminals.

mod cast;
mod library;
mod reports;
#[cfg(test)]
mod tests;
mod unfinished;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{
    Asker, ListRecordings, MAX_RECORDINGS_LISTED, ReadRecording, RequestError, TerminalSize,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::config::{Config, RecordingLimits};
use crate::policy::{Permit, Switch};
use crate::state::StateDir;
use cast::{Event, Header};
use library::Library;
use reports::Reports;
pub use reports::ReportsUplink;

/// Work that may wait for the thread: a place for the end of each open terminal, and some for everything else.
const MAX_JOBS: usize = 16;

/// The most time for one call. A busy disk takes tens of milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time for the end of all recordings when the agent is stopped. Beside other tests a thread may wait longer for a processor.
const LAST_WAIT: Duration = Duration::from_millis(if cfg!(test) { 5_000 } else { 500 });

/// The thread reads files with a buffer on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// Why something is not recorded, or not read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecordError {
    #[error("{0}")]
    Io(Arc<io::Error>),
    #[error("the recording has reached {} MiB, the most that one may have", .0 >> 20)]
    TooLong(u64),
    #[error("there is a recording of this id")]
    Exists,
    #[error("no such recording")]
    Unknown,
    #[error("the disk of the state directory hangs")]
    Hangs,
    #[error("the agent has stopped recording")]
    Stopped,
}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl RecordError {
    /// The error of a terminal whose recording cannot begin or continue, which is `what`.
    pub fn of_terminal(&self, what: &str) -> RequestError {
        RequestError::new("agent_error", &format!("{what}: {self}"))
    }

    /// The error of a request.
    fn of_request(&self) -> RequestError {
        let code = match self {
            Self::Unknown => "not_found",
            Self::Hangs => "agent_timeout",
            Self::Io(_) | Self::TooLong(_) | Self::Exists | Self::Stopped => "agent_error",
        };
        RequestError::new(code, &self.to_string())
    }
}

type Work = Box<dyn FnOnce(Result<&mut Library, RecordError>) + Send>;

enum Job {
    Work(Work),
    /// Ends all recordings and releases the directory.
    Stop(oneshot::Sender<()>),
}

/// The recordings of an agent; cheap to clone. Its successive connections share them.
#[derive(Clone)]
pub struct Recordings {
    /// None where the owner wants none.
    jobs: Option<mpsc::Sender<Job>>,
    /// Whose terminals they are: who may open one may see how others used theirs.
    terminal: Permit<Switch>,
    reports: Reports,
}

impl Recordings {
    /// Ends what an agent that was killed left, on the thread.
    pub fn open(config: &Config, state: Option<StateDir>) -> Self {
        let reports = Reports::default();
        let jobs = (config.policy.record == Switch::On).then(|| start(config.recordings, state, reports.clone()));
        Self { jobs, terminal: config.policy.terminal.clone(), reports }
    }

    /// Whether terminals are recorded.
    pub fn is_on(&self) -> bool {
        self.jobs.is_some()
    }

    /// Begins the recording of a terminal. None where terminals are not recorded.
    pub async fn begin(&self, id: Uuid, size: TerminalSize, by: &str) -> Result<Option<Recording>, RecordError> {
        let Some(jobs) = self.jobs.clone() else { return Ok(None) };
        // Its end has a place in the queue from now on.
        let place = timeout(PATIENCE, jobs.reserve_owned()).await.map_err(|_| RecordError::Hangs)?;
        let place = place.map_err(|_| RecordError::Stopped)?;
        let (header, recordings) = (Header::new(size, Timestamp::now(), by.to_owned()), self.clone());
        let begin = move |library: &mut Library| {
            library.begin(id, header)?;
            // If nobody waits any more, this is dropped, which ends it.
            Ok(Recording { id, recordings, began: Instant::now(), place: Some(place) })
        };
        self.call(begin).await.map(Some)
    }

    /// Answers a request for the list of recordings.
    pub async fn list(self, params: Value) -> Result<Value, RequestError> {
        let ListRecordings { limit, offset, asker } = parsed(params)?;
        self.permitted(asker.as_ref())?;
        let limit = limit.min(MAX_RECORDINGS_LISTED);
        written(self.call(move |library| Ok(library.list(offset, limit))).await)
    }

    /// Answers a request for a piece of a recording.
    pub async fn read(self, params: Value, by: Option<String>) -> Result<Value, RequestError> {
        let ReadRecording { recording_id, offset, asker } = parsed(params)?;
        self.permitted(asker.as_ref())?;
        if offset == 0 {
            let by = by.unwrap_or_default();
            tracing::info!(stream.id = %recording_id, by, "somebody reads the recording of a terminal");
        }
        written(self.call(move |library| library.read(recording_id, offset)).await)
    }

    /// The only check: recordings are shown to those who may open terminals.
    fn permitted(&self, asker: Option<&Asker>) -> Result<(), RequestError> {
        if !self.is_on() {
            return Err(RequestError::new("agent_refused", "this agent does not record terminals"));
        }
        self.terminal.expect(asker, "shows recordings of terminals")
    }

    /// The reports for a new connection.
    pub fn uplink(&self) -> ReportsUplink {
        ReportsUplink::new(self.reports.clone())
    }

    /// Takes in that the service has noted a recording.
    pub fn noted(&self, id: Uuid) {
        let Some(jobs) = self.jobs.as_ref().filter(|_| self.reports.remove(id)) else { return };
        let note: Work = Box::new(move |library| _ = library.map(|library| library.note(id)));
        // If it is lost, the agent reports the recording again after its next start, and the service knows it.
        _ = jobs.try_send(Job::Work(note));
    }

    /// Ends all recordings, because the agent ends.
    pub async fn stop(&self) {
        let Some(jobs) = &self.jobs else { return };
        let (stopped, is_stopped) = oneshot::channel();
        let stop = async {
            if jobs.send(Job::Stop(stopped)).await.is_ok() {
                _ = is_stopped.await;
            }
        };
        if timeout(LAST_WAIT, stop).await.is_err() {
            tracing::warn!("the disk of the state directory hangs: the next start of the agent ends its recordings");
        }
    }

    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Library) -> Result<T, RecordError> + Send + 'static,
    ) -> Result<T, RecordError> {
        let Some(jobs) = &self.jobs else { return Err(RecordError::Stopped) };
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |library| _ = answer.send(library.and_then(call)));
        let done = timeout(PATIENCE, async {
            jobs.send(Job::Work(work)).await.map_err(|_| RecordError::Stopped)?;
            answered.await.map_err(|_| RecordError::Stopped)?
        });
        done.await.unwrap_or(Err(RecordError::Hangs))
    }
}

fn parsed<T: DeserializeOwned>(params: Value) -> Result<T, RequestError> {
    serde_json::from_value(params).map_err(|error| RequestError::new("invalid_params", &error.to_string()))
}

fn written<T: Serialize>(outcome: Result<T, RecordError>) -> Result<Value, RequestError> {
    let value = outcome.map_err(|error| error.of_request())?;
    serde_json::to_value(value).map_err(|error| RequestError::new("agent_error", &error.to_string()))
}

/// A recording that is being written. It ends when it is dropped.
pub struct Recording {
    id: Uuid,
    recordings: Recordings,
    began: Instant,
    /// For its end.
    place: Option<mpsc::OwnedPermit<Job>>,
}

impl Recording {
    /// Adds what the terminal shows. Returns when it is in the file.
    pub async fn output(&self, text: &str) -> Result<(), RecordError> {
        if text.is_empty() {
            return Ok(());
        }
        let (id, seconds, text) = (self.id, self.began.elapsed().as_secs_f64(), text.to_owned());
        self.recordings.call(move |library| library.add(id, seconds, Event::Output(&text))).await
    }

    /// Adds that the terminal has another size.
    pub async fn resized(&self, size: TerminalSize) -> Result<(), RecordError> {
        let (id, seconds) = (self.id, self.began.elapsed().as_secs_f64());
        self.recordings.call(move |library| library.add(id, seconds, Event::Resized(size))).await
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let id = self.id;
        if let Some(place) = self.place.take() {
            let end: Work = Box::new(move |library| _ = library.map(|library| library.end(id)));
            place.send(Job::Work(end));
        }
    }
}

/// Starts the thread.
fn start(limits: RecordingLimits, state: Option<StateDir>, reports: Reports) -> mpsc::Sender<Job> {
    let (jobs, received) = mpsc::channel(MAX_JOBS);
    let serve = move || serve(limits, state, &reports, received);
    let started = std::thread::Builder::new().name("recordings".to_owned()).stack_size(STACK_BYTES).spawn(serve);
    if let Err(error) = started {
        // A terminal that is to be recorded finds that nobody takes jobs.
        tracing::error!(%error, "cannot start to record terminals: none will be opened");
    }
    jobs
}

fn serve(limits: RecordingLimits, state: Option<StateDir>, reports: &Reports, mut jobs: mpsc::Receiver<Job>) {
    let open = || {
        let state = state.as_ref().ok_or_else(|| io::Error::other("the agent has no state directory"))?;
        let path = state.claim().map_err(io::Error::other)?;
        Ok::<_, RecordError>(Library::open(path, limits, reports.clone())?)
    };
    let mut library = open();
    if let Err(error) = &library {
        tracing::warn!(%error, "cannot record terminals: none will be opened until that is possible");
    }
    while let Some(job) = jobs.blocking_recv() {
        if library.is_err() {
            library = open();
        }
        match job {
            Job::Work(work) => work(library.as_mut().map_err(|error| error.clone())),
            Job::Stop(stopped) => {
                if let Ok(library) = &mut library {
                    library.end_all();
                }
                drop((library, jobs, state));
                _ = stopped.send(());
                return;
            }
        }
    }
    if let Ok(library) = &mut library {
        library.end_all();
    }
}
