//! Second factors: who needs one, how they are made and removed, and which codes count.
//!
//! A login knows whether its user has proved a second factor in it, and when they last proved who they are. Both are
//! stored, so that they hold on every instance.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::logins::Logins;
use super::recovery;
use super::totp::Secret;
use super::webauthn::{Challenges, NoRelyingParty, PasskeyError, Purpose, Registration, RelyingParty, Verifier};
use crate::audit::{Actor, Entry, action};
use crate::clock::Clock;
use crate::seal::{SealError, Sealer, derive_key};
use crate::store::{
    Answered, Caller, Means, NewPasskey, Passkey, Proof, SecondFactors, Store, StoreError, Throttle, Totp,
};

/// What the keys are for.
const TOTP_PURPOSE: &[u8] = b"totp secrets";
const CHALLENGE_PURPOSE: &[u8] = b"passkey challenges";

/// Wrong codes of an account in [`WITHIN`]. Only someone with the password can show any: they would need years to guess one,
/// and the account's owner mistypes less.
const MAX_FAILURES: i32 = 10;
const WITHIN: Duration = Duration::from_secs(15 * 60);

/// How long a proof counts for changes of the ways to sign in, where `--step-up` sets no time.
const WAYS_IN_STEP_UP: Duration = Duration::from_secs(15 * 60);

/// What an app shows above the codes.
const ISSUER: &str = "Signalbox";

/// Who must have proved a second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum SecondFactorPolicy {
    /// Nobody; accounts may still have one.
    #[default]
    Off,
    /// Administrators.
    Admins,
    /// Everybody.
    All,
}

