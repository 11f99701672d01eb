//! The rate of a counter.

use std::time::Instant;

/// The last reading of a counter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rate {
    previous: Option<(u64, Instant)>,
    per_second: Option<f64>,
}

impl Rate {
    /// Adds a reading. The rate is unknown after the first one, and after a lower one: the counter began again.
    pub fn read(&mut self, count: u64, now: Instant) {
        let since = self.previous.replace((count, now));
        self.per_second = since.and_then(|(before, then)| {
            let elapsed = now.saturating_duration_since(then).as_secs_f64();
            let risen = count.checked_sub(before)?;
            (elapsed > 0.0).then(|| risen as f64 / elapsed)
        });
    }

    pub fn per_second(self) -> Option<f64> {
        self.per_second
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rate_is_the_difference_by_the_time_and_a_counter_that_began_again_has_none() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let readings = [(100, 0), (150, 10), (150, 20), (7, 30), (27, 40)];

        let rates = readings.map(|(count, second)| {
            rate.read(count, start + Duration::from_secs(second));
            rate.per_second()
        });

        assert_eq!(rates, [None, Some(5.0), Some(0.0), None, Some(2.0)]);
    }
}
