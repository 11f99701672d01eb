//! The position up to which a log was read, so that reading continues there without a gap and without a repetition. Pure.
//!
//! Engines accept whole seconds and return everything of that second again; Podman's records do not even have a finer time. So
//! the records read of the current second are counted, and as many are skipped when they come again.

use signalbox_protocol::Timestamp;

pub struct Position {
    /// The position to request: everything since this second.
    second: i64,
    /// The number of its records, and later ones, that were read.
    read: u64,
    /// The latest time that was read. Later records cannot have been read, even if the log has lost some since.
    latest: Timestamp,
    /// The number of records to skip when they come again.
    again: u64,
}

impl Position {
    /// Nothing is read yet, at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { second: now.as_seconds(), read: 0, latest: Timestamp::from_millis(now.as_seconds() * 1000), again: 0 }
    }

    /// The second from which to continue.
    pub fn resume(&mut self) -> i64 {
        self.again = self.read;
        self.second
    }

    /// Records that a record came. False when it was read before.
    pub fn is_new(&mut self, at: Option<Timestamp>) -> bool {
        // A piece without a time belongs to the one before.
        let at = at.unwrap_or(self.latest);
        if self.again > 0 && at <= self.latest {
            self.again -= 1;
            return false;
        }
        self.again = 0;
        if at.as_seconds() > self.second {
            self.second = at.as_seconds();
            self.read = 0;
        }
        // Two streams may be a little out of order; the engine will not return an earlier second again.
        if at.as_seconds() == self.second {
            self.read += 1;
        }
        self.latest = self.latest.max(at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Option<Timestamp> {
        Some(Timestamp::from_millis(millis))
    }

    fn begin() -> Position {
        Position::new(Timestamp::from_millis(10_500))
    }

    #[test]
    fn records_read_of_the_last_second_are_skipped() {
        let mut position = begin();
        for millis in [10_600, 11_000, 11_000, 11_700] {
            assert!(position.is_new(at(millis)));
        }

        assert_eq!(position.resume(), 11);
        let again: Vec<bool> =
            [11_000, 11_000, 11_700, 11_700, 12_000].map(|millis| position.is_new(at(millis))).into();

        assert_eq!(again, [false, false, false, true, true]);
    }

    #[test]
    fn whole_seconds_are_enough() {
        let mut position = begin();
        (0..3).for_each(|_| assert!(position.is_new(at(12_000))));

        assert_eq!(position.resume(), 12);
        let again: Vec<bool> = (0..5).map(|_| position.is_new(at(12_000))).collect();

        assert_eq!(again, [false, false, false, true, true]);
    }

    #[test]
    fn a_log_that_lost_its_beginning_costs_no_new_line() {
        let mut position = begin();
        (0..3).for_each(|_| assert!(position.is_new(at(12_000))));

        position.resume();

        assert!(position.is_new(at(12_500)));
        assert!(position.is_new(at(12_500)));
    }

    #[test]
    fn resuming_twice_skips_everything_that_was_read() {
        let mut position = begin();
        assert!(position.is_new(at(12_000)));
        position.resume();
        assert!(!position.is_new(at(12_000)));
        assert!(position.is_new(at(12_100)));

        position.resume();

        assert!(!position.is_new(at(12_000)));
        assert!(!position.is_new(at(12_100)));
        assert!(position.is_new(at(12_100)));
    }

    #[test]
    fn an_unread_log_begins_where_the_reading_began() {
        assert_eq!(begin().resume(), 10);
    }
}
