//! The journal behind a thread, so that a disk that hangs stops no command.
//!
//! A failed write is not stored for later. The commands themselves are held, and when the disk is back, or the directory can be
//! used at last, a file with wrong contents is written again from them, or removed. If the agent ends before that, it loses what
//! the journal is for.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use signalbox_protocol::agent::{CommandResult, RequestError};
use tokio::time::Instant;
use uuid::Uuid;

use super::job_table::{Job, JobTable, MAX_HELD};
use super::journal::{self, Ended, Journal, RecoveredJob};
use super::output::Output;
use crate::process::Identity;
use crate::state::{DiskWorker, OpenError, Opening, StateDir, WAIT};

/// The consequence, for people, while the disk is away.
const CONSEQUENCE: &str = "a restart of the agent loses commands until it is back";

/// How soon a directory that could not be used is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// A sync calls the kernel, nothing else.
const STACK_BYTES: usize = 64 * 1024;

/// Commands of an earlier run.
pub type Left = Vec<(Uuid, RecoveredJob)>;

#[derive(Debug)]
pub struct Records {
    /// The state directory.
    path: Option<PathBuf>,
    files: Mutex<Files>,
    /// Whether a thread waits for a sync. One at a time, because they would pile up on a disk that hangs.
    is_syncing: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Files {
    place: JournalState,
    /// Where the processes are.
    proc: PathBuf,
    /// Whether the directory could not be used before, which the log says.
    has_failed: bool,
    /// Held from then on while the directory is used: the buffer, which holds it otherwise, may still do without it.
    _held: Option<StateDir>,
    /// Commands whose files have wrong contents: at most those that are held, and those that were on the disk.
    stale: BTreeMap<Uuid, Stale>,
    /// Whether a task calls [`Records::catch_up`] until there is nothing to do.
    is_cared_for: bool,
}

#[derive(Debug)]
enum JournalState {
    /// Results are kept in memory only.
    Missing,
    /// So they are until this time, when the directory is tried again.
    Failed(StateDir, Instant),
    Opening(StateDir, Opening<Journal, Left, OpenError>),
    Open(DiskWorker<Journal>),
}

#[derive(Debug, Clone, Copy)]
struct Stale {
    shell: Option<Identity>,
    /// Whether there may be a file.
    may_exist: bool,
}

impl Stale {
    const UNBEGUN: Self = Self { shell: None, may_exist: false };
    const BEGUN: Self = Self { shell: None, may_exist: true };
}

/// The result of a call.
enum WriteOutcome {
    Done,
    /// There is no journal, or the disk refused: the command continues without it.
    Without,
    /// The disk hangs, and may do it later.
    InDoubt,
    /// The disk has been hanging since before.
    Away,
}

impl Records {
    /// Opens the journal. Also returns what an earlier run of the agent left in it, unless the disk hangs.
    pub fn open(state: Option<StateDir>, proc: &Path) -> (Self, Left) {
        let path = state.as_ref().map(|dir| dir.path().to_owned());
        let mut files = Files {
            place: JournalState::Missing,
            proc: proc.to_owned(),
            has_failed: false,
            _held: None,
            stale: BTreeMap::new(),
            is_cared_for: false,
        };
        if let Some(dir) = state {
            files.open(dir);
        }
        let left = files.look_for(WAIT);
        if let JournalState::Opening(_, opening) = &files.place {
            opening.tell();
        }
        (Self { path, files: Mutex::new(files), is_syncing: Arc::default() }, left)
    }

    /// Whether it is known what earlier runs left. A directory that could not be used counts as empty, also while it is tried again.
    pub fn is_read(&self) -> bool {
        let files = self.lock();
        files.has_failed || !matches!(files.place, JournalState::Opening(..))
    }

    pub fn begin(&self, command_id: Uuid) {
        self.lock().write(command_id, Stale::UNBEGUN, move |journal| journal.begin(command_id));
    }

    pub fn spawned(&self, command_id: Uuid, shell: Identity) {
        let otherwise = Stale { shell: Some(shell), ..Stale::BEGUN };
        self.lock().write(command_id, otherwise, move |journal| journal.spawned(command_id, shell));
    }

    pub fn ended(&self, result: &CommandResult, output: &Output) {
        let mut files = self.lock();
        if files.is_written_to() {
            let ended = Ended { result: result.clone(), pieces: output.pieces() };
            files.write(result.command_id, Stale::BEGUN, move |journal| journal.ended(ended.result.command_id, ended));
        } else {
            files.leave(result.command_id, Stale::BEGUN);
        }
    }

