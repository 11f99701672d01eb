//! Every sample that the service has not acknowledged, bounded, oldest first.
//!
//! Each sample has a number, and each `metrics` message one of its own, for samples are not sent in the order in which
//! they were taken (see `connection::window`). Both only rise. A run begins with the Unix time in milliseconds (or after
//! the last kept number, should the clock be behind it), which outruns any sampling: so a number that the service has
//! seen is not used again, even where the state directory was lost, restored from a backup, or cut short by a power
//! failure.

mod disk;
mod memory;
mod record;
mod segment;
#[cfg(test)]
mod tests;

use std::path::Path;

use disk::DiskLog;
pub use disk::OpenError;
use memory::MemoryLog;

use crate::config::BufferLimits;

/// Samples in one `metrics` message: far below the protocol's 1024.
const BATCH_SAMPLES: u16 = 256;
/// A batch that reached this many bytes is not added to. Four such batches in flight bound the memory of a catch-up.
const BATCH_BYTES: usize = 128 * 1024;

/// Consecutive samples, encoded one after the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The last sample's number.
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

#[derive(Debug)]
pub struct Buffer {
    /// None where there is no directory to write to.
    disk: Option<DiskLog>,
    /// What came while the disk could not be written: always newer than what is on it.
    memory: MemoryLog,
    /// The next sample's number.
    next: u64,
    /// The number of the newest sample that was ever kept; it may be acknowledged.
    newest: u64,
    /// The number of the message that was sent last.
    message: u64,
    acked: u64,
    dropped: u64,
    /// Of these, how many since the service last had everything. Told at the first and when it is over, not at each.
    dropped_lately: u64,
    /// Whether the last write to the disk failed, so that a full disk is told of once and not at every sample.
    is_disk_failing: bool,
}

impl Buffer {
    /// Opens the buffer in `dir`, with what earlier runs left there. A directory that cannot be written is survived:
    /// the samples are kept in memory then. Only one that another agent uses is refused.
    pub fn open(dir: Option<&Path>, limits: BufferLimits, unix_millis: u64) -> Result<Self, OpenError> {
        let opened = dir.map(|dir| DiskLog::open(dir, limits)).transpose();
        let (disk, acked) = match opened {
            Ok(opened) => opened.map_or((None, 0), |(disk, acked)| (Some(disk), acked)),
            Err(locked @ OpenError::Locked(_)) => return Err(locked),
            Err(OpenError::Io(error)) => {
                let path = dir.map(|dir| dir.display().to_string()).unwrap_or_default();
                tracing::warn!(%error, path, "cannot use the state directory: samples are kept in memory only");
                (None, 0)
            }
        };
        let kept = disk.as_ref().map_or(0, DiskLog::end).max(acked + 1);
        let memory = MemoryLog::new(limits.memory_bytes);
        let next = unix_millis.max(kept);
        Ok(Self {
            disk,
            memory,
            next,
            newest: kept - 1,
            message: next,
            acked,
            dropped: 0,
            dropped_lately: 0,
            is_disk_failing: false,
        })
    }

    /// Keeps an encoded sample. When there is no room left, the oldest go.
    pub fn append(&mut self, sample: &[u8]) {
        let number = self.next;
        self.next += 1;
        self.newest = number;
        let dropped = self.append_to_disk(number, sample).unwrap_or_else(|| self.memory.append(number, sample));
        if dropped > 0 && self.dropped_lately == 0 {
            tracing::warn!("the buffer is full: from now on the oldest samples are dropped");
        }
        self.dropped += dropped;
        self.dropped_lately += dropped;
    }

    /// The next samples after number `after`, up to number `until`. None when there are none.
    pub fn batch(&mut self, after: u64, until: u64) -> Option<Batch> {
        let mut batch = Batch::default();
        if let Some(disk) = &mut self.disk {
            while let Err(error) = disk.read(after.max(batch.last), until, &mut batch) {
                let lost = disk.skip_damaged(after.max(batch.last));
                self.dropped += lost;
                tracing::warn!(%error, lost, "cannot read a file of the buffer: its samples are lost");
            }
        }
        self.memory.read(after.max(batch.last), until, &mut batch);
        (batch.count > 0).then_some(batch)
    }

    /// Forgets every sample up to `seq`.
    pub fn ack(&mut self, seq: u64) {
        if seq <= self.acked || seq >= self.next {
            return;
        }
        self.acked = seq;
        self.memory.ack(seq);
        if let Some(Err(error)) = self.disk.as_mut().map(|disk| disk.ack(seq)) {
            tracing::debug!(%error, "cannot note an acknowledgement: after a restart some samples are sent again");
        }
        if seq >= self.newest && self.dropped_lately > 0 {
            let dropped = std::mem::take(&mut self.dropped_lately);
            tracing::warn!(dropped, dropped_in_all = self.dropped, "the service has all that was kept, but not these");
        }
    }

    /// The number of the newest sample.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// A number for the next `metrics` message: higher than any before.
    pub fn number_message(&mut self) -> u64 {
        self.message += 1;
        self.message
    }

    /// Everything up to this number is acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// None when the sample must go to memory: the disk fails, or memory still holds older ones.
    fn append_to_disk(&mut self, seq: u64, sample: &[u8]) -> Option<u64> {
        let disk = self.disk.as_mut().filter(|_| self.memory.is_empty())?;
        let appended = disk.append(seq, self.acked, sample);
        match (&appended, self.is_disk_failing) {
            (Err(error), false) => tracing::warn!(%error, "cannot write the buffer's file: samples are kept in memory"),
            (Ok(_), true) => tracing::info!("the buffer's file can be written again"),
            (Ok(_), false) | (Err(_), true) => {}
        }
        self.is_disk_failing = appended.is_err();
        appended.ok()
    }
}
