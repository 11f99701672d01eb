//! What time has certainly come, so that what is too old can be deleted.
//!
//! Pure. Deleting cannot be taken back, so it goes by a time that no single clock can push ahead: it is remembered over
//! restarts, moves as the boot-time clock does, and follows a wall clock that is further only after nobody has set that
//! for hours and nobody contradicts it; and even then by days an hour, so that somebody can still notice. A time that is
//! behind deletes too little, for a while: what is kept meanwhile is what came while the service ran, which is no more
//! than is kept anyway.
//!
//! The build of this program is the one time that it may jump to: that has come, whatever clocks say. Agents and the
//! database make it jump nowhere, however many of them agree: machines that follow one time server, or stand on one host,
//! are wrong together, and those who run them have hours to notice. The exception loses nothing: a service that finds nothing
//! at its first start, at a time before its build, takes the first credible time as if it had started then.

use super::reading::Reading;
use crate::store::SavedClock as Saved;

/// A wall clock is followed after nobody has set it for so long. What corrects a clock after a start does so within
/// minutes.
pub const STEADY_AFTER_MS: i64 = 3 * 3_600_000;

/// How many times faster than time itself it is followed: a day an hour.
const CATCH_UP: i64 = 24;

/// What had come at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belief {
    certain_ms: i64,
    at_boot_ms: i64,
    steady_since_boot_ms: i64,
    /// Nothing was remembered or stored at the start.
    is_first: bool,
    /// There has been no credible time since a first start.
    awaits_time: bool,
}

impl Belief {
    /// At a start, by what an earlier one remembered; else by the newest thing that is stored, `newest_ms`; where nothing
    /// is stored there is nothing to lose.
    pub fn begin(saved: Option<&Saved>, newest_ms: Option<i64>, boot_id: &str, now: Reading) -> Self {
        let certain_ms = match saved {
            Some(saved) if saved.boot_id == boot_id && now.boot_ms >= saved.boot_ms => {
                saved.certain_ms.saturating_add(now.boot_ms - saved.boot_ms)
            }
            Some(saved) => saved.certain_ms,
            None => newest_ms.map_or(now.wall_ms, |newest_ms| newest_ms.min(now.wall_ms)),
        };
        let is_first = saved.is_none() && newest_ms.is_none();
        let (at_boot_ms, steady_since_boot_ms) = (now.boot_ms, now.boot_ms);
        Self { certain_ms, at_boot_ms, steady_since_boot_ms, is_first, awaits_time: false }
    }

    /// The same where this much has come whatever clocks say: a program runs after it was built.
    pub fn not_before(self, built_ms: i64) -> Self {
        let awaits_time = self.is_first && self.certain_ms < built_ms;
        Self { certain_ms: self.certain_ms.max(built_ms), awaits_time, ..self }
    }

    /// Goes on to this moment. `present_ms` is what the clocks say, and `agrees` whether nobody contradicts them.
    pub fn advance(&mut self, now: Reading, present_ms: i64, agrees: bool) {
        let elapsed_ms = now.boot_ms.saturating_sub(self.at_boot_ms).max(0);
        self.at_boot_ms = now.boot_ms;
        self.certain_ms = self.certain_ms.saturating_add(elapsed_ms);
        if self.awaits_time && agrees && present_ms >= self.certain_ms {
            (self.certain_ms, self.awaits_time) = (present_ms, false);
        } else if agrees && self.is_steady() {
            let lag_ms = present_ms.saturating_sub(self.certain_ms);
            // Back at once: that keeps more.
            self.certain_ms = self.certain_ms.saturating_add(lag_ms.min(elapsed_ms.saturating_mul(CATCH_UP)));
        }
    }

    /// Somebody set the wall clock.
    pub fn unsettle(&mut self) {
        self.steady_since_boot_ms = self.at_boot_ms;
    }

    /// Whether nobody has set the wall clock for hours.
    pub fn is_steady(&self) -> bool {
        self.at_boot_ms.saturating_sub(self.steady_since_boot_ms) >= STEADY_AFTER_MS
    }

    /// What has certainly come.
    pub fn certain_ms(&self) -> i64 {
        self.certain_ms
    }

