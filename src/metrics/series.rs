//! Reads the history as columns, for charts.

use std::collections::BTreeMap;

use signalbox_history::frame::{Column, Frame, Granularity, NO_RATE};
use signalbox_history::metric::{Kind, Scale};
use signalbox_history::rollup::{self, bucket_start, follows_within, gap_ms};

use super::query::reader::Reader;
use super::query::wanted::{Selection, name_of};
use super::query::{HistoryError, Resolution};
use crate::shares::Permit;

/// Columns with a common list of times.
#[derive(Debug, Default)]
pub struct Series {
    pub resolution_seconds: i64,
    /// Seconds since the epoch, ascending.
    pub timestamps: Vec<i64>,
    /// The columns by name.
    pub columns: BTreeMap<String, Points>,
    /// How many blocks could not be read.
    pub damaged_blocks: usize,
    /// Their place among the answers of an account.
    pub place: Option<Permit>,
}

/// The values of one series, one for each time up to its last one; `None` for times without a value.
#[derive(Debug, Default)]
pub struct Points {
    values: Vec<Point>,
    /// Whether the values may be of any magnitude, so that means are not rounded to hundredths.
    is_float: bool,
    counter: Option<CounterValue>,
}

/// The last value of a counter.
#[derive(Debug, Clone, Copy)]
struct CounterValue {
    at: i64,
    value: i64,
    /// Milliseconds since the value before.
    elapsed_ms: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Point {
    sum: f64,
    weight: f64,
    least: f64,
    greatest: f64,
}

/// A value at a time: the mean, the minimum and the maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown {
    pub avg: f64,
    pub min: f64,
    pub max: f64,
}

/// From this many values on, a frame is added on a blocking thread: about 50 µs.
const COSTLY: usize = 20_000;

/// Values that one answer may hold, about 100 MB: a hundred series with 20,000 points each.
const MAX_CELLS: usize = 2_000_000;

impl Points {
    /// Returns the value at the index of a time.
    pub fn get(&self, place: usize) -> Option<Shown> {
        let point = self.values.get(place).filter(|point| point.weight > 0.0)?;
        let mean = point.sum / point.weight;
        let rounded = if self.is_float { mean } else { (mean * 100.0).round() / 100.0 };
        // From 2^53 on not every product is exact, and the mean could leave the range.
        let avg = rounded.max(point.least).min(point.greatest);
        Some(Shown { avg, min: point.least, max: point.greatest })
    }

    pub(super) fn add(&mut self, place: usize, weight: f64, [mean, least, greatest]: [f64; 3]) {
        if self.values.len() <= place {
            self.values.resize(place + 1, Point::default());
        }
        let Some(point) = self.values.get_mut(place) else { return };
        if point.weight == 0.0 {
            *point = Point { sum: mean * weight, weight, least, greatest };
        } else {
            point.sum += mean * weight;
            point.weight += weight;
            point.least = point.least.min(least);
            point.greatest = point.greatest.max(greatest);
        }
    }
}

/// Reads a range as columns, those for which the reader was opened.
pub async fn read(mut reader: Reader, resolution: Resolution) -> Result<Series, HistoryError> {
    let mut builder = Builder::new(&reader);
    while let Some(frame) = reader.next_frame().await? {
        if frame.cells() < COSTLY {
            builder.add(&frame)?;
            continue;
        }
        let built = tokio::task::spawn_blocking(move || builder.add(&frame).map(|()| builder));
        builder = built.await.map_err(|_| HistoryError::Interrupted)??;
    }
    builder.series.damaged_blocks = reader.damaged_blocks();
    if let Resolution::Auto { max_points } = resolution
        && builder.series.timestamps.len() as u64 > max_points
    {
        builder.leave_gaps_out();
    }
    let Series { columns, .. } = &mut builder.series;
    columns.retain(|_, points| !points.values.is_empty());
    builder.series.place = reader.into_place();
    Ok(builder.series)
}

