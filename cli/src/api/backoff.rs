//! How long to wait before the next attempt to connect.

use std::time::Duration;

use uuid::Uuid;

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
}
