//! When agents may be on their way back, so that no alert says that they are missing.
//!
//! After a start their sessions begin again. After a pause of the service, or when its clock was set, what they sent lies
//! unread, and what the clock says of how long they have been away is not true.

use std::time::{Duration, Instant};

use signalbox_protocol::Timestamp;

use crate::clock::Clock;
use crate::clock::verdict::Doubt;

/// How long agents have to come back, and since when. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    pub clock: Clock,
    patience: Duration,
    began: Instant,
}

impl Patience {
    /// From now on.
    pub fn new(clock: Clock, patience: Duration) -> Self {
        Self { clock, patience, began: Instant::now() }
    }

    /// How long agents that were not heard of since the start have yet; none where they had time enough.
    pub fn after_start(&self) -> Option<Duration> {
        self.left(self.began.elapsed()).into_iter().chain(self.after_pause()).max()
    }

    /// How long agents have yet after a pause, whether they were heard of before or not.
    pub fn after_pause(&self) -> Option<Duration> {
        self.left(self.clock.disturbed()?)
    }

    fn left(&self, elapsed: Duration) -> Option<Duration> {
        self.patience.checked_sub(elapsed).filter(|left| !left.is_zero())
    }

    /// Since when an agent has been away that was last heard of at a time that was written down. Where that is of the
    /// future, or our own clock is doubted, it counts from the start of this process: that is certain.
    pub fn away_since(&self, last_seen_at: Timestamp, now: Timestamp) -> Timestamp {
        let began_at = now.plus_millis(-i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX));
        let is_certain = last_seen_at <= now && self.clock.doubt() != Some(Doubt::Ahead);
        if is_certain { last_seen_at } else { began_at }
    }
}
