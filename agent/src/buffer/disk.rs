//! The samples in files: a sequence of segments, appended to at one end and removed at the other.
//!
//! Nothing is synced to the disk explicitly: what was written survives a kill of the agent, not a power cut, and the server is
//! spared a flush every five seconds. Memory holds only the segments' bounds and one open reader.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::PathBuf;

use super::Batch;
use super::record::{self, Kind};
use super::segment::Segment;
use super::series::{self, SeriesIds};
use crate::catalog::Catalog;
use crate::config::BufferLimits;
use crate::state::{OpenError, StateDir, close_to_others};
use crate::wire;

/// From this size on a file whose samples are all acknowledged is replaced by an empty one. It is so small that a connected
/// agent's file stays in a few pages, and so large that new files are rare. Descriptions do not count, because the next file
/// needs them again.
const ROTATE_ACKED_BYTES: u64 = 64 * 1024;

#[derive(Debug)]
pub struct DiskLog {
    dir: PathBuf,
    limits: BufferLimits,
    /// Oldest first. The last one is being written.
    segments: VecDeque<Segment>,
    /// None after a failed write: the next sample goes to a new segment.
    writer: Option<File>,
    catalog: Catalog,
    /// The ids that the file being written has descriptions of.
    described: BTreeSet<u16>,
    /// Bytes of that file's descriptions.
    description_bytes: u64,
    reader: Option<Reader>,
    scratch: Vec<u8>,
    /// Held while the directory is used.
    _state: StateDir,
}

/// The position in a segment from which the next sample is read.
#[derive(Debug)]
struct Reader {
    segment: u64,
    next: u64,
    file: BufReader<File>,
    /// The meaning of the file's ids, as far as it was read.
    ids: SeriesIds,
}

