//! All samples that the service has not acknowledged, bounded, oldest first.
//!
//! Each sample has a number, and so has each `metrics` message, because samples are not sent in the order in which they were
//! taken (see `connection::window`). Both numbers only rise. A run begins with the Unix time in milliseconds (or after the last
//! stored number, if that is higher), which is ahead of any sampling. So no number that the service has seen is used again,
//! even where the state directory was lost, restored from a backup, or truncated by a power failure.
//!
//! The agent never waits for a disk that hangs, not even at the start. Until the files are open, this run's samples are
//! numbered from the current time on, and those of earlier runs count as older and unreadable. If they turn out to be newer,
//! because the clock is wrong, this run's samples are renumbered.
//!
//! A directory that cannot be used at the start is tried again. Until then this run goes without it, so that what the service
//! acknowledges frees memory. Once it can be used, what earlier runs left there is older than what was acknowledged, and is sent
//! all the same: the acknowledged number goes back to theirs, and the connection begins again after it.

mod disk;
mod files;
#[cfg(test)]
pub mod fixture;
mod memory;
mod reader;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod series;
mod skipped;
#[cfg(test)]
mod tests;

use std::time::Duration;

use disk::Left;
use files::{Disk, Files};
use memory::MemoryLog;

use crate::catalog::Catalog;
use crate::config::{BufferLimits, Interval};
use crate::state::{DiskWorker, OpenError, Presence, StateDir, WAIT};

/// Samples in one `metrics` message: far below the protocol's 1024.
const BATCH_SAMPLES: u16 = 256;
/// A batch of at least this many bytes is complete. Four such batches in flight bound the memory while a backlog is sent.
const BATCH_BYTES: usize = 128 * 1024;

/// Consecutive samples, encoded one after the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The number of the last sample.
    pub last: u64,
    pub count: u16,
    pub samples: Vec<u8>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.count >= BATCH_SAMPLES || self.samples.len() >= BATCH_BYTES
    }

    fn push(&mut self, number: u64, sample: &[u8]) {
        self.last = number;
        self.count += 1;
        self.samples.extend_from_slice(sample);
    }
}

/// The disk is away, did not answer in time or refused to read: the samples on it cannot be read at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Away;

#[derive(Debug)]
pub struct Buffer {
    files: Files,
    /// Whether the directory could not be used so far, which the log says.
    has_failed: bool,
    /// Why the directory cannot be this agent's, where that was found out late.
    refusal: Option<OpenError>,
    /// How often all samples were renumbered, or the acknowledged number went back.
    epoch: u64,
    /// This run's first number, until the files are open.
    first: u64,
    /// The last number that is known to be on the disk; while the files are not open, the last that may be.
    on_disk: u64,
    /// The number up to which samples on the disk could not be read the last time, but may be later; 0 where all could be.
    unreadable: u64,
    /// The sample that was written to the disk last, and its number. A connected agent sends it at once, and asks the disk's
    /// thread only for older ones.
    latest: (u64, Vec<u8>),
    /// Samples taken while the disk could not be written. They are newer than those on it, except for one that a hanging disk
    /// wrote after all.
    memory: MemoryLog,
    /// The number of the next sample.
    next: u64,
    /// The number of the newest sample that was ever stored; it may be acknowledged.
    newest: u64,
    /// The number of the last message.
    message: u64,
    acked: u64,
    /// How many samples the disk keeps even where they are large.
    disk_samples: u64,
    /// The acknowledgement `acked` is written to the disk with the next sample, or at the end.
    is_ack_owed: bool,
    dropped: u64,
    /// How many of them were dropped since the service last had all samples. The log reports the first one and the end, not
    /// each.
    dropped_lately: u64,
    /// Whether the last write to the disk failed, so that the log reports a full disk once and not at every sample.
    is_disk_failing: bool,
}

