//! Sign-ins that were finished, so that a browser which keeps its cookie cannot have the provider asked again and again.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use signalbox_protocol::Timestamp;

use super::attempt::LIFETIME_SECONDS;
use crate::shares::Share;

/// The states of sign-ins that this instance has finished.
pub struct Spent {
    /// The most that are remembered.
    limit: usize,
    finished: Mutex<Finished>,
}

#[derive(Default)]
struct Finished {
    states: HashSet<Arc<str>>,
    /// The same of each share, with the second in which their cookies expire, oldest first.
    shares: HashMap<Share, VecDeque<(i64, Arc<str>)>>,
}

impl Spent {
    pub fn new(limit: usize) -> Self {
        Self { limit, finished: Mutex::default() }
    }

    /// Takes a sign-in. Returns whether nobody took it before.
    ///
    /// If too many are remembered, one of the share that has most is forgotten: to refuse the newcomer would let one address keep
    /// everybody from signing in. It takes the cookie of that sign-in, which is in the browser that began it, to finish it once more.
    /// What this gains is a request to the provider, which redeems no code twice and none that was not made for this sign-in.
    pub fn take(&self, state: &str, share: Share, now: Timestamp) -> bool {
        let now = now.as_seconds();
        let mut finished = self.finished.lock();
        if finished.states.contains(state) {
            return false;
        }
        if finished.states.len() >= self.limit {
            finished.forget_expired(now);
        }
        if finished.states.len() >= self.limit {
            finished.forget_one();
        }
        finished.remember(state.into(), share, now.saturating_add(LIFETIME_SECONDS));
        true
    }
}

impl Finished {
    fn remember(&mut self, state: Arc<str>, share: Share, expires_at: i64) {
        self.states.insert(state.clone());
        self.shares.entry(share).or_default().push_back((expires_at, state));
    }

    fn forget_expired(&mut self, now: i64) {
        let Self { states, shares } = self;
        shares.retain(|_, finished| {
            while let Some((_, state)) = finished.pop_front_if(|(expires_at, _)| *expires_at <= now) {
                states.remove(&state);
            }
            !finished.is_empty()
        });
    }

    /// Forgets the oldest of the share that has most; of several such shares, that of the oldest.
    fn forget_one(&mut self) {
        let weight = |finished: &VecDeque<(i64, Arc<str>)>| {
            (finished.len(), Reverse(finished.front().map(|(expires_at, _)| *expires_at)))
        };
        let heaviest = self.shares.iter().max_by_key(|(_, finished)| weight(finished)).map(|(share, _)| *share);
        let Some(share) = heaviest else { return };
        let Some(finished) = self.shares.get_mut(&share) else { return };
        if let Some((_, state)) = finished.pop_front() {
            self.states.remove(&state);
        }
        if finished.is_empty() {
            self.shares.remove(&share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Share = Share::Host(1);
    const OTHER: Share = Share::Host(2);
    const LIMIT: usize = 4;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_sign_in_is_taken_once_and_forgotten_when_its_cookie_has_expired() {
        let spent = Spent::new(LIMIT);

        assert!(spent.take("one", ONE, at(0)));
        assert!(!spent.take("one", ONE, at(0)));
        assert!(!spent.take("one", OTHER, at(0)));
        for number in 1..LIMIT {
            assert!(spent.take(&number.to_string(), ONE, at(0)));
        }
        assert!(spent.take("late", ONE, at(LIFETIME_SECONDS)));

        let finished = spent.finished.lock();
        assert_eq!((finished.states.len(), finished.shares.len()), (1, 1));
    }

    #[test]
    fn one_address_forgets_only_its_own() {
        let spent = Spent::new(LIMIT);
        assert!(spent.take("theirs", OTHER, at(0)));

        for number in 0..10 * LIMIT {
            assert!(spent.take(&number.to_string(), ONE, at(1)), "{number}");
        }

        assert!(!spent.take("theirs", OTHER, at(1)));
        assert!(!spent.take(&(10 * LIMIT - 1).to_string(), ONE, at(1)), "the newest is remembered");
        assert_eq!(spent.finished.lock().states.len(), LIMIT);
    }

    #[test]
    fn of_shares_that_have_as_many_the_oldest_is_forgotten() {
        let spent = Spent::new(LIMIT);
        for host in 0..LIMIT as u64 {
            assert!(spent.take(&host.to_string(), Share::Host(host), at(host as i64)));
        }

        assert!(spent.take("another", Share::Host(99), at(9)));

        assert!(!spent.take("1", ONE, at(9)));
        assert!(spent.take("0", Share::Host(0), at(9)));
    }
}
