//! The database's clock, from its answers. Pure.
//!
//! An answer says that the clock showed a time at some moment of the round trip. After a round trip of a second the
//! time is uncertain by half a second in either direction, and instances that used the middle would disagree about the
//! order of events. So a precise answer is kept until a more precise one arrives, or one that contradicts it because
//! the clock was set.

/// How far two clocks may drift apart, as a fraction of the elapsed time: the rate of bad crystals.
const DRIFT_PARTS: i64 = 5_000;

/// A smaller uncertainty does not matter.
const CLOSE_MS: i64 = 10;

/// One round trip.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub database_ms: i64,
    /// In the boot-time clock.
    pub asked_ms: i64,
    pub answered_ms: i64,
}

/// The known offset of the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The database's time minus this machine's time since boot.
    pub epoch_ms: i64,
    /// The uncertainty in either direction when it was measured.
    within_ms: i64,
    found_at_ms: i64,
}

impl Known {
    pub fn by(answer: Answer) -> Self {
        let Answer { database_ms, asked_ms, answered_ms } = answer;
        let epoch_ms = database_ms - (asked_ms + answered_ms) / 2;
        Self { epoch_ms, within_ms: (answered_ms - asked_ms + 1) / 2, found_at_ms: answered_ms }
    }

    /// Combines it with another answer.
    pub fn and(self, answer: Answer) -> Self {
        let new = Self::by(answer);
        let drifted_ms = (new.found_at_ms - self.found_at_ms).max(0) / DRIFT_PARTS;
        let within_ms = self.within_ms + drifted_ms;
        let agrees = (new.epoch_ms - self.epoch_ms).abs() <= new.within_ms + within_ms;
        if agrees && within_ms < new.within_ms { self } else { new }
    }

    pub fn is_close(self) -> bool {
        self.within_ms <= CLOSE_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(epoch_ms: i64, asked_ms: i64, there_ms: i64, back_ms: i64) -> Answer {
        Answer { database_ms: epoch_ms + asked_ms + there_ms, asked_ms, answered_ms: asked_ms + there_ms + back_ms }
    }

    #[test]
    fn a_slow_answer_does_not_replace_a_precise_one() {
        let close = Known::by(answer(500_000, 1_000, 1, 1));

        let later = close.and(answer(500_000, 11_000, 1_170, 0));

        assert!(close.is_close());
        assert_eq!(later, close);
    }

    #[test]
    fn a_more_precise_answer_replaces_a_slow_one() {
        let slow = Known::by(answer(500_000, 1_000, 0, 1_170));
        assert_eq!((slow.is_close(), slow.epoch_ms), (false, 499_415));

        let known = slow.and(answer(500_000, 2_000, 1, 1));

        assert_eq!((known.is_close(), known.epoch_ms), (true, 500_000));
    }

    #[test]
    fn a_clock_that_was_set_is_followed_at_once_even_by_a_slow_answer() {
        let known = Known::by(answer(500_000, 1_000, 1, 1));

        for by_ms in [-7_200_000, -2_000, 2_000, 7_200_000] {
            let set = known.and(answer(500_000 + by_ms, 11_000, 500, 500));
            assert_eq!(set.epoch_ms, 500_000 + by_ms);
        }
    }

    #[test]
    fn the_known_offset_ages() {
        let known = Known::by(answer(500_000, 1_000, 1, 1));
        let day_ms = 24 * 3_600_000;

        let later = known.and(answer(500_300, 1_000 + day_ms, 50, 50));

        assert_eq!(later.epoch_ms, 500_300, "a drift of 300 ms in a day is no contradiction");
    }

    #[test]
    fn it_is_never_further_off_than_the_most_precise_answer() {
        let mut known = None::<Known>;
        let mut closest_ms = i64::MAX;
        for turn in 0..200_i64 {
            let (there_ms, back_ms) = ((turn * 7_919) % 1_301, (turn * 104_729) % 997);
            let heard = answer(500_000, turn * 10_000, there_ms, back_ms);
            known = Some(known.map_or_else(|| Known::by(heard), |known| known.and(heard)));
            closest_ms = closest_ms.min((there_ms + back_ms + 1) / 2);

            let off_ms = known.map_or(0, |known| (known.epoch_ms - 500_000).abs());
            assert!(off_ms <= closest_ms + turn * 10_000 / DRIFT_PARTS, "{turn}: {off_ms} ms");
        }
    }
}
