//! The data directory: it belongs to one process at a time, to either a service or a demo, and no other user can read it.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::auth::secret::{ENCRYPTION, PUSH, SIGNING};
use crate::config::{Config, DATABASE_FILE, DataKind};

/// The lock on this file says that a process uses the directory; its text is the process id.
const LOCK_FILE: &str = "signalbox.lock";

/// An empty file that says that a demo made the data here. It exists from before there is any.
const DEMO_FILE: &str = "demo-data";

/// The first bytes of an SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The permissions of the group and of all others.
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
    #[error("{} has the data of a service, which a demo would change: leave out --data-dir, or name a new directory", .0.display())]
    OfService(PathBuf),
    #[error("{} has the data of a demo, whose account would be the administrator: use another directory", .0.display())]
    OfDemo(PathBuf),
}

/// Directories that this process owns for as long as this value lives. The system releases them when the process ends
/// for any reason.
#[derive(Debug)]
pub(crate) struct DataDirectories {
    paths: Vec<PathBuf>,
    _locks: Vec<File>,
}

impl DataDirectories {
    /// Warns about directories that other users can read, which may be intended.
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

/// Creates and locks the directories of this service's data. Two services in one directory would each believe to know
/// every agent: a key revoked in one would still work in the other, and each would lack the other's servers.
pub(crate) fn take(config: &Config) -> Result<DataDirectories, DirectoryError> {
    let own = config.needs_data_directory().then(|| config.data_dir.clone());
    if let Some(directory) = &own {
        // It contains hashes, e-mail addresses and the service's own secrets.
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
    // Under the lock: nobody else fills the directory in the meantime.
    directories.iter().try_for_each(|directory| claim(directory, config.data_kind))?;
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

/// Keeps the data of demos and of services apart. A demo sets a new password, backdates accounts, and deletes what the default
/// retention does not keep; a service would have the demo's account as its administrator.
fn claim(directory: &Path, kind: DataKind) -> Result<(), DirectoryError> {
    let unusable = |source| DirectoryError::Unusable { path: directory.to_owned(), source };
    let mark = directory.join(DEMO_FILE);
    let is_of_demo = mark.try_exists().map_err(unusable)?;
    match (kind, is_of_demo, has_data(directory).map_err(unusable)?) {
        (DataKind::Demo, true, _) | (DataKind::Service, false, _) => Ok(()),
        (DataKind::Demo, false, true) => Err(DirectoryError::OfService(directory.to_owned())),
        (DataKind::Demo, false, false) if has_database(directory).map_err(unusable)? => {
            Err(DirectoryError::OfService(directory.to_owned()))
        }
        (DataKind::Demo, false, false) => std::fs::write(mark, "").map_err(unusable),
        (DataKind::Service, true, true) => Err(DirectoryError::OfDemo(directory.to_owned())),
        // A demo ended before it made data, as one that could not listen. The next one must not take this service's data for its own.
        (DataKind::Service, true, false) => std::fs::remove_file(mark).map_err(unusable),
    }
}

/// Whether a service has used a directory: with PostgreSQL it keeps only secrets there.
fn has_data(directory: &Path) -> io::Result<bool> {
    for name in [DATABASE_FILE, SIGNING.file_name, ENCRYPTION.file_name, PUSH.file_name] {
        if directory.join(name).try_exists()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a directory has a database of any name: `--database-url` may name one there.
fn has_database(directory: &Path) -> io::Result<bool> {
    for entry in directory.read_dir()? {
        // A file that this user may not read is none of a service that could run here.
        if begin_of(&entry?.path()).is_ok_and(|begin| begin.as_deref() == Some(MAGIC)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The process that wrote its id into a lock; `None` if it has not done so yet.
fn holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    let pid = text.trim();
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    is_pid.then(|| pid.to_owned())
}

/// Removes permissions of others that an older version or a restored copy has left.
fn close_to_others(directory: &Path) {
    // A database with the default name is here even if another one is used now.
    close_database(&directory.join(DATABASE_FILE));
    [SIGNING.file_name, ENCRYPTION.file_name, PUSH.file_name].iter().for_each(|name| close_file(&directory.join(name)));
}

/// The same for a database, and for the files that SQLite keeps next to it.
fn close_database(file: &Path) {
    // A mistyped path may lead to a file that is not ours: a whole system may need to read `/etc/passwd`.
    if !is_database(file).unwrap_or(false) {
        return;
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(suffix);
        close_file(Path::new(&path));
    }
}

/// Whether a file is an SQLite database, or empty, so that SQLite makes it one. Read before SQLite opens the file:
/// closing it later would release SQLite's locks.
fn is_database(file: &Path) -> io::Result<bool> {
    Ok(begin_of(file)?.is_some_and(|begin| begin.is_empty() || begin == MAGIC))
}

/// The first bytes of a file, as many as tell that it is a database. None if it is no regular file.
fn begin_of(file: &Path) -> io::Result<Option<Vec<u8>>> {
    // Opening anything but a regular file could block forever.
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut begin = Vec::new();
    File::open(file)?.take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(Some(begin))
}

fn close_file(path: &Path) {
    // A link leads to a file that others are responsible for.
    let Ok(metadata) = path.symlink_metadata() else { return };
    if !metadata.is_file() || metadata.mode() & OF_OTHERS == 0 {
        return;
    }
    let path_shown = path.display();
    match std::fs::set_permissions(path, Permissions::from_mode(metadata.mode() & 0o700)) {
        Ok(()) => tracing::warn!(path = %path_shown, "other users could read this file; it is private now"),
        Err(error) => tracing::warn!(path = %path_shown, %error, "other users can read this file: chmod 600 it"),
    }
}