#[derive(Debug, thiserror::Error)]
pub enum FactorError {
    #[error("a second factor is required")]
    SecondFactorRequired,
    #[error("a recent proof of identity is required")]
    StepUpRequired,
    #[error("there is an authenticator app already")]
    TotpExists,
    #[error("no authenticator app waits for its first code")]
    NoTotp,
    #[error("the password of the account is missing")]
    PasswordMissing,
    #[error("the code is wrong")]
    WrongCode,
    #[error("too many wrong codes")]
    TooManyCodes {
        /// Until codes are accepted again.
        seconds: u64,
    },
    #[error(transparent)]
    NoRelyingParty(#[from] NoRelyingParty),
    #[error(transparent)]
    Passkey(#[from] PasskeyError),
    #[error("the secret of the authenticator app cannot be read: {0}")]
    Seal(#[from] SealError),
    #[error("no random numbers: {0}")]
    NoRandomness(#[from] getrandom::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a user needs to set up their app.
pub struct TotpSetup {
    pub secret: String,
    pub url: String,
}

/// How a code of a user was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    Otp,
    RecoveryCode,
}

/// The second factors of all users.
#[derive(Clone)]
pub struct Factors {
    store: Store,
    sealer: Sealer,
    verifier: Result<Arc<Verifier>, NoRelyingParty>,
    policy: SecondFactorPolicy,
    /// How long a proof counts; none if it counts as long as its login.
    step_up: Option<Duration>,
    clock: Clock,
}

/// The settings of second factors.
pub struct Settings<'a> {
    /// The secret that encrypts.
    pub encryption: &'a SecretString,
    pub relying_party: Result<RelyingParty, NoRelyingParty>,
    pub policy: SecondFactorPolicy,
    pub step_up: Option<Duration>,
}

impl Factors {
    pub fn new(store: Store, clock: Clock, settings: Settings<'_>) -> Result<Self, SealError> {
        let challenges = Challenges::new(&derive_key(settings.encryption, CHALLENGE_PURPOSE)?);
        let verifier = |relying_party| Arc::new(Verifier { relying_party, challenges });
        Ok(Self {
            store,
            sealer: Sealer::new(settings.encryption, TOTP_PURPOSE)?,
            verifier: settings.relying_party.map(verifier),
            policy: settings.policy,
            step_up: settings.step_up,
            clock,
        })
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long a proof of identity counts, if that is bounded.
    pub fn step_up(&self) -> Option<Duration> {
        self.step_up
    }

    /// The verifier of passkeys, if the service has a name that they can be bound to.
    pub fn verifier(&self) -> Result<&Verifier, NoRelyingParty> {
        self.verifier.as_deref().map_err(|reason| *reason)
    }

    /// Whether this user must have a second factor.
    fn requires(&self, caller: &Caller) -> bool {
        match self.policy {
            SecondFactorPolicy::Off => false,
            SecondFactorPolicy::Admins => caller.is_admin,
            SecondFactorPolicy::All => true,
        }
    }

    /// Refuses callers who have not proved the second factor that they must have.
    pub fn check_second_factor(&self, caller: &Caller) -> Result<(), FactorError> {
        if self.requires(caller) && !caller.second_factor { Err(FactorError::SecondFactorRequired) } else { Ok(()) }
    }

    /// Refuses callers who proved too long ago who they are. A program cannot prove it: making its token took a proof, and the
    /// token says what it may do.
    pub fn check_recent(&self, caller: &Caller) -> Result<(), FactorError> {
        if caller.token.is_some() {
            return Ok(());
        }
        self.step_up.map_or(Ok(()), |step_up| self.check_proved_within(caller, step_up))
    }

    /// The same for changes of the ways to sign in, also on a service without `--step-up`: nobody may turn a token that they
    /// found into a way in that lasts.
    pub fn check_recent_for_ways_in(&self, caller: &Caller) -> Result<(), FactorError> {
        self.check_proved_within(caller, self.step_up.unwrap_or(WAYS_IN_STEP_UP))
    }

    fn check_proved_within(&self, caller: &Caller, limit: Duration) -> Result<(), FactorError> {
        let age_ms = self.now().millis_since(caller.proved_at);
        let is_recent = u128::try_from(age_ms).map_or(true, |age| age < limit.as_millis());
        if is_recent { Ok(()) } else { Err(FactorError::StepUpRequired) }
    }

    /// Returns the caller if they pass a check. They may have proved on another instance what the cache does not know yet: then
    /// their login is read again. None if it has ended.
    pub async fn passing(
        &self,
        logins: &Logins,
        caller: Caller,
        check: fn(&Self, &Caller) -> Result<(), FactorError>,
    ) -> Result<Option<Caller>, FactorError> {
        if check(self, &caller).is_ok() {
            return Ok(Some(caller));
        }
        logins.forget(caller.user_id);
        let Some(caller) = logins.caller(caller.login_id).await? else { return Ok(None) };
        check(self, &caller)?;
        Ok(Some(caller))
    }

    /// Refuses callers who know only the password of an account that it is not enough for: they must not replace its
    /// second factor.
    pub async fn check_may_change(&self, caller: &Caller) -> Result<(), FactorError> {
        if caller.second_factor {
            return Ok(());
        }
        let factors = self.store.second_factors(caller.user_id).await?;
        let is_protected = factors.totp || (self.requires(caller) && !factors.is_empty());
        if is_protected { Err(FactorError::StepUpRequired) } else { Ok(()) }
    }

    pub async fn of(&self, user_id: Uuid) -> Result<SecondFactors, StoreError> {
        self.store.second_factors(user_id).await
    }

    /// Makes the secret of an app, which counts once its user has shown a code of it.
    pub async fn begin_totp(&self, caller: &Caller) -> Result<TotpSetup, FactorError> {
        let secret = Secret::generate()?;
        let sealed = self.sealer.seal(caller.user_id, secret.bytes().to_vec())?;
        if !self.store.begin_totp(caller.user_id, sealed, self.now()).await? {
            return Err(FactorError::TotpExists);
        }
        Ok(TotpSetup { secret: secret.text(), url: secret.url(ISSUER, &caller.username) })
    }

    /// Turns the app on. Returns fresh recovery codes.
    pub async fn confirm_totp(
        &self,
        caller: &Caller,
        code: &SecretString,
        actor: Actor,
    ) -> Result<Vec<String>, FactorError> {
        let found = self.store.find_totp(caller.user_id).await?;
        let pending = found.filter(|totp| totp.confirmed_at.is_none()).ok_or(FactorError::NoTotp)?;
        let now = self.now();
        let step = self.secret_of(&pending)?.step_of(code, now).ok_or(FactorError::WrongCode)?;
        let codes = recovery::generate()?;
        let digests: Vec<Vec<u8>> = codes.iter().map(|code| recovery::digest(&code.as_str().into())).collect();
        let proof = Proof { login_id: caller.login_id, means: Means::Otp, now };
        let entry = Entry::new(action::TOTP_CREATE, caller.user_id, actor);
        if !self.store.confirm_totp(&pending.sealed, step, &digests, proof, entry).await? {
            return Err(FactorError::NoTotp);
        }
        Ok(codes)
    }

    /// The app of a user, if it counts.
    pub async fn totp_of(&self, user_id: Uuid) -> Result<Option<Totp>, StoreError> {
        Ok(self.store.find_totp(user_id).await?.filter(|totp| totp.confirmed_at.is_some()))
    }

    /// Accepts a code of the app or a recovery code, each once. `actor` used it.
    pub async fn accept(&self, totp: &Totp, code: &SecretString, actor: &Actor) -> Result<Accepted, FactorError> {
        let now = self.now();
        let within_ms = i64::try_from(WITHIN.as_millis()).unwrap_or(i64::MAX);
        let throttle = Throttle { max_failures: MAX_FAILURES, within_ms, now };
        if let Some(until) = throttle.reached_until(totp) {
            let seconds = until.millis_since(now).unsigned_abs().div_ceil(1_000);
            return Err(FactorError::TooManyCodes { seconds });
        }
        // Recovery codes work without the key that encrypted the secret.
        let secret = self.secret_of(totp).inspect_err(|error| {
            tracing::error!(user.id = %totp.user_id, %error, "the secret of an authenticator app cannot be read");
        });
        if let Some(step) = secret.ok().and_then(|secret| secret.step_of(code, now))
            && self.store.accept_step(totp.user_id, step, throttle).await?
        {
            return Ok(Accepted::Otp);
        }
        let entry = Entry::new(action::RECOVERY_CODE_USE, totp.user_id, actor.clone());
        if self.store.use_recovery_code(&recovery::digest(code), throttle, entry).await? {
            return Ok(Accepted::RecoveryCode);
        }
        self.store.refuse_code(totp.user_id, throttle).await?;
        Err(FactorError::WrongCode)
    }

    fn secret_of(&self, totp: &Totp) -> Result<Secret, SealError> {
        let bytes = self.sealer.open(totp.user_id, &totp.sealed)?;
        Secret::of_bytes(&bytes).ok_or(SealError::Unknown)
    }

    /// A challenge for an authenticator.
    pub fn challenge(&self, purpose: Purpose) -> Result<Vec<u8>, FactorError> {
        Ok(self.verifier()?.challenges.issue(purpose, self.now())?)
    }

    /// Registers a passkey that the caller made.
    pub async fn register_passkey(
        &self,
        caller: &Caller,
        name: String,
        given: &Registration,
        actor: Actor,
    ) -> Result<Passkey, FactorError> {
        let now = self.now();
        let (made, spent) = self.verifier()?.registration(given, Purpose::Register(caller.user_id), now)?;
        let new = NewPasskey {
            credential_id: made.credential_id,
            public_key: made.public_key,
            sign_count: made.sign_count.into(),
            name,
        };
        let proof = Proof { login_id: caller.login_id, means: Means::Passkey, now };
        Ok(done(self.store.add_passkey(caller.user_id, new, spent, proof, actor).await?)?)
    }
}

/// The outcome in the database as a result.
pub fn done<T>(answered: Answered<T>) -> Result<T, PasskeyError> {
    match answered {
        Answered::Done(value) => Ok(value),
        Answered::Gone => Err(PasskeyError::Unknown),
        Answered::Spent => Err(PasskeyError::Spent),
        Answered::CountedBack => Err(PasskeyError::CountedBack),
        Answered::Known => Err(PasskeyError::AlreadyRegistered),
        Answered::TooMany => Err(PasskeyError::TooMany),
    }
}
