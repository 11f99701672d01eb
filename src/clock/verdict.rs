//! Whether this machine's clock can be trusted, given the agents' clocks.
//!
//! Pure. Agents vote with the offsets of their clocks. Wrong clocks are each wrong in their own way; agents that agree
//! on the same offset are right, and this clock is off. One agent alone never outvotes a clock that has been steady for
//! hours.

/// Clocks agree if they are no further apart.
const AGREES_WITHIN_MS: i64 = 60_000;

/// No program runs for longer than this after it was built: a clock that shows a later time is wrong.
const MAX_AGE_MS: i64 = 20 * 365 * 24 * 3_600_000;

/// The latest plausible time for a program built at `built_ms`.
pub fn latest_ms(built_ms: i64) -> i64 {
    built_ms.saturating_add(MAX_AGE_MS)
}

/// How this machine's clock may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// It may show a past time: samples that seem to come from the future may be from now.
    Behind,
    /// It may show a future time: data that seems to be old may be from now.
    Ahead,
}

/// The agents' votes about this clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Agents whose clocks agree with this one.
    pub near: usize,
    /// Agents that agree with each other that the time is later than here.
    pub later: usize,
    /// How far their clocks are ahead; 0 if there are none.
    pub later_by_ms: i64,
    /// Agents that agree with each other that the time is earlier than here.
    pub earlier: usize,
    /// The offset of their clocks; 0 if there are none.
    pub earlier_by_ms: i64,
}

/// What is known about this machine's clock apart from the agents' votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own {
    pub wall_ms: i64,
    /// When this program was built.
    pub built_ms: i64,
    /// The time that has certainly come.
    pub certain_ms: i64,
    /// The database's clock; `None` if it is this machine's.
    pub database_ms: Option<i64>,
    /// The clock has not been set for hours.
    pub is_steady: bool,
}

impl Tally {
    /// Counts agents, given how far their clocks are ahead of this one. A clock that shows a time before this program
    /// was built has no vote.
    pub fn of(offsets_ms: impl IntoIterator<Item = i64>, wall_ms: i64, built_ms: i64) -> Self {
        let plausible = built_ms..=latest_ms(built_ms);
        let (mut near, mut later, mut earlier) = (0, Vec::new(), Vec::new());
        for offset_ms in
            offsets_ms.into_iter().filter(|offset_ms| plausible.contains(&wall_ms.saturating_add(*offset_ms)))
        {
            if offset_ms.abs() <= AGREES_WITHIN_MS {
                near += 1;
            } else if offset_ms > 0 {
                later.push(offset_ms);
            } else {
                earlier.push(offset_ms);
            }
        }
        let (later, later_by_ms) = agreeing(later);
        let (earlier, earlier_by_ms) = agreeing(earlier);
        Self { near, later, later_by_ms, earlier, earlier_by_ms }
    }

    /// Whether no agent contradicts this clock, or only a minority does.
    pub fn agrees(self) -> bool {
        let against = self.later.max(self.earlier);
        against == 0 || self.near > against
    }

    /// Whether `count` agents outvote this clock, which has a vote of its own once it was steady for long enough.
    /// Before that a tie is enough: a doubt loses nothing.
    fn outvotes(self, count: usize, is_steady: bool) -> bool {
        if is_steady { count > self.near + 1 } else { count > 0 && count >= self.near }
    }

    /// How far this clock may be behind, however long it was steady: a tie is enough. Less evidence is needed than for
    /// a doubt, because this decides only whether samples that seem to come from the future wait with their agents. If
    /// this clock is behind, dropping them would lose them for good; if it is right, they wait until their machine's
    /// clock is right, too.
    fn may_lag_ms(self) -> i64 {
        if self.later > 0 && self.later >= self.near.max(self.earlier) { self.later_by_ms } else { 0 }
    }
}

impl Own {
    /// How this clock may be off; `None` if it is trusted.
    pub fn doubt(&self, tally: Tally) -> Option<Doubt> {
        if self.is_in_the_past() {
            return Some(Doubt::Behind);
        }
        let most_ms = latest_ms(self.built_ms).min(self.database_ms.unwrap_or(i64::MAX));
        if self.wall_ms > most_ms.saturating_add(AGREES_WITHIN_MS) {
            return Some(Doubt::Ahead);
        }
        // The agents that contradict this clock may contradict each other: the larger group counts.
        if tally.later >= tally.earlier && tally.outvotes(tally.later, self.is_steady) {
            return Some(Doubt::Behind);
        }
        tally.outvotes(tally.earlier, self.is_steady).then_some(Doubt::Ahead)
    }

    /// How far this clock may be behind; 0 if nothing indicates it.
    pub fn may_lag_ms(&self, tally: Tally) -> i64 {
        if self.is_in_the_past() { i64::MAX } else { tally.may_lag_ms() }
    }

    /// Whether it shows a past time, whatever the agents say. How far it is behind is unknown.
    fn is_in_the_past(&self) -> bool {
        let least_ms = self.built_ms.max(self.certain_ms).max(self.database_ms.unwrap_or(i64::MIN));
        self.wall_ms < least_ms.saturating_sub(AGREES_WITHIN_MS)
    }
}

