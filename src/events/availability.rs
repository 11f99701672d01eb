//! Computes how much of a time range a server was up. Pure.
//!
//! A server is up while its agent is connected, and down after it disconnected. The time that the service did not observe,
//! because the server did not exist yet or because the service itself did not run, counts as neither.

use signalbox_protocol::Timestamp;

/// The state of a server at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Up,
    Down,
    Unknown,
}

/// A change of state at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub at: Timestamp,
    pub standing: Standing,
    /// Why the server is down.
    pub reason: Option<String>,
}

/// A part of the range in which the server was down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    pub start: Timestamp,
    pub end: Timestamp,
    pub reason: Option<String>,
    /// Whether it continues after the end of the range.
    pub is_ongoing: bool,
}

/// How long a server was in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Availability {
    pub up_ms: i64,
    pub down_ms: i64,
    pub unknown_ms: i64,
    /// Oldest first.
    pub outages: Vec<Outage>,
}

impl Availability {
    /// Returns the percentage of the observed time in which the server was up; `None` if nothing was observed.
    pub fn uptime_percent(&self) -> Option<f64> {
        let known_ms = self.up_ms + self.down_ms;
        (known_ms > 0).then(|| self.up_ms as f64 / known_ms as f64 * 100.0)
    }
}

/// Adds up the states between `start` and `end`. `turns` are in order; the last one up to `start` gives the state there.
pub fn availability(turns: &[Turn], start: Timestamp, end: Timestamp) -> Availability {
    let mut sums = Availability::default();
    let mut from = start;
    let unknown = Turn { at: start, standing: Standing::Unknown, reason: None };
    let mut current = &unknown;
    for turn in turns {
        let at = turn.at.clamp(from, end.max(from));
        sums.add(current, from, at, false);
        (from, current) = (at, turn);
    }
    sums.add(current, from, end, true);
    sums
}

impl Availability {
    fn add(&mut self, turn: &Turn, from: Timestamp, until: Timestamp, is_last: bool) {
        let lasted_ms = until.millis_since(from);
        if lasted_ms <= 0 {
            return;
        }
        match turn.standing {
            Standing::Up => self.up_ms += lasted_ms,
            Standing::Unknown => self.unknown_ms += lasted_ms,
            Standing::Down => {
                self.down_ms += lasted_ms;
                match self.outages.last_mut().filter(|last| last.end == from) {
                    // A second disconnection without a connection in between belongs to the same outage.
                    Some(last) => (last.end, last.is_ongoing) = (until, is_last),
                    None => self.outages.push(Outage {
                        start: from,
                        end: until,
                        reason: turn.reason.clone(),
                        is_ongoing: is_last,
                    }),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    fn turn(second: i64, standing: Standing) -> Turn {
        let reason = (standing == Standing::Down).then(|| "silent".to_owned());
        Turn { at: at(second), standing, reason }
    }

    fn outage(start: i64, end: i64, is_ongoing: bool) -> Outage {
        Outage { start: at(start), end: at(end), reason: Some("silent".to_owned()), is_ongoing }
    }

    #[test]
    fn the_time_before_the_server_existed_is_unknown() {
        let found = availability(&[turn(60, Standing::Up)], at(0), at(100));

        assert_eq!(found, Availability { up_ms: 40_000, unknown_ms: 60_000, ..Availability::default() });
        assert_eq!(found.uptime_percent(), Some(100.0));
        assert_eq!(availability(&[], at(0), at(100)).uptime_percent(), None);
    }

    #[test]
    fn the_state_before_the_range_continues_into_it() {
        let turns = [turn(-50, Standing::Up), turn(-10, Standing::Down), turn(25, Standing::Up)];

        let found = availability(&turns, at(0), at(100));

        assert_eq!((found.up_ms, found.down_ms, found.unknown_ms), (75_000, 25_000, 0));
        assert_eq!(found.outages, [outage(0, 25, false)]);
        assert_eq!(found.uptime_percent(), Some(75.0));
    }

    #[test]
    fn an_outage_at_the_end_of_the_range_is_ongoing() {
        let found = availability(&[turn(0, Standing::Up), turn(90, Standing::Down)], at(0), at(100));

        assert_eq!(found.outages, [outage(90, 100, true)]);
    }

    #[test]
    fn while_the_service_did_not_run_the_state_is_unknown() {
        let turns = [turn(0, Standing::Up), turn(40, Standing::Unknown), turn(60, Standing::Down)];

        let found = availability(&turns, at(0), at(100));

        assert_eq!((found.up_ms, found.down_ms, found.unknown_ms), (40_000, 40_000, 20_000));
        assert_eq!(found.uptime_percent(), Some(50.0));
    }

    fn turns() -> impl Strategy<Value = Vec<Turn>> {
        let standing = prop_oneof![Just(Standing::Up), Just(Standing::Down), Just(Standing::Unknown)];
        proptest::collection::vec((-500_i64..1_500, standing), 0..40).prop_map(|mut turns| {
            turns.sort_by_key(|(second, _)| *second);
            turns.into_iter().map(|(second, standing)| turn(second, standing)).collect()
        })
    }

    proptest! {
        #[test]
        fn the_whole_range_is_counted_once(turns in turns(), start in 0_i64..500, length in 0_i64..1_000) {
            let found = availability(&turns, at(start), at(start + length));

            prop_assert_eq!(found.up_ms + found.down_ms + found.unknown_ms, length * 1_000);
            let down: i64 = found.outages.iter().map(|outage| outage.end.millis_since(outage.start)).sum();
            prop_assert_eq!(down, found.down_ms);
            prop_assert!(found.outages.iter().all(|outage| outage.start < outage.end));
            prop_assert!(found.outages.iter().all(|outage| at(start) <= outage.start && outage.end <= at(start + length)));
            prop_assert!(found.outages.windows(2).all(|two| two[0].end < two[1].start));
        }

        #[test]
        fn two_halves_add_up_to_the_whole(turns in turns(), start in 0_i64..500, one in 0_i64..500, other in 0_i64..500) {
            let (middle, end) = (start + one, start + one + other);

            let whole = availability(&turns, at(start), at(end));
            let halves = [availability(&turns, at(start), at(middle)), availability(&turns, at(middle), at(end))];

            prop_assert_eq!(whole.up_ms, halves.iter().map(|half| half.up_ms).sum::<i64>());
            prop_assert_eq!(whole.down_ms, halves.iter().map(|half| half.down_ms).sum::<i64>());
        }
    }
}
