//! New files for secrets.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Failure;

/// An empty file that did not exist, for this user alone.
pub struct NewSecret {
    path: PathBuf,
    file: File,
}

/// Made before the secret is, because a secret that cannot be kept would be lost.
pub fn new_private(path: &Path) -> Result<NewSecret, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path);
    let file = file.map_err(|error| Failure::usage(format!("cannot create {}: {error}", path.display())))?;
    Ok(NewSecret { path: path.to_owned(), file })
}

impl NewSecret {
    /// Removes the file if it fails: nobody can use a part of a secret, and a repetition needs the place.
    pub fn write(mut self, secret: &str) -> Result<(), Failure> {
        let written = writeln!(self.file, "{secret}").and_then(|()| self.file.sync_all());
        written.map_err(|error| {
            let failure = Failure::failed(format!("cannot write {}: {error}", self.path.display()));
            self.give_up();
            failure
        })
    }

    /// Removes the file, for which there is no secret.
    pub fn give_up(self) {
        let _ = fs::remove_file(&self.path);
    }
}
