//! Compaction of the history: samples are flushed from the tail into pieces, past hours are sealed, blocks are compacted
//! into days and months, and expired blocks are dropped. Every step is one transaction, so a crash leaves the state before
//! the step or after it.

mod archiver;
mod block_io;
mod compaction;
mod flusher;
mod growing;
mod orphans;
mod outcomes;
pub mod pieces;
mod sealing;
mod work;

// For the guard of instruction counts.
pub use archiver::{ArchiveHandle, Schedule};
pub use block_io::key as block_key;
pub use flusher::ReplayError;
pub use pieces::{MAX_CELLS, frame as piece_frame, head as piece_head, lists as piece_lists};
#[doc(hidden)]
pub use sealing::prepare;

use signalbox_protocol::Timestamp;

use crate::clock::Clock;

pub const MINUTE_MS: i64 = 60_000;
pub const QUARTER_MS: i64 = 900_000;
pub const HOUR_MS: i64 = 3_600_000;

/// Returns the hour of a time, in hours since the epoch.
pub fn hour_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(HOUR_MS)
}

/// Returns the first millisecond of an hour, in milliseconds since the epoch.
pub fn start_ms(hour: i64) -> i64 {
    hour.saturating_mul(HOUR_MS)
}

/// The first hour of each tier that has not expired, in hours since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionCutoffs {
    pub raw: i64,
    pub minute: i64,
    pub quarter: i64,
    pub hour: i64,
}

/// How many days of each tier of the metric history are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Every sample.
    pub raw_days: u32,
    /// The mean of each minute, and the top processes.
    pub minute_days: u32,
    /// The mean of each quarter of an hour.
    pub quarter_days: u32,
    /// The mean of each hour.
    pub hour_days: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { raw_days: 14, minute_days: 90, quarter_days: 365, hour_days: 5 * 365 }
    }
}

impl Retention {
    /// Returns whether coarser tiers are kept for at least as long as finer ones.
    pub fn is_ordered(&self) -> bool {
        let days = [self.raw_days, self.minute_days, self.quarter_days, self.hour_days];
        days.is_sorted()
    }
}

/// How long each tier is kept, and the clock that decides. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RetentionPolicy {
    retention: Retention,
    clock: Clock,
}

impl RetentionPolicy {
    pub fn new(retention: Retention, clock: Clock) -> Self {
        Self { retention, clock }
    }

    /// Returns the present time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the first hour of each tier to keep. Counts from the certain time, because a clock may be wrong and dropping
    /// cannot be undone.
    pub fn cutoffs(&self) -> RetentionCutoffs {
        let now = hour_of(self.clock.certain().as_millis());
        let first = |days: u32| now - i64::from(days) * 24;
        RetentionCutoffs {
            raw: first(self.retention.raw_days),
            minute: first(self.retention.minute_days),
            quarter: first(self.retention.quarter_days),
            hour: first(self.retention.hour_days),
        }
    }
}
