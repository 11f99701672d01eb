//! The samples in files: a sequence of segments, appended to at one end and removed at the other.
//!
//! Nothing is synced to the disk explicitly: what was written survives a kill of the agent, not a power cut, and the server is
//! spared a flush every five seconds. Memory holds only the segments' bounds and one open reader.
//!
//! Only a damaged file is removed with its samples. One that cannot be read, or is of another version, is skipped: it stays for
//! the next start, unless newer samples need its room. An acknowledgement covers all older samples, which would include those
//! of skipped files. So none is recorded while there are any, and a restart then sends the last file's samples again.
//!
//! A run that keeps more than the usual bytes, because its samples are large or frequent, notes in each new file how many samples
//! it keeps, which the next run does not know otherwise. What that finds may be a file more, and each restart would add to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Batch;
use super::reader::Reader;
use super::record::{self, Kind};
use super::segment::Segment;
use super::series;
use super::skipped::SkippedFile;
use crate::catalog::Catalog;
use crate::config::BufferLimits;
use crate::state::{OpenError, StateDir, close_to_others};
use crate::wire;

/// From this size on a file whose samples are all acknowledged is replaced by an empty one. It is so small that a connected
/// agent's file stays in a few pages, and so large that new files are rare. Descriptions do not count, because the next file
/// needs them again.
const ROTATE_ACKED_BYTES: u64 = 64 * 1024;

/// What earlier runs left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left {
    /// The number after the last sample; 0 where there is none.
    pub end: u64,
    /// Skipped files may have any number below this one.
    pub unused_from: u64,
    /// The highest acknowledged number.
    pub acked: u64,
    /// How many samples the last run kept, at most those that come after it, where they take more bytes than usual; otherwise 0.
    pub large_backlog: u64,
}

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
    /// The segments that could not be read the last time, by their first numbers, and since when.
    failing: BTreeMap<u64, Instant>,
    skipped: VecDeque<SkippedFile>,
    /// The highest acknowledgement that the files may have.
    recorded_ack: u64,
    scratch: Vec<u8>,
    /// Held while the directory is used.
    _state: StateDir,
}

impl DiskLog {
    /// Opens the directory, with what earlier runs left in it.
    pub fn open(state: StateDir, limits: BufferLimits, catalog: Catalog) -> Result<(Self, Left), OpenError> {
        let dir = state.claim()?.to_owned();
        let (mut segments, mut acked, mut limit) = (VecDeque::new(), 0, None);
        let (mut skipped, mut reason) = (VecDeque::new(), None);
        for path in Segment::paths(&dir)? {
            close_to_others(&path);
            match Segment::scan(path.clone()) {
                Ok(scan) => {
                    acked = acked.max(scan.acked);
                    limit = scan.limit.or(limit);
                    segments.push_back(scan.segment);
                }
                Err(error) if record::is_damage(&error) => {
                    tracing::warn!(%error, path = %path.display(), "removing a damaged file of the buffer");
                    let _ = fs::remove_file(path);
                }
                Err(error) => {
                    skipped.push_back(SkippedFile::at(path));
                    reason.get_or_insert(error);
                }
            }
        }
        if let (Some(error), Some(first)) = (reason, skipped.front()) {
            tracing::warn!(
                %error, path = %first.path.display(), files = skipped.len(),
                "cannot read files of the buffer: their samples wait for the next start"
            );
        }
        let ends = segments.iter().map(Segment::end).chain(skipped.iter().map(SkippedFile::end_at_most));
        let unused_from = ends.max().unwrap_or_default();
        let mut log = Self {
            dir,
            limits,
            segments,
            writer: None,
            catalog,
            described: BTreeSet::new(),
            description_bytes: 0,
            reader: None,
            failing: BTreeMap::new(),
            skipped,
            recorded_ack: acked,
            scratch: Vec::new(),
            _state: state,
        };
        log.remove_up_to(acked);
        // Within the usual bytes no run needed more room than this one has. Otherwise one had a shorter interval.
        let count = if log.is_large() { log.count_after(acked) } else { 0 };
        let large_backlog = limit.map_or(count, |kept| count.min(kept));
        let left = Left { end: log.end(), unused_from, acked, large_backlog };
        Ok((log, left))
    }

    /// The number after the last sample; 0 when there is none.
    fn end(&self) -> u64 {
        self.segments.back().map_or(0, Segment::end)
    }

    /// The length of all segments.
    fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Whether all segments take more than the usual bytes, which they may exceed by one.
    fn is_large(&self) -> bool {
        self.bytes() > self.limits.disk_bytes.saturating_add(self.limits.segment_bytes)
    }

