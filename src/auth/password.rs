//! Password hashing: slow on purpose, so never on a worker thread and never many at the same time.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;

use pbkdf2::password_hash::phc::{Output, Salt};
use pbkdf2::password_hash::{PasswordHasher, PasswordVerifier};
use pbkdf2::phc::PasswordHash;
use pbkdf2::{Algorithm, Params, Pbkdf2};
use secrecy::{ExposeSecret, SecretString};

use super::hints::{Hint, Hints};
use crate::random;
use crate::shares::line::{Limits, Stay};
use crate::shares::share::digest;
use crate::shares::{Full, Gate, Part, Permit, Share};

/// Callers that may wait for a hash. Those who hang up leave the queue, so it may be longer than anybody's patience.
const MAX_WAITING: usize = 1_024;

/// The caller whose password is checked or hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    share: Share,
    /// The account that they name.
    account: u64,
    connection: u64,
}

impl Asker {
    /// A caller from an address, on one of its connections, with the account that they name.
    pub fn new(address: &str, connection: u16, account: impl Hash) -> Self {
        Self { share: Share::of_written(address), account: digest(account), connection: connection.into() }
    }

    /// The same caller, once identified.
    pub fn known(self) -> Self {
        Self { share: self.share.known(), ..self }
    }

    /// The operator, on the command line.
    pub fn operator() -> Self {
        Self { share: Share::Service, account: 0, connection: 0 }
    }

    /// The same caller, with a password that looks right: it takes turns with other such passwords for the account,
    /// however many connections they arrive on.
    fn with(self, hint: Hint) -> Self {
        Self { connection: hint.digest, ..self.known() }
    }

    /// The accounts of an address take turns, and so do the connections that name the same account.
    fn part(self) -> Part {
        Part { part: self.account, within: self.connection }
    }
}

/// Hashes and checks passwords with PBKDF2-HMAC-SHA256, as PHC strings.
#[derive(Clone)]
pub struct Passwords {
    gate: Gate,
    hints: Hints,
    algorithm: Pbkdf2,
    iterations: u32,
    /// Checked for a wrong user name, so that it takes as long as a wrong password.
    nobody: Arc<str>,
}

#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("too many passwords are being checked")]
    Busy(#[from] Full),
    #[error("password hashing failed: {0}")]
    Failed(String),
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Wrong,
    Right,
    /// Right, but hashed with less work than required now: replace the stored hash with this one.
    RightButWeak(String),
}

impl Passwords {
    /// `iterations` is the work for new hashes.
    pub fn new(iterations: u32) -> Result<Self, PasswordError> {
        let params = Params::new(iterations).map_err(failed)?;
        let algorithm = Pbkdf2::new(Algorithm::Pbkdf2Sha256, params);
        // One core does no hashing, so that many logins do not delay telemetry.
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Ok(Self {
            gate: Gate::new(
                "passwords",
                Limits { places: cores.saturating_sub(1).max(1), waiting: MAX_WAITING, stay: Stay::Brief },
            ),
            hints: Hints::new(random::bytes().map_err(failed)?),
            algorithm,
            iterations,
            nobody: unmatched(params)?.to_string().into(),
        })
    }

    pub async fn hash(&self, asker: Asker, password: SecretString) -> Result<String, PasswordError> {
        let algorithm = self.algorithm;
        self.in_turn(asker, move || hash(&algorithm, &password)).await?
    }

    /// Checks a password against `stored`. Without a stored hash it takes as long and is always wrong. A password that
    /// looks right does not wait for others.
    pub async fn verify(
        &self,
        asker: Asker,
        password: SecretString,
        stored: Option<String>,
    ) -> Result<Verdict, PasswordError> {
        let exists = stored.is_some();
        let hint = self.hints.of(asker.account, &password);
        let asker = if self.hints.looks_right(hint, Instant::now()) { asker.with(hint) } else { asker };
        let phc = stored.unwrap_or_else(|| self.nobody.to_string());
        let (algorithm, iterations) = (self.algorithm, self.iterations);
        let check = move || -> Result<Verdict, PasswordError> {
            let parsed = PasswordHash::new(&phc).map_err(failed)?;
            let matches = algorithm.verify_password(password.expose_secret().as_bytes(), &parsed).is_ok();
            if !(matches && exists) {
                return Ok(Verdict::Wrong);
            }
            let rounds = Params::try_from(&parsed).map(|params| params.rounds()).unwrap_or_default();
            if rounds >= iterations {
                return Ok(Verdict::Right);
            }
            Ok(Verdict::RightButWeak(hash(&algorithm, &password)?))
        };
        let verdict = self.in_turn(asker, check).await??;
        if verdict != Verdict::Wrong {
            self.hints.remember(hint);
        }
        Ok(verdict)
    }

