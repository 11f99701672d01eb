//! Guesses which passwords are right before they are checked, so that users who know theirs need not wait for guessers.
//!
//! A check takes a fifth of a second on purpose, so many guessers form a long queue. Nothing else distinguishes the
//! owner of an account from guessers who name the same account from the same address. So the memory keeps eight bits of
//! a keyed hash of each password that was right recently: of 256 guesses, 255 do not match. The key is created at each
//! start and never stored: anyone who reads the memory learns eight bits of a password and no more.
//!
//! A hint decides only whose turn it is. Names that do not exist have hints, too, so the speed of an answer does not
//! reveal who has an account. A guess that has to wait is known to be wrong, though. So the hints of an account are
//! used no more often than a large machine checks passwords: hanging up early does not speed up guessing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use parking_lot::{Mutex, MutexGuard};
use secrecy::{ExposeSecret, SecretString};

/// Accounts that are certainly remembered; at most twice as many may be.
const REMEMBERED: usize = 10_000;

/// How often the hint of an account is used in [`WITHIN`]: more often than a hundred guessers ask who wait for their
/// answers.
const MAX_LOOKS: u32 = 256;
const WITHIN: Duration = Duration::from_secs(4);

/// The bits that a password must match.
type Bits = u8;

/// The hash of a password for an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    account: u64,
    bits: Bits,
    /// Distinguishes it from other passwords for as long as it waits.
    pub digest: u64,
}

/// The hints of accounts whose password was right recently, only in memory: forgotten accounts wait with unknown ones.
#[derive(Clone)]
pub struct Hints {
    key: hmac::Key,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    right: Lately<Bits>,
    /// For any name, and separate, so that guesses for many names do not displace accounts that have signed in.
    looks: Lately<Looks>,
}

/// How often a hint was used, and since when.
#[derive(Clone, Copy)]
struct Looks {
    count: u32,
    since: Instant,
}

/// The values of the most recent accounts.
struct Lately<V> {
    recent: HashMap<u64, V>,
    older: HashMap<u64, V>,
}

impl<V> Default for Lately<V> {
    fn default() -> Self {
        Self { recent: HashMap::new(), older: HashMap::new() }
    }
}

impl<V: Copy> Lately<V> {
    fn add(&mut self, account: u64, value: V) {
        if self.recent.len() >= REMEMBERED && !self.recent.contains_key(&account) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(account, value);
    }

    fn find(&self, account: u64) -> Option<V> {
        self.recent.get(&account).or_else(|| self.older.get(&account)).copied()
    }
}

impl State {
    /// Whether the hint of an account may be used, which counts as a use.
    fn may_look(&mut self, account: u64, now: Instant) -> bool {
        let looks = self.looks.find(account);
        let looks = looks.filter(|looks| now.saturating_duration_since(looks.since) < WITHIN);
        let looks = looks.unwrap_or(Looks { count: 0, since: now });
        self.looks.add(account, Looks { count: looks.count.saturating_add(1), ..looks });
        looks.count < MAX_LOOKS
    }
}

impl Hints {
    /// Hints with a secret key.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &key), state: Arc::default() }
    }

    /// The hint of a password for an account.
    pub fn of(&self, account: u64, password: &SecretString) -> Hint {
        self.hint(account, password.expose_secret().as_bytes())
    }

    /// Notes that this password is the account's.
    pub fn remember(&self, hint: Hint) {
        self.state().right.add(hint.account, hint.bits);
    }

    /// Whether the password may be the account's.
    pub fn looks_right(&self, hint: Hint, now: Instant) -> bool {
        let mut state = self.state();
        let (may_look, known) = (state.may_look(hint.account, now), state.right.find(hint.account));
        drop(state);
        // No password that people type is empty.
        let bits = known.unwrap_or_else(|| self.hint(hint.account, b"").bits);
        may_look && bits == hint.bits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn hint(&self, account: u64, password: &[u8]) -> Hint {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&account.to_be_bytes());
        context.update(password);
        let tag = context.sign();
        let bytes = || tag.as_ref().iter().copied();
        let digest = bytes().skip(1).take(8).fold(0, |digest, byte| (digest << 8) | u64::from(byte));
        Hint { account, bits: bytes().next().unwrap_or_default(), digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints() -> Hints {
        Hints::new([7; 32])
    }

    fn of(hints: &Hints, account: u64, password: &str) -> Hint {
        hints.of(account, &password.into())
    }

    /// The number of guesses that look right, at a few per second.
    fn guessed(hints: &Hints, account: u64, guesses: u32) -> usize {
        let start = Instant::now();
        let looks_right = |guess: &u32| {
            let hint = of(hints, account, &format!("guess {guess}"));
            hints.looks_right(hint, start + WITHIN * *guess)
        };
        (0..guesses).filter(looks_right).count()
    }

    #[test]
    fn a_password_that_was_right_looks_right() {
        let (hints, now) = (hints(), Instant::now());
        hints.remember(of(&hints, 1, "old"));
        hints.remember(of(&hints, 1, "correct horse"));

        assert!(hints.looks_right(of(&hints, 1, "correct horse"), now));
        assert!(!hints.looks_right(of(&hints, 1, "old"), now));
    }

    #[test]
    fn guesses_hardly_ever_look_right_with_or_without_an_account() {
        let hints = hints();
        hints.remember(of(&hints, 1, "correct horse"));

        for account in [1, 2] {
            let right = guessed(&hints, account, 25_600);
            assert!((50..200).contains(&right), "{right} of 25,600 for {account}");
        }
    }

    #[test]
    fn hanging_up_early_does_not_speed_up_guessing() {
        let (hints, now) = (hints(), Instant::now());
        let right = of(&hints, 1, "correct horse");
        hints.remember(right);
        for _ in 0..MAX_LOOKS {
            assert!(hints.looks_right(right, now));
        }

        assert!(!hints.looks_right(right, now + WITHIN / 2));
        let other = of(&hints, 2, "battery staple");
        hints.remember(other);
        assert!(hints.looks_right(other, now), "the hint of another account may be used");
        assert!(hints.looks_right(right, now + WITHIN), "and this one later");
    }

    #[test]
    fn recent_accounts_are_remembered_within_a_bound() {
        let (hints, now) = (hints(), Instant::now());
        let last = 3 * REMEMBERED as u64 - 1;
        (0..=last).for_each(|account| hints.remember(of(&hints, account, "correct horse")));
        // Guesses for many names displace no account that has signed in.
        (0..=last).for_each(|name| _ = hints.looks_right(of(&hints, u64::MAX - name, "guess"), now));

        assert!(hints.looks_right(of(&hints, last, "correct horse"), now));
        assert!(hints.looks_right(of(&hints, last - REMEMBERED as u64, "correct horse"), now));
        let state = hints.state();
        assert_eq!(state.right.find(0), None);
        assert!(state.right.recent.len() + state.right.older.len() <= 2 * REMEMBERED);
        assert!(state.looks.recent.len() + state.looks.older.len() <= 2 * REMEMBERED);
    }
}
