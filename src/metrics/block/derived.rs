//! Columns that nearly follow from others are kept as what is left when they are predicted: mostly nothing.
//!
//! A percentage follows from its parts; what is free from what is used; the uptime from the time. The least and the
//! greatest of a gauge lie near its mean. The prediction is exact integer arithmetic, so what was kept comes back to
//! the bit, whatever it was.

use crate::metrics::frame::{Frame, Grain, NO_RATE};
use crate::metrics::shape::{Field, Kind};

/// The columns of the same owner that a field is predicted from.
pub fn sources(field: Field) -> &'static [Field] {
    match field {
        Field::MemoryPercent => &[Field::MemoryUsed, Field::MemoryTotal],
        Field::DiskPercent => &[Field::DiskUsed, Field::DiskFree],
        Field::DiskFree => &[Field::DiskUsed],
        _ => &[],
    }
}

/// Puts what is left in the place of every value.
pub fn take_off(frame: &mut Frame) {
    near_the_mean(frame, i64::wrapping_sub);
    // A percentage is predicted from free bytes, which are predicted themselves: so it goes first.
    for field in [Field::DiskPercent, Field::DiskFree, Field::MemoryPercent, Field::Uptime] {
        predict(frame, field, i64::wrapping_sub);
    }
}

/// The opposite of [`take_off`]. Columns whose sources were not read stay as they are.
pub fn put_on(frame: &mut Frame) {
    for field in [Field::Uptime, Field::MemoryPercent, Field::DiskFree, Field::DiskPercent] {
        predict(frame, field, i64::wrapping_add);
    }
    near_the_mean(frame, i64::wrapping_add);
}

/// Of a gauge: the least and greatest by how far they are from the mean.
fn near_the_mean(frame: &mut Frame, apply: fn(i64, i64) -> i64) {
    if frame.grain == Grain::Raw {
        return;
    }
    let columns = frame.columns.iter().zip(&mut frame.vectors);
    for (_, stats) in columns.filter(|(column, _)| column.field.kind() != Kind::Fact) {
        // Of a counter the first is its last value; the rate's mean follows.
        let Some([.., mean, least, greatest, _missing]) = stats.as_deref_mut() else { continue };
        for ((mean, least), greatest) in mean.iter().zip(least).zip(greatest) {
            // A rate that is not known has neither.
            if *mean != NO_RATE {
                *least = apply(*least, *mean);
                *greatest = apply(*greatest, *mean);
            }
        }
    }
}

/// Of a gauge or fact: the value or mean by how far it is from what is predicted.
fn predict(frame: &mut Frame, field: Field, apply: fn(i64, i64) -> i64) {
    for place in 0..frame.columns.len() {
        if frame.columns.get(place).is_none_or(|column| column.field != field) {
            continue;
        }
        let Some(predicted) = prediction(frame, field, place) else { continue };
        let Some(vector) = frame.vectors.get_mut(place).and_then(Option::as_mut).and_then(|stats| stats.first_mut())
        else {
            continue;
        };
        vector.iter_mut().zip(predicted).for_each(|(value, predicted)| *value = apply(*value, predicted));
    }
}

fn prediction(frame: &Frame, field: Field, place: usize) -> Option<Vec<i64>> {
    let owner = &frame.columns.get(place)?.of;
    let source = |field: Field| {
        // The columns of one owner stand side by side.
        let nearby = place.saturating_sub(NEARBY)..(place + NEARBY).min(frame.columns.len());
        let is_it = |near: &usize| frame.columns.get(*near).is_some_and(|it| it.field == field && it.of == *owner);
        frame.vectors.get(nearby.into_iter().find(is_it)?)?.as_ref()?.first()
    };
    let pairs = |a: Field, b: Field, of: fn(i64, i64) -> i64| {
        Some(source(a)?.iter().zip(source(b)?).map(|(a, b)| of(*a, *b)).collect())
    };
    match field {
        Field::MemoryPercent => pairs(Field::MemoryUsed, Field::MemoryTotal, percent),
        Field::DiskPercent => {
            pairs(Field::DiskUsed, Field::DiskFree, |used, free| percent(used, used.wrapping_add(free)))
        }
        Field::DiskFree => Some(source(Field::DiskUsed)?.iter().map(|used| used.wrapping_neg()).collect()),
        Field::Uptime => Some(frame.times.iter().map(|at| at.div_euclid(1000)).collect()),
        _ => None,
    }
}

/// How far the columns of one owner may be apart.
pub const NEARBY: usize = 4;

/// Hundredths of a percent, rounded.
fn percent(part: i64, whole: i64) -> i64 {
    let (part, whole) = (i128::from(part.cast_unsigned()), i128::from(whole.cast_unsigned()));
    if whole == 0 { 0 } else { ((part * 10_000 + whole / 2) / whole) as i64 }
}
