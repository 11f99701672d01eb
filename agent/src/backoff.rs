//! How long to wait before the next attempt to connect.
//!
//! Full jitter (Brooker, "Exponential Backoff And Jitter", 2015): a delay is drawn evenly from zero to a window that
//! doubles with every failure. A thousand agents that lost the same service at the same moment come back spread out.

use std::time::Duration;

/// The window of the next delay. Pure: the randomness is passed in.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    window: Duration,
}

impl Backoff {
    pub fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, window: first }
    }

    /// The delay before the next attempt; `random` is evenly drawn from 0 to 1.
    pub fn delay(&mut self, random: f64) -> Duration {
        let delay = self.window.mul_f64(random.clamp(0.0, 1.0));
        self.window = self.window.saturating_mul(2).min(self.most);
        delay
    }

    /// The next delay is drawn from a window of at least `window`.
    pub fn widen(&mut self, window: Duration) {
        self.window = self.window.max(window.min(self.most));
    }

    /// After a connection that proved to be stable.
    pub fn reset(&mut self) {
        self.window = self.first;
    }
}

/// An even draw from 0 to 1. Without the kernel's randomness, which no machine lacks after boot, the middle.
pub fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff() -> Backoff {
        Backoff::new(Duration::from_millis(500), Duration::from_secs(60))
    }

    #[test]
    fn the_window_doubles_up_to_its_bound() {
        let mut backoff = backoff();

        let longest: Vec<f64> = (0..10).map(|_| backoff.delay(1.0).as_secs_f64()).collect();

        assert_eq!(longest, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]);
    }

    #[test]
    fn a_delay_is_drawn_from_the_whole_window() {
        assert_eq!(backoff().delay(0.0), Duration::ZERO);
        assert_eq!(backoff().delay(0.25), Duration::from_millis(125));
    }

    #[test]
    fn a_stable_connection_starts_over() {
        let mut backoff = backoff();
        for _ in 0..5 {
            backoff.delay(1.0);
        }

        backoff.reset();

        assert_eq!(backoff.delay(1.0), Duration::from_millis(500));
    }

    #[test]
    fn a_busy_service_is_given_a_wider_window_but_never_a_narrower_one() {
        let mut backoff = backoff();

        backoff.widen(Duration::from_secs(5));
        let widened = backoff.delay(1.0);
        backoff.widen(Duration::from_secs(5));
        let doubled = backoff.delay(1.0);

        assert_eq!((widened, doubled), (Duration::from_secs(5), Duration::from_secs(10)));
    }

    #[test]
    fn draws_stay_between_zero_and_one() {
        assert!((0..1000).map(|_| random()).all(|draw| (0.0..=1.0).contains(&draw)));
    }
}
