//! Mean, minimum and maximum of many values: of integers without rounding before the end, of floats as floats.

use crate::metric::{Field, Kind, Scale};

/// The spread of a gauge's values or a counter's rates.
#[derive(Debug, Clone)]
pub enum Spread {
    Integers { sum: i128, weight: i64, least: i128, greatest: i128 },
    Floats { sum: f64, weight: f64, least: f64, greatest: f64 },
}

impl Spread {
    /// The spread of an aggregate of `weight` samples, with values as they are stored.
    pub fn of(field: Field, weight: i64, mean: i64, least: i64, greatest: i64) -> Self {
        match field.scale {
            Scale::Whole | Scale::Parts(_) => Self::Integers {
                sum: widen(field, mean) * i128::from(weight),
                weight,
                least: widen(field, least),
                greatest: widen(field, greatest),
            },
            Scale::Float => {
                let weight = weight as f64;
                Self::Floats { sum: float(mean) * weight, weight, least: float(least), greatest: float(greatest) }
            }
        }
    }

    /// Adds an aggregate of `weight` samples, with values as they are stored. It works in place, because it runs for every
    /// value of every sample.
    #[inline]
    pub fn add(&mut self, field: Field, weight: i64, mean: i64, least: i64, greatest: i64) {
        match self {
            Self::Integers { sum, weight: all, least: lowest, greatest: highest } => {
                *sum += widen(field, mean) * i128::from(weight);
                *all = all.saturating_add(weight);
                *lowest = (*lowest).min(widen(field, least));
                *highest = (*highest).max(widen(field, greatest));
            }
            Self::Floats { sum, weight: all, least: lowest, greatest: highest } => {
                let weight = weight as f64;
                *sum += float(mean) * weight;
                *all += weight;
                *lowest = lowest.min(float(least));
                *highest = highest.max(float(greatest));
            }
        }
    }

    /// How many samples it represents.
    pub fn weight(&self) -> i64 {
        match self {
            Self::Integers { weight, .. } => *weight,
            Self::Floats { weight, .. } => *weight as i64,
        }
    }

    /// Mean, minimum and maximum as they are stored.
    pub fn kept(&self, field: Field) -> [i64; 3] {
        match self {
            Self::Integers { sum, weight, least, greatest } => {
                let weight = i128::from(*weight).max(1);
                let half = weight / 2;
                let mean = (sum + if *sum < 0 { -half } else { half }) / weight;
                [mean, *least, *greatest].map(|number| narrow(field, number))
            }
            Self::Floats { sum, weight, least, greatest } => {
                // A sum of very large numbers is infinite, and a rounded mean may lie outside the range of its values.
                let mean = (sum / weight.max(1.0)).max(*least).min(*greatest);
                [mean, *least, *greatest].map(keep)
            }
        }
    }

    /// Whether all samples of the other may be among those of this one.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integers { least, greatest, .. }, Self::Integers { least: low, greatest: high, .. }) => {
                least <= low && high <= greatest
            }
            (Self::Floats { least, greatest, .. }, Self::Floats { least: low, greatest: high, .. }) => {
                least <= low && high <= greatest
            }
            (Self::Integers { .. }, Self::Floats { .. }) | (Self::Floats { .. }, Self::Integers { .. }) => false,
        }
    }
}

/// The stored form of a float: never with a sign before 0, because -0 stands for an unknown rate.
pub fn keep(value: f64) -> i64 {
    (value + 0.0).to_bits().cast_signed()
}

fn float(kept: i64) -> f64 {
    f64::from_bits(kept.cast_unsigned())
}

/// The stored integer as a number to calculate with. Rates are signed, whatever the counter's scale is.
#[inline]
fn widen(field: Field, kept: i64) -> i128 {
    match (field.scale, field.kind) {
        (Scale::Whole, Kind::Gauge) => i128::from(kept.cast_unsigned()),
        (Scale::Whole | Scale::Parts(_) | Scale::Float, _) => i128::from(kept),
    }
}

/// The integer to store for a calculated number, which lies between numbers that were stored.
fn narrow(field: Field, number: i128) -> i64 {
    match (field.scale, field.kind) {
        (Scale::Whole, Kind::Gauge) => (number as u64).cast_signed(),
        (Scale::Whole | Scale::Parts(_) | Scale::Float, _) => number as i64,
    }
}
