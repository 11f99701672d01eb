//! Accounts and sign-ins: registration, login, refresh and change of password.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::access::Access;
use super::bearer::ProgramTokens;
use super::factors::{FactorError, Factors};
use super::invitation;
use super::logins::Logins;
use super::oidc::PasswordLogin;
use super::password::{Asker, PasswordError, Passwords, Verdict};
use super::refusals::Refusals;
use super::setup::{Setup, SetupError, Via};
use super::token::{TokenError, TokenKind, Tokens};
use crate::audit::{Actor, Entry, Outcome, action};
use crate::store::{
    AccountDeletion, Admission, Caller, DeletedAccount, Means, NewLogin, NewUser, Registration, Rotation, Store,
    StoreError, TokenRotation, User,
};

/// Longer user agents are cut: the text is only shown to its owner.
const MAX_USER_AGENT: usize = 256;

/// Password changes take turns, whichever connection they arrive on.
pub(super) const NO_CONNECTION: u16 = 0;

/// Creates and ends sign-ins.
#[derive(Clone)]
pub struct Accounts {
    /// Decides who may do what to which server.
    pub access: Access,
    pub store: Store,
    pub tokens: Tokens,
    pub passwords: Passwords,
    pub logins: Logins,
    pub programs: ProgramTokens,
    pub factors: Factors,
    pub refusals: Refusals,
    pub registration: Registration,
    pub password_login: PasswordLogin,
    pub setup: Setup,
    pub refresh_grace: Duration,
    /// Set once an account exists. It stays set, because the last administrator's account is never deleted.
    pub has_users: Arc<AtomicBool>,
}

/// The client of a sign-in.
#[derive(Debug, Clone)]
pub struct Origin {
    pub user_agent: String,
    pub address: String,
    /// The peer's port, which distinguishes connections from the same address.
    pub connection: u16,
    pub via: Via,
}

impl Origin {
    /// The caller who names this account: an existing user, or a name that does not exist.
    fn asker(&self, name: &str, user: Option<&User>) -> Asker {
        match user {
            Some(user) => Asker::new(&self.address, self.connection, user.id),
            None => Asker::new(&self.address, self.connection, name.to_lowercase()),
        }
    }
}

/// An access token, and the refresh token for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenPair {
    pub access_token: String,
    pub refresh_token: String,
    pub refresh_expires_at: Timestamp,
}

/// What somebody shows in order to register.
#[derive(Debug, Default)]
pub struct Credentials {
    /// Matters only for the first account.
    pub setup_code: Option<SecretString>,
    /// The token of an invitation.
    pub invitation: Option<SecretString>,
}

