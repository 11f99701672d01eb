//! Files behind a thread, so that a disk that hangs delays callers only for a moment.
//!
//! With a network disk that went away, a USB disk that dies or a hypervisor's storage that stalls, a call to the kernel returns
//! minutes later, or never. The thread makes each call, including the first one, which opens the files, and callers wait until
//! a deadline. From then on the disk counts as away, until the thread has returned from the kernel; what it did there by then
//! counts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The most time that callers wait for one call: a busy disk takes tens of milliseconds. Tests run programs
/// that are built for debugging, beside many others: there a thread may wait longer for a processor.
pub const WAIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 3_000 } else { 500 });

/// The functions that it calls need a few kilobytes.
const STACK_BYTES: usize = 128 * 1024;

type Job<T> = Box<dyn FnOnce(&mut T) + Send>;

/// Whether the disk responds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Here,
    /// It hung, and is back since the last call of this.
    Back,
    Away,
}

/// Files that the thread has opened, which are a `T`.
#[derive(Debug)]
pub struct DiskWorker<T> {
    /// None once it is dropped.
    jobs: Option<SyncSender<Job<T>>>,
    thread: Option<JoinHandle<()>>,
    /// Whether no job is running.
    is_idle: Arc<AtomicBool>,
    is_away: bool,
    /// The consequence, for people, while the disk is away.
    consequence: &'static str,
}

/// Files that the thread is opening, in which it finds an `F`.
#[derive(Debug)]
pub struct Opening<T, F, E> {
    worker: DiskWorker<T>,
    outcome: Receiver<Result<F, E>>,
}

/// The files and what was found in them, or why there are none.
type Opened<T, F, E> = Result<(DiskWorker<T>, F), E>;

impl<T, F, E: From<io::Error>> Opening<T, F, E> {
    /// The result of opening, if it is known within `limit`. Files that are opened when nobody waits any more are closed.
    pub fn wait(self, limit: Duration) -> Result<Opened<T, F, E>, Self> {
        let outcome = match self.outcome.recv_timeout(limit) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => return Err(self),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread has ended").into()),
        };
        Ok(outcome.map(|found| (self.worker, found)))
    }

    /// Logs that the disk hangs, where that is new.
    pub fn tell(&self) {
        self.worker.tell();
    }
}

impl<T: 'static> DiskWorker<T> {
    /// Starts the thread, which opens the files.
    pub fn open<F, E>(
        consequence: &'static str,
        open: impl FnOnce() -> Result<(T, F), E> + Send + 'static,
    ) -> io::Result<Opening<T, F, E>>
    where
        F: Send + 'static,
        E: Send + 'static,
    {
        let (jobs, received): (SyncSender<Job<T>>, Receiver<Job<T>>) = sync_channel(1);
        let (opened, outcome) = sync_channel(1);
        let is_idle = Arc::new(AtomicBool::new(false));
        let is_open = is_idle.clone();
        let thread = thread::Builder::new().name("state".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            let mut files = match open() {
                Ok((files, found)) => {
                    // Set before the result is sent: a caller that has the result may call.
                    is_open.store(true, Ordering::Release);
                    _ = opened.send(Ok(found));
                    files
                }
                Err(error) => {
                    _ = opened.send(Err(error));
                    return;
                }
            };
            received.into_iter().for_each(|job| job(&mut files));
        })?;
        let worker = Self { jobs: Some(jobs), thread: Some(thread), is_idle, is_away: false, consequence };
        Ok(Opening { worker, outcome })
    }

    /// Whether it can be called now.
    pub fn presence(&mut self) -> Presence {
        match (self.is_idle.load(Ordering::Acquire), self.is_away) {
            (false, _) => Presence::Away,
            (true, false) => Presence::Here,
            (true, true) => {
                self.is_away = false;
                tracing::info!("the disk of the state directory answers again");
                Presence::Back
            }
        }
    }

    /// Whether it can be called now, for callers that do not need to know since when.
    pub fn is_here(&mut self) -> bool {
        self.presence() != Presence::Away
    }

    /// Returns the result of `call`. None when the disk is away, or does not respond in time: then the outcome of the call is
    /// unknown.
    pub fn call<R: Send + 'static>(&mut self, call: impl FnOnce(&mut T) -> R + Send + 'static) -> Option<R> {
        if !self.is_idle.swap(false, Ordering::AcqRel) {
            return None;
        }
        let (given, result) = sync_channel(1);
        let is_idle = self.is_idle.clone();
        let job: Job<T> = Box::new(move |files| {
            let value = call(files);
            // Set before the value is sent: a caller that has the value may call again.
            is_idle.store(true, Ordering::Release);
            _ = given.send(value);
        });
        let is_sent = self.jobs.as_ref().is_some_and(|jobs| jobs.try_send(job).is_ok());
        let value = if is_sent { result.recv_timeout(WAIT).ok() } else { None };
        if value.is_none() {
            self.is_away = true;
            self.tell();
        }
        value
    }
}

impl<T> DiskWorker<T> {
    fn tell(&self) {
        tracing::warn!("the disk of the state directory hangs: {}", self.consequence);
    }
}

impl<T> Drop for DiskWorker<T> {
    /// Releases the directory before this returns, unless the disk hangs.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take().filter(|_| self.is_idle.load(Ordering::Acquire)) {
            _ = thread.join();
        }
    }
}