    pub fn save(&self, boot_id: &str) -> Saved {
        Saved { boot_id: boot_id.to_owned(), boot_ms: self.at_boot_ms, certain_ms: self.certain_ms }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;
    const START_MS: i64 = 1_795_000_000_000;
    const BUILT_MS: i64 = START_MS - 300 * DAY_MS;
    const TICK_MS: i64 = 60_000;

    /// A machine whose wall clock can be set and drift.
    struct Machine {
        boot_ms: i64,
        wall_ms: i64,
        drift_ppm: i64,
        belief: Belief,
    }

    impl Machine {
        fn new() -> Self {
            let now = Reading { monotonic_ms: 0, boot_ms: 0, wall_ms: START_MS };
            Self { boot_ms: 0, wall_ms: START_MS, drift_ppm: 0, belief: Belief::begin(None, None, "boot", now) }
        }

        /// What a program that was built then makes of such a time.
        fn started_at(wall_ms: i64, saved: Option<&Saved>) -> Self {
            let now = Reading { monotonic_ms: 0, boot_ms: 0, wall_ms };
            let belief = Belief::begin(saved, None, "boot", now).not_before(BUILT_MS);
            Self { wall_ms, belief, ..Self::new() }
        }

        fn now(&self) -> Reading {
            Reading { monotonic_ms: self.boot_ms, boot_ms: self.boot_ms, wall_ms: self.wall_ms }
        }

        fn run(&mut self, for_ms: i64, agrees: bool) {
            for _ in 0..for_ms / TICK_MS {
                self.boot_ms += TICK_MS;
                self.wall_ms += TICK_MS + TICK_MS * self.drift_ppm / 1_000_000;
                self.belief.advance(self.now(), self.wall_ms, agrees);
            }
        }

        fn set(&mut self, by_ms: i64) {
            self.wall_ms += by_ms;
            self.belief.unsettle();
        }

        /// How far behind true time it is, which the boot-time clock tells here.
        fn lag_ms(&self) -> i64 {
            START_MS + self.boot_ms - self.belief.certain_ms().min(self.wall_ms)
        }
    }

    #[test]
    fn a_false_year_for_an_hour_moves_nothing() {
        let mut machine = Machine::new();
        machine.run(DAY_MS, true);

        machine.set(365 * DAY_MS);
        machine.run(HOUR_MS, true);
        assert_eq!(machine.lag_ms(), 0);
        machine.set(-365 * DAY_MS);
        machine.run(DAY_MS, true);

        assert_eq!(machine.lag_ms(), 0);
    }

    #[test]
    fn a_false_year_that_agents_contradict_moves_nothing_however_long_it_lasts() {
        let mut machine = Machine::new();
        machine.run(DAY_MS, true);

        machine.set(365 * DAY_MS);
        machine.run(30 * DAY_MS, false);

        assert_eq!(machine.lag_ms(), 0);
    }

    #[test]
    fn a_false_year_that_nobody_contradicts_is_followed_a_day_an_hour() {
        let mut machine = Machine::new();
        machine.run(DAY_MS, true);

        machine.set(365 * DAY_MS);
        machine.run(6 * HOUR_MS, true);

        let ahead_ms = -machine.lag_ms();
        assert!((2 * DAY_MS..=4 * DAY_MS).contains(&ahead_ms), "{ahead_ms}");
    }

    #[test]
    fn a_clock_that_is_behind_holds_it_back_and_lets_it_go_again() {
        let mut machine = Machine::new();
        machine.set(-2 * DAY_MS);
        machine.run(DAY_MS, true);
        assert_eq!(machine.lag_ms(), 2 * DAY_MS);

        machine.set(2 * DAY_MS);
        machine.run(2 * HOUR_MS, true);
        assert_eq!(machine.lag_ms(), 2 * DAY_MS);
        machine.run(4 * HOUR_MS, true);

        assert_eq!(machine.lag_ms(), 0);
    }

    #[test]
    fn it_goes_on_over_restarts_and_does_not_trust_another_boot() {
        let mut machine = Machine::new();
        machine.run(DAY_MS, true);
        let saved = machine.belief.save("boot");
        let later = |boot_ms| Reading { monotonic_ms: boot_ms, boot_ms, wall_ms: START_MS + 400 * DAY_MS };

        let same_boot = Belief::begin(Some(&saved), None, "boot", later(machine.boot_ms + HOUR_MS));
        let next_boot = Belief::begin(Some(&saved), None, "another", later(20_000));

        assert_eq!(same_boot.certain_ms(), START_MS + DAY_MS + HOUR_MS);
        assert_eq!(next_boot.certain_ms(), START_MS + DAY_MS);
    }

    #[test]
    fn what_an_older_version_stored_counts_for_more_than_the_clock() {
        let now = Reading { monotonic_ms: 0, boot_ms: 0, wall_ms: START_MS + 400 * DAY_MS };

        assert_eq!(Belief::begin(None, Some(START_MS), "boot", now).certain_ms(), START_MS);
        assert_eq!(Belief::begin(None, None, "boot", now).certain_ms(), now.wall_ms, "nothing to lose");
    }

    #[test]
    fn a_first_start_in_1970_takes_the_first_credible_time() {
        let mut machine = Machine::started_at(0, None);
        machine.run(HOUR_MS, false);
        assert_eq!(machine.belief.certain_ms(), BUILT_MS + HOUR_MS, "no clock, and still it is after the build");

        machine.set(START_MS);
        machine.run(TICK_MS, false);
        assert_eq!(machine.belief.certain_ms(), BUILT_MS + HOUR_MS + TICK_MS, "somebody contradicts it");
        machine.run(TICK_MS, true);

        assert_eq!(machine.lag_ms(), 0);
        // From now on it is as any other.
        machine.set(365 * DAY_MS);
        machine.run(HOUR_MS, true);
        assert_eq!(machine.lag_ms(), 0);
    }

    #[test]
    fn what_an_earlier_version_remembered_of_1970_is_caught_up_with_from_the_build_on() {
        let saved = Saved { boot_id: "another".to_owned(), boot_ms: 0, certain_ms: DAY_MS };
        let mut machine = Machine::started_at(START_MS, Some(&saved));
        assert_eq!(machine.belief.certain_ms(), BUILT_MS);

        machine.run(TICK_MS, true);
        assert_eq!(machine.belief.certain_ms(), BUILT_MS + TICK_MS, "there is something to lose");
        machine.run(20 * DAY_MS, true);

        assert_eq!(machine.lag_ms(), 0);
    }

    #[test]
    fn months_of_drift_are_followed() {
        for drift_ppm in [-100, 100] {
            let mut machine = Machine::new();
            machine.drift_ppm = drift_ppm;

            machine.run(180 * DAY_MS, true);

            let off_ms = machine.belief.certain_ms() - machine.wall_ms;
            assert!(off_ms.abs() <= TICK_MS, "{drift_ppm} ppm: {off_ms}");
        }
    }

    proptest! {
        /// Whatever is done to the wall clock within three hours of each other, nothing is deleted before its time.
        #[test]
        fn no_clock_that_is_set_now_and_then_pushes_it_ahead(
            steps in prop::collection::vec((-400 * DAY_MS..400 * DAY_MS, 1_i64..170), 1..40),
        ) {
            let mut machine = Machine::new();
            for (by_ms, minutes) in steps {
                machine.set(by_ms);
                machine.run(minutes * TICK_MS, true);
                prop_assert!(machine.lag_ms() >= 0);
            }
        }

        /// However it was set, a day after it was put right the two agree again.
        #[test]
        fn it_finds_back(steps in prop::collection::vec((-20 * DAY_MS..20 * DAY_MS, 1_i64..400), 1..6)) {
            let mut machine = Machine::new();
            for (by_ms, minutes) in steps {
                machine.set(by_ms);
                machine.run(minutes * TICK_MS, true);
            }
            machine.set(START_MS + machine.boot_ms - machine.wall_ms);
            machine.run(5 * DAY_MS, true);

            prop_assert_eq!(machine.lag_ms(), 0);
        }
    }
}
