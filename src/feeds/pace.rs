//! Decides how often the subscribers of a topic are woken for metrics.
//!
//! Most of a message's cost is the system call that sends it, and a dashboard draws metrics that arrive within a few
//! milliseconds together anyway. So the first is sent at once, and those of the pause after it are sent together. Events
//! never wait, and the metrics queued before them are sent with them.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Less than a screen shows one image, so nobody can see the delay.
const PAUSE: Duration = Duration::from_millis(10);

/// A planned call that is this late will not come, because its runtime has ended.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// When to wake the subscribers for a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WakeTime {
    Now,
    /// By a call that the caller has to plan now.
    After(Duration),
    /// By the call that is already planned, which has this number.
    Planned(u64),
}

/// The calls of one topic.
#[derive(Default)]
pub(super) struct Pace(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    last: Option<Instant>,
    planned: Option<Instant>,
    /// How many planned calls have been made.
    count: u64,
}

impl Pace {
    pub fn turn(&self, now: Instant) -> WakeTime {
        let mut calls = self.0.lock();
        if calls.planned.is_some_and(|at| now.saturating_duration_since(at) < GIVEN_UP) {
            return WakeTime::Planned(calls.count);
        }
        let rest = calls.last.and_then(|last| PAUSE.checked_sub(now.saturating_duration_since(last)));
        match rest.filter(|rest| !rest.is_zero()) {
            None => {
                (calls.last, calls.planned) = (Some(now), None);
                WakeTime::Now
            }
            Some(rest) => {
                calls.planned = now.checked_add(rest);
                WakeTime::After(rest)
            }
        }
    }

    /// Records that the planned call is made. If a publisher finds the number unchanged after it queued its frame, the call
    /// covers that frame.
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
    fn frames_within_the_pause_wait_for_one_call() {
        let (pace, start) = (Pace::default(), Instant::now());
        let after = |millis| start + Duration::from_millis(millis);

        assert_eq!(pace.turn(start), WakeTime::Now);
        assert_eq!(pace.turn(after(4)), WakeTime::After(Duration::from_millis(6)));
        assert_eq!(pace.turn(after(8)), WakeTime::Planned(0));
        pace.called(after(11));
        assert_eq!(pace.count(), 1);
        assert_eq!(pace.turn(after(15)), WakeTime::After(Duration::from_millis(6)));
        pace.called(after(21));

        assert_eq!(pace.turn(after(31)), WakeTime::Now);
    }

    #[test]
    fn an_overdue_call_is_given_up() {
        let (pace, start) = (Pace::default(), Instant::now());
        pace.turn(start);
        pace.turn(start + Duration::from_millis(1));

        assert_eq!(pace.turn(start + Duration::from_millis(900)), WakeTime::Planned(0));
        assert_eq!(pace.turn(start + Duration::from_millis(1100)), WakeTime::Now);
    }
}
