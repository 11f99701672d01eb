//! Columns that nearly follow from others are kept as what is left when they are predicted: mostly nothing.
//!
//! A percentage follows from its parts; what is free from what is used; the uptime from the time. The least and the
//! greatest of a gauge lie near its mean. The prediction is exact integer arithmetic, so what was kept comes back to
//! the bit, whatever it was.

use super::BlockError;
use crate::frame::{Frame, Grain, NO_RATE};
use crate::metric::{Field, Kind, Scale};
use crate::wire::{Malformed, Reader, Writer};

/// From what a field is predicted: other columns of the same owner, by their numbers, or the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// Whole seconds of the time.
    Seconds,
    /// Hundredths of a percent that the first is of the second.
    PercentOf(u16, u16),
    /// Hundredths of a percent that the first is of both.
    PercentOfBoth(u16, u16),
    /// What the other does not take.
    Rest(u16),
}

/// What is predicted, in the order in which it is taken off. Which predictions a block was written with stands in it.
pub type Predictions = Vec<(u16, Prediction)>;

/// Those of the blocks that this build writes. A percentage is predicted from free bytes, which
/// are predicted themselves: so it goes first.
pub fn predictions() -> Predictions {
    vec![
        (Field::DISK_PERCENT.number, Prediction::PercentOfBoth(Field::DISK_USED.number, Field::DISK_FREE.number)),
        (Field::DISK_FREE.number, Prediction::Rest(Field::DISK_USED.number)),
        (Field::MEMORY_PERCENT.number, Prediction::PercentOf(Field::MEMORY_USED.number, Field::MEMORY_TOTAL.number)),
        (Field::UPTIME.number, Prediction::Seconds),
    ]
}

/// Those of every block of version 1, which said nothing of them. Frozen.
pub fn predictions_of_version_1() -> Predictions {
    vec![
        (15, Prediction::PercentOfBoth(13, 14)),
        (14, Prediction::Rest(13)),
        (1, Prediction::PercentOf(3, 2)),
        (9, Prediction::Seconds),
    ]
}

/// The most predictions of a block.
const MAX_PREDICTIONS: usize = 64;

impl Prediction {
    fn sources(self) -> impl Iterator<Item = u16> {
        let (one, other) = match self {
            Self::Seconds => (None, None),
            Self::PercentOf(a, b) | Self::PercentOfBoth(a, b) => (Some(a), Some(b)),
            Self::Rest(a) => (Some(a), None),
        };
        one.into_iter().chain(other)
    }

    /// Its number in a block.
    fn number(self) -> u64 {
        match self {
            Self::Seconds => 0,
            Self::PercentOf(..) => 1,
            Self::PercentOfBoth(..) => 2,
            Self::Rest(_) => 3,
        }
    }
}

pub fn write(predictions: &Predictions, out: &mut Writer) {
    out.number(predictions.len() as u64);
    for (field, prediction) in predictions {
        out.number((*field).into());
        out.number(prediction.number());
        prediction.sources().for_each(|source| out.number(source.into()));
    }
}

pub fn read(input: &mut Reader<'_>) -> Result<Predictions, BlockError> {
    let mut predictions = Predictions::new();
    for _ in 0..input.count(MAX_PREDICTIONS)? {
        let field = input.narrow()?;
        let prediction = match input.number()? {
            0 => Prediction::Seconds,
            1 => Prediction::PercentOf(input.narrow()?, input.narrow()?),
            2 => Prediction::PercentOfBoth(input.narrow()?, input.narrow()?),
            3 => Prediction::Rest(input.narrow()?),
            _ => return Err(Malformed("a column is predicted in an unknown way").into()),
        };
        predictions.push((field, prediction));
    }
    Ok(predictions)
}

/// The fields of the same owner that must be read for a field: what it is predicted from, and what that is.
pub fn sources(predictions: &Predictions, field: u16) -> Vec<u16> {
    let of = |field: u16| {
        let own = predictions.iter().filter(move |(predicted, _)| *predicted == field);
        own.flat_map(|(_, prediction)| prediction.sources())
    };
    let near: Vec<u16> = of(field).collect();
    near.iter().flat_map(|near| of(*near)).chain(near.iter().copied()).collect()
}

/// Puts what is left in the place of every value.
pub fn take_off(frame: &mut Frame, predictions: &Predictions) {
    near_the_mean(frame, i64::wrapping_sub);
    for (field, prediction) in predictions {
        predict(frame, *field, *prediction, i64::wrapping_sub);
    }
}

/// The opposite of [`take_off`]. Columns whose sources were not read stay as they are.
pub fn put_on(frame: &mut Frame, predictions: &Predictions) {
    for (field, prediction) in predictions.iter().rev() {
        predict(frame, *field, *prediction, i64::wrapping_add);
    }
    near_the_mean(frame, i64::wrapping_add);
}

/// Of a gauge: the least and greatest by how far they are from the mean.
fn near_the_mean(frame: &mut Frame, apply: fn(i64, i64) -> i64) {
    if frame.grain == Grain::Raw {
        return;
    }
    let columns = frame.columns.iter().zip(&mut frame.vectors);
    // The bits of floats are no numbers to calculate with.
    let is_near = |field: Field| field.kind != Kind::Last && field.scale != Scale::Float;
    for (_, stats) in columns.filter(|(column, _)| is_near(column.field)) {
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

/// Of all but counters: the value or mean by how far it is from what is predicted.
fn predict(frame: &mut Frame, field: u16, prediction: Prediction, apply: fn(i64, i64) -> i64) {
    for place in 0..frame.columns.len() {
        if frame.columns.get(place).is_none_or(|column| column.field.number != field) {
            continue;
        }
        let Some(predicted) = predicted(frame, prediction, place) else { continue };
        let Some(vector) = frame.vectors.get_mut(place).and_then(Option::as_mut).and_then(|stats| stats.first_mut())
        else {
            continue;
        };
        vector.iter_mut().zip(predicted).for_each(|(value, predicted)| *value = apply(*value, predicted));
    }
}

fn predicted(frame: &Frame, prediction: Prediction, place: usize) -> Option<Vec<i64>> {
    let owner = &frame.columns.get(place)?.of;
    let source = |field: u16| {
        // The columns of one owner stand side by side.
        let nearby = place.saturating_sub(NEARBY)..(place + NEARBY).min(frame.columns.len());
        let is_it =
            |near: &usize| frame.columns.get(*near).is_some_and(|it| it.field.number == field && it.of == *owner);
        frame.vectors.get(nearby.into_iter().find(is_it)?)?.as_ref()?.first()
    };
    let pairs = |a: u16, b: u16, of: fn(i64, i64) -> i64| {
        Some(source(a)?.iter().zip(source(b)?).map(|(a, b)| of(*a, *b)).collect())
    };
    match prediction {
        Prediction::PercentOf(part, whole) => pairs(part, whole, percent),
        Prediction::PercentOfBoth(part, rest) => pairs(part, rest, |part, rest| percent(part, part.wrapping_add(rest))),
        Prediction::Rest(of) => Some(source(of)?.iter().map(|other| other.wrapping_neg()).collect()),
        Prediction::Seconds => Some(frame.times.iter().map(|at| at.div_euclid(1000)).collect()),
    }
}

/// How far the columns of one owner may be apart.
pub const NEARBY: usize = 4;

/// Hundredths of a percent, rounded.
fn percent(part: i64, whole: i64) -> i64 {
    let (part, whole) = (i128::from(part.cast_unsigned()), i128::from(whole.cast_unsigned()));
    if whole == 0 { 0 } else { ((part * 10_000 + whole / 2) / whole) as i64 }
}
