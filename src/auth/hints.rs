//! Which password looks right before it is checked, so that those who know it wait for nobody who guesses.
//!
//! A check takes a fifth of a second on purpose, and a crowd that guesses is a long line; nothing else tells the owner of an
//! account from a crowd that names the same account at the same address. So of each password that was right lately, memory
//! keeps eight bits of a keyed hash. Of 256 guesses 255 do not have them. The key is made at each start and kept nowhere:
//! anyone who reads the memory learns eight bits of a password and no more.
//!
//! Nothing is decided by a hint but whose turn it is, and names that nobody has have a hint, too: how soon an answer comes
//! tells no stranger who has an account. It does tell that a guess that waits is wrong, so hints are not looked at more often
//! for an account than a large machine checks passwords: nobody finds one sooner by hanging up early.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use parking_lot::{Mutex, MutexGuard};
use secrecy::{ExposeSecret, SecretString};

/// Accounts that are remembered for certain; up to twice as many may be.
const REMEMBERED: usize = 10_000;

/// How often a hint is looked at in [`WITHIN`] for an account: more than a crowd of a hundred that waits for its answers asks.
const MAX_LOOKS: u32 = 256;
const WITHIN: Duration = Duration::from_secs(4);

/// The bits by which a password looks right.
type Bits = u8;

/// What a password that was shown for an account comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    account: u64,
    bits: Bits,
    /// Tells it from other passwords for as long as it waits.
    pub digest: u64,
}

/// The hints of accounts whose password was right lately, in memory alone: those that are forgotten wait with the strangers.
#[derive(Clone)]
pub struct Hints {
    key: hmac::Key,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    right: Lately<Bits>,
    /// Of any name, so that nobody who tries many is in the way of those who have signed in.
    looks: Lately<Looks>,
}

/// How often a hint was looked at, and since when.
#[derive(Clone, Copy)]
struct Looks {
    count: u32,
    since: Instant,
}

/// What is known of the accounts that came last.
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
    /// Whether a hint may be looked at for an account, which counts as a look.
    fn may_look(&mut self, account: u64, now: Instant) -> bool {
        let looks = self.looks.find(account);
        let looks = looks.filter(|looks| now.saturating_duration_since(looks.since) < WITHIN);
        let looks = looks.unwrap_or(Looks { count: 0, since: now });
        self.looks.add(account, Looks { count: looks.count.saturating_add(1), ..looks });
        looks.count < MAX_LOOKS
    }
}

impl Hints {
    /// Hints under a key that nobody else has.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &key), state: Arc::default() }
    }

    /// What a password for an account comes to.
    pub fn of(&self, account: u64, password: &SecretString) -> Hint {
        self.hint(account, password.expose_secret().as_bytes())
    }

    /// Takes note that this password is the account's.
    pub fn remember(&self, hint: Hint) {
        self.state().right.add(hint.account, hint.bits);
    }

    /// Whether the password may be the account's.
    pub fn looks_right(&self, hint: Hint, now: Instant) -> bool {
        let mut state = self.state();
        let (may_look, known) = (state.may_look(hint.account, now), state.right.find(hint.account));
        drop(state);
        // No password that anybody types is empty.
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

    /// How many of so many guesses look right, a few a second.
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
    fn guesses_hardly_ever_look_right_whether_there_is_an_account_or_not() {
        let hints = hints();
        hints.remember(of(&hints, 1, "correct horse"));

        for account in [1, 2] {
            let right = guessed(&hints, account, 25_600);
            assert!((50..200).contains(&right), "{right} of 25,600 for {account}");
        }
    }

    #[test]
    fn nobody_learns_more_by_hanging_up_than_a_large_machine_would_tell() {
        let (hints, now) = (hints(), Instant::now());
        let right = of(&hints, 1, "correct horse");
        hints.remember(right);
        for _ in 0..MAX_LOOKS {
            assert!(hints.looks_right(right, now));
        }

        assert!(!hints.looks_right(right, now + WITHIN / 2));
        let other = of(&hints, 2, "battery staple");
        hints.remember(other);
        assert!(hints.looks_right(other, now), "another account is looked at");
        assert!(hints.looks_right(right, now + WITHIN), "and this one again later");
    }

    #[test]
    fn the_last_are_remembered_within_a_bound() {
        let (hints, now) = (hints(), Instant::now());
        let last = 3 * REMEMBERED as u64 - 1;
        (0..=last).for_each(|account| hints.remember(of(&hints, account, "correct horse")));
        // One who tries many names drives out nobody who has signed in.
        (0..=last).for_each(|name| _ = hints.looks_right(of(&hints, u64::MAX - name, "guess"), now));

        assert!(hints.looks_right(of(&hints, last, "correct horse"), now));
        assert!(hints.looks_right(of(&hints, last - REMEMBERED as u64, "correct horse"), now));
        let state = hints.state();
        assert_eq!(state.right.find(0), None);
        assert!(state.right.recent.len() + state.right.older.len() <= 2 * REMEMBERED);
        assert!(state.looks.recent.len() + state.looks.older.len() <= 2 * REMEMBERED);
    }
}