impl DiskLog {
    /// Opens the directory, with what earlier runs left in it. Also returns the highest acknowledged number.
    pub fn open(state: StateDir, limits: BufferLimits, catalog: Catalog) -> Result<(Self, u64), OpenError> {
        let dir = state.claim()?.to_owned();
        let (mut segments, mut acked) = (VecDeque::new(), 0);
        for path in Segment::paths(&dir)? {
            close_to_others(&path);
            match Segment::scan(path.clone()) {
                Ok((segment, number)) => {
                    acked = acked.max(number);
                    segments.push_back(segment);
                }
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "removing an unreadable file of the buffer");
                    let _ = fs::remove_file(path);
                }
            }
        }
        let mut log = Self {
            dir,
            limits,
            segments,
            writer: None,
            catalog,
            described: BTreeSet::new(),
            description_bytes: 0,
            reader: None,
            scratch: Vec::new(),
            _state: state,
        };
        log.remove_up_to(acked);
        Ok((log, acked))
    }

    /// The number after the last sample; 0 when there is none.
    pub fn end(&self) -> u64 {
        self.segments.back().map_or(0, Segment::end)
    }

    /// How many samples come after number `seq`.
    pub fn count_after(&self, seq: u64) -> u64 {
        self.segments.iter().map(|segment| segment.count_after(seq)).sum()
    }

    /// Adds those samples that the disk does not have yet: a disk that hung may have written some after all. Returns how many
    /// of the oldest had to make room.
    pub fn append_new(&mut self, acked: u64, samples: &[(u64, Box<[u8]>)]) -> io::Result<u64> {
        let mut dropped = 0;
        for (seq, sample) in samples {
            if *seq >= self.end() {
                dropped += self.append(*seq, acked, sample)?;
            }
        }
        Ok(dropped)
    }

    /// Adds a sample. Returns how many of the oldest, not counting acknowledged ones, had to make room for it.
    fn append(&mut self, seq: u64, acked: u64, sample: &[u8]) -> io::Result<u64> {
        let full = self.segments.back().is_none_or(|last| last.bytes >= self.limits.segment_bytes);
        if full || self.writer.is_none() || self.end() != seq {
            self.start_segment(seq, acked)?;
        }
        self.describe(sample)?;
        self.write(Kind::Sample, sample)?;
        if let Some(last) = self.segments.back_mut() {
            last.count += 1;
        }
        Ok(self.make_room(acked))
    }

    /// Stores at least this many samples, within [`BufferLimits::disk_bytes_at_most`].
    pub fn keep_samples(&mut self, count: u64) {
        self.limits.disk_samples = count;
    }

    /// The next samples after number `after` up to `until`, and how many were lost with unreadable files.
    pub fn read_past_damage(&mut self, after: u64, until: u64) -> (Batch, u64) {
        let (mut batch, mut lost) = (Batch::default(), 0);
        while let Err(error) = self.read(after.max(batch.last), until, &mut batch) {
            let damaged = self.skip_damaged(after.max(batch.last));
            tracing::warn!(%error, lost = damaged, "cannot read a file of the buffer: its samples are lost");
            lost += damaged;
        }
        (batch, lost)
    }

    /// Adds to `batch` the samples after number `after` up to `until`, until it is full or there are no more.
    fn read(&mut self, after: u64, until: u64, batch: &mut Batch) -> io::Result<()> {
        let mut wanted = after + 1;
        while !batch.is_full() {
            let Some(segment) = self.segments.iter().find(|segment| segment.end() > wanted && segment.count > 0) else {
                return Ok(());
            };
            wanted = wanted.max(segment.first);
            if wanted > until {
                return Ok(());
            }
            let mut reader = match self.reader.take() {
                Some(reader) if reader.segment == segment.first && reader.next == wanted => reader,
                _ => Reader::open(segment, wanted, &self.catalog, &mut self.scratch)?,
            };
            while reader.next < segment.end() && reader.next <= until && !batch.is_full() {
                reader.read_sample(&self.catalog, &mut self.scratch)?;
                reader.ids.renumber(&mut self.scratch)?;
                batch.push(reader.next - 1, &self.scratch);
            }
            wanted = reader.next;
            self.reader = Some(reader);
        }
        Ok(())
    }

    /// Removes every sample up to `seq`, and records that number where the disk lets it.
    pub fn note_ack(&mut self, seq: u64) {
        if let Err(error) = self.ack(seq) {
            tracing::debug!(%error, "cannot note an acknowledgement: after a restart some samples are sent again");
        }
    }

    fn ack(&mut self, seq: u64) -> io::Result<()> {
        let rotate = self.segments.back().is_some_and(|last| {
            last.end() <= seq + 1 && last.bytes.saturating_sub(self.description_bytes) >= ROTATE_ACKED_BYTES
        });
        let noted = if rotate {
            self.start_segment(seq + 1, seq)
        } else if self.writer.is_some() {
            self.write(Kind::Ack, &seq.to_le_bytes())
        } else {
            Ok(())
        };
        // Removes files even when the disk is full, because that makes room.
        self.remove_up_to(seq);
        noted
    }

    /// Skips what cannot be read after number `after` in its segment. Returns how many samples that are.
    fn skip_damaged(&mut self, after: u64) -> u64 {
        self.reader = None;
        let Some(index) = self.segments.iter().position(|segment| segment.end() > after + 1) else {
            return 0;
        };
        self.remove_segment(index).map_or(0, |segment| segment.count_after(after))
    }

    fn start_segment(&mut self, first: u64, acked: u64) -> io::Result<()> {
        if self.segments.back().is_some_and(|last| last.count == 0) {
            self.remove_segment(self.segments.len() - 1);
        }
        let (segment, file) = Segment::create(&self.dir, first, acked)?;
        self.segments.push_back(segment);
        self.writer = Some(file);
        self.described.clear();
        self.description_bytes = 0;
        Ok(())
    }

    /// Describes the ids of a sample, unless the file already does: ids are those of this run, and files outlive it.
    fn describe(&mut self, sample: &[u8]) -> io::Result<()> {
        let mut ids = wire::series_of(1, sample);
        ids.retain(|id| !self.described.contains(id));
        for ids in ids.chunks(series::MAX_DESCRIPTIONS) {
            let payload = series::encode(&self.catalog.describe(ids))?;
            self.write(Kind::Series, &payload)?;
            self.described.extend(ids);
        }
        Ok(())
    }

    /// Appends a record to the last segment. After a failure the file may end in half a record, so it is closed.
    fn write(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        record::encode(kind, payload, &mut self.scratch)?;
        let (Some(file), Some(last)) = (self.writer.as_mut(), self.segments.back_mut()) else {
            return Err(io::Error::other("no open segment"));
        };
        if let Err(error) = file.write_all(&self.scratch) {
            self.writer = None;
            return Err(error);
        }
        let bytes = self.scratch.len() as u64;
        last.bytes += bytes;
        if kind == Kind::Series {
            self.description_bytes += bytes;
        }
        Ok(())
    }

    fn make_room(&mut self, acked: u64) -> u64 {
        let mut dropped = 0;
        while self.segments.len() > 1 && self.is_too_large() {
            let oldest = self.remove_segment(0);
            dropped += oldest.map_or(0, |oldest| oldest.count_after(acked));
        }
        dropped
    }

    fn is_too_large(&self) -> bool {
        let bytes: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        let kept_then: u64 = self.segments.iter().skip(1).map(|segment| segment.count).sum();
        bytes > self.limits.disk_bytes_at_most
            || (bytes > self.limits.disk_bytes && kept_then >= self.limits.disk_samples)
    }

    /// Removes the segments without samples after `seq`, except the one that is being written.
    fn remove_up_to(&mut self, seq: u64) {
        let is_done = |segment: &Segment| segment.end() <= seq + 1 || segment.count == 0;
        while self.segments.front().is_some_and(is_done) && (self.segments.len() > 1 || self.writer.is_none()) {
            self.remove_segment(0);
        }
    }

    fn remove_segment(&mut self, index: usize) -> Option<Segment> {
        let segment = self.segments.remove(index)?;
        if index == self.segments.len() {
            self.writer = None;
        }
        // An open file keeps its space on the disk even after it was removed.
        self.reader.take_if(|reader| reader.segment == segment.first);
        if let Err(error) = fs::remove_file(&segment.path) {
            tracing::warn!(%error, path = %segment.path.display(), "cannot remove a file of the buffer");
        }
        Some(segment)
    }
}

impl Reader {
    fn open(segment: &Segment, wanted: u64, catalog: &Catalog, scratch: &mut Vec<u8>) -> io::Result<Self> {
        let (first, ids) = (segment.first, SeriesIds::default());
        let mut reader = Self { segment: first, next: first, file: segment.open()?, ids };
        while reader.next < wanted {
            reader.read_sample(catalog, scratch)?;
        }
        Ok(reader)
    }

    fn read_sample(&mut self, catalog: &Catalog, sample: &mut Vec<u8>) -> io::Result<()> {
        loop {
            match record::read(&mut self.file, sample)? {
                Some(Kind::Sample) => break,
                Some(Kind::Series) => self.ids.extend(SeriesIds::read(sample, catalog)),
                Some(Kind::Ack | Kind::Unknown(_)) => {}
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        self.next += 1;
        Ok(())
    }
}
