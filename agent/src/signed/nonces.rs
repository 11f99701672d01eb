//! The nonces of what was signed and has run, on the disk until they expire.
//!
//! One file of lines: a header, then a line for each nonce, each with a checksum. A line is synced before what it permits may
//! run. So a line that a power cut truncated permitted nothing, and counts as not written.
//!
//! No clock decides alone whether something is a replay. When nonces are forgotten because they have expired, the latest of
//! their times stays in the header, and whatever expires until then is refused, also after the clock was set back. When the
//! file is lost or damaged, a new one begins with the agent's start, and whatever was valid before then is refused. It is
//! written together with its first nonce.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::state::StateDir;

/// The file within the state directory, and its next version while it is written.
const FILE: &str = "signed-nonces";
const NEXT_FILE: &str = "signed-nonces.new";
/// Larger files are not ours.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The most nonces; more are refused until some expire. Only signers can make one.
const MAX_NONCES: usize = 100_000;
/// How many lines may be of forgotten nonces before the file is written again.
const MAX_STALE: usize = 1_000;

/// Why a nonce was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum UseError {
    #[error("{0}")]
    Replayed(String),
    #[error("{0}")]
    Expired(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why it is not known what has run.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("there is no {}", .0.display())]
    Missing(PathBuf),
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// When the agent started.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    at: Timestamp,
    instant: Instant,
}

impl Start {
    pub fn now() -> Self {
        Self { at: Timestamp::now(), instant: Instant::now() }
    }

    /// The time of the start by a clock that shows `now`: at the start it may have been behind.
    fn by(self, now: Timestamp) -> Timestamp {
        let elapsed = i64::try_from(self.instant.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.at.max(now.plus_millis(-elapsed))
    }
}

/// All nonces.
#[derive(Debug)]
pub struct Nonces {
    directory: PathBuf,
    start: Start,
    /// None until the file could be read, and after a write failed.
    loaded: Option<Loaded>,
    /// Claimed before each use, and held while the directory is used. None for a directory of a test.
    state: Option<StateDir>,
    /// The disk of a test, which takes until the test says that the next line is written.
    #[cfg(test)]
    pub slow_disk: Option<std::sync::mpsc::Receiver<()>>,
}

#[derive(Debug)]
struct Loaded {
    /// None of a new record, until it has its first nonce.
    file: Option<File>,
    record: Record,
    stale: usize,
}

/// What the file says.
#[derive(Debug)]
pub struct Record {
    header: Header,
    used: HashMap<String, Used>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    /// Nonces are known from this time on.
    kept_since: Timestamp,
    /// The latest expiry of a nonce that was forgotten.
    forgotten_until: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Used {
    id: Uuid,
    expires_at: Timestamp,
}

impl Nonces {
    /// Claims the directory, and does not read the file yet. Where the directory cannot be used, each use tries again.
    pub fn claiming(state: StateDir, start: Start) -> Self {
        _ = state.claim();
        Self::new(state.path().to_owned(), Some(state), start)
    }

    fn new(directory: PathBuf, state: Option<StateDir>, start: Start) -> Self {
        Self {
            directory,
            start,
            loaded: None,
            state,
            #[cfg(test)]
            slow_disk: None,
        }
    }

    /// Records a nonce, or says why it cannot be used. It is on the disk when this returns.
    pub fn use_once(
        &mut self,
        nonce: &str,
        not_before: Timestamp,
        expires_at: Timestamp,
        id: Uuid,
        now: Timestamp,
    ) -> Result<(), UseError> {
        if let Some(state) = &self.state {
            state.claim().map_err(io::Error::other)?;
        }
        // Taken out, so that after a failure it is read again: what is on the disk is then uncertain.
        let mut loaded = match self.loaded.take() {
            Some(loaded) => loaded,
            None => Loaded::open(&self.directory, self.start.by(now))?,
        };
        let outcome = loaded.record.expect_new(nonce, not_before, expires_at);
        if outcome.is_err() {
            // A refused order begins no record: the clock may be behind now, and right when the next order comes.
            self.loaded = loaded.file.is_some().then_some(loaded);
            return outcome;
        }
        if loaded.record.used.len() >= MAX_NONCES || loaded.stale + loaded.record.expired(now) > MAX_STALE {
            loaded = loaded.without_expired(&self.directory, now)?;
        }
        if loaded.record.used.len() >= MAX_NONCES {
            return Err(io::Error::other("too many signatures are still valid").into());
        }
        loaded.append(&self.directory, nonce, Used { id, expires_at })?;
        self.loaded = Some(loaded);
        #[cfg(test)]
        if let Some(written) = self.slow_disk.take() {
            _ = written.recv();
        }
        Ok(())
    }

    /// Makes a nonce usable again with which nothing has run. After an error it counts as used if it is still on the disk.
    pub fn take_back(&mut self, nonce: &str) -> io::Result<()> {
        let Some(mut loaded) = self.loaded.take() else { return Ok(()) };
        loaded.record.used.remove(nonce);
        loaded.file = Some(write(&self.directory, &loaded.record)?);
        self.loaded = Some(loaded);
        Ok(())
    }
}

impl Loaded {
    fn open(directory: &Path, started_at: Timestamp) -> io::Result<Self> {
        let path = directory.join(FILE);
        let (record, file) = match read(&path) {
            Ok(Found { record, is_whole: true }) => (record, Some(append_to(&path)?)),
            Ok(Found { record, is_whole: false }) => {
                let file = write(directory, &record)?;
                (record, Some(file))
            }
            Err(RecordError::Missing(_)) => (Record::since(started_at), None),
            Err(RecordError::Damaged(path)) => {
                tracing::error!(
                    path = %path.display(),
                    "the record of signed commands is damaged: what was signed until now is refused from now on"
                );
                (Record::since(started_at), None)
            }
            Err(RecordError::Io { source, .. }) => return Err(source),
        };
        Ok(Self { file, record, stale: 0 })
    }

