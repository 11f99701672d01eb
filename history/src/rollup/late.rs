//! Samples that came so late that only the minutes they belong to are kept. The samples of those are gone, so whether one
//! is among them already cannot be looked up; an agent whose connection breaks in the catch-up sends some twice.
//!
//! What a minute was made of lies within it: it has at least as many samples, and each gauge lies between its least and
//! greatest. So whatever is sent twice is found, and adds nothing. What is found by mistake would have changed neither a
//! least nor a greatest nor a last value, only a mean within these.

use std::collections::HashMap;

use super::combined;
use super::spread::Spread;
use crate::frame::{Column, Grain, Row};
use crate::metric::Kind;

/// Adds what came late to the rolled rows that stand for the same time, as far as it is not in them already.
pub fn combined_once(known: Vec<Row>, late: Vec<Row>, width_ms: i64) -> Vec<Row> {
    let by_start: HashMap<i64, &Row> = known.iter().map(|row| (row.at, row)).collect();
    let new: Vec<Row> =
        late.into_iter().filter(|row| !by_start.get(&row.at).is_some_and(|known| covers(known, row))).collect();
    combined(known, new, width_ms)
}

/// Whether all samples of a rolled row may be among those of another.
fn covers(known: &Row, late: &Row) -> bool {
    if known.count < late.count {
        return false;
    }
    let known = spreads(known);
    spreads(late).into_iter().all(|(column, late)| {
        // A column that is not known was dropped: a server has only so many.
        known.get(&column).is_none_or(|known| known.covers(&late))
    })
}

/// Between what values each gauge of a rolled row lies.
fn spreads(row: &Row) -> HashMap<Column, Spread> {
    let mut values = row.values.iter().copied();
    let mut spreads = HashMap::new();
    for slot in row.shape.slots() {
        let stats: Vec<i64> = values.by_ref().take(Grain::Rolled.stats(slot.field)).collect();
        // Of a gauge: mean, least, greatest, and how many samples did not have it.
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
        roll(&samples(seconds), Grain::Raw, MINUTE_MS, None)
    }

    #[test]
    fn what_is_sent_twice_counts_once_however_it_is_cut() {
        let known = combined_once(minutes(0..75), minutes(75..180), MINUTE_MS);

        for again in [minutes(0..180), minutes(60..120), minutes(30..95), minutes(75..180)] {
            assert_eq!(combined_once(known.clone(), again, MINUTE_MS), known);
        }
        assert_eq!(known.iter().map(|row| row.count).collect::<Vec<_>>(), [12, 12, 12]);
    }

    #[test]
    fn what_is_new_is_added_before_and_after_what_is_there() {
        let known = combined_once(minutes(20..40), minutes(0..20), MINUTE_MS);
        let known = combined_once(known, minutes(40..60), MINUTE_MS);

        assert_eq!(known, minutes(0..60));
    }
}
