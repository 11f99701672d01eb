//! Decides which silent clients have seats, and which one gives way when all seats are taken.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::share::Share;

/// A client that has a seat for less than this does not give way to its own share: it may be about to identify itself.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeatId(u64);

/// What happens to a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seated {
    /// It gets a seat, which `evicted` loses if all seats were taken.
    Here { id: SeatId, evicted: Option<SeatId> },
    /// All seats are taken, no share has more of them, and no client has had one for long.
    Refused,
}

#[derive(Debug)]
pub struct Seating {
    seats: usize,
    taken: usize,
    /// The seats of each share with the time at which they were taken, oldest first.
    shares: HashMap<Share, VecDeque<(SeatId, Duration)>>,
    next_id: u64,
}

impl Seating {
    pub fn new(seats: usize) -> Self {
        Self { seats, taken: 0, shares: HashMap::new(), next_id: 0 }
    }

    /// A client of a share arrives at `now`, in the time of a monotonic clock.
    pub fn take(&mut self, share: Share, now: Duration) -> Seated {
        let mut evicted = None;
        if self.taken >= self.seats {
            let Some((from, id)) = self.who_gives_way(share, now) else { return Seated::Refused };
            self.give_back(from, id);
            evicted = Some(id);
        }
        let id = SeatId(self.next_id);
        self.next_id += 1;
        self.taken += 1;
        self.shares.entry(share).or_default().push_back((id, now));
        Seated::Here { id, evicted }
    }

    /// Frees a seat. Does nothing if it was taken away.
    pub fn give_back(&mut self, share: Share, id: SeatId) {
        let Some(seats) = self.shares.get_mut(&share) else { return };
        if let Some(index) = seats.iter().position(|(taken, _)| *taken == id) {
            seats.remove(index);
            self.taken -= 1;
        }
        if seats.is_empty() {
            self.shares.remove(&share);
        }
    }

    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Shares that are remembered.
    pub fn remembered(&self) -> usize {
        self.shares.len()
    }

    /// The oldest client of the share with the most seats. If the newcomer's share would have as many, the oldest
    /// client of its own share, or of all if it has none; but only after its grace period.
    fn who_gives_way(&self, share: Share, now: Duration) -> Option<(Share, SeatId)> {
        let own = self.shares.get(&share);
        let heaviest = self.shares.iter().max_by_key(|(_, seats)| seats.len())?;
        if heaviest.1.len() > own.map_or(0, VecDeque::len) + 1 {
            return heaviest.1.front().map(|(id, _)| (*heaviest.0, *id));
        }
        let oldest = |(share, seats): (&Share, &VecDeque<(SeatId, Duration)>)| {
            seats.front().map(|(id, since)| (*since, *share, *id))
        };
        let candidate = match own {
            Some(seats) => oldest((&share, seats)),
            None => self.shares.iter().filter_map(oldest).min_by_key(|(since, ..)| *since),
        };
        candidate.filter(|(since, ..)| now.saturating_sub(*since) >= GRACE).map(|(_, share, id)| (share, id))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(number: u64) -> Share {
        Share::Host(number)
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn sits(seated: Seated) -> (SeatId, Option<SeatId>) {
        match seated {
            Seated::Here { id, evicted } => (id, evicted),
            Seated::Refused => panic!("it is refused"),
        }
    }

    #[test]
    fn a_flood_gives_way_to_every_other_share() {
        let mut seating = Seating::new(100);
        let flood: Vec<SeatId> = (0..100).map(|_| sits(seating.take(share(1), at(0))).0).collect();

        for (other, oldest) in (2..27).zip(&flood) {
            assert_eq!(sits(seating.take(share(other), at(0))).1, Some(*oldest));
        }
        assert_eq!(seating.taken(), 100);
    }

    #[test]
    fn in_the_flooding_share_a_client_that_was_silent_for_a_second_gives_way() {
        let mut seating = Seating::new(2);
        let (oldest, _) = sits(seating.take(share(1), at(0)));
        seating.take(share(1), at(0));

        assert_eq!(seating.take(share(1), Duration::from_millis(999)), Seated::Refused);
        assert_eq!(sits(seating.take(share(1), at(1))).1, Some(oldest));
    }

    #[test]
    fn if_all_shares_have_one_seat_the_oldest_gives_way() {
        let mut seating = Seating::new(3);
        let (oldest, _) = sits(seating.take(share(1), at(0)));
        seating.take(share(2), at(1));
        seating.take(share(3), at(2));

        assert_eq!(sits(seating.take(share(4), at(3))).1, Some(oldest));
    }

    #[test]
    fn a_seat_that_was_taken_away_is_not_freed_twice() {
        let mut seating = Seating::new(1);
        let (first, _) = sits(seating.take(share(1), at(0)));
        let (second, evicted) = sits(seating.take(share(2), at(5)));
        assert_eq!(evicted, Some(first));

        seating.give_back(share(1), first);

        assert_eq!((seating.taken(), seating.remembered()), (1, 1));
        seating.give_back(share(2), second);
        assert_eq!((seating.taken(), seating.remembered()), (0, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn seats_are_bounded_and_none_is_lost(
            steps in proptest::collection::vec((0..6_u64, any::<bool>(), any::<usize>()), 1..200),
            seats in 1..20_usize,
        ) {
            let mut seating = Seating::new(seats);
            let mut sitting: Vec<(Share, SeatId)> = Vec::new();
            for (second, (number, comes, index)) in (0..).zip(steps) {
                if comes || sitting.is_empty() {
                    if let Seated::Here { id, evicted } = seating.take(share(number), at(second)) {
                        sitting.retain(|(_, seat)| Some(*seat) != evicted);
                        sitting.push((share(number), id));
                    }
                } else {
                    let (share, id) = sitting.swap_remove(index % sitting.len());
                    seating.give_back(share, id);
                }
                prop_assert!(seating.taken() <= seats);
                prop_assert_eq!(seating.taken(), sitting.len());
            }
            for (share, id) in sitting {
                seating.give_back(share, id);
            }
            prop_assert_eq!((seating.taken(), seating.remembered()), (0, 0));
        }
    }
}
