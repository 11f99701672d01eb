//! Aggregates rows: mean, minimum and maximum of gauges, the last value and the rate of counters. Pure.
//!
//! It accepts samples and aggregates alike, so that the same code makes every tier and answers queries about the last minutes.

mod late;
mod spread;

use std::sync::Arc;

pub use self::late::combined_once;
use self::spread::Spread;
use super::frame::{Granularity, NO_RATE, Row};
use super::metric::{Field, Kind, Scale};
use super::shape::{ColumnRef, Shape};

/// Samples further apart than this many times their usual distance have a gap between them: nobody can know when in it the
/// bytes were transferred.
const GAP_FACTOR: i64 = 3;

/// The agent's default, for fewer than two samples.
pub const DEFAULT_SPACING_MS: i64 = 5_000;

/// The usual distance of samples, in milliseconds: the median of the first ones.
pub fn spacing_ms(times: &[i64]) -> i64 {
    let times = times.iter().take(256);
    let mut gaps: Vec<i64> = times.clone().zip(times.skip(1)).map(|(a, b)| b - a).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len().saturating_sub(1) / 2).copied().unwrap_or(DEFAULT_SPACING_MS).max(1)
}

/// From which distance on two samples have a gap between them.
pub fn gap_ms(spacing_ms: i64) -> i64 {
    spacing_ms.saturating_mul(GAP_FACTOR)
}

/// The same after two samples at this distance: an agent whose interval was raised has a new distance from the second sample
/// on.
pub fn follows_within(gap_ms: i64, elapsed_ms: i64) -> i64 {
    gap_ms.max(elapsed_ms.saturating_add(elapsed_ms / 2))
}

/// The rate between two readings of a counter, in hundredths of a byte per second. None across a gap, and none where the
/// reading fell: then the counter began again, and what it counted in between is unknown.
pub fn rate(now: i64, before: i64, elapsed_ms: i64, gap_ms: i64) -> Option<i64> {
    if elapsed_ms <= 0 || elapsed_ms > gap_ms {
        return None;
    }
    let bytes = i128::from(now.cast_unsigned().checked_sub(before.cast_unsigned())?);
    let elapsed = i128::from(elapsed_ms);
    i64::try_from((bytes * 100_000 + elapsed / 2) / elapsed).ok()
}

/// The same for any counter, as it is stored: of a float in its unit per second.
pub fn rate_of(field: Field, now: i64, before: i64, elapsed_ms: i64, gap_ms: i64) -> Option<i64> {
    match field.scale {
        Scale::Whole | Scale::Parts(_) => rate(now, before, elapsed_ms, gap_ms),
        Scale::Float => {
            if elapsed_ms <= 0 || elapsed_ms > gap_ms {
                return None;
            }
            let risen = field.value(now) - field.value(before);
            // A sum with 0 is never -0, which stands for an unknown rate.
            (risen >= 0.0).then(|| spread::keep(risen * 1000.0 / elapsed_ms as f64))
        }
    }
}

/// When the bucket of this width that contains `at` begins; both in milliseconds. Buckets are aligned to the epoch.
pub fn bucket_start(at: i64, width_ms: i64) -> i64 {
    at.div_euclid(width_ms).saturating_mul(width_ms)
}

/// Makes one row for each bucket. Rows must be sorted.
pub struct Downsampler {
    width_ms: i64,
    gap_ms: i64,
    open: Option<Bucket>,
    /// The previous sample, from which rates are calculated.
    previous: Option<Row>,
    /// Its distance from the one before it.
    elapsed_ms: i64,
}

impl Downsampler {
    /// A downsampler for buckets of this width, in milliseconds.
    pub fn new(width_ms: i64) -> Self {
        Self { width_ms, gap_ms: gap_ms(DEFAULT_SPACING_MS), open: None, previous: None, elapsed_ms: 0 }
    }

    /// Sets the usual distance of samples from here on.
    pub fn set_spacing(&mut self, spacing_ms: i64) {
        self.gap_ms = gap_ms(spacing_ms);
    }

    /// The same, from the times of the samples that follow. A single one yields it together with the previous sample.
    pub fn learn_spacing(&mut self, times: impl Iterator<Item = i64>) {
        let times: Vec<i64> = self.previous.iter().map(|row| row.at).chain(times).take(256).collect();
        if times.len() > 1 {
            self.set_spacing(spacing_ms(&times));
        }
    }

