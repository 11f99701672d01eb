//! The metric history as it is kept: a journal of what came, pieces of hours that go on, and blocks of those that are
//! over. On PostgreSQL what is fresh lies in a table instead of the journal. What the bytes mean is `metrics`' business.

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
pub(super) use partitions::Known as Partitions;
pub use pieces::{Piece, PieceInfo};
pub use samples::{FreshSample, LeftOut, Why};
pub(super) use samples::{insert as insert_samples, partitions as partitions_of_samples};
pub use seal::{Outcome, PiecesTaken, Replaced, SamplesTaken, Sealing};
pub use sweep::Due;

/// How fine a block is. The numbers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum Tier {
    Raw = 0,
    Minute = 1,
    Quarter = 2,
    Hour = 3,
    /// The top processes of every minute.
    Processes = 4,
}

/// How long a block is. The numbers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum Span {
    Hour = 0,
    Day = 1,
    /// 32 days, counted from the epoch.
    Month = 2,
}

impl Tier {
    pub const ALL: [Self; 5] = [Self::Raw, Self::Minute, Self::Quarter, Self::Hour, Self::Processes];

    fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| *tier as i16 == number)
    }
}

impl Span {
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    pub fn hours(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::Day => 24,
            Self::Month => 32 * 24,
        }
    }

    /// When the span begins that holds an hour; both in hours since the epoch.
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
    pub server_id: Uuid,
    pub from: i64,
    pub until: i64,
}
