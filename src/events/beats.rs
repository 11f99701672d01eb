//! Computes the bar of a server: its state in equal parts of a range. Pure.

use signalbox_protocol::Timestamp;

use super::availability::{Standing, Turn};

/// The state of a server in one part of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    Online,
    /// Online for some of the time, and offline for some.
    Partly,
    Offline,
    /// Nothing was observed.
    Unknown,
}

/// A range of equal parts, the last of which contains the present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    pub start: Timestamp,
    pub beat_ms: i64,
    pub beats: i64,
}

/// How long a server was up and down in one part.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    up_ms: i64,
    down_ms: i64,
}

impl Grid {
    /// The last parts up to `now`. Each begins at a multiple of its length, so that a part keeps its time while `now` moves.
    pub fn up_to(now: Timestamp, beat_ms: i64, beats: i64) -> Self {
        let beat_ms = beat_ms.max(1);
        let end_ms = (now.as_millis().div_euclid(beat_ms) + 1) * beat_ms;
        Self { start: Timestamp::from_millis(end_ms - beats * beat_ms), beat_ms, beats }
    }

    /// Adds the time from `from` to `until` to the parts in which it lies.
    fn add(self, sums: &mut [Sum], standing: Standing, from: Timestamp, until: Timestamp) {
        let (from_ms, until_ms) = (from.millis_since(self.start), until.millis_since(self.start));
        let first = usize::try_from(from_ms / self.beat_ms).unwrap_or_default();
        for (sum, number) in sums.iter_mut().zip(0_i64..).skip(first) {
            let begins_ms = number * self.beat_ms;
            let lasted_ms = until_ms.min(begins_ms + self.beat_ms) - from_ms.max(begins_ms);
            if lasted_ms <= 0 {
                return;
            }
            match standing {
                Standing::Up => sum.up_ms += lasted_ms,
                Standing::Down => sum.down_ms += lasted_ms,
                Standing::Unknown => {}
            }
        }
    }
}

impl Sum {
    fn beat(self) -> Beat {
        match (self.up_ms > 0, self.down_ms > 0) {
            (true, false) => Beat::Online,
            (true, true) => Beat::Partly,
            (false, true) => Beat::Offline,
            (false, false) => Beat::Unknown,
        }
    }
}

/// Returns the state in each part, oldest first. `turns` are in order; time after `now` is unknown.
pub fn beats(turns: &[Turn], grid: Grid, now: Timestamp) -> Vec<Beat> {
    let mut sums = vec![Sum::default(); usize::try_from(grid.beats).unwrap_or_default()];
    let (mut from, mut standing) = (grid.start, Standing::Unknown);
    for turn in turns {
        let at = turn.at.clamp(from, now.max(from));
        grid.add(&mut sums, standing, from, at);
        (from, standing) = (at, turn.standing);
    }
    grid.add(&mut sums, standing, from, now);
    sums.into_iter().map(Sum::beat).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::events::availability::availability;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    fn turn(second: i64, standing: Standing) -> Turn {
        Turn { at: at(second), standing, reason: None }
    }

    /// Four parts of ten seconds, from 0 to 40.
    fn grid() -> Grid {
        Grid { start: at(0), beat_ms: 10_000, beats: 4 }
    }

    #[test]
    fn parts_begin_at_multiples_of_their_length() {
        assert_eq!(Grid::up_to(at(35), 10_000, 4), grid());
        assert_eq!(Grid::up_to(at(30), 10_000, 4), grid());
        assert_eq!(Grid::up_to(at(40), 10_000, 4).start, at(10));
    }

    #[test]
    fn a_part_with_an_outage_is_partly_online() {
        let turns = [turn(-5, Standing::Up), turn(12, Standing::Down), turn(13, Standing::Up)];

        assert_eq!(beats(&turns, grid(), at(35)), [Beat::Online, Beat::Partly, Beat::Online, Beat::Online]);
    }

    #[test]
    fn a_long_outage_fills_its_parts() {
        let turns = [turn(-5, Standing::Up), turn(5, Standing::Down), turn(35, Standing::Up)];

        assert_eq!(beats(&turns, grid(), at(39)), [Beat::Partly, Beat::Offline, Beat::Offline, Beat::Partly]);
    }

    #[test]
    fn what_nobody_observed_is_unknown() {
        let turns = [turn(15, Standing::Up), turn(20, Standing::Unknown)];

        assert_eq!(beats(&[], grid(), at(35)), [Beat::Unknown; 4]);
        assert_eq!(beats(&turns, grid(), at(35)), [Beat::Unknown, Beat::Online, Beat::Unknown, Beat::Unknown]);
    }

    #[test]
    fn a_part_that_has_not_begun_is_unknown() {
        assert_eq!(beats(&[turn(0, Standing::Up)], grid(), at(15))[1..], [Beat::Online, Beat::Unknown, Beat::Unknown]);
    }

    proptest! {
        #[test]
        fn each_part_agrees_with_the_availability_of_its_time(
            turns in proptest::collection::vec((-50_i64..80, 0_usize..3), 0..20),
            now in 30_i64..40,
        ) {
            let standings = [Standing::Up, Standing::Down, Standing::Unknown];
            let mut turns: Vec<Turn> = turns.into_iter().map(|(second, index)| turn(second, standings[index])).collect();
            turns.sort_by_key(|turn| turn.at);

            for (beat, number) in beats(&turns, grid(), at(now)).into_iter().zip(0..) {
                let found = availability(&turns, at(number * 10), at((number + 1) * 10).min(at(now)));
                prop_assert_eq!(beat, Sum { up_ms: found.up_ms, down_ms: found.down_ms }.beat());
            }
        }
    }
}
