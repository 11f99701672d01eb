//! One file of the buffer: a head with the number of its first sample, and the records after it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::record::{self, Kind};

const EXTENSION: &str = "samples";
/// Format and version of new files: since version 2 a file describes the open series of its samples.
const MAGIC: &[u8; 8] = b"SBSAMP02";
/// Version 1, whose samples have no open series. Files of any other version are ignored.
const MAGIC_V1: &[u8; 8] = b"SBSAMP01";
/// What the magic of every version begins with; two digits follow.
const FORMAT: &[u8] = b"SBSAMP";
/// Magic, first number, acknowledged number, checksum.
const HEAD_BYTES: usize = 28;

/// A file without its contents. Its samples are numbered without gaps from `first`.
#[derive(Debug)]
pub struct Segment {
    pub path: PathBuf,
    pub first: u64,
    /// How many samples it has.
    pub count: u64,
    /// The length of the head and all whole records.
    pub bytes: u64,
}

/// What a file of an earlier run says.
#[derive(Debug)]
pub struct Scan {
    pub segment: Segment,
    /// The highest acknowledged number.
    pub acked: u64,
    /// How many samples that run kept, if the file says so.
    pub limit: Option<u64>,
}

impl Segment {
    /// The number after its last sample.
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// How many of its samples come after number `seq`.
    pub fn count_after(&self, seq: u64) -> u64 {
        self.end().saturating_sub(self.first.max(seq + 1))
    }

    /// Creates an empty file for samples from `first` on, and opens it to append.
    pub fn create(dir: &Path, first: u64, acked: u64) -> io::Result<(Self, File)> {
        let path = dir.join(format!("{first:020}.{EXTENSION}"));
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        // A file of this name is left over from a creation that failed half-way.
        file.set_len(0)?;
        if let Err(error) = file.write_all(&head(MAGIC, first, acked)) {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok((Self { path, first, count: 0, bytes: HEAD_BYTES as u64 }, file))
    }

    /// Reads a file of an earlier run up to its end, or to where a kill truncated it. After an error that
    /// [is damage](record::is_damage) there is nothing to keep; after any other it must stay.
    pub fn scan(path: PathBuf) -> io::Result<Scan> {
        let mut reader = BufReader::new(File::open(&path)?);
        let (first, mut acked) = read_head(&mut reader)?;
        let mut segment = Self { path, first, count: 0, bytes: HEAD_BYTES as u64 };
        let (mut limit, mut payload) = (None, Vec::new());
        loop {
            match record::read(&mut reader, &mut payload) {
                Ok(Some(Kind::Sample)) => segment.count += 1,
                Ok(Some(Kind::Ack)) => acked = acked.max(number_in(&payload).unwrap_or_default()),
                Ok(Some(Kind::Limit)) => limit = number_in(&payload).or(limit),
                Ok(Some(Kind::Series | Kind::Unknown(_))) => {}
                Ok(None) => break,
                Err(error) if record::is_damage(&error) => {
                    tracing::warn!(%error, path = %segment.path.display(), "the buffer's file ends early");
                    break;
                }
                Err(error) => return Err(error),
            }
            segment.bytes += record::length(payload.len()) as u64;
        }
        Ok(Scan { segment, acked, limit })
    }

    /// The first number of the file at this path, as [`Segment::create`] names it.
    pub fn first_by_name(path: &Path) -> Option<u64> {
        path.file_stem()?.to_str()?.parse().ok()
    }

    /// Opens the file at its first record.
    pub fn open(&self) -> io::Result<BufReader<File>> {
        let mut reader = BufReader::new(File::open(&self.path)?);
        read_head(&mut reader)?;
        Ok(reader)
    }

    /// The paths of all segments in `dir`, oldest first.
    pub fn paths(dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }
}

fn head(magic: &[u8; 8], first: u64, acked: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    head.extend_from_slice(magic);
    head.extend_from_slice(&first.to_le_bytes());
    head.extend_from_slice(&acked.to_le_bytes());
    head.extend_from_slice(&crc32fast::hash(&head).to_le_bytes());
    head
}

/// Returns first number and acknowledged number.
pub(crate) fn read_head(reader: &mut impl Read) -> io::Result<(u64, u64)> {
    let mut bytes = [0_u8; HEAD_BYTES];
    let (magic, numbers) = bytes.split_at_mut(MAGIC.len());
    reader.read_exact(magic)?;
    if is_of_another_version(magic) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a file of another version's buffer"));
    }
    reader.read_exact(numbers)?;
    let number = |from: usize| {
        let slice = bytes.get(from..from + 8).and_then(|slice| slice.try_into().ok());
        slice.map(u64::from_le_bytes).unwrap_or_default()
    };
    let (first, acked) = (number(8), number(16));
    if [MAGIC, MAGIC_V1].iter().any(|magic| head(magic, first, acked) == bytes) {
        Ok((first, acked))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "not a file of the buffer"))
    }
}

/// Whether a magic is that of a version which this agent cannot read, for example after a return to an older build.
fn is_of_another_version(magic: &[u8]) -> bool {
    let is_known = [MAGIC, MAGIC_V1].iter().any(|known| magic == known.as_slice());
    let version = magic.strip_prefix(FORMAT);
    !is_known && version.is_some_and(|version| version.iter().all(u8::is_ascii_digit))
}

fn number_in(payload: &[u8]) -> Option<u64> {
    payload.try_into().ok().map(u64::from_le_bytes)
}
