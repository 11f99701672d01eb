//! What the agent remembers of builds, in a file of its state directory.
//!
//! Nobody has to trust the file: what it says was taken is verified again, and a damaged file means that the installed program
//! runs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use signalbox_protocol::agent::UpdateOffer;

use super::build::Build;
use crate::state::open_regular;

/// The directory of builds, in the state directory.
const DIRECTORY: &str = "updates";

const FILE: &str = "state.json";

/// The version of the format.
const FORMAT: u32 = 1;

/// A release and its signature have at most 32 KiB in base64.
const MAX_BYTES: u64 = 256 * 1024;

/// How many builds that did not work are remembered.
const MAX_FAILED: usize = 16;

/// How often a build is tried that may not be to blame.
pub const MAX_TRIES: u32 = 3;

/// The longest reason, which the service stores.
const MAX_REASON_BYTES: usize = 200;

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    v: u32,
    /// The build that runs in place of the installed one.
    #[serde(default)]
    pub taken: Option<Taken>,
    /// The build that is being tried. After a crash, what is found here may have caused it.
    #[serde(default)]
    pub trial: Option<Trial>,
    /// Builds that did not work, oldest first.
    #[serde(default)]
    pub failed: Vec<FailedBuild>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    pub version: String,
    pub sha256: String,
    #[serde(flatten)]
    pub offer: UpdateOffer,
    /// How often it was started since it last stayed connected, or ended because it was asked to.
    pub starts: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    pub version: String,
    pub sha256: String,
}

/// A build that did not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedBuild {
    pub version: String,
    pub sha256: String,
    /// Why, for people.
    pub reason: String,
    /// How often it was tried, up to [`MAX_TRIES`], which is also the number for a build that is to blame.
    #[serde(default = "max_tries")]
    pub tries: u32,
}

fn max_tries() -> u32 {
    MAX_TRIES
}

/// What may have made a trial fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The build itself.
    Build,
    /// Perhaps the service, the network or the machine.
    Unknown,
}

impl FailedBuild {
    /// Whether the build is not tried again.
    pub fn is_given_up(&self) -> bool {
        self.tries >= MAX_TRIES
    }

    /// Adds a failure to the earlier ones. The newest is the last.
    pub fn add(all: &mut Vec<Self>, build: Trial, reason: &str, blame: Blame) {
        let Trial { version, sha256 } = build;
        let tries = match blame {
            Blame::Build => MAX_TRIES,
            Blame::Unknown => all.iter().find(|failed| failed.sha256 == sha256).map_or(0, |failed| failed.tries) + 1,
        };
        all.retain(|failed| failed.sha256 != sha256);
        let end = reason.floor_char_boundary(MAX_REASON_BYTES);
        let reason = reason.get(..end).unwrap_or_default().to_owned();
        all.push(Self { version, sha256, reason, tries: tries.min(MAX_TRIES) });
        let surplus = all.len().saturating_sub(MAX_FAILED);
        all.drain(..surplus);
    }
}

impl Default for Record {
    fn default() -> Self {
        Self { v: FORMAT, taken: None, trial: None, failed: Vec::new() }
    }
}

/// The directory of builds of this state directory.
pub fn directory(state_dir: &Path) -> PathBuf {
    state_dir.join(DIRECTORY)
}

/// The file of a build.
pub fn path_of(directory: &Path, sha256: &str) -> PathBuf {
    directory.join(sha256)
}

/// Creates the directory of builds.
pub fn create(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Makes the names in a directory durable.
pub fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Held while a thread reads the record, changes it and writes it.
static CHANGING: Mutex<()> = Mutex::new(());

/// Waits until no other thread of this process changes a record. For threads that may wait for a disk.
pub fn changing() -> MutexGuard<'static, ()> {
    CHANGING.lock()
}

