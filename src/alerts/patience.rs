//! The grace period in which agents may reconnect, so that no alert says that they are offline.
//!
//! After the service starts, agents have to reconnect. After a pause of the service their messages are still unread, and
//! after its clock was set, the length of their absence by that clock is wrong.

use std::time::{Duration, Instant};

use signalbox_protocol::Timestamp;

use crate::clock::Clock;
use crate::clock::verdict::Doubt;

/// How long agents have to reconnect, and since when. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    pub clock: Clock,
    patience: Duration,
    began: Instant,
}

impl Patience {
    /// A grace period that starts now.
    pub fn new(clock: Clock, patience: Duration) -> Self {
        Self { clock, patience, began: Instant::now() }
    }

    /// Returns the time left for agents that have not connected since the start; `None` if it is over.
    pub fn after_start(&self) -> Option<Duration> {
        self.left(self.began.elapsed()).into_iter().chain(self.after_pause()).max()
    }

    /// Returns the time left for all agents after a pause or a jump of the clock; `None` if it is over.
    pub fn after_pause(&self) -> Option<Duration> {
        self.left(self.clock.disturbed()?)
    }

    fn left(&self, elapsed: Duration) -> Option<Duration> {
        self.patience.checked_sub(elapsed).filter(|left| !left.is_zero())
    }

    /// Returns since when an agent has been away that was last seen at the recorded time. If that is in the future, or our
    /// own clock may be ahead, its absence counts from the start of this process, which is certain.
    pub fn away_since(&self, last_seen_at: Timestamp, now: Timestamp) -> Timestamp {
        let began_at = now.plus_millis(-i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX));
        let is_certain = last_seen_at <= now && self.clock.doubt() != Some(Doubt::Ahead);
        if is_certain { last_seen_at } else { began_at }
    }
}