impl Buffer {
    /// Opens the buffer in a directory, with what earlier runs left there. If the directory cannot be used, samples stay in
    /// memory until it can be. If its disk hangs, the files are added when they are open.
    pub fn open(
        state: Option<StateDir>,
        limits: BufferLimits,
        catalog: Catalog,
        unix_millis: u64,
    ) -> Result<Self, OpenError> {
        let mut buffer = Self {
            files: Files::new(limits, catalog),
            has_failed: false,
            refusal: None,
            epoch: 0,
            first: unix_millis,
            on_disk: 0,
            unreadable: 0,
            latest: (0, Vec::new()),
            memory: MemoryLog::new(limits.memory_bytes),
            next: unix_millis,
            newest: unix_millis - 1,
            message: unix_millis,
            acked: 0,
            disk_samples: limits.disk_samples,
            is_ack_owed: false,
            dropped: 0,
            dropped_lately: 0,
            is_disk_failing: false,
        };
        match state.map(|state| buffer.files.open(state)) {
            None => buffer.take_up(Left::default()),
            Some(Ok(())) => {
                // Any older number may be on the disk.
                buffer.on_disk = unix_millis - 1;
                buffer.look_for_files(WAIT);
                if let Disk::Opening(_, opening) = &buffer.files.disk {
                    opening.tell();
                }
            }
            Some(Err(error)) => buffer.go_without(&error),
        }
        buffer.refusal.take().map_or(Ok(buffer), Err)
    }

    /// Makes room for 24 hours of samples at this interval. A longer one later takes no room away: the samples of the shorter
    /// one may still be waiting.
    pub fn expect_every(&mut self, interval: Interval) {
        self.disk_samples = self.disk_samples.max(interval.samples_of_a_day());
    }

    /// Stores an encoded sample. When there is no room left, the oldest are dropped.
    pub fn append(&mut self, sample: &[u8]) {
        self.look_for_files(Duration::ZERO);
        let number = self.next;
        self.next += 1;
        self.newest = number;
        let dropped = match self.append_to_disk(number, sample) {
            Some(dropped) => {
                let (latest, bytes) = &mut self.latest;
                *latest = number;
                bytes.clear();
                bytes.extend_from_slice(sample);
                dropped
            }
            None => self.memory.append(number, sample),
        };
        if dropped > 0 && self.dropped_lately == 0 {
            tracing::warn!("the buffer is full: from now on the oldest samples are dropped");
        }
        self.dropped += dropped;
        self.dropped_lately += dropped;
    }

    /// The next samples after number `after`, up to number `until`; none without any.
    pub fn batch(&mut self, after: u64, until: u64) -> Result<Option<Batch>, Away> {
        let mut batch = Batch::default();
        let from = after.max(self.acked);
        if from < self.on_disk {
            // Samples in memory follow those that cannot be read at present.
            if !self.welcome_back() {
                return Err(Away);
            }
            let (latest, sample) = &self.latest;
            if from + 1 == self.on_disk && self.on_disk == *latest && *latest <= until {
                batch.push(*latest, sample);
            } else {
                let worker = self.files.worker().ok_or(Away)?;
                let (found, lost) = worker.call(move |log| log.read_past_damage(from, until)).ok_or(Away)?;
                self.dropped += lost;
                self.unreadable = if found.is_ok() { 0 } else { until.min(self.on_disk) };
                batch = found.map_err(|_| Away)?;
            }
        }
        self.memory.read(from.max(batch.last), until, &mut batch);
        Ok((batch.count > 0).then_some(batch))
    }

    /// Removes every sample up to `seq`.
    ///
    /// When nothing is left, the disk learns of it together with the next sample: one call of its thread per sample, not two.
    /// An agent that is killed before that sends its last message again, and the service stores it once.
    pub fn ack(&mut self, seq: u64) {
        if seq <= self.acked || seq >= self.next {
            return;
        }
        self.acked = seq;
        self.memory.ack(seq);
        if self.welcome_back() {
            if seq < self.newest {
                self.ack_on_disk();
            } else {
                self.is_ack_owed = true;
            }
        }
        if seq >= self.newest && self.dropped_lately > 0 {
            let dropped = std::mem::take(&mut self.dropped_lately);
            tracing::warn!(dropped, dropped_in_all = self.dropped, "the service has all that was kept, but not these");
        }
    }

    /// The number up to which samples cannot be read at present, because their disk is away or fails; 0 where all can be.
    pub fn unreadable_until(&mut self) -> u64 {
        let may_be_away = !matches!(self.files.disk, Disk::Missing) && self.on_disk > self.acked;
        let is_away = may_be_away && !self.welcome_back();
        if is_away { self.on_disk } else { self.unreadable }
    }

    /// The number of the newest sample.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// A number for the next `metrics` message, higher than any before.
    pub fn number_message(&mut self) -> u64 {
        self.message += 1;
        self.message
    }

    /// The number up to which everything is acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// How often all samples were renumbered, or the acknowledged number went back. Callers that remember numbers forget them
    /// when this rises.
    pub fn epoch(&mut self) -> u64 {
        self.look_for_files(Duration::ZERO);
        self.epoch
    }

