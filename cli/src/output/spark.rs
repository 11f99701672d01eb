//! A series in one line of a terminal.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// At most `columns` characters, each the mean of its part. A part without values is a space.
pub fn line(values: &[Option<f64>], columns: usize) -> String {
    let parts = parts(values, columns);
    let known = || parts.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    parts.iter().map(|part| part.map_or(' ', |value| level(value, low, high))).collect()
}

#[allow(clippy::cast_precision_loss)]
fn parts(values: &[Option<f64>], columns: usize) -> Vec<Option<f64>> {
    let size = values.len().div_ceil(columns.max(1)).max(1);
    let mean = |part: &[Option<f64>]| {
        let known: Vec<f64> = part.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    values.chunks(size).map(mean).collect()
}

fn level(value: f64, low: f64, high: f64) -> char {
    let share = if high > low { (value - low) / (high - low) } else { 0.0 };
    let steps = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];
    let above = steps.iter().filter(|step| share >= **step).count();
    LEVELS.get(above).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_stays_a_gap() {
        assert_eq!(line(&[Some(0.0), None, Some(50.0), Some(100.0)], 10), "▁ ▅█");
    }

    #[test]
    fn a_long_series_is_no_wider_than_asked_for() {
        let values: Vec<Option<f64>> = (0..1000).map(|value| Some(f64::from(value))).collect();

        let line = line(&values, 30);

        assert_eq!(line.chars().count(), 30);
        assert!(line.starts_with('▁') && line.ends_with('█'), "{line}");
    }

    #[test]
    fn a_constant_series_is_flat() {
        assert_eq!(line(&[Some(7.0), Some(7.0)], 5), "▁▁");
        assert_eq!(line(&[], 5), "");
    }
}
