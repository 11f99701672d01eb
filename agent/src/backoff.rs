//! How long to wait before the next attempt to connect.
//!
//! Full jitter (Brooker, "Exponential Backoff And Jitter", 2015): a delay is drawn evenly from zero to a window that doubles
//! with every failure. A thousand agents that lost the same service at the same moment return spread out.
//!
//! But no window is longer than the service has been away so far, unless the service asked for it. Among many agents some draw
//! short delays several times in a row. Their windows would grow far longer than the whole outage, and they would return long
//! after it. With this rule an outage of some seconds ends within as many seconds for every agent.

use std::time::Duration;

use tokio::time::Instant;

/// The window of the next delay. Pure: the time and the randomness are passed in.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    window: Duration,
    /// The least next window that the service asked for.
    asked: Duration,
    /// The time of the first of the consecutive failures.
    failing_since: Option<Instant>,
}

impl Backoff {
    pub fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, window: first, asked: Duration::ZERO, failing_since: None }
    }

    /// The delay before the next attempt; `random` is drawn evenly from 0 to 1.
    pub fn delay(&mut self, now: Instant, random: f64) -> Duration {
        let away = now.saturating_duration_since(*self.failing_since.get_or_insert(now));
        let window = self.window.min(away.max(self.first)).max(std::mem::take(&mut self.asked));
        self.window = self.window.saturating_mul(2).min(self.most);
        window.mul_f64(random.clamp(0.0, 1.0))
    }

    /// Draws the next delay from a window of at least `window`, and from a wider one at each consecutive call.
    pub fn widen(&mut self, window: Duration) {
        self.window = self.window.max(window.min(self.most));
        self.asked = self.window;
    }

    /// Starts over, after a connection that proved to be stable.
    pub fn reset(&mut self) {
        *self = Self::new(self.first, self.most);
    }
}

/// Draws evenly from 0 to 1. Returns the middle without the kernel's randomness, which no machine lacks after boot.
pub fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff() -> Backoff {
        Backoff::new(Duration::from_millis(500), Duration::from_secs(60))
    }

    /// The windows of this many consecutive delays, each waited for to its end.
    fn windows(backoff: &mut Backoff, delays: usize) -> Vec<f64> {
        let mut now = Instant::now();
        let mut next = || {
            let delay = backoff.delay(now, 1.0);
            now += delay;
            delay.as_secs_f64()
        };
        (0..delays).map(|_| next()).collect()
    }

    #[test]
    fn the_window_doubles_up_to_its_bound() {
        assert_eq!(windows(&mut backoff(), 10), [0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    }

    #[test]
    fn the_window_doubles_once_per_failure_however_long_attempts_take() {
        let (mut backoff, began) = (backoff(), Instant::now());

        let long: Vec<f64> = (0..9_u32)
            .map(|failure| backoff.delay(began + Duration::from_secs(100) * failure, 1.0).as_secs_f64())
            .collect();

        assert_eq!(long, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    }

    #[test]
    fn many_failures_within_a_moment_make_no_window_longer_than_that() {
        let (mut backoff, began) = (backoff(), Instant::now());
        (0..8).for_each(|_| _ = backoff.delay(began, 0.0));

        assert_eq!(backoff.delay(began, 1.0), Duration::from_millis(500));
        assert_eq!(backoff.delay(began + Duration::from_secs(3), 1.0), Duration::from_secs(3));
    }

    #[test]
    fn a_delay_is_drawn_from_the_whole_window() {
        assert_eq!(backoff().delay(Instant::now(), 0.0), Duration::ZERO);
        assert_eq!(backoff().delay(Instant::now(), 0.25), Duration::from_millis(125));
    }

    #[test]
    fn a_stable_connection_starts_over() {
        let mut backoff = backoff();
        windows(&mut backoff, 5);

        backoff.reset();

        assert_eq!(windows(&mut backoff, 3), [0.5, 0.5, 1.0]);
    }

    #[test]
    fn a_busy_service_gets_a_wider_window_but_never_a_narrower_one() {
        let (mut backoff, now) = (backoff(), Instant::now());

        backoff.widen(Duration::from_secs(5));
        let widened = backoff.delay(now, 1.0);
        backoff.widen(Duration::from_secs(5));
        let doubled = backoff.delay(now, 1.0);

        assert_eq!((widened, doubled), (Duration::from_secs(5), Duration::from_secs(10)));
    }

    #[test]
    fn the_window_of_a_busy_service_applies_to_one_delay() {
        let (mut backoff, now) = (backoff(), Instant::now());
        backoff.widen(Duration::from_secs(5));
        backoff.delay(now, 0.2);

        assert_eq!(backoff.delay(now + Duration::from_secs(1), 1.0), Duration::from_secs(1));
    }

    #[test]
    fn draws_stay_between_zero_and_one() {
        assert!((0..1000).map(|_| random()).all(|draw| (0.0..=1.0).contains(&draw)));
    }
}
