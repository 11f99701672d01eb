//! The owner of the state directory, and its protection from other readers.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::OFlags;

/// Its lock says that a process uses the directory, and its text says which one.
const LOCK_FILE: &str = "lock";

/// How often a claim checks whether an earlier agent is done.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a claim waits for a process that is ending: one that was killed looks dead a moment before the last of its threads has
/// closed its files. Less than callers wait for a disk ([`super::WAIT`]).
const ENDS_WITHIN: Duration = Duration::from_millis(if cfg!(test) { 2_000 } else { 200 });

/// The permissions of the group and of all others.
const OF_OTHERS: u32 = 0o077;

/// Why the directory cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    #[error("another agent{} uses the state directory {}; give each its own --state-dir", .pid.as_ref().map(|pid| format!(", process {pid},")).unwrap_or_default(), .path.display())]
    Locked { path: PathBuf, pid: Option<String> },
    #[error("--state-dir: {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error(transparent)]
    Io(Arc<io::Error>),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl OpenError {
    /// Whether an operator has to fix it. With any other error the agent runs without the directory.
    pub fn is_misconfiguration(&self) -> bool {
        match self {
            Self::Locked { .. } | Self::NotADirectory(_) => true,
            Self::Io(_) => false,
        }
    }
}

/// The directory, for each component with files in it. It stays locked until the last of them drops it.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
    /// None until the first of them has claimed it, and after an error that may pass.
    lock: Arc<Mutex<Option<Result<File, OpenError>>>>,
    /// The use by an earlier agent of this process, which has to be over first.
    earlier: Usage,
    /// Counts the components. The last field, because it must outlive the lock of each.
    users: Arc<()>,
}

/// The use of a state directory by the components of one agent.
#[derive(Debug, Clone, Default)]
pub struct Usage(Weak<()>);

impl Usage {
    /// Whether no component uses the directory any more: its lock is free. Does not touch the disk.
    pub fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }

    #[expect(clippy::disallowed_methods, reason = "no worker thread is blocked")]
    fn wait(&self) {
        while !self.is_over() {
            sleep(LOOK_EVERY);
        }
    }
}

impl StateDir {
    pub fn new(path: &Path) -> Self {
        Self::after(path, Usage::default())
    }

    /// A directory that an earlier agent of this process has used. Where a thread of that agent still waits for a disk that hangs,
    /// the claim waits for the thread: its lock would look like that of another agent.
    pub fn after(path: &Path, earlier: Usage) -> Self {
        Self { path: path.to_owned(), lock: Arc::default(), earlier, users: Arc::default() }
    }

    /// The use by all components that share this.
    pub fn usage(&self) -> Usage {
        Usage(Arc::downgrade(&self.users))
    }

    /// The path, once the directory exists and belongs to this agent. Only for a thread that may wait for a disk that hangs.
    ///
    /// A misconfiguration stays one, so that all components refuse it and the agent ends. After any other error the next call tries
    /// again.
    pub fn claim(&self) -> Result<&Path, OpenError> {
        // The others wait: the lock of the first would look to them like that of another agent.
        let mut lock = self.lock.lock();
        self.earlier.wait();
        let error = match lock.get_or_insert_with(|| claim(&self.path)) {
            Ok(_) => return Ok(&self.path),
            Err(error) => error.clone(),
        };
        if !error.is_misconfiguration() {
            *lock = None;
        }
        Err(error)
    }

    /// A directory whose disk hangs until the test sends something.
    #[cfg(test)]
    pub fn hanging(path: &Path) -> (Self, std::sync::mpsc::Sender<()>) {
        let (state, (release, released)) = (Self::new(path), std::sync::mpsc::channel::<()>());
        let (hanging, (hangs, has_hung)) = (state.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            let mut lock = hanging.lock.lock();
            hangs.send(()).unwrap();
            _ = released.recv();
            *lock = Some(claim(&hanging.path));
        });
        has_hung.recv().unwrap();
        (state, release)
    }

    /// The path, whichever process owns the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn claim(path: &Path) -> Result<File, OpenError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| match error.kind() {
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => OpenError::NotADirectory(path.to_owned()),
        _ => error.into(),
    })?;
    let lock = lock(path)?;
    let mode = path.metadata()?.mode();
    if mode & OF_OTHERS != 0 {
        // That may be intended: each file is closed to others on its own.
        tracing::warn!(
            path = %path.display(),
            mode = format!("{:04o}", mode & 0o7777),
            "other users can look into the state directory: chmod 700 it"
        );
    }
    Ok(lock)
}

fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK_FILE);
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    match lock_soon(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::Locked { path: directory.to_owned(), pid: holder(&mut file) });
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    close_to_others(&path);
    let noted = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = noted {
        // On a full disk the lock still works.
        tracing::debug!(%error, "cannot note which process uses the state directory");
    }
    Ok(file)
}

/// Locks a file. Waits [`ENDS_WITHIN`] where another process has it.
#[expect(clippy::disallowed_methods, reason = "no worker thread is blocked")]
fn lock_soon(file: &File) -> Result<(), TryLockError> {
    let deadline = Instant::now() + ENDS_WITHIN;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(LOOK_EVERY),
            outcome => return outcome,
        }
    }
}

/// The process that wrote its id into a lock; none where it has not done so yet.
fn holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    let pid = text.trim();
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    is_pid.then(|| pid.to_owned())
}

/// Removes other users' permissions that an older version, or a restored copy, left on a file of the agent's or a directory.
pub fn close_to_others(path: &Path) {
    // The target of a link belongs to somebody else.
    let Ok(metadata) = path.symlink_metadata() else { return };
    if metadata.is_symlink() || metadata.mode() & OF_OTHERS == 0 {
        return;
    }
    if let Err(error) = fs::set_permissions(path, Permissions::from_mode(metadata.mode() & 0o700)) {
        tracing::warn!(path = %path.display(), %error, "other users can read this: take it from them with chmod");
    }
}

/// Opens a file for reading, whatever somebody with the agent's user has put in its place: no link is followed, and no pipe
/// waited for.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn an_agent_waits_for_an_earlier_one_of_its_process_and_only_a_moment_for_another_process() {
        let directory = tempfile::tempdir().unwrap();
        let first = StateDir::new(directory.path());
        let usage = first.usage();
        first.claim().unwrap();

        let other = StateDir::new(directory.path()).claim().map(Path::to_owned);
        let second = StateDir::after(directory.path(), usage.clone());
        let claiming = thread::spawn(move || second.claim().map(Path::to_owned));
        let is_over = (usage.is_over(), claiming.is_finished());
        drop(first);

        assert!(matches!(other, Err(OpenError::Locked { .. })), "{other:?}");
        assert_eq!(is_over, (false, false));
        assert_eq!(claiming.join().unwrap().unwrap(), directory.path());
        assert!(usage.is_over());
    }

    #[test]
    fn a_process_that_is_ending_is_no_other_agent() {
        let directory = tempfile::tempdir().unwrap();
        let ending = File::create(directory.path().join(LOCK_FILE)).unwrap();
        ending.try_lock().unwrap();
        let next = StateDir::new(directory.path());
        let (starts, started) = std::sync::mpsc::channel();
        let claiming = thread::spawn(move || {
            starts.send(()).unwrap();
            next.claim().map(Path::to_owned)
        });

        started.recv().unwrap();
        // So that it has found the lock taken at least once.
        thread::park_timeout(LOOK_EVERY * 5);
        drop(ending);

        assert_eq!(claiming.join().unwrap().unwrap(), directory.path());
    }
}
