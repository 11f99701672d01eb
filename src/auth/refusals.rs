//! Limits which refused passwords are recorded in the audit log, so that guessers cannot fill the disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

/// One entry per user and address in this time.
const ONCE_IN: Duration = Duration::from_secs(60);

/// Addresses per user that are recorded in that time: IPv6 addresses cost nothing.
const MAX_PER_USER: usize = 10;

/// Entries in that time: 40 MB a day if it never stops.
const MAX_REFUSALS: usize = 100;

/// Remembers the recent entries.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<HashMap<(Uuid, String), Instant>>>);

impl Refusals {
    /// Whether to record a refusal at `now`. If so, the next ones are not recorded.
    pub fn is_news(&self, user_id: Uuid, address: &str, now: Instant) -> bool {
        let mut told = self.0.lock();
        told.retain(|_, at| now.saturating_duration_since(*at) < ONCE_IN);
        let key = (user_id, address.to_owned());
        let of_user = told.keys().filter(|(id, _)| *id == user_id).count();
        if told.contains_key(&key) || of_user >= MAX_PER_USER || told.len() >= MAX_REFUSALS {
            return false;
        }
        told.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_and_an_address_are_recorded_once_a_minute() {
        let (refusals, ada, start) = (Refusals::default(), Uuid::from_u128(1), Instant::now());
        let is_news = |address: &str, seconds| refusals.is_news(ada, address, start + Duration::from_secs(seconds));

        assert!(is_news("192.0.2.1", 0));
        assert!(!is_news("192.0.2.1", 59));
        assert!(is_news("192.0.2.2", 59));
        assert!(is_news("192.0.2.1", 60));
    }

    #[test]
    fn many_addresses_are_recorded_up_to_a_bound() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let told =
            |user: u128| (0..1_000).filter(|n| refusals.is_news(Uuid::from_u128(user), &n.to_string(), now)).count();

        assert_eq!(told(1), MAX_PER_USER);
        assert_eq!((2..50).map(told).sum::<usize>(), MAX_REFUSALS - MAX_PER_USER);
    }
}