    fn append(&mut self, directory: &Path, nonce: &str, used: Used) -> io::Result<()> {
        self.record.used.insert(nonce.to_owned(), used);
        match &mut self.file {
            Some(file) => {
                file.write_all(line_of(nonce, used).as_bytes())?;
                file.sync_data()?;
            }
            None => self.file = Some(write(directory, &self.record)?),
        }
        Ok(())
    }

    /// Writes a new file without the nonces that have expired.
    fn without_expired(self, directory: &Path, now: Timestamp) -> io::Result<Self> {
        let Self { mut record, .. } = self;
        let Record { header, used } = &mut record;
        used.retain(|_, used| {
            let is_valid = used.expires_at > now;
            if !is_valid {
                header.forgotten_until = header.forgotten_until.max(used.expires_at);
            }
            is_valid
        });
        let file = Some(write(directory, &record)?);
        Ok(Self { file, record, stale: 0 })
    }
}

impl Record {
    /// Reads the record of an agent that may be running: it is neither locked nor changed.
    pub fn read(directory: &Path) -> Result<Self, RecordError> {
        read(&directory.join(FILE)).map(|found| found.record)
    }

    fn since(kept_since: Timestamp) -> Self {
        let header = Header { kept_since, forgotten_until: Timestamp::from_millis(0) };
        Self { header, used: HashMap::new() }
    }

    /// Whether a nonce can still be used, or why not.
    pub fn expect_new(&self, nonce: &str, not_before: Timestamp, expires_at: Timestamp) -> Result<(), UseError> {
        if let Some(Used { id, .. }) = self.used.get(nonce) {
            tracing::warn!(job.id = %id, "refuses what was signed and has run already");
            return Err(UseError::Replayed("what was signed has run already: sign it again".to_owned()));
        }
        let Header { kept_since, forgotten_until } = self.header;
        if expires_at <= forgotten_until {
            let detail =
                format!("this server has forgotten what was signed to hold until {forgotten_until}: sign it again");
            return Err(UseError::Expired(detail));
        }
        if not_before < kept_since {
            let detail = format!(
                "this server knows only since {kept_since} what has run, and this holds from {not_before} on: sign it again"
            );
            return Err(UseError::Expired(detail));
        }
        Ok(())
    }

    fn expired(&self, now: Timestamp) -> usize {
        self.used.values().filter(|used| used.expires_at <= now).count()
    }
}

/// What was read.
struct Found {
    record: Record,
    /// Whether nothing else is in the file.
    is_whole: bool,
}

fn read(path: &Path) -> Result<Found, RecordError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => RecordError::Missing(path.to_owned()),
        _ => RecordError::Io { path: path.to_owned(), source },
    };
    // Opening something else, such as a pipe, could wait for ever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let mut text = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_FILE_BYTES).read_to_end(&mut text).map_err(failed)?;
    parse(&text).ok_or_else(|| RecordError::Damaged(path.to_owned()))
}

fn parse(bytes: &[u8]) -> Option<Found> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, rest) = text.split_once('\n')?;
    let header = checked(head).and_then(header_of)?;
    let mut used = HashMap::new();
    let mut lines = rest.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let parsed = line.strip_suffix('\n').and_then(checked).and_then(used_of);
        match parsed {
            Some((nonce, at)) => _ = used.insert(nonce, at),
            // Truncated while it was written, so nothing has run with it.
            None if lines.peek().is_none() && !line.ends_with('\n') => {
                return Some(Found { record: Record { header, used }, is_whole: false });
            }
            None => return None,
        }
    }
    Some(Found { record: Record { header, used }, is_whole: true })
}

fn header_of(text: &str) -> Option<Header> {
    let mut words = text.strip_prefix("signalbox-nonces 1 ")?.split(' ');
    let mut time = || words.next()?.parse().ok().map(Timestamp::from_millis);
    Some(Header { kept_since: time()?, forgotten_until: time()? })
}

fn used_of(text: &str) -> Option<(String, Used)> {
    let mut words = text.split(' ');
    let expires_at = Timestamp::from_millis(words.next()?.parse().ok()?);
    let (id, nonce) = (words.next()?.parse().ok()?, words.next()?);
    words.next().is_none().then(|| (nonce.to_owned(), Used { id, expires_at }))
}

fn line_of(nonce: &str, Used { id, expires_at }: Used) -> String {
    with_checksum(&format!("{} {id} {nonce}", expires_at.as_millis()))
}

fn with_checksum(text: &str) -> String {
    format!("{} {text}\n", checksum_of(text))
}

fn checksum_of(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

/// The text of a line whose checksum is right.
fn checked(line: &str) -> Option<&str> {
    let (checksum, text) = line.split_once(' ')?;
    (checksum == checksum_of(text)).then_some(text)
}

/// Replaces the file as a whole, and returns it open for more.
fn write(directory: &Path, record: &Record) -> io::Result<File> {
    let next = directory.join(NEXT_FILE);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
    let Record { header: Header { kept_since, forgotten_until }, used } = record;
    let (kept_since, forgotten_until) = (kept_since.as_millis(), forgotten_until.as_millis());
    let mut text = with_checksum(&format!("signalbox-nonces 1 {kept_since} {forgotten_until}"));
    used.iter().for_each(|(nonce, used)| text.push_str(&line_of(nonce, *used)));
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let path = directory.join(FILE);
    fs::rename(&next, &path)?;
    File::open(directory)?.sync_all()?;
    append_to(&path)
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

#[cfg(test)]
#[path = "nonces_tests.rs"]
mod tests;
