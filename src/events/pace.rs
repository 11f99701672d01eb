//! How many events of a server or an account are accepted. Pure but for its table.

use std::sync::Arc;
use std::time::Instant;

use dashmap::DashMap;
use uuid::Uuid;

/// How many events are accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limit {
    /// At once.
    pub burst: f64,
    /// Per hour, in the long run.
    pub an_hour: f64,
}

/// The paces of many servers or accounts; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Paces {
    limit: Limit,
    by_id: Arc<DashMap<Uuid, Pace>>,
}

impl Paces {
    pub fn new(limit: Limit) -> Self {
        Self { limit, by_id: Arc::default() }
    }

    /// Accepts one more event. Returns how many were dropped before it; `None` if this one is dropped too.
    pub fn take(&self, id: Uuid) -> Option<u64> {
        let now = Instant::now();
        self.by_id.entry(id).or_insert_with(|| Pace::new(self.limit, now)).take(self.limit, now)
    }

    /// Forgets those that equal new ones.
    pub fn tidy(&self) {
        let now = Instant::now();
        self.by_id.retain(|_, pace| !pace.is_fresh(self.limit, now));
    }
}

/// How many more events are accepted.
#[derive(Debug)]
struct Pace {
    left: f64,
    since: Instant,
    dropped: u64,
}

impl Pace {
    fn new(limit: Limit, now: Instant) -> Self {
        Self { left: limit.burst, since: now, dropped: 0 }
    }

    fn take(&mut self, limit: Limit, now: Instant) -> Option<u64> {
        self.refill(limit, now);
        if self.left < 1.0 {
            self.dropped += 1;
            return None;
        }
        self.left -= 1.0;
        Some(std::mem::take(&mut self.dropped))
    }

    fn refill(&mut self, limit: Limit, now: Instant) {
        let hours = now.duration_since(self.since).as_secs_f64() / 3_600.0;
        (self.left, self.since) = ((self.left + hours * limit.an_hour).min(limit.burst), now);
    }

    /// Returns whether it equals a new one.
    fn is_fresh(&mut self, limit: Limit, now: Instant) -> bool {
        self.refill(limit, now);
        self.dropped == 0 && self.left >= limit.burst
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMIT: Limit = Limit { burst: 120.0, an_hour: 720.0 };

    #[test]
    fn a_flood_is_limited_and_counted() {
        let began = Instant::now();
        let mut pace = Pace::new(LIMIT, began);

        let taken = (0..1_000).filter(|_| pace.take(LIMIT, began).is_some()).count();

        assert_eq!(taken, 120);
        assert!(!pace.is_fresh(LIMIT, began));
        assert_eq!(pace.take(LIMIT, began + Duration::from_secs(6)), Some(880));
        assert_eq!(pace.take(LIMIT, began + Duration::from_secs(6)), None);
    }

    #[test]
    fn the_rate_per_hour_is_bounded_in_the_long_run() {
        let began = Instant::now();
        let mut pace = Pace::new(LIMIT, began);

        let taken =
            (0..36_000).filter(|second| pace.take(LIMIT, began + Duration::from_secs(*second)).is_some()).count();

        assert_eq!(taken, 120 + 7_199);
    }

    #[test]
    fn the_pace_of_a_quiet_server_is_fresh_again() {
        let began = Instant::now();
        let mut pace = Pace::new(LIMIT, began);
        pace.take(LIMIT, began);

        assert!(pace.is_fresh(LIMIT, began + Duration::from_secs(10)));
    }
}
