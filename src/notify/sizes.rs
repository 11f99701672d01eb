//! How many items the receiver of each channel accepts in one message, learned from the messages that were too large. Only
//! this instance knows: after a restart, or on another instance, the first large message is refused and split again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

/// Items of one message; the rest waits for the next one. Most services show fewer anyway.
const MAX_ITEMS: usize = 500;

/// After this many full messages in a row that the receiver accepted, the next ones may carry twice as many items. Where that
/// is too many, the refused message is one request in seventeen.
const ACCEPTED_UNTIL_GROWTH: u32 = 16;

/// How long a refusal counts: somebody may have raised the receiver's limit.
const REMEMBERED: Duration = Duration::from_secs(24 * 3_600);

/// From this many channels on, those whose last refusal no longer counts are removed from the map.
const CROWD: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// Channels without an entry get messages of [`MAX_ITEMS`].
    learned: Mutex<HashMap<Uuid, Learned>>,
}

#[derive(Debug)]
struct Learned {
    /// At least one.
    max_items: usize,
    /// Full messages that were accepted since `max_items` last changed.
    accepted: u32,
    refused_at: Instant,
}

impl Learned {
    fn counts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.refused_at) < REMEMBERED
    }
}

impl Sizes {
    /// Returns how many items the next message of a channel may carry.
    pub fn max_items(&self, channel_id: Uuid, now: Instant) -> usize {
        limit(&self.learned.lock(), channel_id, now)
    }

    /// The receiver refused a message because of its size: the next ones carry at most half as many items.
    pub fn refused(&self, channel_id: Uuid, items: usize, now: Instant) {
        let mut learned = self.learned.lock();
        if learned.len() >= CROWD {
            learned.retain(|_, of_channel| of_channel.counts(now));
        }
        let max_items = (items / 2).clamp(1, limit(&learned, channel_id, now));
        learned.insert(channel_id, Learned { max_items, accepted: 0, refused_at: now });
    }

    /// The receiver accepted a message. Only a full one says that the next may be larger.
    pub fn accepted(&self, channel_id: Uuid, items: usize) {
        let mut learned = self.learned.lock();
        let Some(of_channel) = learned.get_mut(&channel_id) else { return };
        if items < of_channel.max_items {
            return;
        }
        of_channel.accepted += 1;
        if of_channel.accepted < ACCEPTED_UNTIL_GROWTH {
            return;
        }
        of_channel.accepted = 0;
        of_channel.max_items *= 2;
        if of_channel.max_items >= MAX_ITEMS {
            learned.remove(&channel_id);
        }
    }
}

fn limit(learned: &HashMap<Uuid, Learned>, channel_id: Uuid, now: Instant) -> usize {
    let of_channel = learned.get(&channel_id).filter(|of_channel| of_channel.counts(now));
    of_channel.map_or(MAX_ITEMS, |of_channel| of_channel.max_items)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: Uuid = Uuid::from_u128(1);

    fn refused_until(items: usize, now: Instant) -> Sizes {
        let sizes = Sizes::default();
        while sizes.max_items(CHANNEL, now) > items {
            sizes.refused(CHANNEL, sizes.max_items(CHANNEL, now), now);
        }
        sizes
    }

    #[test]
    fn each_refusal_halves_the_messages_of_its_channel_down_to_one_item() {
        let (sizes, now) = (Sizes::default(), Instant::now());

        let halved = [500, 250, 125, 62, 31, 15, 7, 3, 1].map(|items| {
            let before = sizes.max_items(CHANNEL, now);
            sizes.refused(CHANNEL, items, now);
            (before, sizes.max_items(CHANNEL, now))
        });

        let expected = [(500, 250), (250, 125), (125, 62), (62, 31), (31, 15), (15, 7), (7, 3), (3, 1), (1, 1)];
        assert_eq!(halved, expected);
        assert_eq!(sizes.max_items(Uuid::from_u128(2), now), 500);
    }

    #[test]
    fn an_older_larger_message_that_is_refused_does_not_raise_the_limit() {
        let now = Instant::now();
        let sizes = refused_until(62, now);

        sizes.refused(CHANNEL, 500, now);

        assert_eq!(sizes.max_items(CHANNEL, now), 62);
    }

    #[test]
    fn only_full_messages_let_the_limit_grow() {
        let now = Instant::now();
        let sizes = refused_until(62, now);

        (0..1_000).for_each(|_| sizes.accepted(CHANNEL, 61));
        (1..ACCEPTED_UNTIL_GROWTH).for_each(|_| sizes.accepted(CHANNEL, 62));
        assert_eq!(sizes.max_items(CHANNEL, now), 62);
        sizes.accepted(CHANNEL, 62);
        assert_eq!(sizes.max_items(CHANNEL, now), 124);
    }

    #[test]
    fn a_limit_that_has_grown_to_the_general_one_is_forgotten() {
        let now = Instant::now();
        let sizes = refused_until(250, now);

        (0..ACCEPTED_UNTIL_GROWTH).for_each(|_| sizes.accepted(CHANNEL, 250));

        assert!(sizes.learned.lock().is_empty());
        assert_eq!(sizes.max_items(CHANNEL, now), 500);
    }

    #[test]
    fn a_refusal_counts_for_a_day() {
        let now = Instant::now();
        let sizes = refused_until(62, now);

        assert_eq!(sizes.max_items(CHANNEL, now + REMEMBERED - Duration::from_secs(1)), 62);
        assert_eq!(sizes.max_items(CHANNEL, now + REMEMBERED), 500);
    }

    #[test]
    fn channels_whose_refusals_no_longer_count_are_removed() {
        let (sizes, now) = (Sizes::default(), Instant::now());
        (0..CROWD as u128).for_each(|n| sizes.refused(Uuid::from_u128(n), 500, now));

        sizes.refused(Uuid::from_u128(u128::MAX), 500, now + REMEMBERED);

        assert_eq!(sizes.learned.lock().len(), 1);
    }
}
