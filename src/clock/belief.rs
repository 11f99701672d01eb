//! The time that has certainly come, which deletion of old data relies on.
//!
//! Pure. Deletion cannot be undone, so it uses a time that no single clock can push ahead. That time survives restarts
//! and advances with the boot-time clock. It follows a wall clock that is ahead only if that clock has not been set for
//! hours and no other clock contradicts it, and even then by only a day per hour, so that people can still notice. If
//! it lags, too little is deleted for a while: only data that arrived while the service ran, which is no more than it
//! would keep anyway.
//!
//! The only time that it may jump to is when this program was built, which has certainly passed. Agents and the
//! database never make it jump, however many of them agree: machines with the same time server, or on the same host,
//! are wrong together, and their operators have hours to notice. There is one exception, which loses nothing: a service
//! that finds no data at its first start, at a time before its build, takes the first credible time as if it had
//! started then.

use super::reading::Reading;
use crate::store::SavedClock as Saved;

/// A wall clock is followed if it has not been set for this long. Time synchronization after a start sets it within
/// minutes.
pub const STEADY_AFTER_MS: i64 = 3 * 3_600_000;

/// How much faster than real time it catches up: a day per hour.
const CATCH_UP: i64 = 24;

/// The time that had certainly come at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belief {
    certain_ms: i64,
    at_boot_ms: i64,
    steady_since_boot_ms: i64,
    /// Nothing was stored at the start.
    is_first: bool,
    /// There has been no credible time since the first start.
    awaits_time: bool,
}

impl Belief {
    /// The belief at a start: from the state of an earlier process; otherwise from the time of the newest stored data,
    /// `newest_ms`; without any data there is nothing to lose.
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

    /// The same, but at least this time, whatever the clocks say: a program runs only after it was built.
    pub fn not_before(self, built_ms: i64) -> Self {
        let awaits_time = self.is_first && self.certain_ms < built_ms;
        Self { certain_ms: self.certain_ms.max(built_ms), awaits_time, ..self }
    }

    /// Advances to the present. `present_ms` is the clocks' time; `agrees` says that no clock contradicts them.
    pub fn advance(&mut self, now: Reading, present_ms: i64, agrees: bool) {
        let elapsed_ms = now.boot_ms.saturating_sub(self.at_boot_ms).max(0);
        self.at_boot_ms = now.boot_ms;
        self.certain_ms = self.certain_ms.saturating_add(elapsed_ms);
        if self.awaits_time && agrees && present_ms >= self.certain_ms {
            (self.certain_ms, self.awaits_time) = (present_ms, false);
        } else if agrees && self.is_steady() {
            let lag_ms = present_ms.saturating_sub(self.certain_ms);
            // Backwards at once, which keeps more data.
            self.certain_ms = self.certain_ms.saturating_add(lag_ms.min(elapsed_ms.saturating_mul(CATCH_UP)));
        }
    }

    /// Notes that the wall clock was set.
    pub fn unsettle(&mut self) {
        self.steady_since_boot_ms = self.at_boot_ms;
    }

    /// Whether the wall clock has not been set for hours.
    pub fn is_steady(&self) -> bool {
        self.at_boot_ms.saturating_sub(self.steady_since_boot_ms) >= STEADY_AFTER_MS
    }

    /// The time that has certainly come.
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

        /// The belief of a program that was built at this time.
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

        /// How far it is behind true time, which the boot-time clock has here.
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
    fn a_false_year_that_agents_contradict_never_moves_it() {
        let mut machine = Machine::new();
        machine.run(DAY_MS, true);

        machine.set(365 * DAY_MS);
        machine.run(30 * DAY_MS, false);

        assert_eq!(machine.lag_ms(), 0);
    }

    #[test]
    fn an_uncontradicted_false_year_is_followed_by_a_day_per_hour() {
        let mut machine = Machine::new();
        machine.run(DAY_MS, true);

        machine.set(365 * DAY_MS);
        machine.run(6 * HOUR_MS, true);

        let ahead_ms = -machine.lag_ms();
        assert!((2 * DAY_MS..=4 * DAY_MS).contains(&ahead_ms), "{ahead_ms}");
    }

    #[test]
    fn a_clock_that_is_behind_holds_it_back_until_it_is_corrected() {
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
    fn it_continues_after_restarts_and_does_not_trust_another_boot() {
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
    fn stored_data_of_an_older_version_counts_more_than_the_clock() {
        let now = Reading { monotonic_ms: 0, boot_ms: 0, wall_ms: START_MS + 400 * DAY_MS };

        assert_eq!(Belief::begin(None, Some(START_MS), "boot", now).certain_ms(), START_MS);
        assert_eq!(Belief::begin(None, None, "boot", now).certain_ms(), now.wall_ms, "nothing to lose");
    }

    #[test]
    fn a_first_start_in_1970_takes_the_first_credible_time() {
        let mut machine = Machine::started_at(0, None);
        machine.run(HOUR_MS, false);
        assert_eq!(machine.belief.certain_ms(), BUILT_MS + HOUR_MS, "without a clock it is still after the build");

        machine.set(START_MS);
        machine.run(TICK_MS, false);
        assert_eq!(machine.belief.certain_ms(), BUILT_MS + HOUR_MS + TICK_MS, "another clock contradicts it");
        machine.run(TICK_MS, true);

        assert_eq!(machine.lag_ms(), 0);
        // From now on it behaves like any other.
        machine.set(365 * DAY_MS);
        machine.run(HOUR_MS, true);
        assert_eq!(machine.lag_ms(), 0);
    }

    #[test]
    fn a_stored_time_in_1970_catches_up_from_the_build_on() {
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
        /// Whatever is done to the wall clock at intervals of less than three hours, nothing is deleted too early.
        #[test]
        fn no_clock_that_is_set_repeatedly_pushes_it_ahead(
            steps in prop::collection::vec((-400 * DAY_MS..400 * DAY_MS, 1_i64..170), 1..40),
        ) {
            let mut machine = Machine::new();
            for (by_ms, minutes) in steps {
                machine.set(by_ms);
                machine.run(minutes * TICK_MS, true);
                prop_assert!(machine.lag_ms() >= 0);
            }
        }

        /// However it was set, the two agree again a day after it was corrected.
        #[test]
        fn it_recovers(steps in prop::collection::vec((-20 * DAY_MS..20 * DAY_MS, 1_i64..400), 1..6)) {
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
