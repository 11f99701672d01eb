//! Copies a SQLite database to a file, completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use sea_orm::{ConnectionTrait, DatabaseBackend, Statement};
use uuid::Uuid;

use super::{Store, StoreError};

/// The copy contains password hashes, e-mail addresses and the output of commands.
const OWNER_ALONE: u32 = 0o600;

impl Store {
    /// Writes a consistent copy of a SQLite database to `file`, which must not exist, while others read and write. Only the
    /// account that runs this can read the copy. When it fails, is dropped or is killed, `file` does not exist.
    pub async fn backup(&self, file: &Path) -> Result<(), StoreError> {
        let backend = self.write.get_database_backend();
        if backend != DatabaseBackend::Sqlite {
            return Err(StoreError::NotSqlite);
        }
        let failed = |source: io::Error| StoreError::Copy { path: file.to_owned(), source };
        let partial = Partial::beside(file).map_err(failed)?;
        let target = partial.0.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
        // SQLite accepts an existing empty file, so the copy has its mode from the first byte on.
        self.write.execute_raw(Statement::from_sql_and_values(backend, "VACUUM INTO ?", [target.into()])).await?;
        partial.publish(file).map_err(failed)
    }
}

/// A file that is removed unless it becomes the copy.
struct Partial(PathBuf);

impl Partial {
    fn beside(file: &Path) -> io::Result<Self> {
        let mut name = file.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
        name.push(format!(".{}.partial", Uuid::now_v7().simple()));
        let partial = file.with_file_name(name);
        OpenOptions::new().write(true).create_new(true).mode(OWNER_ALONE).open(&partial)?;
        Ok(Self(partial))
    }

    /// Renames the file once all of it is on the disk.
    fn publish(self, file: &Path) -> io::Result<()> {
        File::open(&self.0)?.sync_all()?;
        match renameat_with(CWD, &self.0, CWD, file, RenameFlags::NOREPLACE) {
            // Some file systems do not support this condition.
            Err(Errno::INVAL | Errno::NOSYS) if !file.try_exists()? => fs::rename(&self.0, file)?,
            renamed => renamed?,
        }
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // SQLite keeps a journal beside the copy until all of it is there.
        let mut journal = self.0.clone().into_os_string();
        journal.push("-journal");
        // After the rename there is nothing to remove.
        _ = fs::remove_file(&self.0);
        _ = fs::remove_file(journal);
    }
}