impl Record {
    /// Reads the record; an empty one if there is none.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let file = match open_regular(&directory.join(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text)?;
        let record: Self = serde_json::from_slice(&text)?;
        if record.v != FORMAT {
            return Err(io::Error::other(format!("it has the format {}, and this agent reads {FORMAT}", record.v)));
        }
        Ok(record)
    }

    /// Replaces the record. On a full disk it can still change by one byte, so that starts are counted there, too.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        match replace(directory, &text) {
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                overwrite(directory, &text).map_err(|_| error)
            }
            replaced => replaced,
        }
    }

    /// Changes the record, if `change` returns true.
    pub fn change(directory: &Path, change: impl FnOnce(&mut Self) -> bool) -> io::Result<()> {
        let _changing = changing();
        let mut record = Self::read(directory)?;
        if change(&mut record) { record.write(directory) } else { Ok(()) }
    }

    /// Remembers that a build did not work.
    pub fn fail(&mut self, build: Trial, reason: &str, blame: Blame) {
        FailedBuild::add(&mut self.failed, build, reason, blame);
    }

    /// Removes every file of the directory except the record and the build that was taken.
    pub fn tidy(&self, directory: &Path) {
        let taken = self.taken.as_ref().map(|taken| taken.sha256.as_str());
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name != FILE && taken.is_none_or(|taken| name != taken) {
                _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Puts a new file in the place of the record.
fn replace(directory: &Path, text: &[u8]) -> io::Result<()> {
    create(directory)?;
    let new = directory.join("state.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(new, directory.join(FILE))?;
    sync(directory)
}

/// Makes the record's file say `text`, if it differs in one byte only. That needs no room, and no crash leaves half of it.
fn overwrite(directory: &Path, text: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(directory.join(FILE))?;
    if file.metadata()?.len() != text.len() as u64 {
        return Err(io::Error::other("it has another length"));
    }
    let mut before = vec![0; text.len()];
    file.read_exact_at(&mut before, 0)?;
    let mut differing = before.iter().zip(text).zip(0..).filter(|((old, new), _)| old != new);
    let (Some(((_, byte), at)), None) = (differing.next(), differing.next()) else {
        return Err(io::Error::other("it does not differ in one byte"));
    };
    file.write_all_at(&[*byte], at)?;
    file.sync_all()
}

impl From<&Build> for Trial {
    fn from(build: &Build) -> Self {
        Self { version: build.version.to_string(), sha256: build.sha256.clone() }
    }
}

impl From<&Build> for Taken {
    fn from(build: &Build) -> Self {
        let Trial { version, sha256 } = build.into();
        Self { version, sha256, offer: build.offer.clone(), starts: 0 }
    }
}

impl From<&Taken> for Trial {
    fn from(taken: &Taken) -> Self {
        Self { version: taken.version.clone(), sha256: taken.sha256.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(number: usize) -> Trial {
        Trial { version: format!("1.0.{number}"), sha256: format!("{number:064x}") }
    }

    #[test]
    fn what_is_written_is_read_and_other_files_go() {
        let state = tempfile::tempdir().unwrap();
        let directory = directory(state.path());
        assert_eq!(Record::read(&directory).unwrap(), Record::default());
        let offer = UpdateOffer { release: "e30=".to_owned(), signature: "sig".to_owned() };
        let Trial { version, sha256 } = trial(1);
        let taken = Taken { version, sha256: sha256.clone(), offer, starts: 2 };
        let mut record = Record { taken: Some(taken), trial: Some(trial(2)), ..Record::default() };
        record.fail(trial(3), &"é".repeat(200), Blame::Unknown);

        record.write(&directory).unwrap();
        for name in [sha256.as_str(), "other", "state.new"] {
            fs::write(directory.join(name), "x").unwrap();
        }
        record.tidy(&directory);

        assert_eq!(Record::read(&directory).unwrap(), record);
        let mut names: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [sha256.as_str(), FILE]);
        assert_eq!(record.failed[0].reason.len(), MAX_REASON_BYTES);
    }

    #[test]
    fn on_a_full_disk_starts_are_counted_and_nothing_else_changes() {
        let state = tempfile::tempdir().unwrap();
        let directory = directory(state.path());
        let offer = UpdateOffer { release: "e30=".to_owned(), signature: "sig".to_owned() };
        let Trial { version, sha256 } = trial(1);
        let started = |starts| {
            let taken = Taken { version: version.clone(), sha256: sha256.clone(), offer: offer.clone(), starts };
            Record { taken: Some(taken), ..Record::default() }
        };
        started(0).write(&directory).unwrap();
        // Whatever is written there finds no space.
        std::os::unix::fs::symlink("/dev/full", directory.join("state.new")).unwrap();

        for starts in [1, 2, 3, 0] {
            started(starts).write(&directory).unwrap();
            assert_eq!(Record::read(&directory).unwrap(), started(starts));
        }
        let mut failed = started(0);
        failed.fail(trial(2), "broken", Blame::Build);
        let mut other = started(0);
        other.taken.as_mut().unwrap().version = "2.1.1".to_owned();
        for record in [failed, other] {
            assert_eq!(record.write(&directory).unwrap_err().kind(), ErrorKind::StorageFull);
        }

        assert_eq!(Record::read(&directory).unwrap(), started(0));
    }

    #[test]
    fn a_damaged_record_is_an_error() {
        let state = tempfile::tempdir().unwrap();
        for text in ["", "{", "{\"v\":2}", "{\"v\":1,\"taken\":{}}"] {
            fs::write(state.path().join(FILE), text).unwrap();
            assert!(Record::read(state.path()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_build_is_given_up_after_three_tries_or_when_it_is_to_blame() {
        let mut record = Record::default();
        let is_given_up = |record: &Record| record.failed.last().unwrap().is_given_up();

        let by_try: Vec<bool> = (0..4)
            .map(|_| {
                record.fail(trial(1), "away", Blame::Unknown);
                is_given_up(&record)
            })
            .collect();
        record.fail(trial(2), "broken", Blame::Build);

        assert_eq!(by_try, [false, false, true, true]);
        assert!(is_given_up(&record));
        let of_before = serde_json::json!({"version": "1.0.3", "sha256": "ab", "reason": "broken"});
        assert!(serde_json::from_value::<FailedBuild>(of_before).unwrap().is_given_up());
    }

    #[test]
    fn the_newest_failures_are_kept_once_each() {
        let mut record = Record::default();
        (0..20).for_each(|number| record.fail(trial(number), "broken", Blame::Build));
        record.fail(trial(19), "broken again", Blame::Build);

        assert_eq!(record.failed.len(), MAX_FAILED);
        assert_eq!(record.failed.last().unwrap().reason, "broken again");
        assert_eq!(record.failed.first().unwrap().version, "1.0.4");
    }
}
