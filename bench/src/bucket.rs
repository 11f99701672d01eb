//! What the service should return for a series' values in one time range.

use crate::rest::Column;

/// The values of one time range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    sum: f64,
    count: f64,
    min: f64,
    max: f64,
}

impl Bucket {
    pub fn of(value: f64) -> Self {
        Self { sum: value, count: 1.0, min: value, max: value }
    }

    pub fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1.0;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Whether a point of a column says the same: the mean in hundredths at least, the extremes to the bit.
    pub fn is_told_by(&self, column: &Column, index: usize) -> bool {
        self.is_told_within(0.005_001, column, index)
    }

    /// The same, where the service returns rounded means: those of whole numbers are whole.
    pub fn is_told_within(&self, rounding: f64, column: &Column, index: usize) -> bool {
        let of = |values: &[Option<f64>]| values.get(index).copied().flatten();
        let mean = self.sum / self.count;
        let near = |told: f64| (told - mean).abs() <= rounding + mean.abs() * 1e-9;
        of(&column.avg).is_some_and(near) && of(&column.min) == Some(self.min) && of(&column.max) == Some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_its_mean_in_hundredths_and_its_extremes() {
        let mut bucket = Bucket::of(1.0);
        [1.0, 2.0].into_iter().for_each(|value| bucket.add(value));
        let column = |avg, min, max| Column { avg: vec![Some(avg)], min: vec![Some(min)], max: vec![Some(max)] };

        assert!(bucket.is_told_by(&column(1.33, 1.0, 2.0), 0));
        assert!(!bucket.is_told_by(&column(1.35, 1.0, 2.0), 0));
        assert!(!bucket.is_told_by(&column(1.33, 1.0, 1.9), 0));
        assert!(!bucket.is_told_by(&column(1.33, 1.0, 2.0), 1));
    }
}
