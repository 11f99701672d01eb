//! Columns that nearly follow from others are stored as the difference from a prediction, which is mostly 0.
//!
//! A percentage follows from its parts, free space from used space, the uptime from the time. The minimum and maximum of a
//! gauge lie near its mean. The prediction is exact integer arithmetic, so every value is restored to the bit.

use super::BlockError;
use crate::frame::{Frame, Granularity, NO_RATE};
use crate::metric::{Field, Kind, Scale};
use crate::wire::{Malformed, Reader, Writer};

/// What a field is predicted from: other columns of the same owner, by their numbers, or the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// The time in whole seconds.
    Seconds,
    /// The first as a share of the second, in hundredths of a percent.
    PercentOf(u16, u16),
    /// The first as a share of both together, in hundredths of a percent.
    PercentOfBoth(u16, u16),
    /// The negative of the other: where the sum of both is constant, only that sum is left.
    Rest(u16),
}

/// The predicted fields, in the order in which [`take_off`] handles them. A block says which predictions it was written with.
pub type Predictions = Vec<(u16, Prediction)>;

/// The predictions of the blocks that this build writes. A percentage is predicted from free bytes, which are predicted
/// themselves, so it comes first.
pub fn predictions() -> Predictions {
    vec![
        (Field::DISK_PERCENT.number, Prediction::PercentOfBoth(Field::DISK_USED.number, Field::DISK_FREE.number)),
        (Field::DISK_FREE.number, Prediction::Rest(Field::DISK_USED.number)),
        (Field::MEMORY_PERCENT.number, Prediction::PercentOf(Field::MEMORY_USED.number, Field::MEMORY_TOTAL.number)),
        (Field::UPTIME.number, Prediction::Seconds),
    ]
}

/// The predictions of every block of version 1, which does not list them. Frozen.
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

    /// The prediction's number in a block.
    fn number(self) -> u64 {
        match self {
            Self::Seconds => 0,
            Self::PercentOf(..) => 1,
            Self::PercentOfBoth(..) => 2,
            Self::Rest(_) => 3,
        }
    }
}

/// Writes the predictions of a block.
pub fn write(predictions: &Predictions, out: &mut Writer) {
    out.number(predictions.len() as u64);
    for (field, prediction) in predictions {
        out.number((*field).into());
        out.number(prediction.number());
        prediction.sources().for_each(|source| out.number(source.into()));
    }
}

/// Reads the predictions of a block.
///
/// # Errors
///
/// When there are too many, or one is of an unknown kind.
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

/// The fields of the same owner that a reader of a field needs: those that it is predicted from, and theirs in turn.
pub fn sources(predictions: &Predictions, field: u16) -> Vec<u16> {
    let of = |field: u16| {
        let own = predictions.iter().filter(move |(predicted, _)| *predicted == field);
        own.flat_map(|(_, prediction)| prediction.sources())
    };
    let near: Vec<u16> = of(field).collect();
    near.iter().flat_map(|near| of(*near)).chain(near.iter().copied()).collect()
}

/// Replaces every value by its difference from the prediction.
pub fn take_off(frame: &mut Frame, predictions: &Predictions) {
    near_the_mean(frame, i64::wrapping_sub);
    for (field, prediction) in predictions {
        predict(frame, *field, *prediction, i64::wrapping_sub);
    }
}

/// The inverse of [`take_off`]. Columns whose sources were not read stay as they are.
pub fn put_on(frame: &mut Frame, predictions: &Predictions) {
    for (field, prediction) in predictions.iter().rev() {
        predict(frame, *field, *prediction, i64::wrapping_add);
    }
    near_the_mean(frame, i64::wrapping_add);
}

/// For gauges: stores minimum and maximum as distances from the mean.
fn near_the_mean(frame: &mut Frame, apply: fn(i64, i64) -> i64) {
    if frame.granularity == Granularity::Raw {
        return;
    }
    let columns = frame.columns.iter().zip(&mut frame.vectors);
    // The bits of floats are no numbers to calculate with.
    let is_near = |field: Field| field.kind != Kind::Last && field.scale != Scale::Float;
    for (_, stats) in columns.filter(|(column, _)| is_near(column.field)) {
        // A counter's first value is its last reading; the mean of its rate follows.
        let Some([.., mean, least, greatest, _missing]) = stats.as_deref_mut() else { continue };
        for ((mean, least), greatest) in mean.iter().zip(least).zip(greatest) {
            // An unknown rate has no minimum and maximum.
            if *mean != NO_RATE {
                *least = apply(*least, *mean);
                *greatest = apply(*greatest, *mean);
            }
        }
    }
}

/// For all but counters: stores the value or mean as its distance from the prediction.
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
        // The columns of one owner are adjacent.
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
