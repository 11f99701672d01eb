//! Decides whose turn it is: queues that had no turn recently come before those that had one (RFC 8290, 4.2, with one
//! request per turn).
//!
//! Every other turn goes to the newest queue without a turn: with any other order, a crowd that arrived at once and
//! returns as soon as it is served would be in front of all later newcomers. The turns between go to queues that had a
//! turn before and to the oldest queue without one, unlike in the RFC: otherwise a client that uses a new name for each
//! request would keep all others waiting.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Whether a queue wants a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Turn,
    /// It has something that must wait.
    Later,
    /// It is empty.
    Nothing,
}

/// Queues by key, in the order of their turns.
#[derive(Debug)]
pub struct Turns<K, Q> {
    queues: HashMap<K, Q>,
    /// Queues without a turn since they arrived.
    fresh: VecDeque<K>,
    /// Queues that had a turn, the one with the earliest turn first. An empty queue is forgotten when its turn comes.
    seen: VecDeque<K>,
    /// The index of the next turn in [`ROUND`].
    turn: usize,
}

/// The queue that gets a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    /// The newest of the queues without a turn.
    Newest,
    /// The oldest of the queues without a turn, so that none waits forever.
    Oldest,
    /// The queue with the earliest last turn.
    Seen,
}

/// The order of the turns, each with an alternative if there is no such queue. The oldest queue gets few turns: if a
/// crowd returns with new names as soon as it is served, each such turn puts the crowd in front of the queue that was
/// the newest.
const ROUND: [[To; 2]; 8] = {
    const NEWEST: [To; 2] = [To::Newest, To::Seen];
    const SEEN: [To; 2] = [To::Seen, To::Newest];
    [NEWEST, SEEN, NEWEST, SEEN, NEWEST, SEEN, NEWEST, [To::Oldest, To::Seen]]
};

impl<K, Q> Default for Turns<K, Q> {
    fn default() -> Self {
        Self { queues: HashMap::new(), fresh: VecDeque::new(), seen: VecDeque::new(), turn: 0 }
    }
}

impl<K: Copy + Eq + Hash, Q: Default> Turns<K, Q> {
    /// The queue of a key, created if it does not exist.
    pub fn queue(&mut self, key: K) -> &mut Q {
        self.queues.entry(key).or_insert_with(|| {
            self.fresh.push_back(key);
            Q::default()
        })
    }

    /// Forgets a queue that became empty before it had a turn.
    pub fn forget_fresh(&mut self, key: &K) {
        if let Some(index) = self.fresh.iter().rposition(|fresh| fresh == key) {
            self.fresh.remove(index);
            self.queues.remove(key);
        }
    }

