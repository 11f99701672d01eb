//! How long to wait before the next attempt to connect.

use std::time::Duration;

use uuid::Uuid;

use crate::error::Failure;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// Doubles with each attempt, and differs between clients: a service that restarts must not get all of them at once.
#[derive(Debug, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The pause before the next attempt.
    pub fn pause(&mut self) -> Duration {
        let longest = FIRST.saturating_mul(1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX)).min(LONGEST);
        self.attempts = self.attempts.saturating_add(1).min(16);
        longest / 2 + longest.mul_f64(share(Uuid::new_v4().as_u128()) / 2.0)
    }

    /// The pause after a failure. What the service asks for is waited for, too.
    pub fn pause_after(&mut self, failure: &Failure) -> Duration {
        self.pause() + failure.retry_after()
    }

    /// A connection worked: the next loss is another one.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// A number from 0 to 1.
fn share(random: u128) -> f64 {
    f64::from(u16::try_from(random & 0xffff).unwrap_or_default()) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;

    #[test]
    fn pauses_grow_up_to_half_a_minute_and_begin_again() {
        let mut backoff = Backoff::default();

        let first = backoff.pause();
        let later = (0..40).map(|_| backoff.pause()).last().unwrap();
        backoff.reset();
        let again = backoff.pause();

        assert!(first <= FIRST && again <= FIRST, "{first:?} {again:?}");
        assert!(later >= LONGEST / 2 && later <= LONGEST, "{later:?}");
    }

    #[test]
    fn a_service_is_left_alone_for_as_long_as_it_asks() {
        let (retry_after, mut backoff) = (Duration::from_secs(7), Backoff::default());
        let refusal = Refusal::of(429, b"");

        let pause = backoff.pause_after(&Failure::Deferred { refusal, retry_after });

        assert!(pause > retry_after && pause <= retry_after + FIRST, "{pause:?}");
    }
}
