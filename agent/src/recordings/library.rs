//! The files: one recording each, and beside it, once it has ended, what is known of it.
//!
//! A recording without that was being written when the agent was killed. The next start ends it after its last whole line. The
//! hash of a recording that ended in an orderly way is that of what the agent wrote, whatever the file contains by then.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use signalbox_protocol::agent::{MAX_RECORDING_PIECE, RecordingPiece, RecordingsListed, TerminalRecorded};
use uuid::Uuid;

use super::RecordError;
use super::cast::{Event, Header};
use super::reports::Reports;
use super::unfinished::end_unfinished;
use crate::config::RecordingLimits;
use crate::state::{close_to_others, open_regular};
use crate::text::hex;

/// Recordings that are being written, and those that have ended.
pub struct Library {
    dir: PathBuf,
    limits: RecordingLimits,
    open: HashMap<Uuid, Open>,
    /// Oldest first.
    ended: Vec<Ended>,
    reports: Reports,
}

/// A recording that is being written.
struct Open {
    file: File,
    header: Header,
    hash: Context,
    /// The length of all whole lines.
    bytes: u64,
    /// The time of the last event.
    seconds: f64,
    /// Whether something is in the file that is not part of it.
    is_damaged: bool,
}

/// What is known of a recording that has ended, as it stands in its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Ended {
    #[serde(flatten)]
    recorded: TerminalRecorded,
    /// Whether the service has noted it.
    #[serde(default)]
    is_noted: bool,
}

impl Library {
    /// Creates the directory, and ends what an agent that was killed left.
    pub fn open(state: &Path, limits: RecordingLimits, reports: Reports) -> io::Result<Self> {
        let dir = state.join("recordings");
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        close_to_others(&dir);
        let mut library = Self { dir, limits, open: HashMap::new(), ended: Vec::new(), reports };
        library.load()?;
        Ok(library)
    }