    /// Waits for the turn of a caller who shows something else than a password, such as a code.
    pub async fn turn(&self, asker: Asker) -> Result<Permit, PasswordError> {
        Ok(self.gate.enter_part(asker.share, asker.part()).await?)
    }

    /// Notes the password of an account: callers who know it need not wait for guessers.
    pub fn remember(&self, account: impl Hash, password: &SecretString) {
        self.hints.remember(self.hints.of(digest(account), password));
    }

    /// Runs `work` on a blocking thread when its turn comes.
    async fn in_turn<T: Send + 'static>(
        &self,
        asker: Asker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let place = self.gate.enter_part(asker.share, asker.part()).await?;
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work is done, even if the caller has gone.
            let _place = place;
            work()
        });
        done.await.map_err(failed)
    }
}

fn hash(algorithm: &Pbkdf2, password: &SecretString) -> Result<String, PasswordError> {
    let hash: PasswordHash = algorithm.hash_password(password.expose_secret().as_bytes()).map_err(failed)?;
    Ok(hash.to_string())
}

/// A random hash that matches no known password: as much work to check as any other, but none to create. Its salt is as
/// long as those of [`hash`].
fn unmatched(params: Params) -> Result<PasswordHash, PasswordError> {
    let salt = random::bytes::<{ Salt::RECOMMENDED_LENGTH }>().map_err(failed)?;
    let output = random::bytes::<{ Params::RECOMMENDED_OUTPUT_LENGTH }>().map_err(failed)?;
    Ok(PasswordHash {
        algorithm: Algorithm::Pbkdf2Sha256.into(),
        version: None,
        params: params.try_into().map_err(failed)?,
        salt: Some(Salt::new(&salt).map_err(failed)?),
        hash: Some(Output::new(&output).map_err(failed)?),
    })
}

