//! The setup code, which the first account requires if other machines can reach the service: it listens on more than
//! loopback, its settings name a proxy or a public address, or the request came through a proxy.
//!
//! The code is derived from the secret that signs tokens: it is the same after a restart, and on every instance of one
//! database.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

use crate::shares::Share;

/// The purpose in the derivation, so that no other use of the secret reveals the code.
const PURPOSE: &[u8] = b"signalbox setup code v1";

/// 80 bits: they cannot be guessed, and people can still type them.
const BYTES: usize = 10;

/// Hexadecimal digits between hyphens.
const GROUP: usize = 5;

/// Wrong codes from one host in [`WITHIN`]: a person who mistypes needs fewer.
const MAX_TRIES: u32 = 10;
const WITHIN: Duration = Duration::from_secs(60);

/// Hosts that are remembered. An attacker with more hosts still has to guess 80 bits.
const MAX_HOSTS: usize = 1_000;

/// Why an account cannot be created yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    #[error("The first account requires the setup code in the service's log")]
    Missing,
    #[error("This is not the setup code in the service's log")]
    Wrong,
    #[error("Too many wrong setup codes; try again in a minute")]
    TooMany,
}

/// How a request reached the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Directly: nothing in the request indicates a proxy.
    Direct,
    /// Through a proxy, so the client may be anywhere.
    Proxy,
}

/// Decides who may create the first account.
#[derive(Clone)]
pub struct Setup {
    code: SecretString,
    /// Whether direct requests can only come from this machine: they require no code.
    is_local: bool,
    tries: Arc<Mutex<HashMap<Share, Tries>>>,
}

struct Tries {
    count: u32,
    since: Instant,
}

impl Setup {
    /// For a local service: clients on this machine need no code, clients behind a proxy do.
    pub fn local(secret: &SecretString) -> Self {
        Self { is_local: true, ..Self::guarded(secret) }
    }

    /// For a service that other machines can reach: every client needs the code of this secret.
    pub fn guarded(secret: &SecretString) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
        let tag = hmac::sign(&key, PURPOSE);
        let digits: String = tag.as_ref().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect();
        let groups: Vec<&str> = (0..digits.len()).step_by(GROUP).filter_map(|at| digits.get(at..at + GROUP)).collect();
        Self { code: groups.join("-").into(), is_local: false, tries: Arc::default() }
    }

    pub fn code(&self) -> &SecretString {
        &self.code
    }

    /// Whether the first account requires the code for clients that come this way.
    pub fn requires_code(&self, via: Via) -> bool {
        match via {
            Via::Direct => !self.is_local,
            Via::Proxy => true,
        }
    }

    /// Checks whether a client at `address` may create the first account with this code.
    pub fn check(&self, given: Option<&SecretString>, address: &str, now: Instant) -> Result<(), SetupError> {
        let given = given.ok_or(SetupError::Missing)?;
        let host = Share::of_written(address);
        let mut tries = self.tries.lock();
        tries.retain(|_, tries| now.saturating_duration_since(tries.since) < WITHIN);
        if tries.get(&host).is_some_and(|tries| tries.count >= MAX_TRIES) {
            return Err(SetupError::TooMany);
        }
        if is_same(&self.code, given) {
            return Ok(());
        }
        if tries.len() >= MAX_HOSTS && !tries.contains_key(&host) {
            let oldest = tries.iter().min_by_key(|(_, tries)| tries.since).map(|(host, _)| *host);
            oldest.map(|host| tries.remove(&host));
        }
        tries.entry(host).or_insert(Tries { count: 0, since: now }).count += 1;
        Err(SetupError::Wrong)
    }
}

/// Compares in constant time. Ignores hyphens, spaces and case.
fn is_same(code: &SecretString, given: &SecretString) -> bool {
    let digits = |text: &str| -> Vec<u8> {
        text.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase()).collect()
    };
    digits(code.expose_secret()).ct_eq(&digits(given.expose_secret())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretString {
        text.into()
    }

    #[test]
    fn a_code_belongs_to_a_secret() {
        let code = |text: &str| Setup::guarded(&secret(text)).code().expose_secret().to_owned();

        assert_eq!(code("one"), code("one"));
        assert_ne!(code("one"), code("two"));
        assert_eq!(code("one").split('-').map(str::len).collect::<Vec<_>>(), [5, 5, 5, 5]);
    }

    #[test]
    fn a_code_is_accepted_however_it_is_typed() {
        let setup = Setup::guarded(&secret("one"));
        let code = setup.code().expose_secret().to_owned();

        for typed in [code.clone(), code.replace('-', ""), code.to_uppercase(), format!(" {} ", code.replace('-', " "))]
        {
            assert_eq!(setup.check(Some(&typed.into()), "192.0.2.1", Instant::now()), Ok(()));
        }
        for wrong in ["", "-", &code[1..], &format!("{code}0")] {
            assert_eq!(
                setup.check(Some(&wrong.into()), "192.0.2.1", Instant::now()),
                Err(SetupError::Wrong),
                "{wrong}"
            );
        }
        assert_eq!(setup.check(None, "192.0.2.1", Instant::now()), Err(SetupError::Missing));
    }

    #[test]
    fn only_direct_clients_of_a_local_service_need_no_code() {
        let required = |setup: Setup| [Via::Direct, Via::Proxy].map(|via| setup.requires_code(via));

        assert_eq!(required(Setup::local(&secret("one"))), [false, true]);
        assert_eq!(required(Setup::guarded(&secret("one"))), [true, true]);
    }

    #[test]
    fn a_host_may_try_ten_codes_a_minute() {
        let (setup, start) = (Setup::guarded(&secret("one")), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let right = setup.code().clone();
        let try_wrong = |address: &str, seconds| setup.check(Some(&secret("wrong")), address, at(seconds));

        for _ in 0..MAX_TRIES {
            assert_eq!(try_wrong("192.0.2.1", 0), Err(SetupError::Wrong));
        }

        assert_eq!(try_wrong("192.0.2.1", 59), Err(SetupError::TooMany));
        assert_eq!(setup.check(Some(&right), "192.0.2.1", at(59)), Err(SetupError::TooMany));
        assert_eq!(setup.check(Some(&right), "192.0.2.2", at(59)), Ok(()), "another address is not affected");
        assert_eq!(setup.check(Some(&right), "192.0.2.1", at(60)), Ok(()));

        for last in 0..MAX_TRIES {
            assert_eq!(try_wrong(&format!("2001:db8::{last:x}"), 60), Err(SetupError::Wrong));
        }
        assert_eq!(try_wrong("2001:db8::ffff:1", 60), Err(SetupError::TooMany), "a host of IPv6 has a whole network");
        assert_eq!(try_wrong("2001:db8:0:1::1", 60), Err(SetupError::Wrong));
    }

    #[test]
    fn hosts_are_remembered_up_to_a_bound() {
        let (setup, now) = (Setup::guarded(&secret("one")), Instant::now());

        for number in 0..2 * MAX_HOSTS {
            _ = setup.check(Some(&secret("wrong")), &format!("10.0.{}.{}", number / 256, number % 256), now);
        }

        assert_eq!(setup.tries.lock().len(), MAX_HOSTS);
    }
}
