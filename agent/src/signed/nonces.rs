//! The nonces of what was signed and has run, on the disk until they expire.
//!
//! One file of lines: a header, then a line for each nonce, each with a checksum. A line is synced before what it permits may
//! run. So a line that a power cut truncated permitted nothing, and counts as not written.
//!
//! No clock decides alone whether something is a replay. When nonces are forgotten because they have expired, the latest of
//! their times stays in the header, and whatever expires until then is refused, also after the clock was set back. When the
//! file is lost or damaged, a new one begins with the present time, and whatever was valid before then is refused.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use signalbox_protocol::Timestamp;
use uuid::Uuid;

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

/// All nonces.
#[derive(Debug)]
pub struct Nonces {
    directory: PathBuf,
    started_at: Timestamp,
    /// None until the file could be read, and after a write failed.
    loaded: Option<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    file: File,
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
    /// Does not read the file yet.
    pub fn new(directory: PathBuf, started_at: Timestamp) -> Self {
        Self { directory, started_at, loaded: None }
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
        // Taken out, so that after a failure it is read again: what is on the disk is then uncertain.
        let mut loaded = match self.loaded.take() {
            Some(loaded) => loaded,
            None => Loaded::open(&self.directory, self.started_at)?,
        };
        let outcome = loaded.record.expect_new(nonce, not_before, expires_at);
        if outcome.is_err() {
            self.loaded = Some(loaded);
            return outcome;
        }
        if loaded.record.used.len() >= MAX_NONCES || loaded.stale + loaded.record.expired(now) > MAX_STALE {
            loaded = loaded.without_expired(&self.directory, now)?;
        }
        if loaded.record.used.len() >= MAX_NONCES {
            return Err(io::Error::other("too many signatures are still valid").into());
        }
        loaded.append(nonce, Used { id, expires_at })?;
        self.loaded = Some(loaded);
        Ok(())
    }
}

impl Loaded {
    fn open(directory: &Path, now: Timestamp) -> io::Result<Self> {
        let path = directory.join(FILE);
        let found = match read(&path) {
            Ok(found) => found,
            Err(RecordError::Missing(_)) => Found { record: Record::since(now), is_whole: false },
            Err(RecordError::Damaged(path)) => {
                tracing::error!(
                    path = %path.display(),
                    "the record of signed commands is damaged: what was signed until now is refused from now on"
                );
                Found { record: Record::since(now), is_whole: false }
            }
            Err(RecordError::Io { source, .. }) => return Err(source),
        };
        let Found { record, is_whole } = found;
        let file = if is_whole { append_to(&path)? } else { write(directory, &record)? };
        Ok(Self { file, record, stale: 0 })
    }

    fn append(&mut self, nonce: &str, used: Used) -> io::Result<()> {
        self.file.write_all(line_of(nonce, used).as_bytes())?;
        self.file.sync_data()?;
        self.record.used.insert(nonce.to_owned(), used);
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
        let file = write(directory, &record)?;
        Ok(Self { file, record, stale: 0 })
    }
}

impl Record {
    /// Reads the record of an agent that may be running: it is neither locked nor changed.
    pub fn read(directory: &Path) -> Result<Self, RecordError> {
        read(&directory.join(FILE)).map(|found| found.record)
    }

    fn since(now: Timestamp) -> Self {
        let header = Header { kept_since: now, forgotten_until: Timestamp::from_millis(0) };
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
mod tests {
    use super::*;

    const NONCE: &str = "0123456789abcdef0123456789abcdef";
    const ID: Uuid = Uuid::from_u128(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000_000 + seconds * 1_000)
    }

    fn open(directory: &Path, now: i64) -> Nonces {
        Nonces::new(directory.to_owned(), at(now))
    }

    fn used(nonces: &mut Nonces, nonce: &str, not_before: i64, expires_at: i64, now: i64) -> &'static str {
        match nonces.use_once(nonce, at(not_before), at(expires_at), ID, at(now)) {
            Ok(()) => "used",
            Err(UseError::Replayed(_)) => "replayed",
            Err(UseError::Expired(_)) => "expired",
            Err(UseError::Io(_)) => "failed",
        }
    }

