//! Whether a file is the owner's alone: then the agent's user, through which the service acts, cannot have changed it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Write permission of the group and of all others. An access list for writing shows in the group's bits.
const WRITABLE: u32 = 0o022;
/// Only the owner of a file in such a directory may replace it.
const STICKY: u32 = 0o1000;

/// Why a file is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not an absolute path", .0.display())]
    Relative(PathBuf),
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("{} belongs to user {uid}, and has to belong to root: chown root it", .path.display())]
    Owner { path: PathBuf, uid: u32 },
    #[error("others than root can change {} (mode {mode:04o}): chmod go-w it", .path.display())]
    Writable { path: PathBuf, mode: u32 },
}

/// Reads a file that only root can change: it, every directory above it, and every link on the way.
pub fn read(path: &Path) -> Result<String, TrustError> {
    check(path)?;
    std::fs::read_to_string(path).map_err(|source| TrustError::Io { path: path.to_owned(), source })
}

fn check(path: &Path) -> Result<(), TrustError> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(TrustError::Relative(path.to_owned()));
    }
    let failed = |source| TrustError::Io { path: path.to_owned(), source };
    let target = path.canonicalize().map_err(failed)?;
    if !target.metadata().map_err(failed)?.is_file() {
        return Err(TrustError::NotAFile(target));
    }
    path.ancestors().chain(target.ancestors()).try_for_each(check_one)
}

fn check_one(path: &Path) -> Result<(), TrustError> {
    let metadata = path.symlink_metadata().map_err(|source| TrustError::Io { path: path.to_owned(), source })?;
    if metadata.uid() != 0 {
        return Err(TrustError::Owner { path: path.to_owned(), uid: metadata.uid() });
    }
    let mode = metadata.mode();
    let is_closed = mode & WRITABLE == 0 || metadata.is_symlink() || (metadata.is_dir() && mode & STICKY != 0);
    if is_closed { Ok(()) } else { Err(TrustError::Writable { path: path.to_owned(), mode: mode & 0o7777 }) }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_than_root_could_have_changed_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (inner, file) = (directory.path().join("inner"), directory.path().join("inner/file"));
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "text").unwrap();
        if !rustix::process::geteuid().is_root() {
            assert!(matches!(read(&file), Err(TrustError::Owner { .. })));
            return;
        }
        assert_eq!(read(&file).unwrap(), "text");

        for bits in [0o620, 0o602, 0o666] {
            mode(&file, bits);
            assert!(matches!(read(&file), Err(TrustError::Writable { .. })), "{bits:o}");
        }
        mode(&file, 0o644);
        mode(&inner, 0o775);
        assert!(matches!(read(&file), Err(TrustError::Writable { .. })));
        mode(&inner, 0o755);
        let link = directory.path().join("link");
        symlink(&file, &link).unwrap();
        assert_eq!(read(&link).unwrap(), "text");
        chown(&inner, Some(12_345), None).unwrap();
        for path in [&file, &link] {
            assert!(matches!(read(path), Err(TrustError::Owner { uid: 12_345, .. })));
        }
        chown(&inner, Some(0), None).unwrap();
        chown(&file, Some(12_345), None).unwrap();
        assert!(matches!(read(&file), Err(TrustError::Owner { uid: 12_345, .. })));
        assert!(matches!(read(&inner), Err(TrustError::NotAFile(_))));
        assert!(matches!(read(Path::new("etc/x")), Err(TrustError::Relative(_))));
        assert!(matches!(read(&inner.join("../inner/file")), Err(TrustError::Relative(_))));
        assert!(matches!(read(&inner.join("none")), Err(TrustError::Io { .. })));
    }
}