fn failed(error: impl std::fmt::Display) -> PasswordError {
    PasswordError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretString {
        text.into()
    }

    #[tokio::test]
    async fn a_hash_matches_only_its_password() {
        let passwords = Passwords::new(1_000).unwrap();
        let stored = passwords.hash(Asker::operator(), secret("correct horse")).await.unwrap();

        assert!(stored.starts_with("$pbkdf2-sha256$i=1000,l=32$"), "{stored}");
        assert_eq!(
            passwords.verify(Asker::operator(), secret("correct horse"), Some(stored.clone())).await.unwrap(),
            Verdict::Right
        );
        assert_eq!(
            passwords.verify(Asker::operator(), secret("wrong horse"), Some(stored)).await.unwrap(),
            Verdict::Wrong
        );
    }

    #[tokio::test]
    async fn an_unknown_name_takes_as_much_work_as_any_other() {
        let passwords = Passwords::new(1_000).unwrap();
        let stored = passwords.hash(Asker::operator(), secret("correct horse")).await.unwrap();
        let work = |phc: &str| {
            let hash = PasswordHash::new(phc).unwrap();
            let salt_bytes = hash.salt.unwrap().as_ref().len();
            (hash.algorithm, hash.version, Params::try_from(&hash).unwrap(), salt_bytes)
        };

        assert_eq!(work(&passwords.nobody), work(&stored));
        assert_eq!(passwords.verify(Asker::operator(), secret("correct horse"), None).await.unwrap(), Verdict::Wrong);
    }

    #[test]
    fn starting_hashes_nothing() {
        // Hashing once would take a quarter of an hour.
        let passwords = Passwords::new(u32::MAX).unwrap();
        let other = Passwords::new(u32::MAX).unwrap();

        assert!(passwords.nobody.starts_with("$pbkdf2-sha256$i=4294967295,l=32$"), "{}", passwords.nobody);
        assert_ne!(passwords.nobody, other.nobody);
    }

    #[tokio::test]
    async fn a_weak_hash_is_renewed_when_the_cost_has_risen() {
        let old = Passwords::new(1_000).unwrap().hash(Asker::operator(), secret("secret")).await.unwrap();
        let passwords = Passwords::new(2_000).unwrap();

        let Verdict::RightButWeak(new) =
            passwords.verify(Asker::operator(), secret("secret"), Some(old)).await.unwrap()
        else {
            panic!("the old hash has to be renewed")
        };

        assert!(new.starts_with("$pbkdf2-sha256$i=2000,"), "{new}");
        assert_eq!(passwords.verify(Asker::operator(), secret("secret"), Some(new)).await.unwrap(), Verdict::Right);
    }

    #[tokio::test]
    async fn a_password_waits_only_for_those_of_its_own_address() {
        let passwords = Passwords::new(1_000).unwrap();
        let held = hold_all(&passwords).await;
        let flood = Asker::new("192.0.2.1", 1, "alice");
        let guesses: Vec<_> = (0..50).map(|_| hashing(&passwords, flood)).collect();
        until_waiting(&passwords, 50).await;
        let honest = hashing(&passwords, Asker::new("192.0.2.2", 2, "bob"));
        until_waiting(&passwords, 51).await;

        drop(held);
        assert!(honest.await.unwrap().is_ok());

        assert!(guesses.iter().any(|guess| !guess.is_finished()), "it waited for all of them");
        for guess in guesses {
            assert!(guess.await.unwrap().is_ok());
        }
    }

    #[test]
    fn the_owner_of_a_password_does_not_wait_for_guessers_at_the_same_address() {
        // With one thread for the work, callers are answered in the order in which they enter.
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let passwords = Passwords::new(1_000).unwrap();
            let stored = passwords.hash(Asker::operator(), secret("correct horse")).await.unwrap();
            passwords.remember("bob", &secret("correct horse"));
            let held = hold_all(&passwords).await;
            let (answered, mut answers) = tokio::sync::mpsc::channel(101);
            let check = |connection: u16, password: &str| {
                let (passwords, stored, answered) = (passwords.clone(), stored.clone(), answered.clone());
                let (asker, password) = (Asker::new("192.0.2.1", connection, "bob"), secret(password));
                tokio::spawn(async move {
                    let verdict = passwords.verify(asker, password, Some(stored)).await.unwrap();
                    answered.send(verdict).await.unwrap();
                })
            };
            (0..50).for_each(|number| _ = check(number, "a guess"));
            until_waiting(&passwords, 50).await;
            check(99, "correct horse");
            until_waiting(&passwords, 51).await;
            // Guesses keep arriving while it waits.
            (100..150).for_each(|number| _ = check(number, "a guess"));
            until_waiting(&passwords, 101).await;

            drop((held, answered));
            let mut before = 0;
            while answers.recv().await.unwrap() == Verdict::Wrong {
                before += 1;
            }

            assert!(before <= 1, "{before} guesses were checked before it");
        });
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let passwords = Passwords::new(1_000).unwrap();
        let asker = Asker::new("192.0.2.1", 1, "alice");
        let held = hold_all(&passwords).await;
        let waiting: Vec<_> = (0..MAX_WAITING).map(|_| hashing(&passwords, asker)).collect();
        until_waiting(&passwords, MAX_WAITING).await;

        let refused = passwords.hash(asker, secret("one too many")).await;
        drop(waiting);
        drop(held);

        assert!(matches!(refused, Err(PasswordError::Busy(_))));
    }

    type Hashing = tokio::task::JoinHandle<Result<String, PasswordError>>;

    fn hashing(passwords: &Passwords, asker: Asker) -> Hashing {
        let passwords = passwords.clone();
        tokio::spawn(async move { passwords.hash(asker, secret("waiting")).await })
    }

    /// Takes every slot.
    async fn hold_all(passwords: &Passwords) -> Vec<crate::shares::Permit> {
        let mut held = Vec::new();
        while let Ok(permit) = passwords.gate.try_enter(Share::Service) {
            held.push(permit);
        }
        held
    }

    async fn until_waiting(passwords: &Passwords, count: usize) {
        while passwords.gate.waiting() < count {
            tokio::task::yield_now().await;
        }
    }
}