    pub fn get(&self, key: &K) -> Option<&Q> {
        self.queues.get(key)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut Q> {
        self.queues.get_mut(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &Q)> {
        self.queues.iter()
    }

    /// All remembered queues, including empty ones.
    pub fn remembered(&self) -> usize {
        self.queues.len()
    }

    /// Forgets every queue.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the next queue among those that want a turn, and moves it to the end of the order.
    pub fn next(&mut self, want: impl Fn(&K, &Q) -> Want) -> Option<(K, &mut Q)> {
        let Self { queues, fresh, seen, turn } = self;
        let goes = ROUND.get(*turn).into_iter().flatten();
        let key = goes.copied().find_map(|to| match to {
            To::Newest | To::Oldest => pick(fresh, queues, &want, to),
            To::Seen => pick(seen, queues, &want, to),
        })?;
        *turn = (*turn + 1) % ROUND.len();
        seen.push_back(key);
        queues.get_mut(&key).map(|queue| (key, queue))
    }
}

/// Takes the first queue of a list that wants a turn, from its newer or its older end, and forgets the empty ones
/// before it.
fn pick<K: Copy + Eq + Hash, Q>(
    list: &mut VecDeque<K>,
    queues: &mut HashMap<K, Q>,
    want: &impl Fn(&K, &Q) -> Want,
    to: To,
) -> Option<K> {
    let from_back = to == To::Newest;
    let mut index = if from_back { list.len().checked_sub(1)? } else { 0 };
    loop {
        let key = list.get(index).copied()?;
        let is_kept = match queues.get(&key).map_or(Want::Nothing, |queue| want(&key, queue)) {
            Want::Turn => return list.remove(index),
            Want::Later => true,
            Want::Nothing => {
                list.remove(index);
                queues.remove(&key);
                false
            }
        };
        index = match (from_back, is_kept) {
            (true, _) => index.checked_sub(1)?,
            (false, true) => index + 1,
            (false, false) => index,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = Turns<&'static str, VecDeque<u32>>;

    fn next(turns: &mut Numbers) -> Option<(&'static str, u32)> {
        let (key, queue) = turns.next(|_, queue| if queue.is_empty() { Want::Nothing } else { Want::Turn })?;
        Some((key, queue.pop_front().unwrap()))
    }

    fn push(turns: &mut Numbers, key: &'static str, numbers: &[u32]) {
        turns.queue(key).extend(numbers);
    }

    #[test]
    fn all_are_served_in_turn() {
        let mut turns = Numbers::default();
        push(&mut turns, "a", &[1, 2, 3]);
        push(&mut turns, "b", &[4]);
        push(&mut turns, "c", &[5, 6]);

        let served: Vec<_> = std::iter::from_fn(|| next(&mut turns)).collect();

        assert_eq!(served, [("c", 5), ("c", 6), ("b", 4), ("a", 1), ("a", 2), ("a", 3)]);
    }

    #[test]
    fn a_queue_without_a_recent_turn_comes_first() {
        let mut turns = Numbers::default();
        push(&mut turns, "a", &[1, 2, 3]);
        push(&mut turns, "b", &[4, 5, 6]);
        for _ in 0..4 {
            next(&mut turns);
        }

        push(&mut turns, "honest", &[7]);

        assert_eq!(next(&mut turns), Some(("honest", 7)));
    }

    #[test]
    fn a_newcomer_after_a_crowd_waits_for_at_most_one_turn() {
        let mut turns = Turns::<u32, VecDeque<u32>>::default();
        let next = |turns: &mut Turns<u32, VecDeque<u32>>| {
            let (key, queue) =
                turns.next(|_, queue| if queue.is_empty() { Want::Nothing } else { Want::Turn }).unwrap();
            queue.pop_front();
            key
        };
        for member in 0..100 {
            turns.queue(member).push_back(0);
        }

        for round in 0..300 {
            // The queue that had a turn returns before the next one.
            let had = next(&mut turns);
            turns.queue(had).push_back(0);
            let newcomer = 1_000 + round;
            turns.queue(newcomer).push_back(0);

            let served = [next(&mut turns), next(&mut turns)];

            assert!(served.contains(&newcomer), "round {round}: {served:?}");
            let other = served.into_iter().find(|key| *key != newcomer).unwrap();
            turns.queue(other).push_back(0);
        }
    }

    #[test]
    fn a_client_that_returns_with_new_names_leaves_turns_to_others() {
        let mut turns = Turns::<u32, VecDeque<u32>>::default();
        turns.queue(0).extend(0..100);
        turns.queue(1).push_back(0);
        let mut of_old = 0;
        let mut was_first = None;

        for name in 2..102 {
            turns.queue(name).push_back(0);
            let (key, queue) =
                turns.next(|_, queue| if queue.is_empty() { Want::Nothing } else { Want::Turn }).unwrap();
            queue.pop_front();
            of_old += u32::from(key == 0);
            was_first = was_first.or((key == 1).then_some(name));
        }

        assert!(of_old >= 25, "{of_old} of 100");
        assert!(was_first.is_some_and(|name| name < 30), "the one that waits longest gets a turn, too: {was_first:?}");
    }

    #[test]
    fn a_queue_that_empties_before_its_turn_is_forgotten_at_once() {
        let mut turns = Numbers::default();
        push(&mut turns, "waits", &[1]);
        push(&mut turns, "goes", &[]);
        turns.forget_fresh(&"goes");
        assert_eq!(turns.remembered(), 1);

        next(&mut turns);
        turns.forget_fresh(&"waits");

        assert_eq!(turns.remembered(), 1, "one that had a turn cannot become new by emptying");
    }

    #[test]
    fn empty_queues_are_forgotten() {
        let mut turns = Numbers::default();
        push(&mut turns, "a", &[1]);
        push(&mut turns, "b", &[]);

        while next(&mut turns).is_some() {}

        assert_eq!(turns.remembered(), 0);
    }
}
