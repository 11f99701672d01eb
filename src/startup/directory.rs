//! The data directory: it belongs to one process at a time, and nobody else reads what lies in it.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::auth::secret::{ENCRYPTION, SIGNING};
use crate::config::{Config, DATABASE_FILE};

/// Whose lock says that a process uses the directory, and whose text says which.
const LOCK_FILE: &str = "signalbox.lock";

/// What a database of SQLite begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// What the group and everybody else may do.
const OF_OTHERS: u32 = 0o077;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("cannot use the data directory {}: {source}", .path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("the data directory {} is not a directory", .0.display())]
    NotDirectory(PathBuf),
    #[error("the data directory {} is in use by another signalbox{}", .path.display(), .pid.as_ref().map(|pid| format!(", process {pid}")).unwrap_or_default())]
    InUse { path: PathBuf, pid: Option<String> },
}

/// Directories that are this process's own for as long as this lives. The system lets go of them when the process ends,
/// however it does.
#[derive(Debug)]
pub(super) struct DataDirectories {
    paths: Vec<PathBuf>,
    _locks: Vec<File>,
}

impl DataDirectories {
    /// Warns of those that other users can look into: that may be meant so.
    pub fn warn_of_readers(&self) {
        for path in &self.paths {
            let mode = path.metadata().map(|metadata| metadata.mode()).unwrap_or_default();
            if mode & OF_OTHERS != 0 {
                tracing::warn!(
                    path = %path.display(),
                    mode = format!("{:04o}", mode & 0o7777),
                    "other users can look into the data directory: chmod 700 it"
                );
            }
        }
    }
}

/// Makes and locks what this service keeps data in. Two of them on one directory would each believe to know every agent:
/// a key that one revokes would work at the other, and each would miss the other's servers.
pub(super) fn take(config: &Config) -> Result<DataDirectories, DirectoryError> {
    let own = config.needs_data_directory().then(|| config.data_dir.clone());
    if let Some(directory) = &own {
        // Hashes, e-mail addresses and the service's own secrets lie in here.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => DirectoryError::NotDirectory(directory.clone()),
            _ => DirectoryError::Unusable { path: directory.clone(), source },
        })?;
    }
    let mut directories: Vec<PathBuf> = Vec::new();
    for directory in own.into_iter().chain(config.database_directory()) {
        let unusable = |source| DirectoryError::Unusable { path: directory.clone(), source };
        let directory = directory.canonicalize().map_err(unusable)?;
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    let locks = directories.iter().map(|directory| lock(directory)).collect::<Result<_, _>>()?;
    directories.iter().for_each(|directory| close_to_others(directory));
    config.database_file().iter().for_each(|file| close_database(file));
    Ok(DataDirectories { paths: directories, _locks: locks })
}

fn lock(directory: &Path) -> Result<File, DirectoryError> {
    let unusable = |source| DirectoryError::Unusable { path: directory.to_owned(), source };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(directory.join(LOCK_FILE)).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(DirectoryError::InUse { path: directory.to_owned(), pid: holder(&mut file) });
        }
        Err(TryLockError::Error(source)) => return Err(unusable(source)),
    }
    file.set_len(0).and_then(|()| file.rewind()).map_err(unusable)?;
    writeln!(file, "{}", std::process::id()).map_err(unusable)?;
    Ok(file)
}

/// The process that wrote its id into a lock; none where it has not done so yet.
fn holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    let pid = text.trim();
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    is_pid.then(|| pid.to_owned())
}

/// Takes from others what an older version, or a copy that was put back, left readable.
fn close_to_others(directory: &Path) {
    // A database of the usual name lies here also where another one is used now.
    close_database(&directory.join(DATABASE_FILE));
    [SIGNING.file_name, ENCRYPTION.file_name].iter().for_each(|name| close_file(&directory.join(name)));
}

/// The same of a database, and of what SQLite keeps beside it.
fn close_database(file: &Path) {
    // A mistyped path may lead to what is not ours: a whole system may read `/etc/passwd`.
    if !is_database(file).unwrap_or(false) {
        return;
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(suffix);
        close_file(Path::new(&path));
    }
}

/// Whether it is one of SQLite's, or empty, which it makes one of its own. Looked at before SQLite opens it: closing the
/// file later would give up SQLite's locks.
fn is_database(file: &Path) -> io::Result<bool> {
    // Opening what else there may be could wait for ever.
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut begin = Vec::new();
    File::open(file)?.take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(begin.is_empty() || begin == MAGIC)
}

fn close_file(path: &Path) {
    // A link leads to what is somebody else's to look after.
    let Ok(metadata) = path.symlink_metadata() else { return };
    if !metadata.is_file() || metadata.mode() & OF_OTHERS == 0 {
        return;
    }
    let path_shown = path.display();
    match std::fs::set_permissions(path, Permissions::from_mode(metadata.mode() & 0o700)) {
        Ok(()) => tracing::warn!(path = %path_shown, "other users could read this file; now they cannot"),
        Err(error) => tracing::warn!(path = %path_shown, %error, "other users can read this file: chmod 600 it"),
    }
}