/// An account that may be created, and its first login.
pub struct NewAccount {
    user: NewUser,
    admission: Admission,
    login: NewLogin,
    pair: TokenPair,
    password: SecretString,
}

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("wrong user name or password")]
    InvalidCredentials,
    #[error("the account needs a code of its authenticator app")]
    OtpRequired,
    #[error("the account may not sign in with a password")]
    PasswordLoginOff,
    #[error("the account has no password")]
    NoPassword,
    #[error("this refresh token was used before; the session has ended")]
    TokenReused,
    #[error("the session has ended")]
    SessionEnded,
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error(transparent)]
    Factor(#[from] FactorError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Accounts {
    /// Whether no account exists yet. Queries the database until there is one.
    pub async fn needs_setup(&self) -> Result<bool, StoreError> {
        if self.has_users.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let has_users = self.store.has_users().await?;
        self.has_users.fetch_or(has_users, Ordering::Relaxed);
        Ok(!has_users)
    }

    /// Checks whether somebody may register, and hashes their password. Nothing is stored yet.
    pub async fn prepare(
        &self,
        new: NewUser,
        password: SecretString,
        shown: Credentials,
        origin: Origin,
    ) -> Result<NewAccount, AccountError> {
        let admission = self.admission(&new, &shown, &origin).await?;
        let asker = origin.asker(&new.username, None);
        let password_hash = self.passwords.hash(asker, password.clone()).await?;
        let user = NewUser { password_hash, ..new };
        // Created with the account, so that the caller gets no error once the account exists.
        let (login, pair) = self.begin_login(user.id, &user.username, Means::Password, origin)?;
        Ok(NewAccount { user, admission, login, pair, password })
    }

    /// Creates a user and signs them in.
    pub async fn register(&self, account: NewAccount) -> Result<(User, TokenPair), AccountError> {
        let NewAccount { user, admission, login, pair, password } = account;
        let address = login.address.clone();
        let user = self.store.create_user(user, admission, &address, Some(login)).await?;
        self.passwords.remember(user.id, &password);
        Ok((user, pair))
    }

    /// Checks whether somebody may register, before the slow hash, so that refusals are cheap. The transaction decides.
    async fn admission(&self, new: &NewUser, shown: &Credentials, origin: &Origin) -> Result<Admission, AccountError> {
        let needs_setup = self.needs_setup().await?;
        if needs_setup && self.setup.requires_code(origin.via) {
            self.setup.check(shown.setup_code.as_ref(), &origin.address, Instant::now())?;
        }
        if !needs_setup && self.password_login != PasswordLogin::On {
            return Err(AccountError::PasswordLoginOff);
        }
        if let Some(token) = &shown.invitation {
            let (digest, now) = (invitation::digest(token), self.tokens.now());
            let admits = self.store.admits(&digest, &new.email, now).await?;
            return if admits {
                Ok(Admission::Invited { digest, now })
            } else {
                Err(StoreError::InvitationInvalid.into())
            };
        }
        if !needs_setup && self.registration == Registration::Closed {
            return Err(StoreError::RegistrationClosed.into());
        }
        Ok(self.registration.into())
    }

    /// Signs in by user name or e-mail address. A wrong name and a disabled account take as long as a wrong password.
    /// `otp` is a code of the account's authenticator app or a recovery code, if it has any.
    pub async fn login(
        &self,
        name: &str,
        password: SecretString,
        otp: Option<SecretString>,
        origin: Origin,
    ) -> Result<TokenPair, AccountError> {
        let user = self.store.find_user_by_name(name).await?;
        // An account that is disabled or has no password takes as long as one that does not exist, and is as wrong.
        let usable = user.as_ref().filter(|user| user.disabled_at.is_none() && !user.password_hash.is_empty());
        let stored = usable.map(|user| user.password_hash.clone());
        let asker = origin.asker(name, user.as_ref());
        let verdict = self.passwords.verify(asker, password, stored).await?;
        let Some(user) = user else { return Err(AccountError::InvalidCredentials) };
        if verdict == Verdict::Wrong {
            let actor = Actor::claiming(&user.username, origin.address);
            self.refused(Entry::new(action::LOGIN, user.id, actor));
            return Err(AccountError::InvalidCredentials);
        }
        // After the password: a caller that does not know it learns nothing about who is an administrator.
        if !self.may_use_password(&user).await? {
            let actor = Actor::claiming(&user.username, origin.address);
            self.refused(Entry::new(action::LOGIN, user.id, actor));
            return Err(AccountError::PasswordLoginOff);
        }
        let means = self.second_step(&user, otp.as_ref(), &origin).await?;
        // First, because it detects a password change since the verification by comparing with the verified hash.
        let pair = self.sign_in(&user, means, origin).await?;
        if let Verdict::RightButWeak(hash) = verdict
            && let Err(error) = self.store.rehash_password(user.id, &user.password_hash, hash).await
        {
            // The user is signed in anyway; the next sign-in retries.
            tracing::warn!(%error, user.id = %user.id, "cannot renew a password hash");
        }
        Ok(pair)
    }

    /// Whether a user has a password and may sign in with it.
    pub async fn can_use_password(&self, user_id: Uuid) -> Result<bool, StoreError> {
        match self.store.find_user(user_id).await? {
            Some(user) if !user.password_hash.is_empty() => self.may_use_password(&user).await,
            Some(_) | None => Ok(false),
        }
    }

    /// Whether an account may sign in with its password. With `off` one administrator still can: if the identity provider
    /// is away, somebody has to.
    async fn may_use_password(&self, user: &User) -> Result<bool, StoreError> {
        Ok(match self.password_login {
            PasswordLogin::On => true,
            PasswordLogin::Admins => user.is_admin,
            PasswordLogin::Off => {
                user.is_admin && self.store.oldest_administrator_with_password().await? == Some(user.id)
            }
        })
    }

    /// Exchanges a refresh token, sent from `address`, for a new pair.
    pub async fn refresh(&self, refresh_token: &str, address: String) -> Result<TokenPair, AccountError> {
        let claims = self.tokens.check(refresh_token, TokenKind::Refresh)?;
        let now = self.tokens.now();
        let rotation = TokenRotation {
            login_id: claims.sid,
            shown: claims.jti,
            fresh: Uuid::now_v7(),
            now,
            expires_at: self.refresh_expiry(now),
            grace_ms: i64::try_from(self.refresh_grace.as_millis()).unwrap_or(i64::MAX),
            address,
        };
        match self.store.rotate_login(rotation).await? {
            // A repeated request gets exactly the same refresh token, issued at the time of the rotation.
            Rotation::Rotated(login) | Rotation::Repeated(login) => {
                self.pair(login.user_id, login.id, login.current_token, login.rotated_at.into())
            }
            Rotation::Reused => {
                self.logins.ended(claims.sid);
                Err(AccountError::TokenReused)
            }
            Rotation::Gone => {
                self.logins.ended(claims.sid);
                Err(AccountError::SessionEnded)
            }
        }
    }

    /// Sets a new password, and ends all other logins. Returns the ended ones.
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: SecretString,
        new: SecretString,
        actor: Actor,
    ) -> Result<Vec<Uuid>, AccountError> {
        let user = self.store.find_user(caller.user_id).await?.ok_or(AccountError::SessionEnded)?;
        if user.password_hash.is_empty() {
            return Err(AccountError::NoPassword);
        }
        let entry = Entry::new(action::PASSWORD_CHANGE, user.id, actor);
        // Their token has already identified them.
        let asker = Asker::new(&entry.actor.address, NO_CONNECTION, user.id).known();
        if self.passwords.verify(asker, current, Some(user.password_hash.clone())).await? == Verdict::Wrong {
            self.refused(entry);
            return Err(AccountError::InvalidCredentials);
        }
        self.set_password(entry, new, Some(&user.password_hash), Some(caller.login_id)).await
    }

    /// Deletes the caller's own account.
    pub async fn delete_own(
        &self,
        caller: &Caller,
        password: SecretString,
        actor: Actor,
    ) -> Result<DeletedAccount, AccountError> {
        let user = self.store.find_user(caller.user_id).await?.ok_or(AccountError::SessionEnded)?;
        if user.password_hash.is_empty() {
            return Err(AccountError::NoPassword);
        }
        let asker = Asker::new(&actor.address, NO_CONNECTION, user.id).known();
        if self.passwords.verify(asker, password, Some(user.password_hash.clone())).await? == Verdict::Wrong {
            self.refused(Entry::new(action::USER_DELETE, user.id, actor));
            return Err(AccountError::InvalidCredentials);
        }
        let (verified_hash, now) = (Some(user.password_hash.as_str()), self.tokens.now());
        let deletion = AccountDeletion { user_id: user.id, servers_to: None, verified_hash, now };
        self.store.delete_account(deletion, actor).await?.ok_or(AccountError::InvalidCredentials)
    }

    /// Sets the password of the user of `entry`, and ends all logins except `keep`. Returns the ended ones. If
    /// `verified_hash` is given, it must still be the stored hash.
    pub async fn set_password(
        &self,
        entry: Entry,
        new: SecretString,
        verified_hash: Option<&str>,
        keep: Option<Uuid>,
    ) -> Result<Vec<Uuid>, AccountError> {
        let user_id = entry.owner_id;
        let asker = Asker::new(&entry.actor.address, NO_CONNECTION, user_id).known();
        let hash = self.passwords.hash(asker, new.clone()).await?;
        let ended = self.store.change_password(entry, hash, verified_hash, keep).await?;
        let ended = ended.ok_or(AccountError::InvalidCredentials)?;
        self.passwords.remember(user_id, &new);
        Ok(ended)
    }

    /// Writes a wrong password to the audit log, in a separate task: if the answer waited for that, its time would
    /// reveal that the user exists.
    pub(super) fn refused(&self, entry: Entry) {
        if !self.refusals.is_news(entry.owner_id, &entry.actor.address, Instant::now()) {
            return;
        }
        let store = self.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.record(entry.outcome(Outcome::Refused)).await {
                tracing::error!(%error, "cannot record a wrong password in the audit log");
            }
        });
    }

    /// Signs in the caller whose password matched the hash of `user`.
    async fn sign_in(&self, user: &User, means: Means, origin: Origin) -> Result<TokenPair, AccountError> {
        let (login, pair) = self.begin_login(user.id, &user.username, means, origin)?;
        let login = self.store.create_login(&login, &user.password_hash).await?;
        login.map(|_| pair).ok_or(AccountError::InvalidCredentials)
    }

    /// A new login and its tokens, both created before the login is stored: nothing can fail after that.
    pub(super) fn begin_login(
        &self,
        user_id: Uuid,
        username: &str,
        means: Means,
        origin: Origin,
    ) -> Result<(NewLogin, TokenPair), AccountError> {
        let now = self.tokens.now();
        let new = NewLogin {
            id: Uuid::now_v7(),
            user_id,
            username: username.to_owned(),
            refresh_token: Uuid::now_v7(),
            expires_at: self.refresh_expiry(now),
            user_agent: origin.user_agent.chars().take(MAX_USER_AGENT).collect(),
            address: origin.address,
            means,
            proved_at: now,
            now,
        };
        let pair = self.pair(user_id, new.id, new.refresh_token, now)?;
        Ok((new, pair))
    }

    fn pair(
        &self,
        user_id: Uuid,
        login_id: Uuid,
        refresh_id: Uuid,
        refreshed_at: Timestamp,
    ) -> Result<TokenPair, AccountError> {
        let now = self.tokens.now();
        Ok(TokenPair {
            access_token: self.tokens.issue(TokenKind::Access, user_id, login_id, Uuid::now_v7(), now)?,
            refresh_token: self.tokens.issue(TokenKind::Refresh, user_id, login_id, refresh_id, refreshed_at)?,
            refresh_expires_at: self.refresh_expiry(refreshed_at),
        })
    }

    fn refresh_expiry(&self, now: Timestamp) -> Timestamp {
        let lifetime = self.tokens.lifetime(TokenKind::Refresh).as_millis();
        now.plus_millis(i64::try_from(lifetime).unwrap_or(i64::MAX))
    }
}
