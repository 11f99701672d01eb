//! Who calls with a bearer token: somebody who has signed in, or a program with a token of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use signalbox_protocol::Timestamp;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::account::Accounts;
use super::marked_token::{Shown, TokenDigest};
use super::program_token;
use super::token::{TokenError, TokenKind};
use crate::store::{Caller, Store, StoreError};

/// Above this number of cached tokens, all are forgotten: each is one query.
const MAX_VERIFIED: usize = 10_000;

/// How often the use of a token is written, so that a program that calls all the time costs one write a minute.
const NOTED_EVERY: Duration = Duration::from_secs(60);

/// The same for one that calls from another address than before: its owner should see that.
const ADDRESS_NOTED_EVERY: Duration = Duration::from_secs(1);

/// Why a bearer token is refused.
#[derive(Debug, thiserror::Error)]
pub enum BearerError {
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The login has ended.
    #[error("the session has ended")]
    Ended,
    /// The token of a program was revoked, or there was none.
    #[error("the token was revoked")]
    Revoked,
    #[error("the token must not be used from {0}")]
    Network(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The tokens of programs that were used lately. Clones are cheap.
#[derive(Clone)]
pub struct ProgramTokens {
    store: Store,
    /// The tokens whose secrets were compared. Whether they are still valid is asked each time.
    verified: Arc<DashMap<TokenDigest, Uuid>>,
    /// When the use of each was last written, and from which address.
    noted: Arc<DashMap<Uuid, (Instant, String)>>,
}

impl ProgramTokens {
    pub fn new(store: Store) -> Self {
        Self { store, verified: Arc::default(), noted: Arc::default() }
    }

    /// The id of a token; none if it is unknown.
    async fn find(&self, shown: Shown<'_>) -> Result<Option<Uuid>, StoreError> {
        if let Some(id) = self.verified.get(&shown.digest).map(|entry| *entry) {
            return Ok(Some(id));
        }
        let found = self.store.find_program_token(shown.prefix).await?;
        let Some(found) = found.filter(|found| shown.digest.as_slice().ct_eq(&found.digest).into()) else {
            return Ok(None);
        };
        if self.verified.len() >= MAX_VERIFIED {
            self.verified.clear();
        }
        self.verified.insert(shown.digest, found.id);
        Ok(Some(found.id))
    }

    fn forget(&self, digest: &TokenDigest) {
        self.verified.remove(digest);
    }

    /// Notes that a token is used from an address. Writes it without making the caller wait, at times.
    pub fn note_use(&self, id: Uuid, address: &str, at: Timestamp) {
        if !self.is_due(id, address, Instant::now()) {
            return;
        }
        let (store, address) = (self.store.clone(), address.to_owned());
        tokio::spawn(async move {
            if let Err(error) = store.note_token_use(id, at, &address).await {
                tracing::warn!(%error, token.id = %id, "cannot note the use of a token");
            }
        });
    }

    fn is_due(&self, id: Uuid, address: &str, now: Instant) -> bool {
        if self.noted.len() >= MAX_VERIFIED {
            self.noted.retain(|_, (at, _)| now.saturating_duration_since(*at) < NOTED_EVERY);
        }
        match self.noted.entry(id) {
            Entry::Vacant(entry) => {
                entry.insert((now, address.to_owned()));
                true
            }
            Entry::Occupied(mut entry) => {
                let (at, from) = entry.get();
                let pause = if from == address { NOTED_EVERY } else { ADDRESS_NOTED_EVERY };
                let is_due = now.saturating_duration_since(*at) >= pause;
                if is_due {
                    entry.insert((now, address.to_owned()));
                }
                is_due
            }
        }
    }
}

impl Accounts {
    /// Returns the caller of a bearer token that comes from this address, and when the token expires.
    pub async fn bearer(
        &self,
        token: &str,
        address: impl FnOnce() -> String,
    ) -> Result<(Caller, Timestamp), BearerError> {
        if program_token::is_marked(token) {
            return self.program(token, &address()).await;
        }
        let claims = self.tokens.check(token, TokenKind::Access)?;
        let caller = self.logins.caller(claims.sid).await?;
        let caller = caller.filter(|caller| caller.user_id == claims.sub).ok_or(BearerError::Ended)?;
        Ok((caller, Timestamp::from_millis(claims.exp.saturating_mul(1000))))
    }

    async fn program(&self, token: &str, address: &str) -> Result<(Caller, Timestamp), BearerError> {
        let shown = program_token::read(token).ok_or(TokenError::Invalid)?;
        let id = self.programs.find(shown).await?.ok_or(BearerError::Revoked)?;
        let caller = self.logins.caller(id).await?;
        let found = caller.and_then(|caller| Some((caller.token.clone()?, caller)));
        let Some((limits, caller)) = found else {
            self.programs.forget(&shown.digest);
            return Err(BearerError::Revoked);
        };
        let now = self.tokens.now();
        if limits.expires_at <= now {
            return Err(TokenError::Expired.into());
        }
        if !is_within(&limits.networks, address) {
            return Err(BearerError::Network(address.to_owned()));
        }
        self.programs.note_use(id, address, now);
        Ok((caller, limits.expires_at))
    }
}

/// Whether a token for these networks may be used from this address; any may if there are none.
pub(super) fn is_within(networks: &[String], address: &str) -> bool {
    let Ok(address) = address.parse() else { return networks.is_empty() };
    // Networks that this version cannot read contain nothing.
    let read: Vec<_> = networks.iter().filter_map(|text| crate::networks::network(text).ok()).collect();
    networks.is_empty() || crate::networks::any_has(&read, address)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_token_is_bound_to_its_networks() {
        let owned = |networks: &[&str]| networks.iter().map(|network| (*network).to_owned()).collect::<Vec<_>>();

        for (networks, address, expected) in [
            (&[][..], "192.0.2.1", true),
            (&[], "", true),
            (&["192.0.2.0/24", "fd00::/8"], "192.0.2.1", true),
            (&["192.0.2.0/24", "fd00::/8"], "::ffff:192.0.2.1", true),
            (&["192.0.2.0/24", "fd00::/8"], "fd00::7", true),
            (&["192.0.2.0/24"], "192.0.3.1", false),
            (&["192.0.2.0/24"], "", false),
            (&["nonsense"], "192.0.2.1", false),
        ] {
            assert_eq!(is_within(&owned(networks), address), expected, "{networks:?} {address}");
        }
    }
}