    /// Sets a sample that precedes the first row and is not counted itself.
    pub fn begin_after(&mut self, previous: Option<Row>) {
        self.previous = previous;
    }

    /// Adds a row. Returns the previous bucket when this row begins another.
    pub fn add(&mut self, row: &Row, granularity: Granularity) -> Option<Row> {
        let start = bucket_start(row.at, self.width_ms);
        let complete = match &self.open {
            Some(open) if open.start == start => None,
            _ => self.open.replace(Bucket::new(start, row.shape.clone())).map(Bucket::finish),
        };
        let elapsed_ms = self.previous.as_ref().map_or(0, |previous| row.at.saturating_sub(previous.at));
        let gap_ms = follows_within(self.gap_ms, std::mem::replace(&mut self.elapsed_ms, elapsed_ms));
        if let Some(open) = &mut self.open {
            match granularity {
                Granularity::Raw => open.add_sample(row, self.previous.as_ref(), gap_ms),
                Granularity::Rolled => open.add_rolled(row),
            }
        }
        // An aggregate does not say when its counters were read.
        self.previous = (granularity == Granularity::Raw).then(|| row.clone());
        complete
    }

    /// Returns the last bucket.
    pub fn finish(self) -> Option<Row> {
        self.open.map(Bucket::finish)
    }
}

/// Aggregates rows.
pub fn roll(rows: &[Row], granularity: Granularity, width_ms: i64, before: Option<Row>) -> Vec<Row> {
    let mut downsampler = Downsampler::new(width_ms);
    downsampler.begin_after(before);
    if granularity == Granularity::Raw {
        downsampler.learn_spacing(rows.iter().map(|row| row.at));
    }
    let mut rolled: Vec<Row> = rows.iter().filter_map(|row| downsampler.add(row, granularity)).collect();
    rolled.extend(downsampler.finish());
    rolled
}

/// Combines rows of the same buckets from two sources. Both are sorted.
fn combined(mut rows: Vec<Row>, others: Vec<Row>, width_ms: i64) -> Vec<Row> {
    rows.extend(others);
    rows.sort_by_key(|row| row.at);
    roll(&rows, Granularity::Rolled, width_ms, None)
}

struct Bucket {
    start: i64,
    count: i64,
    shape: Arc<Shape>,
    stats: Vec<Stat>,
}

/// The aggregate of one column so far.
#[derive(Clone)]
struct Stat {
    field: Field,
    /// For a counter or fact.
    last: i64,
    /// For a gauge's values or a counter's rates.
    spread: Option<Spread>,
}

impl Stat {
    fn new(slot: ColumnRef<'_>) -> Self {
        Self { field: slot.field, last: 0, spread: None }
    }

    /// Adds an aggregate of `weight` samples, with values as they are stored.
    #[inline]
    fn spread_over(&mut self, weight: i64, mean: i64, least: i64, greatest: i64) {
        if weight <= 0 {
            return;
        }
        match &mut self.spread {
            Some(spread) => spread.add(self.field, weight, mean, least, greatest),
            None => self.spread = Some(Spread::of(self.field, weight, mean, least, greatest)),
        }
    }

    /// `count` is the number of samples in the bucket.
    fn finish(&self, count: i64, out: &mut Vec<i64>) {
        let missing = count - self.spread.as_ref().map_or(0, Spread::weight);
        match self.field.kind {
            Kind::Last => out.push(self.last),
            Kind::Gauge => {
                out.extend(self.spread.as_ref().map(|spread| spread.kept(self.field)).unwrap_or_default());
                out.push(missing);
            }
            Kind::Counter => {
                out.push(self.last);
                out.extend(self.spread.as_ref().map_or([NO_RATE; 3], |spread| spread.kept(self.field)));
                out.push(missing);
            }
        }
    }
}

impl Bucket {
    fn new(start: i64, shape: Arc<Shape>) -> Self {
        let stats = shape.slots().map(Stat::new).collect();
        Self { start, count: 0, shape, stats }
    }

