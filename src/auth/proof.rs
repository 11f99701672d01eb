//! Proofs of identity beyond the password at a sign-in: codes, passkeys, and proofs in a login that a user has.

use secrecy::SecretString;
use serde_json::json;

use super::account::{AccountError, Accounts, NO_CONNECTION, Origin, TokenPair};
use super::factors::{Accepted, FactorError, done};
use super::password::{Asker, Verdict};
use super::webauthn::{Assertion, PasskeyError, Purpose};
use crate::audit::{Actor, Entry, action};
use crate::store::{Caller, Means, Passkey, PasskeyUse, Proof, Signed, User};

/// How a caller proves again who they are.
#[derive(Debug)]
pub enum Given {
    Password(SecretString),
    Otp(SecretString),
    Passkey(Box<Assertion>),
}

impl Accounts {
    /// The second step of a sign-in whose password was right. Returns the means of the whole.
    pub(super) async fn second_step(
        &self,
        user: &User,
        otp: Option<&SecretString>,
        origin: &Origin,
    ) -> Result<Means, AccountError> {
        let Some(totp) = self.factors.totp_of(user.id).await? else { return Ok(Means::Password) };
        let otp = otp.ok_or(AccountError::OtpRequired)?;
        let claiming = Actor::claiming(&user.username, origin.address.clone());
        // A user whose code is accepted has proved both factors.
        let actor = Actor { user_id: Some(user.id), ..claiming.clone() };
        match self.factors.accept(&totp, otp, &actor).await {
            Ok(Accepted::Otp) => Ok(Means::PasswordOtp),
            Ok(Accepted::RecoveryCode) => Ok(Means::PasswordRecoveryCode),
            Err(error) => {
                if matches!(error, FactorError::WrongCode) {
                    let detail = json!({ "means": Means::PasswordOtp.word() });
                    self.refused(Entry::new(action::LOGIN, user.id, claiming).detail(detail));
                }
                Err(error.into())
            }
        }
    }

    /// Signs in with a passkey, which says whose it is.
    pub async fn login_with_passkey(&self, given: &Assertion, origin: Origin) -> Result<TokenPair, AccountError> {
        // Checked in turn with passwords, so that nobody can keep the service busy with wrong signatures.
        let asker = Asker::new(&origin.address, origin.connection, &given.credential_id);
        let _turn = self.passwords.turn(asker).await?;
        let passkey = self.store.find_passkey(&given.credential_id).await?;
        let passkey = passkey.ok_or(FactorError::Passkey(PasskeyError::Unknown))?;
        let user = self.store.find_user(passkey.user_id).await?;
        let user = user.filter(|user| user.disabled_at.is_none());
        let user = user.ok_or(FactorError::Passkey(PasskeyError::Unknown))?;
        let actor = Actor::claiming(&user.username, origin.address.clone());
        let signed_in = async {
            let used = self.verified(given, &passkey)?;
            let (login, pair) = self.begin_login(user.id, &user.username, Means::Passkey, origin)?;
            let answered = self.store.use_passkey(used, Signed::In(Box::new(login)), self.factors.now()).await?;
            done(answered).map_err(FactorError::Passkey)?;
            Ok(pair)
        };
        signed_in.await.inspect_err(|error| {
            if let AccountError::Factor(FactorError::Passkey(reason)) = error {
                let detail = json!({ "means": Means::Passkey.word(), "reason": reason.to_string() });
                self.refused(Entry::new(action::LOGIN, user.id, actor).target(passkey.id).detail(detail));
            }
        })
    }

    /// Notes that the caller has proved again who they are.
    pub async fn step_up(&self, caller: &Caller, given: Given, actor: Actor) -> Result<(), AccountError> {
        let entry = Entry::new(action::SESSION_PROVE, caller.user_id, actor).target(caller.login_id);
        let proved = match given {
            Given::Password(password) => self.prove_password(caller, password, &entry).await,
            Given::Otp(code) => self.prove_otp(caller, &code, &entry).await,
            Given::Passkey(assertion) => self.prove_passkey(caller, &assertion, &entry).await,
        };
        if let Err(
            AccountError::InvalidCredentials | AccountError::Factor(FactorError::WrongCode | FactorError::Passkey(_)),
        ) = &proved
        {
            self.refused(entry);
        }
        proved?;
        self.logins.forget(caller.user_id);
        Ok(())
    }