    /// Records a refusal for the next start. Where the disk does not take it, the command counts as lost.
    pub fn refused(&self, command_id: Uuid, refusal: RequestError) {
        self.lock().call(command_id, move |journal| journal.refused(command_id, refusal));
    }

    pub fn remove(&self, command_id: Uuid) {
        self.lock().remove(command_id);
    }

    /// Syncs a command to the disk, on a thread. False where it is too early: another sync is running, or the file has wrong
    /// contents.
    pub fn sync(&self, command_id: Uuid) -> bool {
        let Some(path) = self.path.clone().filter(|_| !self.lock().is_missing()) else { return true };
        if self.lock().stale.contains_key(&command_id) || self.is_syncing.swap(true, Ordering::AcqRel) {
            return false;
        }
        let is_syncing = self.is_syncing.clone();
        let sync = move || {
            let synced = journal::sync(&path, command_id);
            is_syncing.store(false, Ordering::Release);
            tell(command_id, synced.err());
        };
        let started = thread::Builder::new().name("sync".to_owned()).stack_size(STACK_BYTES).spawn(sync);
        if let Err(error) = started {
            self.is_syncing.store(false, Ordering::Release);
            tell(command_id, Some(error));
        }
        true
    }

    /// Whether a task has to update the disk from now on. True only once.
    pub fn needs_care(&self) -> bool {
        let mut files = self.lock();
        let is_new = files.has_something_to_do() && !files.is_cared_for;
        files.is_cared_for |= is_new;
        is_new
    }

    /// Whether there is nothing left to update.
    pub fn is_cared_for(&self) -> bool {
        let mut files = self.lock();
        files.is_cared_for = files.has_something_to_do();
        !files.is_cared_for
    }

    /// Does what is possible by now. Returns what an earlier run left, once it can be read.
    pub fn catch_up(&self, held: &JobTable) -> Left {
        let mut files = self.lock();
        let left = files.look_for(Duration::ZERO);
        let stale: Vec<(Uuid, Stale)> = files.stale.iter().map(|(id, stale)| (*id, *stale)).collect();
        for (command_id, Stale { shell, .. }) in stale {
            let written = match held.get(command_id) {
                Some(job) => {
                    let ended = files.is_written_to().then(|| ended(job)).flatten();
                    files.call(command_id, move |journal| journal.rewrite(command_id, shell, ended))
                }
                None => files.call(command_id, move |journal| {
                    journal.remove(command_id);
                    Ok(())
                }),
            };
            match written {
                WriteOutcome::Done | WriteOutcome::Without => _ = files.stale.remove(&command_id),
                WriteOutcome::InDoubt | WriteOutcome::Away => break,
            }
        }
        left
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock()
    }
}

impl Files {
    fn is_missing(&self) -> bool {
        matches!(self.place, JournalState::Missing)
    }

    fn has_something_to_do(&self) -> bool {
        matches!(self.place, JournalState::Opening(..) | JournalState::Failed(..)) || !self.stale.is_empty()
    }

    /// Whether a call may have an effect; otherwise its arguments need not be made.
    fn is_written_to(&mut self) -> bool {
        match &mut self.place {
            JournalState::Open(worker) => worker.is_here(),
            JournalState::Missing | JournalState::Failed(..) | JournalState::Opening(..) => false,
        }
    }

    /// Begins to open the journal.
    fn open(&mut self, dir: StateDir) {
        let (claimed, proc) = (dir.clone(), self.proc.clone());
        let opening = DiskWorker::open(CONSEQUENCE, move || {
            let journal = Journal::open(&claimed, &proc)?;
            let left = journal.load(MAX_HELD)?;
            Ok((journal, left))
        });
        match opening {
            Ok(opening) => self.place = JournalState::Opening(dir, opening),
            Err(error) => self.fail(dir, &error.into()),
        }
    }

    /// Takes in that the journal could not be opened.
    fn fail(&mut self, dir: StateDir, error: &OpenError) {
        if error.is_misconfiguration() {
            // At the start the buffer says so, and the agent ends.
            if self.has_failed {
                tracing::warn!(%error, "cannot use the state directory: results of commands are kept in memory only");
            }
            self.place = JournalState::Missing;
            return self.stale.clear();
        }
        if !std::mem::replace(&mut self.has_failed, true) {
            tracing::warn!(
                %error,
                "cannot use the state directory: results of commands are kept in memory only until that is possible"
            );
        }
        self.place = JournalState::Failed(dir, Instant::now() + RETRY_AFTER);
    }

