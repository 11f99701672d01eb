//! Access tokens whose signature was found right, so that a token is verified once and not with every request.
//!
//! What is remembered is only that the service signed this token, which stays true for as long as it has its secret. When
//! it expires, and whether its login still lives, is looked at with every request as before. A token is known by its hash:
//! the memory of the process holds nothing that anybody could sign in with.

use std::sync::Arc;

use dashmap::DashMap;
use sha2::{Digest, Sha256};

use super::token::Claims;

/// Half a megabyte. Who has more tokens than this in use at once has them verified again now and then.
const MAX_VERIFIED: usize = 4_096;

/// What a token is known by. Nobody can choose it bit by bit, so how long a comparison takes says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }
}

/// What verified tokens say, behind cheap clones.
#[derive(Clone, Default)]
pub struct Verified(Arc<DashMap<Fingerprint, Claims>>);

impl Verified {
    /// What a token says whose signature was found right.
    pub fn find(&self, token: Fingerprint) -> Option<Claims> {
        self.0.get(&token).map(|claims| claims.clone())
    }

    /// Remembers what a token says. When there are too many, all are forgotten: it costs less than to tell which are in
    /// use, and nobody can keep others out by filling it.
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
