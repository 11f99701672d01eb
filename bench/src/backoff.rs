//! When an agent tries again.

use std::time::{Duration, Instant};

use signalbox_protocol::close;

use crate::socket::Closed;

/// The ceiling of the first delay, and of every one: what real agents use.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);
/// The ceiling of the first delay after the service said that it restarts or is overloaded.
const ASKED: Duration = Duration::from_secs(5);

/// The rule of real agents: full-jitter exponential backoff, so that agents that lost the service at one moment do not return
/// at one moment. Each delay is between zero and a ceiling that doubles from 0.5 s to 60 s, and is no longer than the service
/// has been away so far, unless the service asked for it.
#[derive(Debug)]
pub struct Backoff {
    ceiling: Duration,
    asked: Duration,
    failing_since: Option<Instant>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { ceiling: FIRST, asked: Duration::ZERO, failing_since: None }
    }
}

impl Backoff {
    pub fn next_delay(&mut self) -> Duration {
        self.next_ceiling(Instant::now()).mul_f64(fastrand::f64())
    }

    /// Takes note of why a connection ended or was not made.
    pub fn note(&mut self, error: &anyhow::Error) {
        let closed = error.downcast_ref::<Closed>().map(|closed| closed.code);
        if matches!(closed, Some(close::RESTARTING | close::OVERLOADED)) {
            self.ceiling = self.ceiling.max(ASKED);
            self.asked = self.ceiling;
        }
    }

    fn next_ceiling(&mut self, now: Instant) -> Duration {
        let away = now.saturating_duration_since(*self.failing_since.get_or_insert(now));
        let ceiling = self.ceiling.min(away.max(FIRST)).max(std::mem::take(&mut self.asked));
        self.ceiling = self.ceiling.saturating_mul(2).min(LONGEST);
        ceiling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ceilings of this many consecutive delays, each waited for to its end.
    fn ceilings(backoff: &mut Backoff, delays: usize) -> Vec<u128> {
        let mut now = Instant::now();
        let mut next = || {
            let ceiling = backoff.next_ceiling(now);
            now += ceiling;
            ceiling.as_millis()
        };
        (0..delays).map(|_| next()).collect()
    }

    #[test]
    fn ceiling_doubles_from_half_a_second_to_a_minute() {
        let ten = ceilings(&mut Backoff::default(), 10);

        assert_eq!(ten, [500, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    }

    #[test]
    fn many_failures_within_a_moment_make_no_ceiling_higher_than_that() {
        let (mut backoff, began) = (Backoff::default(), Instant::now());
        (0..8).for_each(|_| _ = backoff.next_ceiling(began));

        assert_eq!(backoff.next_ceiling(began + Duration::from_secs(3)), Duration::from_secs(3));
    }

    #[test]
    fn a_service_that_asks_for_it_is_given_time() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());

        for (code, ceiling) in [(close::RESTARTING, 5), (close::OVERLOADED, 10)] {
            let closed = anyhow::Error::new(Closed { code, reason: "later".to_owned() });
            backoff.note(&closed.context("no answer to auth"));
            assert_eq!(backoff.next_ceiling(now), Duration::from_secs(ceiling));
        }
        backoff.note(&anyhow::Error::new(Closed { code: close::MALFORMED, reason: String::new() }));
        assert_eq!(backoff.next_ceiling(now), FIRST);
    }
}
