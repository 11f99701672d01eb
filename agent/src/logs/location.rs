//! A file that the policy permits to read, and how it is opened.
//!
//! The path in the policy is the owner's choice and may contain symbolic links. Below it none is followed: each step is opened
//! by its name relative to the previous one, so that neither `..` nor a link that somebody creates there, before or during the
//! walk, leads out. openat2(2) would do the same, but kernels before 5.6 lack it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::error::LogError;

/// Opened again after each rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file that the owner named.
    Named(PathBuf),
    /// A file somewhere below a directory that the owner named.
    Beneath { directory: PathBuf, file: PathBuf },
}

impl Location {
    /// Finds a path among the permitted ones. The longest match decides.
    pub fn find(path: &str, allowed: &[PathBuf]) -> Result<Self, LogError> {
        let path = Path::new(path);
        let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !path.is_absolute() || !is_plain || path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(LogError::PathNotAllowed);
        }
        let fitting = allowed.iter().filter_map(|root| Some((root, path.strip_prefix(root).ok()?)));
        let (root, rest) = fitting.min_by_key(|(_, rest)| rest.components().count()).ok_or(LogError::PathNotAllowed)?;
        if rest.as_os_str().is_empty() {
            return Ok(Self::Named(root.clone()));
        }
        Ok(Self::Beneath { directory: root.clone(), file: rest.to_owned() })
    }

    /// Opens the file, if it is a regular one. Never waits for the other end of a pipe.
    pub fn open(&self) -> Result<File, LogError> {
        match self {
            Self::Named(path) => open_regular(CWD, path.as_os_str(), OFlags::empty()),
            Self::Beneath { directory, file } => {
                let name = file.file_name().ok_or(LogError::NotFound)?;
                let parent = walk(directory, file.parent().unwrap_or(Path::new("")))?;
                open_regular(parent.as_fd(), name, OFlags::NOFOLLOW)
            }
        }
    }
}

/// Opens the directory at `steps` below `root` without following a link.
fn walk(root: &Path, steps: &Path) -> Result<OwnedFd, LogError> {
    let mut directory = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for step in steps {
        let (next, kind) = look(directory.as_fd(), step, OFlags::NOFOLLOW)?;
        match kind {
            FileType::Directory => directory = next,
            FileType::Symlink => return Err(LogError::Symlink),
            _ => return Err(LogError::NotFound),
        }
    }
    Ok(directory)
}

/// Opens the entry only to identify it, without blocking or any effect.
fn look(parent: BorrowedFd<'_>, name: &OsStr, follow: OFlags) -> Result<(OwnedFd, FileType), LogError> {
    let found = openat(parent, name, OFlags::PATH | OFlags::CLOEXEC | follow, Mode::empty())?;
    let kind = FileType::from_raw_mode(fstat(&found)?.st_mode);
    Ok((found, kind))
}

fn open_regular(parent: BorrowedFd<'_>, name: &OsStr, follow: OFlags) -> Result<File, LogError> {
    expect_regular(look(parent, name, follow)?.1)?;
    // The entry may have been replaced, so it is checked again, without waiting.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
    let file = openat(parent, name, flags, Mode::empty())?;
    expect_regular(FileType::from_raw_mode(fstat(&file)?.st_mode))?;
    Ok(File::from(file))
}

fn expect_regular(kind: FileType) -> Result<(), LogError> {
    match kind {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(LogError::Symlink),
        _ => Err(LogError::NotAFile),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn allowed() -> Vec<PathBuf> {
        vec!["/var/log".into(), "/srv/app.log".into(), "/var/log/nginx/".into()]
    }

    fn refusal(path: &Path, allowed: &Path) -> String {
        let opened = Location::find(path.to_str().unwrap(), &[allowed.to_owned()]).and_then(|place| place.open());
        signalbox_protocol::agent::RequestError::from(opened.unwrap_err()).code
    }

    #[test]
    fn a_path_lies_where_the_closest_allowed_one_is() {
        let beneath =
            |directory: &str, file: &str| Location::Beneath { directory: directory.into(), file: file.into() };

        assert_eq!(Location::find("/var/log/syslog", &allowed()).unwrap(), beneath("/var/log", "syslog"));
        assert_eq!(Location::find("/var/log//a/./b", &allowed()).unwrap(), beneath("/var/log", "a/b"));
        assert_eq!(Location::find("/var/log/nginx/x", &allowed()).unwrap(), beneath("/var/log/nginx", "x"));
        assert_eq!(Location::find("/srv/app.log", &allowed()).unwrap(), Location::Named("/srv/app.log".into()));
    }

    #[test]
    fn paths_outside_of_the_policy_are_refused() {
        let outside = [
            "/etc/shadow",
            "/var/logs/x",
            "/var/log/../../etc/shadow",
            "/var/log/..",
            "var/log/syslog",
            "",
            "/",
            "/srv/app.log.1",
            "/var/log/a\0b",
            "../var/log/syslog",
        ];

        for path in outside {
            assert!(matches!(Location::find(path, &allowed()), Err(LogError::PathNotAllowed)), "{path:?}");
        }
        assert!(Location::find("/var/log/syslog", &[]).is_err());
    }

    #[test]
    fn no_link_below_the_allowed_path_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("logs");
        fs::create_dir_all(root.join("real")).unwrap();
        fs::write(dir.path().join("secret"), "secret\n").unwrap();
        fs::write(root.join("real/inside.log"), "line\n").unwrap();
        symlink(dir.path().join("secret"), root.join("out.log")).unwrap();
        symlink("real/inside.log", root.join("in.log")).unwrap();
        symlink(dir.path(), root.join("up")).unwrap();

        for path in ["out.log", "in.log", "up/secret"] {
            assert_eq!(refusal(&root.join(path), &root), "path_not_allowed", "{path}");
        }
        assert_eq!(refusal(&root.join("none.log"), &root), "not_found");
        assert_eq!(refusal(&root.join("real/inside.log/x"), &root), "not_found");
    }

    #[test]
    fn the_path_that_the_owner_named_may_be_a_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        fs::write(dir.path().join("real/app.log"), "line\n").unwrap();
        symlink("real", dir.path().join("logs")).unwrap();
        symlink("real/app.log", dir.path().join("app.log")).unwrap();

        for (path, allowed) in [("logs/app.log", "logs"), ("app.log", "app.log")] {
            let place = Location::find(dir.path().join(path).to_str().unwrap(), &[dir.path().join(allowed)]);
            assert!(place.unwrap().open().is_ok(), "{path}");
        }
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());

        assert_eq!(refusal(&pipe, dir.path()), "not_a_file");
        assert_eq!(refusal(&pipe, &pipe), "not_a_file");
        assert_eq!(refusal(Path::new("/dev/zero"), Path::new("/dev")), "not_a_file");
        assert_eq!(refusal(Path::new("/dev/zero"), Path::new("/dev/zero")), "not_a_file");
        assert_eq!(refusal(dir.path(), dir.path()), "not_a_file");
    }
}
