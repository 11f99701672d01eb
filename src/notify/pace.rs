//! How fast messages follow each other, and how long each is retried.

use std::time::Duration;

use signalbox_protocol::Timestamp;

use super::limits::Limits;

/// The durations of the notifier.
#[derive(Debug, Clone)]
pub struct Pace {
    /// How long after the first message of a channel the next events are gathered: most of an incident comes within a second.
    /// Never longer than `grouping`.
    pub first_grouping: Duration,
    /// How long events are gathered after each further message, until the channel was quiet for as long.
    pub grouping: Duration,
    /// The longest wait before the second attempt; each further one may be twice as long.
    pub first_retry: Duration,
    /// The longest wait between any two attempts.
    pub longest_retry: Duration,
    /// How long a message is retried.
    pub expiry: Duration,
    /// How long each stage of a delivery may take.
    pub limits: Limits,
    /// After this time on its way, a message no longer holds up the next ones on its channel.
    pub overtaking: Duration,
    /// How long a claim keeps other instances from sending the same message. Renewed until the message ends.
    pub lease: Duration,
    /// How long a channel test may take.
    pub test: Duration,
    /// How long after a test a channel cannot be tested again.
    pub test_pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first_grouping: Duration::from_millis(1_500),
            grouping: Duration::from_secs(5),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_secs(15 * 60),
            expiry: Duration::from_secs(24 * 3_600),
            limits: Limits::default(),
            overtaking: Duration::from_secs(15),
            // Long enough for a short outage of the database, short enough for the others when an instance dies.
            lease: Duration::from_secs(30),
            // Proxies end a request after a minute, and a person waits for the result.
            test: Duration::from_secs(30),
            test_pause: Duration::from_secs(2),
        }
    }
}

/// The longest pause that a destination may ask for.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

impl Pace {
    /// Returns when to try again, with full jitter, so that messages that failed together are not retried together. `random`
    /// is uniformly distributed; `pause` is what the destination asked for. Returns `None` if the message would expire first.
    pub fn again(&self, tried: &Tried, pause: Option<Duration>, random: u32) -> Option<Timestamp> {
        let doublings = tried.attempts.saturating_sub(1).min(30);
        let ceiling = self.first_retry.saturating_mul(1 << doublings).min(self.longest_retry);
        let jittered = ceiling.mul_f64(f64::from(random) / f64::from(u32::MAX));
        let wait = jittered.max(pause.unwrap_or_default().min(MAX_PAUSE));
        let again_at = after(tried.now, wait);
        (again_at <= after(tried.created_at, self.expiry)).then_some(again_at)
    }
}

/// A message that could not be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// At least one.
    pub attempts: u32,
    /// When its newest item was queued.
    pub created_at: Timestamp,
    pub now: Timestamp,
}

pub fn after(at: Timestamp, wait: Duration) -> Timestamp {
    at.plus_millis(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_700_000_000_000;

    fn tried(attempts: u32, age: Duration) -> Tried {
        let created_at = Timestamp::from_millis(START);
        Tried { attempts, created_at, now: after(created_at, age) }
    }

    fn wait(attempts: u32, pause: Option<Duration>, random: u32) -> i64 {
        let tried = tried(attempts, Duration::ZERO);
        Pace::default().again(&tried, pause, random).unwrap().millis_since(tried.now)
    }

    #[test]
    fn waits_double_up_to_a_quarter_of_an_hour() {
        let longest: Vec<i64> = [1, 2, 3, 10, 11, 12, 5_000].map(|attempts| wait(attempts, None, u32::MAX)).into();

        assert_eq!(longest, [1_000, 2_000, 4_000, 512_000, 900_000, 900_000, 900_000]);
    }

    #[test]
    fn jitter_is_full() {
        assert_eq!(wait(5, None, 0), 0);
        assert_eq!(wait(5, None, u32::MAX / 2), 7_999);
        assert_eq!(wait(5, None, u32::MAX), 16_000);
    }

    #[test]
    fn a_requested_pause_is_granted_up_to_an_hour() {
        assert_eq!(wait(1, Some(Duration::from_secs(120)), 0), 120_000);
        assert_eq!(wait(1, Some(Duration::from_secs(86_400)), 0), 3_600_000);
        assert_eq!(wait(12, Some(Duration::from_secs(1)), u32::MAX), 900_000);
    }

    #[test]
    fn a_message_is_retried_for_a_day() {
        let day = Duration::from_secs(24 * 3_600);

        assert!(Pace::default().again(&tried(50, day - Duration::from_secs(1)), None, 0).is_some());
        assert!(Pace::default().again(&tried(50, day + Duration::from_millis(1)), None, 0).is_none());
        assert!(Pace::default().again(&tried(50, day - Duration::from_secs(1)), None, u32::MAX).is_none());
    }
}
