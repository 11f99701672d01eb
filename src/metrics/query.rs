//! Reading the history. What lies behind [`History`] may change; what it answers does not.

use std::collections::VecDeque;
use std::sync::Arc;

use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use super::bucket::Bucket;
use super::codec::{self, CodecError};
use crate::fleet::{Fleet, Snapshot};
use crate::store::{Store, StoreError, StoredSample};

/// Rows that are read at once: a reader of any range holds no more than these, each of a bounded size.
const PAGE: usize = 256;

/// Widths of buckets, in seconds, from which the finest that fits is taken.
const WIDTHS: [i64; 16] = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400];

/// The history of every server, behind cheap clones.
#[derive(Clone)]
pub struct History {
    store: Store,
    fleet: Fleet,
}

/// How fine an answer should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// As fine as at most this many points allow.
    Auto { max_points: u64 },
    /// Every sample.
    Raw,
    /// The mean of each span of so many seconds.
    Seconds(i64),
}

/// From `start` to `end`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub start: Timestamp,
    pub end: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("too many points and series for one answer: choose some by name, or a shorter range")]
    TooMuch,
}

impl History {
    pub fn new(store: Store, fleet: Fleet) -> Self {
        Self { store, fleet }
    }

    /// The newest sample of a server; none when it never sent one.
    pub async fn latest(&self, server_id: Uuid) -> Result<Option<Arc<Snapshot>>, HistoryError> {
        if let Some(latest) = self.fleet.latest(server_id) {
            return Ok(Some(latest));
        }
        let Some(stored) = self.store.latest_sample(server_id).await? else { return Ok(None) };
        let snapshot = Arc::new(Snapshot::new(server_id, codec::decode(&stored.data)?));
        self.fleet.record(snapshot.clone());
        Ok(Some(snapshot))
    }

    /// Opens a range for reading, page by page.
    pub async fn open(
        &self,
        server_id: Uuid,
        range: TimeRange,
        resolution: Resolution,
    ) -> Result<Reader, HistoryError> {
        let width_seconds = match resolution {
            Resolution::Raw => None,
            Resolution::Seconds(seconds) => Some(seconds),
            Resolution::Auto { max_points } => self.finest(server_id, range, max_points).await?,
        };
        let mut rows = Rows { store: self.store.clone(), server_id, range, read: VecDeque::new(), is_done: false };
        rows.fill().await?;
        let spacing_seconds = spacing_seconds(&rows.read);
        Ok(Reader { rows, width_seconds, open: None, spacing_seconds })
    }

    /// The width of buckets that gives at most `max_points`; none when every sample fits.
    async fn finest(&self, server_id: Uuid, range: TimeRange, max_points: u64) -> Result<Option<i64>, HistoryError> {
        if self.store.count_samples(server_id, range.start, range.end).await? <= max_points {
            return Ok(None);
        }
        let ends = self.store.sample_extent(server_id, range.start, range.end).await?;
        Ok(ends.map(|(first, last)| width_for(first, last, max_points)))
    }
}

/// The narrowest bucket width, in seconds, that puts `first..=last` into at most `max_points` buckets.
fn width_for(first: Timestamp, last: Timestamp, max_points: u64) -> i64 {
    let fits = |width: &i64| {
        let buckets = last.as_seconds().div_euclid(*width) - first.as_seconds().div_euclid(*width) + 1;
        buckets.unsigned_abs() <= max_points
    };
    let wider = std::iter::successors(Some(86_400_i64 * 2), |width| width.checked_mul(2));
    // The last resort holds all of time in one bucket.
    WIDTHS.into_iter().chain(wider).find(fits).unwrap_or(i64::MAX)
}

/// The usual distance of samples: the median of the first ones, at least a second.
fn spacing_seconds(rows: &VecDeque<StoredSample>) -> i64 {
    let mut gaps: Vec<i64> = rows.iter().zip(rows.iter().skip(1)).map(|(a, b)| b.at.millis_since(a.at)).collect();
    gaps.sort_unstable();
    let median = gaps.get(gaps.len() / 2).copied().unwrap_or(DEFAULT_SPACING_MS);
    ((median + 500) / 1000).max(1)
}