    fn load(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let id = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| Uuid::parse_str(stem).ok());
            if let (Some(id), Some("cast")) = (id, path.extension().and_then(|extension| extension.to_str())) {
                let found = self.known(id).or_else(|| self.end_left(id));
                self.ended.extend(found);
            }
        }
        self.ended.sort_by_key(Ended::age);
        for ended in self.ended.iter().filter(|ended| !ended.is_noted) {
            self.reports.add(ended.recorded.clone());
        }
        self.make_room(0);
        Ok(())
    }

    /// What its file says of a recording.
    fn known(&self, id: Uuid) -> Option<Ended> {
        let ended: Ended = serde_json::from_slice(&fs::read(self.about(id)).ok()?).ok()?;
        (ended.recorded.stream_id == id && ended.recorded.is_sound()).then_some(ended)
    }

    /// Ends a recording that was being written when the agent was killed.
    fn end_left(&self, id: Uuid) -> Option<Ended> {
        match end_unfinished(&self.cast(id), id, self.limits.one_bytes) {
            Ok(Some(recorded)) => {
                tracing::warn!(stream.id = %id, "ended the recording of a terminal that was cut off");
                let ended = Ended { recorded, is_noted: false };
                self.write_about(&ended);
                Some(ended)
            }
            Ok(None) => {
                tracing::warn!(stream.id = %id, "removes a recording that says nothing");
                self.remove_files(id);
                None
            }
            Err(error) => {
                tracing::warn!(stream.id = %id, %error, "cannot read a recording");
                None
            }
        }
    }

    /// Begins a recording, for which there is room up to its largest size from then on.
    pub fn begin(&mut self, id: Uuid, header: Header) -> Result<(), RecordError> {
        if self.open.contains_key(&id) || self.ended.iter().any(|ended| ended.recorded.stream_id == id) {
            return Err(RecordError::Exists);
        }
        let line = header.line().map_err(io::Error::other)?;
        self.make_room(1);
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(self.cast(id))?;
        if let Err(error) = file.write_all(line.as_bytes()) {
            self.remove_files(id);
            return Err(error.into());
        }
        let mut hash = Context::new(&SHA256);
        hash.update(line.as_bytes());
        let open = Open { file, header, hash, bytes: line.len() as u64, seconds: 0.0, is_damaged: false };
        self.open.insert(id, open);
        Ok(())
    }

    /// Adds an event to a recording. After an error it has what it had before.
    pub fn add(&mut self, id: Uuid, seconds: f64, event: Event<'_>) -> Result<(), RecordError> {
        let open = self.open.get_mut(&id).ok_or(RecordError::Stopped)?;
        let line = event.line(seconds).map_err(io::Error::other)?;
        if open.is_damaged {
            return Err(RecordError::Stopped);
        }
        if open.bytes + line.len() as u64 > self.limits.one_bytes {
            return Err(RecordError::TooLong(self.limits.one_bytes));
        }
        if let Err(error) = open.file.write_all(line.as_bytes()) {
            open.is_damaged = open.file.set_len(open.bytes).is_err();
            return Err(error.into());
        }
        open.hash.update(line.as_bytes());
        open.bytes += line.len() as u64;
        open.seconds = seconds;
        Ok(())
    }

    /// Ends a recording, and reports it to the service.
    pub fn end(&mut self, id: Uuid) {
        let Some(open) = self.open.remove(&id) else { return };
        // Otherwise a power cut could take what the hash is of.
        if let Err(error) = open.file.sync_all() {
            tracing::warn!(stream.id = %id, %error, "cannot sync a recording to the disk");
        }
        if open.is_damaged {
            // The next start of the agent removes the end of it.
            return;
        }
        let Header { size, started_at, by } = open.header;
        let recorded = TerminalRecorded {
            stream_id: id,
            by,
            started_at,
            seconds: open.seconds,
            bytes: open.bytes,
            sha256: hex(open.hash.finish().as_ref()),
            columns: size.columns,
            rows: size.rows,
            interrupted: false,
        };
        let ended = Ended { recorded, is_noted: false };
        self.write_about(&ended);
        self.reports.add(ended.recorded.clone());
        let place = self.ended.partition_point(|other| other.age() <= ended.age());
        self.ended.insert(place, ended);
    }

    /// Ends all of them.
    pub fn end_all(&mut self) {
        let ids: Vec<Uuid> = self.open.keys().copied().collect();
        ids.into_iter().for_each(|id| self.end(id));
    }

    /// Keeps in mind that the service has noted a recording.
    pub fn note(&mut self, id: Uuid) {
        if let Some(ended) = self.ended.iter_mut().find(|ended| ended.recorded.stream_id == id) {
            ended.is_noted = true;
            let ended = ended.clone();
            self.write_about(&ended);
        }
    }

    /// Those that have ended, newest first. Those whose file somebody has removed are left out from then on.
    pub fn list(&mut self, offset: u64, limit: u32) -> RecordingsListed {
        let dir = self.dir.clone();
        self.ended.retain(|ended| cast_of(&dir, ended.recorded.stream_id).symlink_metadata().is_ok());
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let newest = self.ended.iter().rev().skip(offset).take(limit as usize);
        let recordings = newest.map(|ended| ended.recorded.clone()).collect();
        RecordingsListed { recordings, total: self.ended.len() as u64 }
    }

    /// The piece of a recording that begins there, as the file is now.
    pub fn read(&self, id: Uuid, offset: u64) -> Result<RecordingPiece, RecordError> {
        if !self.ended.iter().any(|ended| ended.recorded.stream_id == id) {
            return Err(RecordError::Unknown);
        }
        let mut file = open_regular(&self.cast(id)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => RecordError::Unknown,
            _ => error.into(),
        })?;
        let bytes = file.metadata()?.len();
        file.seek(SeekFrom::Start(offset))?;
        let mut piece = Vec::new();
        file.take(MAX_RECORDING_PIECE as u64).read_to_end(&mut piece)?;
        // A character that the piece cuts begins the next one.
        let whole = match std::str::from_utf8(&piece) {
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
            Ok(_) | Err(_) => piece.len(),
        };
        piece.truncate(whole);
        let data = String::from_utf8(piece).map_err(io::Error::other)?;
        Ok(RecordingPiece { data, bytes })
    }

    /// Removes the oldest until so many new ones can grow to their largest size. Those that are being written stay.
    fn make_room(&mut self, new: u64) {
        let growing = self.open.len() as u64 + new;
        let reserved = growing.saturating_mul(self.limits.one_bytes);
        let mut kept: u64 = self.ended.iter().map(|ended| ended.recorded.bytes).sum();
        let (mut removed, mut count) = (0, self.ended.len() as u64);
        for ended in &self.ended {
            let is_room = kept.saturating_add(reserved) <= self.limits.all_bytes;
            if is_room && count + growing <= self.limits.count as u64 {
                break;
            }
            kept = kept.saturating_sub(ended.recorded.bytes);
            count -= 1;
            removed += 1;
        }
        for ended in self.ended.drain(..removed).collect::<Vec<_>>() {
            let id = ended.recorded.stream_id;
            tracing::info!(stream.id = %id, "removes the oldest recording, because there are as many as may be");
            self.remove_files(id);
        }
    }

    fn remove_files(&self, id: Uuid) {
        for path in [self.cast(id), self.about(id)] {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(stream.id = %id, %error, "cannot remove a recording");
            }
        }
    }

    /// Writes what is known of a recording. If that fails, the next start finds it out again.
    fn write_about(&self, ended: &Ended) {
        let id = ended.recorded.stream_id;
        let written = serde_json::to_vec(ended).map_err(io::Error::other).and_then(|text| {
            let path = self.about(id);
            let new = path.with_extension("new");
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(new, path)
        });
        if let Err(error) = written {
            tracing::warn!(stream.id = %id, %error, "cannot write down what is known of a recording");
        }
    }

    fn cast(&self, id: Uuid) -> PathBuf {
        cast_of(&self.dir, id)
    }

    fn about(&self, id: Uuid) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }
}

impl Ended {
    /// What orders recordings by age.
    fn age(&self) -> (i64, Uuid) {
        (self.recorded.started_at.as_millis(), self.recorded.stream_id)
    }
}

fn cast_of(dir: &Path, id: Uuid) -> PathBuf {
    dir.join(format!("{id}.cast"))
}
