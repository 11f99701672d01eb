//! Access tokens whose signature was verified, so that each token is verified once and not for every request.
//!
//! The cache holds only that the service signed a token, which stays true as long as the service has its secret. Every
//! request still checks whether the token has expired and whether its login is active. Tokens are stored as hashes, so
//! nobody can sign in with what the memory holds.

use std::sync::Arc;

use dashmap::DashMap;
use sha2::{Digest, Sha256};

use super::token::Claims;

/// Half a megabyte. If more tokens are in use at the same time, some are verified repeatedly.
const MAX_VERIFIED: usize = 4_096;

/// The hash of a token. Nobody can choose it bit by bit, so the time of a comparison reveals nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

/// The claims of verified tokens. Clones are cheap.
#[derive(Clone, Default)]
pub struct Verified(Arc<DashMap<Fingerprint, Claims>>);

impl Verified {
    /// Returns the claims of a token whose signature was verified.
    pub fn find(&self, token: Fingerprint) -> Option<Claims> {
        self.0.get(&token).map(|claims| claims.clone())
    }

    /// Remembers the claims of a token. If there are too many, all are forgotten: that costs less than tracking which
    /// are in use, and filling the cache locks nobody out.
    pub fn remember(&self, token: Fingerprint, claims: Claims) {
        if self.0.len() >= MAX_VERIFIED {
            self.0.clear();
        }
        self.0.insert(token, claims);
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::auth::token::TokenKind;

    fn claims(exp: i64) -> Claims {
        Claims { sub: Uuid::nil(), sid: Uuid::nil(), jti: Uuid::nil(), iat: 0, exp, typ: TokenKind::Access }
    }

    #[test]
    fn a_token_is_found_by_all_of_its_text() {
        let verified = Verified::default();
        verified.remember(Fingerprint::of("a.b.c"), claims(7));

        assert_eq!(verified.find(Fingerprint::of("a.b.c")), Some(claims(7)));
        assert_eq!(verified.find(Fingerprint::of("a.b.d")), None);
        assert_eq!(verified.find(Fingerprint::of("a.b.")), None);
    }

    #[test]
    fn there_are_never_more_than_the_bound() {
        let verified = Verified::default();
        let tokens = 2 * MAX_VERIFIED + 10;

        for number in 0..tokens {
            verified.remember(Fingerprint::of(&number.to_string()), claims(0));
            assert!(verified.count() <= MAX_VERIFIED);
        }

        assert_eq!(verified.find(Fingerprint::of(&(tokens - 1).to_string())), Some(claims(0)), "the newest is there");
    }
}
