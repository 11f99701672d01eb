//! When the next message of a channel may be sent; events until then are gathered into it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::pace::Pace;

/// The channels that sent a message a short time ago.
#[derive(Debug)]
pub(super) struct Gathering {
    first: Duration,
    further: Duration,
    channels: HashMap<Uuid, Lively>,
}

#[derive(Debug, Clone, Copy)]
struct Lively {
    until: Instant,
    /// A message before this time is a further one.
    quiet_at: Instant,
}

impl Gathering {
    pub fn new(pace: &Pace) -> Self {
        Self { first: pace.first_grouping.min(pace.grouping), further: pace.grouping, channels: HashMap::new() }
    }

    /// A message of the channel was started.
    pub fn sent(&mut self, channel_id: Uuid, now: Instant) {
        let is_further = self.channels.get(&channel_id).is_some_and(|lively| lively.quiet_at > now);
        let until = now + if is_further { self.further } else { self.first };
        self.channels.insert(channel_id, Lively { until, quiet_at: until + self.further });
    }

    /// The message could not carry all: what is left was gathered already.
    pub fn full(&mut self, channel_id: Uuid, now: Instant) {
        if let Some(lively) = self.channels.get_mut(&channel_id) {
            lively.until = now;
        }
    }

    /// No message was sent after all.
    pub fn forget(&mut self, channel_id: Uuid) {
        self.channels.remove(&channel_id);
    }

    /// Returns how long a message of the channel still has to wait.
    pub fn wait(&self, channel_id: Uuid, now: Instant) -> Duration {
        self.channels.get(&channel_id).map_or(Duration::ZERO, |lively| lively.until.saturating_duration_since(now))
    }

    /// Forgets channels that have been quiet.
    pub fn tidy(&mut self, now: Instant) {
        self.channels.retain(|_, lively| lively.quiet_at > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: Uuid = Uuid::from_u128(1);

    fn gathering() -> Gathering {
        Gathering::new(&Pace {
            first_grouping: Duration::from_secs(1),
            grouping: Duration::from_secs(5),
            ..Pace::default()
        })
    }

    #[test]
    fn the_second_message_waits_less_than_all_further_ones() {
        let (mut gathering, start) = (gathering(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(gathering.wait(CHANNEL, start), Duration::ZERO);
        gathering.sent(CHANNEL, start);
        assert_eq!(gathering.wait(CHANNEL, start), Duration::from_secs(1));
        assert_eq!(gathering.wait(CHANNEL, at(1)), Duration::ZERO);
        gathering.sent(CHANNEL, at(1));
        assert_eq!(gathering.wait(CHANNEL, at(2)), Duration::from_secs(4));
        gathering.sent(CHANNEL, at(6));
        assert_eq!(gathering.wait(CHANNEL, at(6)), Duration::from_secs(5));
    }

    #[test]
    fn a_channel_that_was_quiet_starts_from_the_beginning() {
        let (mut gathering, start) = (gathering(), Instant::now());
        gathering.sent(CHANNEL, start);
        let later = start + Duration::from_secs(6);
        gathering.tidy(later);
        assert!(gathering.channels.is_empty());
        gathering.sent(CHANNEL, later);
        assert_eq!(gathering.wait(CHANNEL, later), Duration::from_secs(1));
    }

    #[test]
    fn what_one_message_cannot_carry_does_not_wait_and_counts_as_further() {
        let (mut gathering, start) = (gathering(), Instant::now());
        gathering.sent(CHANNEL, start);
        gathering.full(CHANNEL, start);
        assert_eq!(gathering.wait(CHANNEL, start), Duration::ZERO);
        gathering.sent(CHANNEL, start);
        assert_eq!(gathering.wait(CHANNEL, start), Duration::from_secs(5));
    }

    #[test]
    fn the_first_wait_is_never_the_longer_one() {
        let mut gathering = Gathering::new(&Pace { grouping: Duration::ZERO, ..Pace::default() });
        let start = Instant::now();
        gathering.sent(CHANNEL, start);
        assert_eq!(gathering.wait(CHANNEL, start), Duration::ZERO);
    }
}