    async fn prove_password(&self, caller: &Caller, shown: SecretString, entry: &Entry) -> Result<(), AccountError> {
        self.check_password(caller, Some(shown), &entry.actor).await?;
        self.proved(caller, Means::Password, entry).await
    }

    async fn prove_otp(&self, caller: &Caller, code: &SecretString, entry: &Entry) -> Result<(), AccountError> {
        self.accept_code(caller, code, &entry.actor).await?;
        self.proved(caller, Means::Otp, entry).await
    }

    async fn proved(&self, caller: &Caller, means: Means, entry: &Entry) -> Result<(), AccountError> {
        let proof = Proof { login_id: caller.login_id, means, now: self.factors.now() };
        let is_active = self.store.prove(proof, entry.clone()).await?;
        is_active.then_some(()).ok_or(AccountError::SessionEnded)
    }

    async fn prove_passkey(&self, caller: &Caller, given: &Assertion, entry: &Entry) -> Result<(), AccountError> {
        let passkey = self.store.find_passkey(&given.credential_id).await?;
        let theirs = passkey.filter(|passkey| passkey.user_id == caller.user_id);
        let passkey = theirs.ok_or(FactorError::Passkey(PasskeyError::Unknown))?;
        let used = self.verified(given, &passkey)?;
        let now = self.factors.now();
        let proof = Proof { login_id: caller.login_id, means: Means::Passkey, now };
        let answered = self.store.use_passkey(used, Signed::Proof(proof, Box::new(entry.clone())), now).await?;
        done(answered).map_err(FactorError::Passkey)?;
        Ok(())
    }

    /// Removes the caller's authenticator app, which takes a code, and the password of an account that has one.
    pub async fn remove_totp(
        &self,
        caller: &Caller,
        password: Option<SecretString>,
        code: SecretString,
        actor: Actor,
    ) -> Result<(), AccountError> {
        let entry = Entry::new(action::TOTP_DELETE, caller.user_id, actor);
        let proved = async {
            match self.check_password(caller, password, &entry.actor).await {
                Ok(()) | Err(AccountError::NoPassword) => {}
                Err(error) => return Err(error),
            }
            self.accept_code(caller, &code, &entry.actor).await
        };
        if let Err(error) = proved.await {
            if matches!(error, AccountError::InvalidCredentials | AccountError::Factor(FactorError::WrongCode)) {
                self.refused(entry);
            }
            return Err(error);
        }
        let removed = self.store.remove_totp(entry).await?;
        self.logins.forget(caller.user_id);
        if removed { Ok(()) } else { Err(FactorError::NoTotp.into()) }
    }

    async fn check_password(
        &self,
        caller: &Caller,
        shown: Option<SecretString>,
        actor: &Actor,
    ) -> Result<(), AccountError> {
        let user = self.store.find_user(caller.user_id).await?.ok_or(AccountError::SessionEnded)?;
        if user.password_hash.is_empty() {
            return Err(AccountError::NoPassword);
        }
        let shown = shown.ok_or(FactorError::PasswordMissing)?;
        let asker = Asker::new(&actor.address, NO_CONNECTION, user.id).known();
        match self.passwords.verify(asker, shown, Some(user.password_hash)).await? {
            Verdict::Wrong => Err(AccountError::InvalidCredentials),
            Verdict::Right | Verdict::RightButWeak(_) => Ok(()),
        }
    }

    async fn accept_code(&self, caller: &Caller, code: &SecretString, actor: &Actor) -> Result<(), AccountError> {
        let asker = Asker::new(&actor.address, NO_CONNECTION, caller.user_id).known();
        let _turn = self.passwords.turn(asker).await?;
        let totp = self.factors.totp_of(caller.user_id).await?.ok_or(FactorError::NoTotp)?;
        self.factors.accept(&totp, code, actor).await?;
        Ok(())
    }

    /// Verifies a signature of this passkey.
    fn verified(&self, given: &Assertion, passkey: &Passkey) -> Result<PasskeyUse, FactorError> {
        let is_theirs = given.user_handle.as_deref().is_none_or(|handle| handle == passkey.user_id.as_bytes());
        if !is_theirs {
            return Err(PasskeyError::Unknown.into());
        }
        let verifier = self.factors.verifier()?;
        let (count, challenge) = verifier.assertion(given, &passkey.public_key, Purpose::Prove, self.factors.now())?;
        Ok(PasskeyUse { passkey_id: passkey.id, sign_count: count.into(), challenge })
    }
}