/// Fills columns from left to right.
struct Builder {
    wanted: Selection,
    width_ms: Option<i64>,
    resolution_ms: i64,
    /// The usual distance of the latest samples.
    spacing_ms: i64,
    /// When the last sample was taken, if no downsampled row has followed it.
    last_sample: Option<i64>,
    series: Series,
    /// The time of the last point, in milliseconds.
    last: Option<i64>,
    /// The indexes of empty points that only break a line.
    gaps: Vec<usize>,
}

impl Builder {
    fn new(reader: &Reader) -> Self {
        let resolution_ms = reader.width_ms().unwrap_or_else(|| reader.spacing_ms());
        let series = Series { resolution_seconds: reader.resolution_seconds(), ..Series::default() };
        Self {
            wanted: reader.wanted(),
            width_ms: reader.width_ms(),
            resolution_ms,
            spacing_ms: reader.spacing_ms(),
            last_sample: None,
            series,
            last: None,
            gaps: Vec::new(),
        }
    }

    fn add(&mut self, frame: &Frame) -> Result<(), HistoryError> {
        if frame.is_lead {
            self.begin_after(frame);
            return Ok(());
        }
        let places: Vec<usize> = frame.times.iter().map(|at| self.place(*at)).collect();
        if frame.granularity == Granularity::Raw {
            // Together with the sample before, even a single one shows the distance.
            let times: Vec<i64> = self.last_sample.into_iter().chain(frame.times.iter().copied()).take(256).collect();
            if times.len() > 1 {
                self.spacing_ms = rollup::spacing_ms(&times);
            }
        }
        self.last_sample = frame.times.last().copied().filter(|_| frame.granularity == Granularity::Raw);
        let gap_ms = gap_ms(self.spacing_ms);
        let rows_with = frame.layout.rows_with();
        for ((column, stats), rows) in frame.columns.iter().zip(&frame.vectors).zip(rows_with) {
            // A frame of samples in memory has all its columns.
            let (Some(stats), true) = (stats, self.wanted.has(column)) else { continue };
            let Some(name) = name_of(column) else { continue };
            // Checked before it is filled: a column also has a place for every time before its first value.
            let columns = self.series.columns.len() + usize::from(!self.series.columns.contains_key(&name));
            if self.series.timestamps.len().max(1) * columns > MAX_CELLS {
                return Err(HistoryError::TooMuch);
            }
            let points = self.series.columns.entry(name).or_default();
            points.is_float = column.field.scale == Scale::Float;
            let rows = rows.into_iter().flatten();
            match frame.granularity {
                Granularity::Raw => add_samples(points, column, rows, stats, &places, &frame.times, gap_ms),
                Granularity::Rolled => add_rolled(points, column, rows, stats, &places, &frame.counts),
            }
        }
        Ok(())
    }

    /// Removes the empty points, to return at most as many points as requested: a chart can also find gaps by the times.
    fn leave_gaps_out(&mut self) {
        let is_gap = |place: &usize| self.gaps.binary_search(place).is_ok();
        let mut place = 0..;
        self.series.timestamps.retain(|_| place.next().is_some_and(|place| !is_gap(&place)));
        for points in self.series.columns.values_mut() {
            let mut place = 0..;
            points.values.retain(|_| place.next().is_some_and(|place| !is_gap(&place)));
        }
    }

    /// Takes the values of counters from the last row of a frame that precedes the range.
    fn begin_after(&mut self, frame: &Frame) {
        let rows_with = frame.layout.rows_with();
        for ((column, stats), rows) in frame.columns.iter().zip(&frame.vectors).zip(rows_with) {
            let is_told = column.field.kind == Kind::Counter && self.wanted.has(column);
            let last_row = rows.last().and_then(|range| range.clone().last());
            let (Some(stats), Some(name), true) = (stats, name_of(column), is_told) else { continue };
            let at = last_row.and_then(|row| frame.times.get(row));
            if let (Some(at), Some(value)) = (at, stats.first().and_then(|values| values.last())) {
                let reading = CounterValue { at: *at, value: *value, elapsed_ms: 0 };
                self.last_sample = Some(*at);
                self.series.columns.entry(name).or_default().counter = Some(reading);
            }
        }
    }