    fn look_for(&mut self, limit: Duration) -> Left {
        match std::mem::replace(&mut self.place, JournalState::Missing) {
            JournalState::Opening(dir, opening) => match opening.wait(limit) {
                Err(still) => self.place = JournalState::Opening(dir, still),
                Ok(Ok((worker, left))) => {
                    self.place = JournalState::Open(worker);
                    self._held = self.has_failed.then_some(dir);
                    return left;
                }
                Ok(Err(error)) => self.fail(dir, &error),
            },
            JournalState::Failed(dir, retry_at) if Instant::now() >= retry_at => self.open(dir),
            other => self.place = other,
        }
        Left::new()
    }

    /// Appends to a command's file, unless an earlier record is missing in it.
    fn write(
        &mut self,
        command_id: Uuid,
        otherwise: Stale,
        write: impl FnOnce(&Journal) -> io::Result<()> + Send + 'static,
    ) {
        if self.stale.contains_key(&command_id) {
            return self.leave(command_id, otherwise);
        }
        match self.call(command_id, write) {
            WriteOutcome::Done | WriteOutcome::Without => {}
            WriteOutcome::InDoubt => self.leave(command_id, Stale { may_exist: true, ..otherwise }),
            WriteOutcome::Away => self.leave(command_id, otherwise),
        }
    }

    /// Postpones a command's file.
    fn leave(&mut self, command_id: Uuid, otherwise: Stale) {
        if !self.is_missing() {
            let stale = self.stale.entry(command_id).or_insert(otherwise);
            stale.shell = stale.shell.or(otherwise.shell);
        }
    }

    fn remove(&mut self, command_id: Uuid) {
        if self.stale.get(&command_id).is_some_and(|stale| !stale.may_exist) {
            self.stale.remove(&command_id);
            return;
        }
        let removed = self.call(command_id, move |journal| {
            journal.remove(command_id);
            Ok(())
        });
        match removed {
            WriteOutcome::Done | WriteOutcome::Without => _ = self.stale.remove(&command_id),
            WriteOutcome::InDoubt | WriteOutcome::Away => self.leave(command_id, Stale::BEGUN),
        }
    }

    fn call(
        &mut self,
        command_id: Uuid,
        call: impl FnOnce(&Journal) -> io::Result<()> + Send + 'static,
    ) -> WriteOutcome {
        let worker = match &mut self.place {
            JournalState::Open(worker) => worker,
            JournalState::Failed(..) | JournalState::Opening(..) => return WriteOutcome::Away,
            JournalState::Missing => return WriteOutcome::Without,
        };
        if !worker.is_here() {
            return WriteOutcome::Away;
        }
        match worker.call(move |journal| call(journal)) {
            Some(Ok(())) => WriteOutcome::Done,
            Some(Err(error)) => {
                tell(command_id, Some(error));
                WriteOutcome::Without
            }
            None => WriteOutcome::InDoubt,
        }
    }
}

fn ended(job: &Job) -> Option<Ended> {
    Some(Ended { result: job.result()?.clone(), pieces: job.output.pieces() })
}

/// Logs a failure. A disk that fails stops no command, because a command may be the cure.
fn tell(command_id: Uuid, error: Option<io::Error>) {
    match error {
        // The beginning could not be written, which was logged, or the result was acknowledged.
        Some(error) if error.kind() == io::ErrorKind::NotFound => {}
        Some(error) => {
            tracing::warn!(%error, job.id = %command_id, "cannot write the journal: a restart of the agent loses this command");
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ID: Uuid = Uuid::from_u128(7);

    #[tokio::test(start_paused = true)]
    async fn a_state_directory_that_cannot_be_used_is_used_as_soon_as_it_can_be() {
        // In memory: on a disk under load a call may take as long as on one that hangs.
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        // In place of the lock.
        let lock = dir.path().join("lock");
        fs::create_dir(&lock).unwrap();
        let (records, _) = Records::open(Some(StateDir::new(dir.path())), Path::new("/proc"));
        let mut held = JobTable::default();
        held.insert(ID, Job::running(None));
        records.begin(ID);

        fs::remove_dir(lock).unwrap();

        let (file, began) = (dir.path().join("commands").join(ID.to_string()), std::time::Instant::now());
        while !file.exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing was written: {records:?}");
            tokio::time::advance(RETRY_AFTER).await;
            records.catch_up(&held);
        }
    }
}
