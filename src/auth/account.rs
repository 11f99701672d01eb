//! Accounts and sign-ins: what registration, login, refresh, logout and a new password do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::access::Access;
use super::logins::Logins;
use super::password::{Asker, PasswordError, Passwords, Verdict};
use super::refusals::Refusals;
use super::setup::{Setup, SetupError, Via};
use super::token::{TokenError, TokenKind, Tokens};
use crate::audit::{Actor, Entry, Outcome, action};
use crate::store::{Caller, Exchange, NewLogin, NewUser, Registration, Rotation, Store, StoreError, User};

/// Longer user agents are cut: it is shown to its owner, not parsed.
const MAX_USER_AGENT: usize = 256;

/// Changes of a password take turns whatever they come by.
const NO_CONNECTION: u16 = 0;

/// Makes and ends sign-ins.
#[derive(Clone)]
pub struct Accounts {
    /// Who may do what to which server.
    pub access: Access,
    pub store: Store,
    pub tokens: Tokens,
    pub passwords: Passwords,
    pub logins: Logins,
    pub refusals: Refusals,
    pub registration: Registration,
    pub setup: Setup,
    pub refresh_grace: Duration,
    /// Set once it is known that there is an account. There is one for ever then: accounts are not deleted.
    pub has_users: Arc<AtomicBool>,
}

/// Where a sign-in comes from.
#[derive(Debug, Clone)]
pub struct Origin {
    pub user_agent: String,
    pub address: String,
    /// What tells its connection from others of its address.
    pub connection: u16,
    pub via: Via,
}

impl Origin {
    /// The one who names this account here, by one of its names or by one that nobody has.
    fn asker(&self, name: &str, user: Option<&User>) -> Asker {
        match user {
            Some(user) => Asker::new(&self.address, self.connection, user.id),
            None => Asker::new(&self.address, self.connection, name.to_lowercase()),
        }
    }
}

/// An access token and the refresh token that follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenPair {
    pub access_token: String,
    pub refresh_token: String,
    pub refresh_expires_at: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("wrong user name or password")]
    InvalidCredentials,
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
    Store(#[from] StoreError),
}

impl Accounts {
    /// Whether nobody has made an account yet. The database is asked until somebody has.
    pub async fn needs_setup(&self) -> Result<bool, StoreError> {
        if self.has_users.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let has_users = self.store.has_users().await?;
        self.has_users.fetch_or(has_users, Ordering::Relaxed);
        Ok(!has_users)
    }

    /// Makes a user and signs them in. `setup_code` counts only where nobody has an account yet.
    pub async fn register(
        &self,
        new: NewUser,
        password: SecretString,
        setup_code: Option<SecretString>,
        origin: Origin,
    ) -> Result<(User, TokenPair), AccountError> {
        // Asked before the slow hash, so that a closed door is cheap to knock at; decided in the transaction.
        if self.needs_setup().await? {
            if self.setup.requires_code(origin.via) {
                self.setup.check(setup_code.as_ref(), &origin.address, Instant::now())?;
            }
        } else if self.registration == Registration::Closed {
            return Err(StoreError::RegistrationClosed.into());
        }
        let asker = origin.asker(&new.username, None);
        let password_hash = self.passwords.hash(asker, password.clone()).await?;
        let new = NewUser { password_hash, ..new };
        let address = origin.address.clone();
        // With the account, so that the caller gets no error for one that is there.
        let (login, pair) = self.begin_login(new.id, &new.username, origin)?;
        let user = self.store.create_user(new, self.registration, &address, Some(login)).await?;
        self.passwords.remember(user.id, &password);
        Ok((user, pair))
    }

    /// Signs in by user name or e-mail address. A wrong name takes as long as a wrong password.
    pub async fn login(&self, name: &str, password: SecretString, origin: Origin) -> Result<TokenPair, AccountError> {
        let user = self.store.find_user_by_name(name).await?;
        let stored = user.as_ref().map(|user| user.password_hash.clone());
        let asker = origin.asker(name, user.as_ref());
        let verdict = self.passwords.verify(asker, password, stored).await?;
        let Some(user) = user else { return Err(AccountError::InvalidCredentials) };
        if verdict == Verdict::Wrong {
            let actor = Actor::claiming(&user.username, origin.address);
            self.refused(Entry::new(action::LOGIN, user.id, actor));
            return Err(AccountError::InvalidCredentials);
        }
        // First, so that a change of the password in between is noticed against the hash that was verified.
        let pair = self.sign_in(&user, origin).await?;
        if let Verdict::RightButWeak(hash) = verdict
            && let Err(error) = self.store.rehash_password(user.id, &user.password_hash, hash).await
        {
            // They are signed in; the next time will do.
            tracing::warn!(%error, user.id = %user.id, "a password hash could not be renewed");
        }
        Ok(pair)
    }

    /// Exchanges a refresh token that was shown from `address` for a new pair.
    pub async fn refresh(&self, refresh_token: &str, address: String) -> Result<TokenPair, AccountError> {
        let claims = self.tokens.check(refresh_token, TokenKind::Refresh)?;
        let now = self.tokens.now();
        let exchange = Exchange {
            login_id: claims.sid,
            shown: claims.jti,
            fresh: Uuid::now_v7(),
            now,
            expires_at: self.refresh_expiry(now),
            grace_ms: i64::try_from(self.refresh_grace.as_millis()).unwrap_or(i64::MAX),
            address,
        };
        match self.store.rotate_login(exchange).await? {
            // A repeat gives the same refresh token again, to the letter: it was issued at the rotation.
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

    /// Sets a new password, which ends every other login, and gives which they were.
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: SecretString,
        new: SecretString,
        actor: Actor,
    ) -> Result<Vec<Uuid>, AccountError> {
        let user = self.store.find_user(caller.user_id).await?.ok_or(AccountError::SessionEnded)?;
        let entry = Entry::new(action::PASSWORD_CHANGE, user.id, actor);
        // Their token has shown who they are.
        let asker = Asker::new(&entry.actor.address, NO_CONNECTION, user.id).known();
        if self.passwords.verify(asker, current, Some(user.password_hash.clone())).await? == Verdict::Wrong {
            self.refused(entry);
            return Err(AccountError::InvalidCredentials);
        }
        self.set_password(entry, new, Some(&user.password_hash), Some(caller.login_id)).await
    }

    /// Sets the password of the user whom `entry` concerns, if `verified_hash` still is the old one where it is given,
    /// which ends every login but `keep`, and gives which they were.
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

    /// Tells the audit log of a wrong password, beside the answer: an answer that waited for it would say by its time
    /// that there is such a user.
    fn refused(&self, entry: Entry) {
        if !self.refusals.is_news(entry.owner_id, &entry.actor.address, Instant::now()) {
            return;
        }
        let store = self.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.record(entry.outcome(Outcome::Refused)).await {
                tracing::error!(%error, "a wrong password is not in the audit log");
            }
        });
    }

    /// Signs in whoever showed the password behind the hash of `user`.
    async fn sign_in(&self, user: &User, origin: Origin) -> Result<TokenPair, AccountError> {
        let (login, pair) = self.begin_login(user.id, &user.username, origin)?;
        let login = self.store.create_login(&login, &user.password_hash).await?;
        login.map(|_| pair).ok_or(AccountError::InvalidCredentials)
    }

    /// A login to be written, and what it is used with: nothing is left to fail once it is there.
    fn begin_login(
        &self,
        user_id: Uuid,
        username: &str,
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