/// The agent's own default, for ranges with fewer than two samples.
const DEFAULT_SPACING_MS: i64 = 5_000;

/// An open range. Holds one page, however long the range.
pub struct Reader {
    rows: Rows,
    width_seconds: Option<i64>,
    open: Option<Bucket>,
    spacing_seconds: i64,
}

impl Reader {
    /// Seconds between points: the width of the buckets, or the usual distance of raw samples.
    pub fn resolution_seconds(&self) -> i64 {
        self.width_seconds.unwrap_or(self.spacing_seconds)
    }

    /// The usual distance of the samples themselves.
    pub fn spacing_seconds(&self) -> i64 {
        self.spacing_seconds
    }

    /// The width of the buckets; none when every sample is given.
    pub fn width_seconds(&self) -> Option<i64> {
        self.width_seconds
    }

    /// The next points, oldest first; empty at the end.
    pub async fn next_page(&mut self) -> Result<Vec<Sample>, HistoryError> {
        let mut points = Vec::new();
        while points.len() < PAGE {
            let Some(sample) = self.next_sample().await? else {
                points.extend(self.open.take().map(Bucket::finish));
                break;
            };
            match self.width_seconds {
                None => points.push(sample),
                Some(width) => points.extend(self.gather(sample, width)),
            }
        }
        Ok(points)
    }

    /// The next sample as it was sent, whatever the width of the buckets.
    pub async fn next_sample(&mut self) -> Result<Option<Sample>, HistoryError> {
        let row = self.rows.next().await?;
        Ok(row.map(|row| codec::decode(&row.data)).transpose()?)
    }

    /// Adds a sample to its bucket. Gives the bucket before it when that is complete.
    fn gather(&mut self, sample: Sample, width: i64) -> Option<Sample> {
        let start = bucket_start(sample.timestamp, width);
        match &mut self.open {
            Some(bucket) if bucket.start() == start => {
                bucket.add(sample);
                None
            }
            _ => self.open.replace(Bucket::new(start, sample)).map(Bucket::finish),
        }
    }
}

/// When the bucket of this width begins that `at` lies in. Buckets are aligned to the epoch.
pub fn bucket_start(at: Timestamp, width_seconds: i64) -> Timestamp {
    let start = at.as_seconds().div_euclid(width_seconds).saturating_mul(width_seconds);
    Timestamp::from_millis(start.saturating_mul(1000))
}

/// The rows of a range, a page at a time.
struct Rows {
    store: Store,
    server_id: Uuid,
    range: TimeRange,
    read: VecDeque<StoredSample>,
    is_done: bool,
}

impl Rows {
    async fn next(&mut self) -> Result<Option<StoredSample>, StoreError> {
        if self.read.is_empty() {
            self.fill().await?;
        }
        Ok(self.read.pop_front())
    }

    async fn fill(&mut self) -> Result<(), StoreError> {
        if self.is_done {
            return Ok(());
        }
        let page = self.store.samples(self.server_id, self.range.start, self.range.end, PAGE as u64).await?;
        self.is_done = page.len() < PAGE;
        if let Some(last) = page.last() {
            self.range.start = last.at.plus_millis(1);
        }
        self.read = page.into();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn the_narrowest_width_that_fits_is_taken() {
        assert_eq!(width_for(at(0), at(3_599), 60), 60);
        assert_eq!(width_for(at(0), at(3_600), 60), 120);
        assert_eq!(width_for(at(0), at(86_399), 1_000), 120);
    }

    #[test]
    fn one_point_holds_anything() {
        for (first, last) in [(0, 10), (86_399, 86_400), (-1, 0), (0, 253_402_300_799)] {
            let width = width_for(at(first), at(last), 1);

            assert_eq!(bucket_start(at(first), width) == bucket_start(at(last), width), first >= 0, "{first}..{last}");
        }
    }

    #[test]
    fn buckets_are_aligned_to_the_epoch() {
        assert_eq!(bucket_start(at(119), 60), at(60));
        assert_eq!(bucket_start(at(120), 60), at(120));
        assert_eq!(bucket_start(at(-1), 60), at(-60));
    }
}