    /// Returns the index of the point for a time. A gap before it gets one empty point, so that a chart breaks its line.
    fn place(&mut self, at: i64) -> usize {
        let point = self.width_ms.map_or(at, |width_ms| bucket_start(at, width_ms));
        if self.last != Some(point) {
            if let Some(last) = self.last {
                let follows_within = self.width_ms.unwrap_or_else(|| gap_ms(self.resolution_ms));
                if point - last > follows_within {
                    let empty = last.saturating_add(self.resolution_ms);
                    self.gaps.push(self.series.timestamps.len());
                    self.series.timestamps.push(empty.div_euclid(1000));
                }
            }
            self.series.timestamps.push(point.div_euclid(1000));
            self.last = Some(point);
        }
        self.series.timestamps.len() - 1
    }
}

fn add_samples(
    points: &mut Points,
    column: &Column,
    rows: impl Iterator<Item = usize>,
    stats: &[Vec<i64>],
    places: &[usize],
    times: &[i64],
    gap_ms: i64,
) {
    let is_counter = column.field.kind == Kind::Counter;
    for (row, value) in rows.zip(stats.first().into_iter().flatten()) {
        let (Some(place), Some(at)) = (places.get(row), times.get(row)) else { continue };
        if !is_counter {
            let value = column.field.value(*value);
            points.add(*place, 1.0, [value; 3]);
            continue;
        }
        let Some(before) = points.counter else {
            points.counter = Some(CounterValue { at: *at, value: *value, elapsed_ms: 0 });
            continue;
        };
        let elapsed_ms = at.saturating_sub(before.at);
        points.counter = Some(CounterValue { at: *at, value: *value, elapsed_ms });
        let gap_ms = follows_within(gap_ms, before.elapsed_ms);
        if let Some(rate) = rollup::rate_of(column.field, *value, before.value, elapsed_ms, gap_ms) {
            points.add(*place, 1.0, [column.field.rate(rate); 3]);
        }
    }
}

fn add_rolled(
    points: &mut Points,
    column: &Column,
    rows: impl Iterator<Item = usize>,
    stats: &[Vec<i64>],
    places: &[usize],
    counts: &[i64],
) {
    // No rate can be computed from the last value of a bucket to the next sample, because the value's time is not known.
    points.counter = None;
    let field = column.field;
    if field.kind == Kind::Last {
        // Only `Last` columns that have a series.
        for (row, value) in rows.zip(stats.first().into_iter().flatten()) {
            if let (Some(place), Some(count)) = (places.get(row), counts.get(row)) {
                points.add(*place, *count as f64, [field.value(*value); 3]);
            }
        }
        return;
    }
    let [.., mean, least, greatest, missing] = stats else { return };
    for (index, row) in rows.enumerate() {
        let (Some(place), Some(count)) = (places.get(row), counts.get(row)) else { continue };
        let of = |values: &Vec<i64>| values.get(index).copied().unwrap_or(NO_RATE);
        let values = [of(mean), of(least), of(greatest)];
        let weight = count.saturating_sub(of(missing)) as f64;
        match field.kind {
            Kind::Counter if values.contains(&NO_RATE) => {}
            Kind::Counter => points.add(*place, weight, values.map(|rate| field.rate(rate))),
            Kind::Gauge | Kind::Last => points.add(*place, weight, values.map(|value| field.value(value))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_many_bytes_stays_between_its_minimum_and_maximum() {
        let bytes = 400_000_000_000_003.0;
        let mut points = Points::default();

        points.add(0, 5_000.0, [bytes; 3]);

        assert_eq!(points.get(0), Some(Shown { avg: bytes, min: bytes, max: bytes }));
    }
}