    /// Why the directory cannot be this agent's, where that was found out after [`Buffer::open`].
    pub fn refusal(&self) -> Option<&OpenError> {
        self.refusal.as_ref()
    }

    /// Adds what earlier runs left, once the files are open.
    fn look_for_files(&mut self, limit: Duration) {
        match self.files.look(limit) {
            None => {}
            Some(Ok(left)) => {
                if std::mem::take(&mut self.has_failed) {
                    tracing::info!("the state directory can be used: samples are stored in it from now on");
                    // What was acknowledged is neither in memory nor in the files.
                    self.acked = 0;
                    self.epoch += 1;
                }
                self.take_up(left);
            }
            Some(Err(error)) => self.go_without(&error),
        }
    }

    fn go_without(&mut self, error: &OpenError) {
        match (error.is_misconfiguration(), std::mem::replace(&mut self.has_failed, true)) {
            (true, false) => self.refusal = Some(error.clone()),
            // An agent that has run until now is worth more than its buffer.
            (true, true) => {
                tracing::warn!(%error, "cannot use the state directory: samples are kept in memory only");
                return;
            }
            (false, false) => tracing::warn!(
                %error,
                "cannot use the state directory: samples are kept in memory only until that is possible"
            ),
            (false, true) => return,
        }
        self.take_up(Left::default());
    }

    /// Continues the numbers of earlier runs with this run's samples.
    fn take_up(&mut self, left: Left) {
        let kept = left.end.max(left.acked + 1);
        let unused_from = kept.max(left.unused_from);
        if let Some(ahead) = unused_from.checked_sub(self.first).filter(|ahead| *ahead > 0) {
            // The clock is behind those numbers.
            self.memory.renumber(ahead);
            self.next += ahead;
            self.newest += ahead;
            self.epoch += 1;
        }
        let has_taken = self.next > self.first.max(unused_from);
        self.newest = if has_taken { self.newest } else { kept - 1 };
        self.message = self.message.max(self.next);
        self.on_disk = left.end.saturating_sub(1);
        self.acked = self.acked.max(left.acked);
        // An earlier run may have had a shorter interval.
        self.disk_samples = self.disk_samples.max(left.large_backlog);
    }

    /// None when the sample must stay in memory: the disk is away, or fails.
    fn append_to_disk(&mut self, seq: u64, sample: &[u8]) -> Option<u64> {
        if !self.welcome_back() {
            return None;
        }
        let mut dropped = 0;
        // Samples from the time when the disk could not be written are older.
        while !self.memory.is_empty() {
            let oldest = self.memory.oldest(BATCH_BYTES);
            dropped += self.put(oldest)?;
        }
        Some(dropped + self.put(vec![(seq, sample.into())])?)
    }

    /// Writes samples to the disk and removes them from memory.
    fn put(&mut self, samples: Vec<(u64, Box<[u8]>)>) -> Option<u64> {
        let (acked, last) = (self.acked, samples.last().map_or(self.on_disk, |(seq, _)| *seq));
        let (is_ack_owed, disk_samples) = (std::mem::take(&mut self.is_ack_owed), self.disk_samples);
        let appended = self.files.worker()?.call(move |log| {
            if is_ack_owed {
                log.note_ack(acked);
            }
            log.keep_samples(disk_samples);
            log.append_new(acked, &samples)
        })?;
        match (&appended, self.is_disk_failing) {
            (Err(error), false) => tracing::warn!(%error, "cannot write the buffer's file: samples are kept in memory"),
            (Ok(_), true) => tracing::info!("the buffer's file can be written again"),
            (Ok(_), false) | (Err(_), true) => {}
        }
        self.is_disk_failing = appended.is_err();
        if appended.is_ok() {
            self.on_disk = last;
            self.memory.ack(last);
        }
        appended.ok()
    }

    /// Whether the disk can be called. A disk that is back first learns what was acknowledged in the meantime.
    fn welcome_back(&mut self) -> bool {
        match self.files.worker().map(DiskWorker::presence) {
            Some(Presence::Here) => true,
            Some(Presence::Back) => {
                self.ack_on_disk();
                self.files.worker().is_some_and(|worker| worker.presence() == Presence::Here)
            }
            Some(Presence::Away) | None => false,
        }
    }

    fn ack_on_disk(&mut self) {
        let acked = self.acked;
        self.is_ack_owed = false;
        _ = self.files.worker().and_then(|worker| worker.call(move |log| log.note_ack(acked)));
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.is_ack_owed {
            self.ack_on_disk();
        }
    }
}
