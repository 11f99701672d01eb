//! What becomes of samples with time: they leave the tail as pieces, hours that are over are sealed, days and months
//! are put together, and what is too old goes. Every step is one transaction that moves: a crash in between leaves
//! things as they were before the step or after it.

mod days;
mod hours;
mod keeper;
mod mover;
mod pieces;
mod shelf;
mod work;

pub use keeper::{ArchiveHandle, Schedule};
pub use mover::{MOVE_FROM_BYTES, ReplayError};
pub use pieces::{MOST_CELLS, frame as piece_frame, lists as piece_lists};
pub use shelf::key as block_key;

use crate::config::Retention;
use signalbox_protocol::Timestamp;

pub const MINUTE_MS: i64 = 60_000;
pub const QUARTER_MS: i64 = 900_000;
pub const HOUR_MS: i64 = 3_600_000;

/// The hour that a time lies in, counted from the epoch.
pub fn hour_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(HOUR_MS)
}

/// The first millisecond of an hour.
pub fn start_ms(hour: i64) -> i64 {
    hour.saturating_mul(HOUR_MS)
}

/// The first hour of each tier that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizons {
    pub raw: i64,
    pub minute: i64,
    pub quarter: i64,
    pub hour: i64,
}

impl Horizons {
    pub fn new(retention: &Retention, now: Timestamp) -> Self {
        let first = |days: u32| hour_of(now.as_millis()) - i64::from(days) * 24;
        Self {
            raw: first(retention.raw_days),
            minute: first(retention.minute_days),
            quarter: first(retention.quarter_days),
            hour: first(retention.hour_days),
        }
    }
}
