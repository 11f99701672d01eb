//! Puts lines of several logs in the order of their time. Pure.

use std::collections::HashMap;
use std::time::Duration;

use signalbox_protocol::Timestamp;

/// How long a line waits for earlier ones of other logs.
const HOLD: Duration = Duration::from_millis(400);
/// Lines that wait: beyond, they are printed as they came.
const MAX_HELD: usize = 20_000;

/// Lines that wait for their place.
#[derive(Debug)]
pub struct Merge<T> {
    hold: Duration,
    held: Vec<Held<T>>,
    /// A line without a time stands after the one before it.
    latest: HashMap<usize, Timestamp>,
}

#[derive(Debug)]
struct Held<T> {
    key: Timestamp,
    /// Since the beginning.
    arrived: Duration,
    line: T,
}

impl<T> Merge<T> {
    /// One log needs no order of ours.
    pub fn of(sources: usize) -> Self {
        let hold = if sources > 1 { HOLD } else { Duration::ZERO };
        Self { hold, held: Vec::new(), latest: HashMap::new() }
    }

    /// Takes a line of a log that arrived at `now`.
    pub fn push(&mut self, source: usize, timestamp: Option<Timestamp>, now: Duration, line: T) {
        let key = timestamp.or_else(|| self.latest.get(&source).copied()).unwrap_or_default();
        self.latest.insert(source, key);
        self.held.push(Held { key, arrived: now, line });
    }

    /// When the next line is due.
    pub fn due(&self) -> Option<Duration> {
        self.held.iter().map(|held| held.arrived + self.hold).min()
    }

    /// The lines whose turn has come, in order.
    pub fn take(&mut self, now: Duration) -> Vec<T> {
        // Stable: lines of one time keep the order in which they came.
        self.held.sort_by_key(|held| held.key);
        let is_full = self.held.len() > MAX_HELD;
        let is_due = |held: &Held<T>| is_full || held.arrived + self.hold <= now;
        let count = self.held.iter().rposition(is_due).map_or(0, |last| last + 1);
        self.held.drain(..count).map(|held| held.line).collect()
    }

    /// All lines, in order.
    pub fn rest(&mut self) -> Vec<T> {
        self.held.sort_by_key(|held| held.key);
        std::mem::take(&mut self.held).into_iter().map(|held| held.line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp::from_millis(seconds * 1000))
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn an_earlier_line_that_arrives_a_little_later_gets_its_place() {
        let mut merge = Merge::of(2);
        merge.push(0, at(10), ms(0), "second");
        merge.push(1, at(5), ms(100), "first");
        merge.push(1, at(20), ms(399), "third");

        assert!(merge.take(ms(399)).is_empty());
        assert_eq!(merge.due(), Some(ms(400)));
        assert_eq!(merge.take(ms(400)), ["first", "second"]);
        assert_eq!(merge.take(ms(799)), ["third"]);
    }

    #[test]
    fn a_line_without_a_time_follows_the_one_before_it() {
        let mut merge = Merge::of(2);
        merge.push(0, at(10), ms(0), "panic");
        merge.push(0, None, ms(0), "  at main");
        merge.push(1, at(11), ms(0), "other");
        merge.push(0, None, ms(0), "  at run");

        assert_eq!(merge.rest(), ["panic", "  at main", "  at run", "other"]);
    }

    #[test]
    fn one_log_is_not_held_back_and_many_lines_do_not_wait() {
        let mut alone = Merge::of(1);
        alone.push(0, at(10), ms(0), 1);
        assert_eq!(alone.take(ms(0)), [1]);

        let mut merge = Merge::of(2);
        (0..=MAX_HELD).for_each(|line| merge.push(0, at(1), ms(0), line));
        assert_eq!(merge.take(ms(0)).len(), MAX_HELD + 1);
    }
}
