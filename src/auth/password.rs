//! Password hashing: slow on purpose, so never on a worker thread and never many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pbkdf2::password_hash::{PasswordHasher, PasswordVerifier};
use pbkdf2::phc::PasswordHash;
use pbkdf2::{Algorithm, Params, Pbkdf2};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;

/// Who waits for a hash beyond this is told to come back: at some ten hashes a second a core, a longer queue would
/// answer people who have long gone.
const MAX_WAITING: usize = 64;

/// Hashes and checks passwords with PBKDF2-HMAC-SHA256, as PHC strings.
#[derive(Clone)]
pub struct Passwords {
    turns: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    algorithm: Pbkdf2,
    iterations: u32,
    /// What a wrong user name is checked against, so that it takes as long as a wrong password.
    nobody: Arc<str>,
}

#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("too many passwords are being checked")]
    Busy,
    #[error("password hashing failed: {0}")]
    Failed(String),
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Wrong,
    Right,
    /// Right, but hashed with less work than is asked for now: this is the hash to keep instead.
    RightButWeak(String),
}

impl Passwords {
    /// `iterations` is the work for new hashes.
    pub fn new(iterations: u32) -> Result<Self, PasswordError> {
        let params = Params::new(iterations).map_err(failed)?;
        let algorithm = Pbkdf2::new(Algorithm::Pbkdf2Sha256, params);
        let nobody = algorithm.hash_password(b"nobody has this password").map_err(failed)?.to_string();
        // One core stays free of hashing, so that a burst of logins does not delay telemetry.
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Ok(Self {
            turns: Arc::new(Semaphore::new(cores.saturating_sub(1).max(1))),
            waiting: Arc::default(),
            algorithm,
            iterations,
            nobody: nobody.into(),
        })
    }

    pub async fn hash(&self, password: SecretString) -> Result<String, PasswordError> {
        let algorithm = self.algorithm;
        self.in_turn(move || hash(&algorithm, &password)).await?
    }

    /// Checks a password against `stored`; with no stored hash it takes as long and is always wrong.
    pub async fn verify(&self, password: SecretString, stored: Option<String>) -> Result<Verdict, PasswordError> {
        let exists = stored.is_some();
        let phc = stored.unwrap_or_else(|| self.nobody.to_string());
        let (algorithm, iterations) = (self.algorithm, self.iterations);
        self.in_turn(move || {
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
        })
        .await?
    }

    /// Runs `work` on a blocking thread when it is its turn.
    async fn in_turn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, PasswordError> {
        let _place = Place::take(&self.waiting)?;
        let turn = self.turns.clone().acquire_owned().await.map_err(failed)?;
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work is done, even if whoever asked has gone.
            let _turn = turn;
            work()
        });
        done.await.map_err(failed)
    }
}

fn hash(algorithm: &Pbkdf2, password: &SecretString) -> Result<String, PasswordError> {
    let hash: PasswordHash = algorithm.hash_password(password.expose_secret().as_bytes()).map_err(failed)?;
    Ok(hash.to_string())
}

fn failed(error: impl std::fmt::Display) -> PasswordError {
    PasswordError::Failed(error.to_string())
}

/// A place in the queue, given back when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(waiting: &Arc<AtomicUsize>) -> Result<Self, PasswordError> {
        let place = Self(waiting.clone());
        if waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING { Ok(place) } else { Err(PasswordError::Busy) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretString {
        text.into()
    }

    #[tokio::test]
    async fn a_hash_fits_its_password_alone() {
        let passwords = Passwords::new(1_000).unwrap();
        let stored = passwords.hash(secret("correct horse")).await.unwrap();

        assert!(stored.starts_with("$pbkdf2-sha256$i=1000,l=32$"), "{stored}");
        assert_eq!(passwords.verify(secret("correct horse"), Some(stored.clone())).await.unwrap(), Verdict::Right);
        assert_eq!(passwords.verify(secret("wrong horse"), Some(stored)).await.unwrap(), Verdict::Wrong);
    }

    #[tokio::test]
    async fn nobody_can_sign_in_as_nobody() {
        let passwords = Passwords::new(1_000).unwrap();

        let verdict = passwords.verify(secret("nobody has this password"), None).await.unwrap();

        assert_eq!(verdict, Verdict::Wrong);
    }

    #[tokio::test]
    async fn a_weak_hash_is_renewed_when_the_cost_has_risen() {
        let old = Passwords::new(1_000).unwrap().hash(secret("secret")).await.unwrap();
        let passwords = Passwords::new(2_000).unwrap();

        let Verdict::RightButWeak(new) = passwords.verify(secret("secret"), Some(old)).await.unwrap() else {
            panic!("the old hash has to be renewed")
        };

        assert!(new.starts_with("$pbkdf2-sha256$i=2000,"), "{new}");
        assert_eq!(passwords.verify(secret("secret"), Some(new)).await.unwrap(), Verdict::Right);
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let passwords = Passwords::new(1_000).unwrap();
        let held =
            passwords.turns.clone().acquire_many_owned(passwords.turns.available_permits() as u32).await.unwrap();
        let waiting: Vec<_> = (0..MAX_WAITING)
            .map(|_| {
                let passwords = passwords.clone();
                tokio::spawn(async move { passwords.hash(secret("waiting")).await })
            })
            .collect();
        while passwords.waiting.load(Ordering::Relaxed) < MAX_WAITING {
            tokio::task::yield_now().await;
        }

        let refused = passwords.hash(secret("one too many")).await;
        drop(held);

        assert!(matches!(refused, Err(PasswordError::Busy)));
        for hash in waiting {
            assert!(hash.await.unwrap().is_ok());
        }
    }
}