    fn add_sample(&mut self, row: &Row, previous: Option<&Row>, gap_ms: i64) {
        let places = self.places(&row.shape);
        let elapsed_ms = previous.map_or(0, |previous| row.at.saturating_sub(previous.at));
        let before = previous.map(|previous| PreviousValues::new(previous, &row.shape));
        for (index, value) in row.values.iter().enumerate() {
            let Some(stat) = self.stats.get_mut(places.get(index)) else { continue };
            match stat.field.kind {
                Kind::Last => stat.last = *value,
                Kind::Gauge => stat.spread_over(1, *value, *value, *value),
                Kind::Counter => {
                    stat.last = *value;
                    let before = before.as_ref().and_then(|before| before.get(index));
                    let rate = before.and_then(|before| rate_of(stat.field, *value, before, elapsed_ms, gap_ms));
                    rate.into_iter().for_each(|rate| stat.spread_over(1, rate, rate, rate));
                }
            }
        }
        self.count += 1;
    }

    fn add_rolled(&mut self, row: &Row) {
        let places = self.places(&row.shape);
        let mut values = row.values.iter().copied();
        let mut next = || values.next().unwrap_or_default();
        for index in 0..row.shape.width() {
            let Some(stat) = self.stats.get_mut(places.get(index)) else { continue };
            match stat.field.kind {
                Kind::Last => stat.last = next(),
                Kind::Gauge => {
                    let [mean, least, greatest, missing] = [next(), next(), next(), next()];
                    stat.spread_over(row.count - missing, mean, least, greatest);
                }
                Kind::Counter => {
                    stat.last = next();
                    let [mean, least, greatest, missing] = [next(), next(), next(), next()];
                    if mean != NO_RATE {
                        stat.spread_over(row.count - missing, mean, least, greatest);
                    }
                }
            }
        }
        self.count += row.count;
    }

    /// Maps the columns of a shape to the bucket's, and adds those that the bucket lacks.
    fn places(&mut self, shape: &Arc<Shape>) -> Places {
        if Arc::ptr_eq(shape, &self.shape) || *shape == self.shape {
            return Places::Same;
        }
        let union = Arc::new(self.shape.union(shape));
        if union.width() != self.shape.width() {
            let own = Places::between(&self.shape, &union);
            let mut stats: Vec<Stat> = union.slots().map(Stat::new).collect();
            for (index, stat) in std::mem::take(&mut self.stats).into_iter().enumerate() {
                if let Some(place) = stats.get_mut(own.get(index)) {
                    *place = stat;
                }
            }
            self.stats = stats;
            self.shape = union;
        }
        Places::between(shape, &self.shape)
    }

    fn finish(self) -> Row {
        let mut values = Vec::with_capacity(self.stats.len() * 3);
        self.stats.iter().for_each(|stat| stat.finish(self.count, &mut values));
        Row { at: self.start, count: self.count, shape: self.shape, values: values.into() }
    }
}

/// The positions of one shape's columns in another.
enum Places {
    Same,
    Other(Vec<usize>),
}

impl Places {
    fn between(from: &Shape, to: &Shape) -> Self {
        let known: std::collections::HashMap<_, usize> =
            to.slots().enumerate().map(|(place, slot)| (super::frame::Column::from(slot), place)).collect();
        let place = |slot: ColumnRef<'_>| known.get(&slot.into()).copied().unwrap_or(usize::MAX);
        Self::Other(from.slots().map(place).collect())
    }

    fn get(&self, index: usize) -> usize {
        match self {
            Self::Same => index,
            Self::Other(places) => places.get(index).copied().unwrap_or(usize::MAX),
        }
    }
}

/// The values of the previous sample, by the columns of the one that follows it.
struct PreviousValues<'a> {
    values: &'a [i64],
    places: Places,
}

impl<'a> PreviousValues<'a> {
    fn new(previous: &'a Row, shape: &Arc<Shape>) -> Self {
        let same = Arc::ptr_eq(&previous.shape, shape) || previous.shape == *shape;
        let places = if same { Places::Same } else { Places::between(shape, &previous.shape) };
        Self { values: &previous.values, places }
    }

    fn get(&self, index: usize) -> Option<i64> {
        self.values.get(self.places.get(index)).copied()
    }
}

#[cfg(test)]
mod tests;