/// How many of the offsets agree with the median, and the median.
fn agreeing(mut offsets_ms: Vec<i64>) -> (usize, i64) {
    offsets_ms.sort_unstable();
    let Some(middle) = offsets_ms.get(offsets_ms.len() / 2).copied() else { return (0, 0) };
    let agree = offsets_ms.iter().filter(|offset_ms| offset_ms.abs_diff(middle) <= AGREES_WITHIN_MS.unsigned_abs());
    (agree.count(), middle)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY_MS: i64 = 24 * 3_600_000;
    const BUILT_MS: i64 = 1_795_000_000_000;
    const NOW_MS: i64 = BUILT_MS + 30 * DAY_MS;

    fn own(is_steady: bool) -> Own {
        Own { wall_ms: NOW_MS, built_ms: BUILT_MS, certain_ms: NOW_MS, database_ms: None, is_steady }
    }

    fn doubt(offsets_ms: &[i64], is_steady: bool) -> Option<Doubt> {
        own(is_steady).doubt(Tally::of(offsets_ms.iter().copied(), NOW_MS, BUILT_MS))
    }

    #[test]
    fn one_agent_never_outvotes_a_steady_clock() {
        assert_eq!(doubt(&[2 * DAY_MS], true), None);
        assert_eq!(doubt(&[2 * DAY_MS, 10], true), None);
        assert_eq!(doubt(&[-2 * DAY_MS], true), None);
    }

    #[test]
    fn one_agent_of_two_makes_samples_wait_however_steady_the_clock_is() {
        let lag = |offsets_ms: &[i64]| own(true).may_lag_ms(Tally::of(offsets_ms.iter().copied(), NOW_MS, BUILT_MS));

        assert_eq!(lag(&[2 * DAY_MS]), 2 * DAY_MS);
        assert_eq!(lag(&[2 * DAY_MS, 0]), 2 * DAY_MS, "the other may be this machine's own");
        assert_eq!(lag(&[2 * DAY_MS, 2 * DAY_MS + 900, 0]), 2 * DAY_MS + 900);
        assert_eq!(lag(&[2 * DAY_MS, 0, 0]), 0);
        assert_eq!(lag(&[2 * DAY_MS, -2 * DAY_MS, -2 * DAY_MS]), 0);
        assert_eq!(lag(&[-2 * DAY_MS]), 0);
        assert_eq!(lag(&[]), 0);
        assert_eq!(Own { certain_ms: NOW_MS + DAY_MS, ..own(true) }.may_lag_ms(Tally::default()), i64::MAX);
    }

    #[test]
    fn agents_that_agree_outvote_it() {
        assert_eq!(doubt(&[2 * DAY_MS, 2 * DAY_MS + 900], true), Some(Doubt::Behind));
        assert_eq!(doubt(&[-2 * DAY_MS, -2 * DAY_MS, 0, -2 * DAY_MS], true), Some(Doubt::Ahead));
    }

    #[test]
    fn agents_that_are_wrong_each_in_its_own_way_do_not() {
        assert_eq!(doubt(&[DAY_MS, 2 * DAY_MS, 3 * DAY_MS, -DAY_MS], true), None);
    }

    #[test]
    fn a_fresh_clock_is_doubted_when_one_agent_of_two_contradicts_it() {
        assert_eq!(doubt(&[2 * DAY_MS], false), Some(Doubt::Behind));
        assert_eq!(doubt(&[2 * DAY_MS, 0], false), Some(Doubt::Behind), "the other may be this machine's own");
        assert_eq!(doubt(&[2 * DAY_MS, 0, 0], false), None);
        assert_eq!(doubt(&[], false), None);
    }

    #[test]
    fn agents_in_1970_and_2099_have_no_vote() {
        assert_eq!(doubt(&[-NOW_MS, -NOW_MS, -NOW_MS], false), None);
        assert_eq!(doubt(&[73 * 365 * DAY_MS, 73 * 365 * DAY_MS], false), None);
    }

    #[test]
    fn an_implausibly_early_or_late_clock_is_doubted() {
        let nobody = Tally::default();

        assert_eq!(Own { wall_ms: 0, certain_ms: 0, ..own(true) }.doubt(nobody), Some(Doubt::Behind));
        assert_eq!(Own { certain_ms: NOW_MS + DAY_MS, ..own(true) }.doubt(nobody), Some(Doubt::Behind));
        assert_eq!(Own { wall_ms: NOW_MS + 73 * 365 * DAY_MS, ..own(true) }.doubt(nobody), Some(Doubt::Ahead));
    }

    #[test]
    fn the_databases_clock_is_a_witness() {
        let nobody = Tally::default();

        assert_eq!(Own { database_ms: Some(NOW_MS + DAY_MS), ..own(true) }.doubt(nobody), Some(Doubt::Behind));
        assert_eq!(Own { database_ms: Some(NOW_MS - DAY_MS), ..own(true) }.doubt(nobody), Some(Doubt::Ahead));
        assert_eq!(Own { database_ms: Some(NOW_MS + 900), ..own(true) }.doubt(nobody), None);
    }

    proptest! {
        #[test]
        fn no_minority_makes_a_steady_clock_doubted(
            liars in prop::collection::vec(-400 * DAY_MS..400 * DAY_MS, 0..20),
            surplus in 0_usize..5,
        ) {
            let honest = vec![0; liars.len() + surplus];
            let offsets: Vec<i64> = liars.into_iter().chain(honest).collect();

            prop_assert_eq!(doubt(&offsets, true), None);
        }

        #[test]
        fn an_honest_majority_detects_a_clock_that_is_off(
            off_by_ms in prop_oneof![120_000..400 * DAY_MS, -29 * DAY_MS..-120_000],
            liars in prop::collection::vec(-20 * DAY_MS..20 * DAY_MS, 0..5),
            jitter in prop::collection::vec(-3_000_i64..3_000, 12..20),
            is_steady in any::<bool>(),
        ) {
            let honest = jitter.iter().map(|jitter| off_by_ms + jitter);
            let offsets: Vec<i64> = honest.chain(liars).collect();
            let expected = if off_by_ms > 0 { Doubt::Behind } else { Doubt::Ahead };

            prop_assert_eq!(doubt(&offsets, is_steady), Some(expected));
        }
    }
}
