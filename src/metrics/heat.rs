//! The history of many servers as the rows of one matrix: every row has the same buckets, whatever the resolution of its
//! server is. Pure.

use signalbox_history::rollup::gap_ms;
use signalbox_protocol::Timestamp;

use super::query::reader::Reader;
use super::query::{TimeRange, width_for};
use super::series::{Series, Shown};

/// The buckets of a matrix, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    pub start: i64,
    pub bucket_seconds: i64,
    pub buckets: usize,
}

/// The value of a server in a bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub mean: f64,
    pub max: f64,
}

/// How long a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The time that a value stands for.
    pub resolution_seconds: i64,
    /// It counts until the next value if that follows within this time.
    pub gap_seconds: i64,
}

impl Hold {
    /// Of what a reader returns: buckets stand for their own width, and samples are late now and then.
    pub fn of(reader: &Reader) -> Self {
        let longest_ms = reader.width_ms().unwrap_or_else(|| gap_ms(reader.spacing_ms()));
        Self { resolution_seconds: reader.resolution_seconds(), gap_seconds: longest_ms / 1_000 }
    }
}

/// What a bucket contains so far.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    sum: f64,
    points: u32,
    max: f64,
    /// The value that began earlier and still holds; counts if the bucket has no point of its own.
    held: Option<Cell>,
}

impl Grid {
    /// At most this many whole buckets, which contain the range. Their width is one of those that all charts have, so that
    /// the buckets of most servers need no conversion.
    pub fn new(range: TimeRange, max_buckets: u64) -> Self {
        let (first, last) = (range.start.as_millis(), range.end.as_millis());
        let bucket_seconds = width_for(first, last, max_buckets);
        let bucket_of = |at_ms: i64| at_ms.div_euclid(1_000).div_euclid(bucket_seconds);
        let (first, last) = (bucket_of(first), bucket_of(last));
        let buckets = usize::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or_default();
        Self { start: first.saturating_mul(bucket_seconds), bucket_seconds, buckets }
    }

    /// The range of the buckets, to its last millisecond.
    pub fn range(&self) -> TimeRange {
        let seconds = self.bucket_seconds.saturating_mul(i64::try_from(self.buckets).unwrap_or(i64::MAX));
        let end = self.start.saturating_add(seconds);
        TimeRange {
            start: Timestamp::from_millis(self.start.saturating_mul(1_000)),
            end: Timestamp::from_millis(end.saturating_mul(1_000).saturating_sub(1)),
        }
    }

    /// The cells of a server. Of several series, for example of its disks, the highest counts in each bucket.
    pub fn row(&self, series: &Series, hold: Hold) -> Vec<Option<Cell>> {
        let mut row = vec![None; self.buckets];
        for points in series.columns.values() {
            let shown = series.timestamps.iter().enumerate().filter_map(|(place, at)| Some((*at, points.get(place)?)));
            let found = self.cells(shown, hold);
            row.iter_mut().zip(found).for_each(|(cell, found)| *cell = highest(*cell, found));
        }
        row
    }

    /// The cells of one series. A value holds until the next one, or for the time that it stands for, so that a server with
    /// few values has no holes between them.
    fn cells(
        &self,
        points: impl Iterator<Item = (i64, Shown)> + Clone,
        hold: Hold,
    ) -> impl Iterator<Item = Option<Cell>> {
        let mut buckets = vec![Bucket::default(); self.buckets];
        let mut following = points.clone().skip(1);
        for (at, shown) in points {
            let next = following.next().map(|(next, _)| next).filter(|next| next - at <= hold.gap_seconds);
            let until = next.unwrap_or(at.saturating_add(hold.resolution_seconds));
            let (first, last) = (self.place(at), self.place(until.saturating_sub(1)));
            let held = Cell { mean: shown.avg, max: shown.max };
            for place in first.max(0)..=last {
                let bucket = usize::try_from(place).ok().and_then(|place| buckets.get_mut(place));
                let Some(bucket) = bucket else { break };
                if place == first {
                    bucket.add(shown);
                } else {
                    bucket.held = Some(held);
                }
            }
        }
        buckets.into_iter().map(Bucket::cell)
    }