    /// How many samples come after number `seq`.
    fn count_after(&self, seq: u64) -> u64 {
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

    /// The next samples after number `after` up to `until`, and how many were lost with damaged files. After an error they are
    /// still there, and can be read later.
    pub fn read_past_damage(&mut self, after: u64, until: u64) -> (io::Result<Batch>, u64) {
        let (mut batch, mut lost) = (Batch::default(), 0);
        while let Err(error) = self.read(after.max(batch.last), until, &mut batch) {
            let read = after.max(batch.last);
            if record::is_damage(&error) || error.kind() == io::ErrorKind::NotFound {
                let damaged = self.remove_damaged(read);
                tracing::warn!(%error, lost = damaged, "a file of the buffer is damaged: its samples are lost");
                lost += damaged;
            } else if batch.count > 0 {
                // The next call meets the error first.
                break;
            } else if !self.skip_failing(read, &error) {
                return (Err(error), lost);
            }
        }
        (Ok(batch), lost)
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
            self.failing.remove(&segment.first);
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
        } else if self.writer.is_some() && self.skipped.is_empty() {
            self.recorded_ack = self.recorded_ack.max(seq);
            self.write(Kind::Ack, &seq.to_le_bytes())
        } else {
            Ok(())
        };
        // Removes files even when the disk is full, because that makes room.
        self.remove_up_to(seq);
        noted
    }

    /// Removes the segment of the sample after number `after`. Returns how many unread samples it had.
    fn remove_damaged(&mut self, after: u64) -> u64 {
        self.reader = None;
        let removed = self.index_after(after).and_then(|index| self.remove_segment(index));
        removed.map_or(0, |segment| segment.count_after(after))
    }

    /// Skips the segment of the sample after number `after`, if it could not be read for long enough. False where it is to be
    /// tried again.
    fn skip_failing(&mut self, after: u64, error: &io::Error) -> bool {
        self.reader = None;
        let Some(index) = self.index_after(after) else { return false };
        let Some(segment) = self.segments.get(index) else { return false };
        let (first, path) = (segment.first, segment.path.display());
        let Some(since) = self.failing.get(&first).copied() else {
            tracing::warn!(%error, %path, "cannot read a file of the buffer: its samples are sent when that is possible");
            self.failing.insert(first, Instant::now());
            return false;
        };
        if since.elapsed() < self.limits.read_again_for {
            return false;
        }
        tracing::warn!(%error, %path, "cannot read a file of the buffer: its samples wait for the next start");
        let skipped = self.take_segment(index).map(|segment| SkippedFile::at(segment.path));
        self.skipped.extend(skipped);
        true
    }

    /// Which segment has the sample after number `after`.
    fn index_after(&self, after: u64) -> Option<usize> {
        self.segments.iter().position(|segment| segment.end() > after + 1 && segment.count > 0)
    }

    fn start_segment(&mut self, first: u64, acked: u64) -> io::Result<()> {
        if self.segments.back().is_some_and(|last| last.count == 0) {
            self.remove_segment(self.segments.len() - 1);
        }
        if self.skipped.is_empty() {
            self.recorded_ack = self.recorded_ack.max(acked);
        }
        let (segment, file) = Segment::create(&self.dir, first, self.recorded_ack)?;
        self.segments.push_back(segment);
        self.writer = Some(file);
        self.described.clear();
        self.description_bytes = 0;
        if self.is_large() {
            let limit = self.limits.disk_samples;
            self.write(Kind::Limit, &limit.to_le_bytes())?;
        }
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
        while self.is_too_large() {
            if let Some(file) = self.skipped.pop_front() {
                tracing::warn!(path = %file.path.display(), "the buffer is full: removing a file that could not be read");
                remove(&file.path);
            } else if self.segments.len() > 1 {
                let oldest = self.remove_segment(0);
                dropped += oldest.map_or(0, |oldest| oldest.count_after(acked));
            } else {
                break;
            }
        }
        dropped
    }

    fn is_too_large(&self) -> bool {
        let bytes = self.bytes() + self.skipped.iter().map(|file| file.bytes).sum::<u64>();
        // Skipped files make room first: this run has no other use for theirs.
        let removed_then = usize::from(self.skipped.is_empty());
        let kept_then: u64 = self.segments.iter().skip(removed_then).map(|segment| segment.count).sum();
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
        let segment = self.take_segment(index)?;
        remove(&segment.path);
        Some(segment)
    }

    /// Uses a segment no more. Its file stays.
    fn take_segment(&mut self, index: usize) -> Option<Segment> {
        let segment = self.segments.remove(index)?;
        if index == self.segments.len() {
            self.writer = None;
        }
        self.failing.remove(&segment.first);
        // An open file keeps its space on the disk even after it was removed.
        self.reader.take_if(|reader| reader.segment == segment.first);
        Some(segment)
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(%error, path = %path.display(), "cannot remove a file of the buffer");
    }
}
