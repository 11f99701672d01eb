//! Mean, least and greatest of many values: of integers without any rounding before the end, of floats as floats.

use crate::metric::{Field, Kind, Scale};

/// Of a gauge's values or a counter's rates.
#[derive(Debug, Clone)]
pub enum Spread {
    Integers { sum: i128, weight: i64, least: i128, greatest: i128 },
    Floats { sum: f64, weight: f64, least: f64, greatest: f64 },
}

impl Spread {
    /// Of what stands for so many samples, as it is kept.
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

    /// Takes in what stands for so many samples, as it is kept. This is done for every value of every sample, so it is done
    /// in place.
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

    /// How many samples it stands for.
    pub fn weight(&self) -> i64 {
        match self {
            Self::Integers { weight, .. } => *weight,
            Self::Floats { weight, .. } => *weight as i64,
        }
    }

    /// Mean, least and greatest as they are kept.
    pub fn kept(&self, field: Field) -> [i64; 3] {
        match self {
            Self::Integers { sum, weight, least, greatest } => {
                let weight = i128::from(*weight).max(1);
                let half = weight / 2;
                let mean = (sum + if *sum < 0 { -half } else { half }) / weight;
                [mean, *least, *greatest].map(|number| narrow(field, number))
            }
            Self::Floats { sum, weight, least, greatest } => {
                // A sum of very large numbers is infinite, and a rounded one may lie beyond all that it is of.
                let mean = (sum / weight.max(1.0)).max(*least).min(*greatest);
                [mean, *least, *greatest].map(keep)
            }
        }
    }

    /// Whether all that the other has may be among what this one is of.
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

/// A float as it is kept: without a sign before 0, which stands for a rate that is not known.
pub fn keep(value: f64) -> i64 {
    (value + 0.0).to_bits().cast_signed()
}

fn float(kept: i64) -> f64 {
    f64::from_bits(kept.cast_unsigned())
}

/// The kept integer as a number to calculate with. Rates have a sign, whatever the counter counts.
#[inline]
fn widen(field: Field, kept: i64) -> i128 {
    match (field.scale, field.kind) {
        (Scale::Whole, Kind::Gauge) => i128::from(kept.cast_unsigned()),
        (Scale::Whole | Scale::Parts(_) | Scale::Float, _) => i128::from(kept),
    }
}

/// The integer to keep for a calculated number, which lies between numbers that were kept.
fn narrow(field: Field, number: i128) -> i64 {
    match (field.scale, field.kind) {
        (Scale::Whole, Kind::Gauge) => (number as u64).cast_signed(),
        (Scale::Whole | Scale::Parts(_) | Scale::Float, _) => number as i64,
    }
}
