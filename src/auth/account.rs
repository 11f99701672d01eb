//! Accounts and sign-ins: what registration, login, refresh, logout and a new password do.

use std::time::Duration;

use secrecy::SecretString;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::logins::Logins;
use super::password::{PasswordError, Passwords, Verdict};
use super::token::{TokenError, TokenKind, Tokens};
use crate::store::{Caller, NewLogin, NewUser, Registration, Rotation, Store, StoreError, User};

/// Longer user agents are cut: it is shown to its owner, not parsed.
const MAX_USER_AGENT: usize = 256;

/// Makes and ends sign-ins.
#[derive(Clone)]
pub struct Accounts {
    pub store: Store,
    pub tokens: Tokens,
    pub passwords: Passwords,
    pub logins: Logins,
    pub registration: Registration,
    pub refresh_grace: Duration,
}

/// Where a sign-in comes from.
#[derive(Debug, Clone)]
pub struct Origin {
    pub user_agent: String,
    pub address: String,
}

/// An access token and the refresh token that follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenPair {
    pub access_token: String,
    pub refresh_token: String,
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
    Token(#[from] TokenError),
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Accounts {
    /// Makes a user and signs them in.
    pub async fn register(
        &self,
        new: NewUser,
        password: SecretString,
        origin: Origin,
    ) -> Result<(User, TokenPair), AccountError> {
        // Asked before the slow hash, so that a closed door is cheap to knock at; decided in the transaction.
        if self.registration == Registration::Closed && self.store.has_users().await? {
            return Err(StoreError::RegistrationClosed.into());
        }
        let password_hash = self.passwords.hash(password).await?;
        let user = self.store.create_user(NewUser { password_hash, ..new }, self.registration).await?;
        let pair = self.sign_in(user.id, &user.password_hash, origin).await?;
        Ok((user, pair))
    }

    /// Signs in by user name or e-mail address. A wrong name takes as long as a wrong password.
    pub async fn login(&self, name: &str, password: SecretString, origin: Origin) -> Result<TokenPair, AccountError> {
        let user = self.store.find_user_by_name(name).await?;
        let stored = user.as_ref().map(|user| user.password_hash.clone());
        let verdict = self.passwords.verify(password, stored).await?;
        let Some(user) = user.filter(|_| verdict != Verdict::Wrong) else {
            return Err(AccountError::InvalidCredentials);
        };
        // First, so that a change of the password in between is noticed against the hash that was verified.
        let pair = self.sign_in(user.id, &user.password_hash, origin).await?;
        if let Verdict::RightButWeak(hash) = verdict {
            self.store.rehash_password(user.id, &user.password_hash, hash).await?;
        }
        Ok(pair)
    }

    /// Exchanges a refresh token for a new pair.
    pub async fn refresh(&self, refresh_token: &str) -> Result<TokenPair, AccountError> {
        let claims = self.tokens.check(refresh_token, TokenKind::Refresh)?;
        let now = Timestamp::now();
        let expires_at = self.refresh_expiry(now);
        let grace_ms = i64::try_from(self.refresh_grace.as_millis()).unwrap_or(i64::MAX);
        let fresh = Uuid::now_v7();
        let rotation = self.store.rotate_login(claims.sid, claims.jti, fresh, now, expires_at, grace_ms).await?;
        match rotation {
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

    /// Ends a login of this user. Gives whether there was one.
    pub async fn end_login(&self, user_id: Uuid, login_id: Uuid) -> Result<bool, AccountError> {
        let found = self.store.end_login(user_id, login_id).await?;
        if found {
            self.logins.ended(login_id);
        }
        Ok(found)
    }

    /// Sets a new password and ends every other login.
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: SecretString,
        new: SecretString,
    ) -> Result<(), AccountError> {
        let user = self.store.find_user(caller.user_id).await?.ok_or(AccountError::SessionEnded)?;
        if self.passwords.verify(current, Some(user.password_hash.clone())).await? == Verdict::Wrong {
            return Err(AccountError::InvalidCredentials);
        }
        self.set_password(caller.user_id, new, Some(&user.password_hash), Some(caller.login_id)).await
    }

    /// Sets a password, if `verified_hash` still is the old one where it is given, and ends every login but `keep`.
    pub async fn set_password(
        &self,
        user_id: Uuid,
        new: SecretString,
        verified_hash: Option<&str>,
        keep: Option<Uuid>,
    ) -> Result<(), AccountError> {
        let hash = self.passwords.hash(new).await?;
        let ended = self.store.change_password(user_id, hash, verified_hash, keep).await?;
        for login_id in ended.ok_or(AccountError::InvalidCredentials)? {
            self.logins.ended(login_id);
        }
        Ok(())
    }

    async fn sign_in(&self, user_id: Uuid, verified_hash: &str, origin: Origin) -> Result<TokenPair, AccountError> {
        let now = Timestamp::now();
        let new = NewLogin {
            id: Uuid::now_v7(),
            user_id,
            refresh_token: Uuid::now_v7(),
            expires_at: self.refresh_expiry(now),
            user_agent: origin.user_agent.chars().take(MAX_USER_AGENT).collect(),
            address: origin.address,
            now,
        };
        let login = self.store.create_login(new, verified_hash).await?.ok_or(AccountError::InvalidCredentials)?;
        self.pair(user_id, login.id, login.current_token, now)
    }

    fn pair(
        &self,
        user_id: Uuid,
        login_id: Uuid,
        refresh_id: Uuid,
        refreshed_at: Timestamp,
    ) -> Result<TokenPair, AccountError> {
        let now = Timestamp::now();
        Ok(TokenPair {
            access_token: self.tokens.issue(TokenKind::Access, user_id, login_id, Uuid::now_v7(), now)?,
            refresh_token: self.tokens.issue(TokenKind::Refresh, user_id, login_id, refresh_id, refreshed_at)?,
        })
    }

    fn refresh_expiry(&self, now: Timestamp) -> Timestamp {
        let lifetime = self.tokens.lifetime(TokenKind::Refresh).as_millis();
        now.plus_millis(i64::try_from(lifetime).unwrap_or(i64::MAX))
    }
}
