//! Samples that arrive so late that only aggregates of their minutes are left. The samples of those minutes are gone, so a
//! duplicate cannot be looked up; an agent whose connection breaks while it sends its backlog sends some samples twice.
//!
//! An aggregate bounds its samples: it has at least as many, and each gauge lies between minimum and maximum. So every
//! duplicate is recognised and adds nothing. A new sample that is mistaken for a duplicate would have changed neither a minimum
//! nor a maximum nor a last value, only a mean within these.

use std::collections::HashMap;

use super::combined;
use super::spread::Spread;
use crate::frame::{Column, Granularity, Row};
use crate::metric::Kind;

/// Adds late rows to the aggregates of the same time, unless these contain them already.
pub fn combined_once(known: Vec<Row>, late: Vec<Row>, width_ms: i64) -> Vec<Row> {
    let by_start: HashMap<i64, &Row> = known.iter().map(|row| (row.at, row)).collect();
    let new: Vec<Row> =
        late.into_iter().filter(|row| !by_start.get(&row.at).is_some_and(|known| covers(known, row))).collect();
    combined(known, new, width_ms)
}

/// Whether all samples of an aggregate may be among those of another.
fn covers(known: &Row, late: &Row) -> bool {
    if known.count < late.count {
        return false;
    }
    let known = spreads(known);
    spreads(late).into_iter().all(|(column, late)| {
        // A missing column was dropped: a server has a limited number of them.
        known.get(&column).is_none_or(|known| known.covers(&late))
    })
}

/// The range of each gauge of an aggregate.
fn spreads(row: &Row) -> HashMap<Column, Spread> {
    let mut values = row.values.iter().copied();
    let mut spreads = HashMap::new();
    for slot in row.shape.slots() {
        let stats: Vec<i64> = values.by_ref().take(Granularity::Rolled.stats(slot.field)).collect();
        // For a gauge: mean, minimum, maximum, and how many samples lacked it.
        if let (Kind::Gauge, [mean, least, greatest, missing]) = (slot.field.kind, stats.as_slice())
            && *missing < row.count
        {
            spreads.insert(slot.into(), Spread::of(slot.field, row.count - missing, *mean, *least, *greatest));
        }
    }
    spreads
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signalbox_protocol::{Sample, Timestamp};

    use super::super::roll;
    use super::*;
    use crate::shape::Shape;

    const MINUTE_MS: i64 = 60_000;

    fn samples(seconds: std::ops::Range<i64>) -> Vec<Row> {
        let row = |second: i64| {
            let sample = Sample {
                timestamp: Timestamp::from_millis(second * 1_000),
                cpu_percent: (second * 37 % 100) as f64,
                memory_used: 1_000 + (second * 13 % 60).cast_unsigned(),
                ..Sample::default()
            };
            Row::of(&sample, Arc::new(Shape::of(&sample)))
        };
        seconds.step_by(5).map(row).collect()
    }

    fn minutes(seconds: std::ops::Range<i64>) -> Vec<Row> {
        roll(&samples(seconds), Granularity::Raw, MINUTE_MS, None)
    }

    #[test]
    fn duplicates_count_once_however_they_are_batched() {
        let known = combined_once(minutes(0..75), minutes(75..180), MINUTE_MS);

        for again in [minutes(0..180), minutes(60..120), minutes(30..95), minutes(75..180)] {
            assert_eq!(combined_once(known.clone(), again, MINUTE_MS), known);
        }
        assert_eq!(known.iter().map(|row| row.count).collect::<Vec<_>>(), [12, 12, 12]);
    }

    #[test]
    fn new_samples_are_added_before_and_after_the_known_ones() {
        let known = combined_once(minutes(20..40), minutes(0..20), MINUTE_MS);
        let known = combined_once(known, minutes(40..60), MINUTE_MS);

        assert_eq!(known, minutes(0..60));
    }
}
