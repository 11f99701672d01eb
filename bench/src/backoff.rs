//! When an agent tries again.

use std::time::Duration;

/// The ceiling of the first delay, and of every one: what real agents use.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// Full-jitter exponential backoff: each delay is anywhere between nothing and a ceiling that doubles from 0.5 s to
/// 60 s, so that agents that lost the service in one moment do not come back in one moment.
#[derive(Debug, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    pub fn next_delay(&mut self) -> Duration {
        let ceiling = self.ceiling();
        self.attempts = self.attempts.saturating_add(1);
        ceiling.mul_f64(fastrand::f64())
    }

    fn ceiling(&self) -> Duration {
        FIRST.saturating_mul(2_u32.saturating_pow(self.attempts)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceiling_doubles_from_half_a_second_to_a_minute() {
        let mut backoff = Backoff::default();

        let ceilings: Vec<u64> = (0..9)
            .map(|_| {
                let ceiling = backoff.ceiling();
                assert!(backoff.next_delay() <= ceiling);
                ceiling.as_millis() as u64
            })
            .collect();

        assert_eq!(ceilings, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    }
}