    #[test]
    fn a_nonce_is_used_once_across_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let mut nonces = open(directory.path(), 0);

        assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "used");
        assert_eq!(used(&mut nonces, NONCE, 1, 100, 3), "replayed");
        for restart in 0..5 {
            let mut again = open(directory.path(), 10 + restart);
            assert_eq!(used(&mut again, NONCE, 1, 100, 10 + restart), "replayed");
            assert_eq!(used(&mut again, &format!("{NONCE}{restart}"), 1, 100, 10 + restart), "used");
        }
    }

    #[test]
    fn a_forgotten_nonce_is_not_usable_when_the_clock_goes_back() {
        let directory = tempfile::tempdir().unwrap();
        let mut nonces = open(directory.path(), 0);
        for number in 0..=MAX_STALE {
            assert_eq!(used(&mut nonces, &format!("{NONCE}{number}"), 1, 100, 2), "used");
        }

        // The clock jumps a day, everything is forgotten, and the clock goes back.
        assert_eq!(used(&mut nonces, "later-later-later-later", 86_400, 86_500, 86_450), "used");
        assert_eq!(nonces.loaded.as_ref().unwrap().record.used.len(), 1);
        let mut again = open(directory.path(), 2);

        for nonces in [&mut nonces, &mut again] {
            assert_eq!(used(nonces, &format!("{NONCE}7"), 1, 100, 2), "expired");
            assert_eq!(used(nonces, "later-later-later-later", 86_400, 86_500, 86_450), "replayed");
        }
    }

    #[test]
    fn a_lost_or_damaged_file_makes_everything_older_unusable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        assert_eq!(used(&mut open(directory.path(), 0), NONCE, 1, 100, 2), "used");
        let whole = fs::read(&path).unwrap();
        let head = whole.iter().position(|byte| *byte == b'\n').unwrap();

        for bit in 0..head * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, damaged).unwrap();
            assert_eq!(used(&mut open(directory.path(), 50), NONCE, 1, 100, 51), "expired", "bit {bit}");
        }
        // So is the last line, if all of it is there.
        for bit in head * 8 + 8..(whole.len() - 1) * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, damaged).unwrap();
            assert_eq!(used(&mut open(directory.path(), 50), NONCE, 1, 100, 51), "expired", "bit {bit}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(used(&mut open(directory.path(), 50), NONCE, 1, 100, 51), "expired");
        assert_eq!(used(&mut open(directory.path(), 50), "another-another-another", 50, 100, 51), "used");
    }

    #[test]
    fn a_truncated_last_line_counts_as_not_written_and_all_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let mut nonces = open(directory.path(), 0);
        assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "used");
        let first = fs::read(&path).unwrap().len();
        let second = "fedcba9876543210fedcba9876543210";
        assert_eq!(used(&mut nonces, second, 1, 100, 2), "used");
        let whole = fs::read(&path).unwrap();

        for length in first..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let mut again = open(directory.path(), 3);
            assert_eq!(used(&mut again, NONCE, 1, 100, 3), "replayed", "cut at {length}");
            assert_eq!(used(&mut again, second, 1, 100, 3), "used", "cut at {length}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused_and_works_again_later() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let mut nonces = open(&missing, 0);

        assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "failed");
        fs::create_dir(&missing).unwrap();
        assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "used");
        nonces.loaded.as_mut().unwrap().file = File::open(missing.join(FILE)).unwrap();
        assert_eq!(used(&mut nonces, "another-another-another", 1, 100, 2), "failed");
        assert_eq!(used(&mut nonces, "another-another-another", 1, 100, 2), "used");
        assert_eq!(used(&mut nonces, NONCE, 1, 100, 2), "replayed");
    }
}
