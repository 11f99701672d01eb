//! Sign-ins that were finished, so that a browser which keeps its cookie cannot have the provider asked again and again.

use std::collections::HashMap;

use parking_lot::Mutex;
use signalbox_protocol::Timestamp;

use super::attempt::LIFETIME_SECONDS;

/// Sign-ins that are remembered; more in the lifetime of a cookie are refused.
const MAX_SPENT: usize = 10_000;

/// The states of sign-ins that this instance has finished, with the second in which their cookies expire.
#[derive(Default)]
pub struct Spent(Mutex<HashMap<String, i64>>);

impl Spent {
    /// Takes a sign-in. Returns whether nobody took it before, and there was room to remember it.
    pub fn take(&self, state: &str, now: Timestamp) -> bool {
        let now = now.as_seconds();
        let mut spent = self.0.lock();
        if spent.len() >= MAX_SPENT {
            spent.retain(|_, expires_at| *expires_at > now);
        }
        let is_new = spent.len() < MAX_SPENT && !spent.contains_key(state);
        if is_new {
            spent.insert(state.to_owned(), now.saturating_add(LIFETIME_SECONDS));
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_is_taken_once_and_forgotten_when_its_cookie_has_expired() {
        let spent = Spent::default();
        let (early, late) = (Timestamp::from_millis(0), Timestamp::from_millis(LIFETIME_SECONDS * 1_000));

        assert!(spent.take("one", early));
        assert!(!spent.take("one", early));
        for number in 1..MAX_SPENT {
            assert!(spent.take(&number.to_string(), early));
        }
        assert!(!spent.take("one too many", early));
        assert!(spent.take("one too many", late));
        assert_eq!(spent.0.lock().len(), 1);
    }
}
