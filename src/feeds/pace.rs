//! How often those who watch a topic are woken for metrics.
//!
//! What a message costs is mostly its way to the kernel, and metrics that come within a few milliseconds of each other
//! are drawn together in any case. So the first is told at once, and those of the pause after it go together. Events never
//! wait, and take along what waits before them.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Less than a screen shows a picture for, so nobody sees it.
const PAUSE: Duration = Duration::from_millis(10);

/// A call that is so late does not come: its runtime has ended.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// When those who watch are to be woken for a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// By a call that is to be planned now.
    After(Duration),
    /// By the call that is planned already, which is of this number.
    Planned(u64),
}

/// The calls of one topic.
#[derive(Default)]
pub(super) struct Pace(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    last: Option<Instant>,
    planned: Option<Instant>,
    /// How many planned ones have come.
    count: u64,
}

impl Pace {
    pub fn turn(&self, now: Instant) -> Turn {
        let mut calls = self.0.lock();
        if calls.planned.is_some_and(|at| now.saturating_duration_since(at) < GIVEN_UP) {
            return Turn::Planned(calls.count);
        }
        let rest = calls.last.and_then(|last| PAUSE.checked_sub(now.saturating_duration_since(last)));
        match rest.filter(|rest| !rest.is_zero()) {
            None => {
                (calls.last, calls.planned) = (Some(now), None);
                Turn::Now
            }
            Some(rest) => {
                calls.planned = now.checked_add(rest);
                Turn::After(rest)
            }
        }
    }

    /// The planned call comes: a publisher that finds this number unchanged after its frames is heard by it.
    pub fn called(&self, now: Instant) {
        let mut calls = self.0.lock();
        (calls.last, calls.planned) = (Some(now), None);
        calls.count = calls.count.wrapping_add(1);
    }

    pub fn count(&self) -> u64 {
        self.0.lock().count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_soon_waits_for_one_call() {
        let (pace, start) = (Pace::default(), Instant::now());
        let after = |millis| start + Duration::from_millis(millis);

        assert_eq!(pace.turn(start), Turn::Now);
        assert_eq!(pace.turn(after(4)), Turn::After(Duration::from_millis(6)));
        assert_eq!(pace.turn(after(8)), Turn::Planned(0));
        pace.called(after(11));
        assert_eq!(pace.count(), 1);
        assert_eq!(pace.turn(after(15)), Turn::After(Duration::from_millis(6)));
        pace.called(after(21));

        assert_eq!(pace.turn(after(31)), Turn::Now);
    }

    #[test]
    fn a_call_that_never_comes_is_not_waited_for() {
        let (pace, start) = (Pace::default(), Instant::now());
        pace.turn(start);
        pace.turn(start + Duration::from_millis(1));

        assert_eq!(pace.turn(start + Duration::from_millis(900)), Turn::Planned(0));
        assert_eq!(pace.turn(start + Duration::from_millis(1100)), Turn::Now);
    }
}