    /// The number of the bucket that contains a time; outside of the matrix for times before and after it.
    fn place(&self, at: i64) -> i64 {
        at.saturating_sub(self.start).div_euclid(self.bucket_seconds)
    }
}

impl Bucket {
    fn add(&mut self, shown: Shown) {
        self.max = if self.points == 0 { shown.max } else { self.max.max(shown.max) };
        self.sum += shown.avg;
        self.points += 1;
    }

    fn cell(self) -> Option<Cell> {
        if self.points == 0 {
            return self.held;
        }
        Some(Cell { mean: self.sum / f64::from(self.points), max: self.max })
    }
}

fn highest(one: Option<Cell>, other: Option<Cell>) -> Option<Cell> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Cell { mean: one.mean.max(other.mean), max: one.max.max(other.max) }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    /// Ten buckets of a minute from 600 on.
    fn grid() -> Grid {
        Grid { start: 600, bucket_seconds: 60, buckets: 10 }
    }

    fn shown(value: f64) -> Shown {
        Shown { avg: value, min: value, max: value }
    }

    /// The means of the buckets, -1 where there is none.
    fn means(points: &[(i64, f64)], resolution_seconds: i64, gap_seconds: i64) -> Vec<f64> {
        let points = points.iter().map(|(at, value)| (*at, shown(*value)));
        grid()
            .cells(points, Hold { resolution_seconds, gap_seconds })
            .map(|cell| cell.map_or(-1.0, |cell| cell.mean))
            .collect()
    }

    #[test]
    fn a_range_is_covered_by_whole_buckets_of_a_usual_width() {
        let range = TimeRange { start: at(3_610), end: at(7_205) };

        let grid = Grid::new(range, 60);

        assert_eq!(grid, Grid { start: 3_600, bucket_seconds: 120, buckets: 31 });
        let whole = TimeRange { start: at(3_600), end: Timestamp::from_millis(7_319_999) };
        assert_eq!(grid.range(), whole);
        assert_eq!(Grid::new(range, 61), Grid { start: 3_600, bucket_seconds: 60, buckets: 61 });
        assert_eq!(Grid::new(TimeRange { start: at(5), end: at(5) }, 1).buckets, 1);
    }

    #[test]
    fn points_of_a_bucket_become_one_and_gaps_stay() {
        let points: Vec<(i64, f64)> = (0..6).map(|n| (600 + 30 * n, n as f64)).chain([(1_020, 9.0)]).collect();

        let expected = [0.5, 2.5, 4.5, -1.0, -1.0, -1.0, -1.0, 9.0, -1.0, -1.0];
        assert_eq!(means(&points, 30, 90), expected);
    }

    #[test]
    fn a_value_holds_until_the_next_one() {
        // Every 90 s, late by up to 10 s: the buckets between them have no point of their own.
        let points = [(605, 1.0), (700, 2.0), (785, 3.0), (880, 4.0)];

        assert_eq!(means(&points, 90, 270), [1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 4.0, -1.0, -1.0, -1.0]);
    }

    #[test]
    fn a_coarse_value_fills_the_buckets_that_it_stands_for() {
        // It begins before the matrix, and the last one ends behind it.
        let expected = [5.0, 5.0, 5.0, -1.0, -1.0, -1.0, -1.0, -1.0, 7.0, 7.0];
        assert_eq!(means(&[(300, 5.0), (1_080, 7.0)], 480, 480), expected);
    }

    #[test]
    fn the_highest_series_counts() {
        let cell = |mean, max| Some(Cell { mean, max });

        assert_eq!(highest(cell(1.0, 9.0), cell(2.0, 3.0)), cell(2.0, 9.0));
        assert_eq!(highest(None, cell(2.0, 3.0)), cell(2.0, 3.0));
        assert_eq!(highest(cell(1.0, 9.0), None), cell(1.0, 9.0));
        assert_eq!(highest(None, None), None);
    }
}
