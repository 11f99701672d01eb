//! The stored history of metrics: a journal of new samples, pieces of unfinished hours, and blocks of finished ones. On
//! PostgreSQL new samples are in a table instead of the journal. The module `metrics` of the service knows what the bytes mean.

mod blocks;
mod journal;
mod orphans;
mod partitions;
mod pieces;
mod samples;
mod seal;
mod sweep;

use uuid::Uuid;

pub use blocks::{Block, BlockInfo, BlockKey};
pub(super) use journal::insert as insert_journal;
pub use journal::{JournalRead, JournalRow};
pub use orphans::{HistoryTable, Orphans};
pub(super) use partitions::{Known as Partitions, of_blocks as partitions_of_blocks};
pub use pieces::{Piece, PieceInfo};
pub use samples::{FreshSample, LeftOut, Why};
pub(super) use samples::{insert as insert_samples, partitions as partitions_of_samples};
pub use seal::{Outcome, PiecesTaken, Replaced, SamplesTaken, Sealing};
pub use sweep::Due;

/// The resolution of a block. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum Tier {
    /// Samples.
    Raw = 0,
    /// One row per minute.
    Minute = 1,
    /// One row per quarter of an hour.
    Quarter = 2,
    /// One row per hour.
    Hour = 3,
    /// The top processes of every minute.
    Processes = 4,
}

/// The length of a block. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum Span {
    /// An hour.
    Hour = 0,
    /// A day, in UTC.
    Day = 1,
    /// 32 days, counted from the epoch.
    Month = 2,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 5] = [Self::Raw, Self::Minute, Self::Quarter, Self::Hour, Self::Processes];

    fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| *tier as i16 == number)
    }
}

impl Span {
    /// Every span.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    /// The length in hours.
    pub fn hours(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::Day => 24,
            Self::Month => 32 * 24,
        }
    }

    /// The beginning of the span that contains an hour; both in hours since the epoch.
    pub fn start_of(self, hour: i64) -> i64 {
        hour.div_euclid(self.hours()) * self.hours()
    }

    fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|span| *span as i16 == number)
    }
}

/// Hours of one server: `from..until`, in hours since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// The server.
    pub server_id: Uuid,
    /// The first hour.
    pub from: i64,
    /// The hour after the last.
    pub until: i64,
}
