//! Latencies and their percentiles.

use std::fmt;
use std::time::Duration;

/// Latencies in microseconds, all kept: the percentiles are exact, and a run is bounded to a few million values.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    micros: Vec<u32>,
}

/// The percentiles of some latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    pub count: usize,
    pub p50: Duration,
    pub p95: Duration,
    pub p99: Duration,
    pub max: Duration,
}

impl Latencies {
    pub fn record(&mut self, latency: Duration) {
        self.micros.push(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX));
    }

    pub fn merge(&mut self, other: Self) {
        self.micros.extend(other.micros);
    }

    /// `None` when nothing was recorded.
    pub fn summary(mut self) -> Option<Summary> {
        self.micros.sort_unstable();
        let at = |permille| quantile(&self.micros, permille).map(|micros| Duration::from_micros(micros.into()));
        Some(Summary { count: self.micros.len(), p50: at(500)?, p95: at(950)?, p99: at(990)?, max: at(1000)? })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, p50, p95, p99, max } = self;
        let [p50, p95, p99, max] = [p50, p95, p99, max].map(|latency| millis(*latency));
        write!(f, "p50 {p50} ms, p95 {p95} ms, p99 {p99} ms, max {max} ms of {count}")
    }
}

/// The smallest value that is not less than `permille` thousandths of all of them (the nearest-rank method).
fn quantile(sorted: &[u32], permille: usize) -> Option<u32> {
    let rank = (sorted.len() * permille).div_ceil(1000).max(1);
    sorted.get(rank - 1).copied()
}

/// The middle value, or the mean of the two middle ones. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(sorted.len() / 2 - 1).map(|lower| f64::midpoint(*lower, upper))
}

/// Milliseconds to hundredths, for a table.
pub fn millis(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut latencies = Latencies::default();
        (1..=200).rev().for_each(|millis| latencies.record(Duration::from_millis(millis)));

        let summary = latencies.summary();

        let [p50, p95, p99, max] = [100, 190, 198, 200].map(Duration::from_millis);
        assert_eq!(summary, Some(Summary { count: 200, p50, p95, p99, max }));
    }

    #[test]
    fn merged_latencies_count_together() {
        let mut first = Latencies::default();
        let mut second = Latencies::default();
        first.record(Duration::from_micros(10));
        second.record(Duration::from_micros(30));

        first.merge(second);

        let micros = Duration::from_micros;
        let expected = Summary { count: 2, p50: micros(10), p95: micros(30), p99: micros(30), max: micros(30) };
        assert_eq!(first.summary(), Some(expected));
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(Latencies::default().summary(), None);
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn median_of_an_even_number_is_between_the_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }
}
