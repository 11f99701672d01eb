//! JWTs: their claims, their signatures, and their validity.

use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::verified::{Fingerprint, Verified};
use crate::audit::chain::hex;
use crate::clock::Clock;

/// An access token is never accepted as a refresh token, or the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    Access,
    Refresh,
}

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The user.
    pub sub: Uuid,
    /// The login that the token descends from.
    pub sid: Uuid,
    /// The id of this token.
    pub jti: Uuid,
    /// Issued at, in seconds since the epoch.
    pub iat: i64,
    /// Expires at, in seconds since the epoch.
    pub exp: i64,
    pub typ: TokenKind,
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid")]
    Invalid,
}

/// Hashed before the secret, so that the identifier is of no use elsewhere.
const MARKED: &[u8] = b"signalbox mark of the signing secret:";

/// Bytes of the hash, enough to distinguish the secrets of a few services.
const MARK_BYTES: usize = 4;

/// Signs and checks tokens. Checks are cheap: they need no database, and each signature is verified once.
#[derive(Clone)]
pub struct Tokens {
    signing: EncodingKey,
    checking: DecodingKey,
    validation: Validation,
    access: Duration,
    refresh: Duration,
    mark: String,
    clock: Clock,
    verified: Verified,
}

impl Tokens {
    pub fn new(secret: &SecretString, access: Duration, refresh: Duration, clock: Clock) -> Self {
        let secret = secret.expose_secret().as_bytes();
        let digest = Sha256::new().chain_update(MARKED).chain_update(secret).finalize();
        // Only our algorithm: a token must not choose how it is checked.
        let mut validation = Validation::new(Algorithm::HS256);
        // Checked with the service's clock, which several instances share, and not this machine's.
        validation.validate_exp = false;
        validation.set_required_spec_claims(&["exp"]);
        validation.validate_aud = false;
        Self {
            signing: EncodingKey::from_secret(secret),
            checking: DecodingKey::from_secret(secret),
            validation,
            access,
            refresh,
            mark: digest.get(..MARK_BYTES).map(hex).unwrap_or_default(),
            clock,
            verified: Verified::default(),
        }
    }

    /// The time that tokens are issued and expire by.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A few digits that distinguish the tokens of one service from another's.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// How long a token of this kind is valid.
    pub fn lifetime(&self, kind: TokenKind) -> Duration {
        match kind {
            TokenKind::Access => self.access,
            TokenKind::Refresh => self.refresh,
        }
    }

    /// Returns a signed token, issued at `at`.
    pub fn issue(
        &self,
        kind: TokenKind,
        user_id: Uuid,
        login_id: Uuid,
        token_id: Uuid,
        at: Timestamp,
    ) -> Result<String, TokenError> {
        let iat = at.as_seconds();
        let exp = iat.saturating_add_unsigned(self.lifetime(kind).as_secs());
        let claims = Claims { sub: user_id, sid: login_id, jti: token_id, iat, exp, typ: kind };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.signing).map_err(|_| TokenError::Invalid)
    }

    /// The claims of `token`, if this service signed it, it is of this kind, and it has not expired.
    pub fn check(&self, token: &str, kind: TokenKind) -> Result<Claims, TokenError> {
        let fingerprint = Fingerprint::of(token);
        let known = self.verified.find(fingerprint);
        let is_new = known.is_none();
        let claims = known.map_or_else(|| self.verify(token), Ok)?;
        if claims.exp < self.now().as_seconds() {
            return Err(TokenError::Expired);
        }
        if claims.typ != kind {
            return Err(TokenError::Invalid);
        }
        // A refresh token is used only once.
        if is_new && kind == TokenKind::Access {
            self.verified.remember(fingerprint, claims.clone());
        }
        Ok(claims)
    }

    /// The claims of a token with our signature. They depend only on the token and the secret, so they stay true.
    fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.checking, &self.validation);
        decoded.map(|data| data.claims).map_err(|_| TokenError::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;

    use super::*;

    fn tokens(secret: &str) -> Tokens {
        Tokens::new(&secret.into(), Duration::from_secs(60), Duration::from_secs(600), Clock::default())
    }

    fn issue(tokens: &Tokens, kind: TokenKind, at: Timestamp) -> String {
        tokens.issue(kind, Uuid::nil(), Uuid::nil(), Uuid::nil(), at).unwrap()
    }

    #[test]
    fn a_token_is_accepted_only_as_its_own_kind() {
        let tokens = tokens("one secret");
        let access = issue(&tokens, TokenKind::Access, Timestamp::now());

        assert_eq!(tokens.check(&access, TokenKind::Access).unwrap().sub, Uuid::nil());
        assert_eq!(tokens.check(&access, TokenKind::Refresh), Err(TokenError::Invalid));
    }

    #[test]
    fn a_token_expires_without_leeway() {
        let tokens = tokens("one secret");
        let old = issue(&tokens, TokenKind::Access, Timestamp::now().plus_millis(-61_000));

        assert_eq!(tokens.check(&old, TokenKind::Access), Err(TokenError::Expired));
    }

    #[test]
    fn a_foreign_signature_is_refused() {
        let foreign = issue(&tokens("another secret"), TokenKind::Access, Timestamp::now());

        assert_eq!(tokens("one secret").check(&foreign, TokenKind::Access), Err(TokenError::Invalid));
    }

    #[test]
    fn each_secret_has_a_different_mark() {
        let mark = tokens("one secret").mark().to_owned();

        assert_eq!(mark.len(), 8);
        assert_eq!(mark, tokens("one secret").mark());
        assert_ne!(mark, tokens("another secret").mark());
    }

    #[test]
    fn a_token_cannot_choose_to_be_unsigned() {
        let tokens = tokens("one secret");
        let token = issue(&tokens, TokenKind::Access, Timestamp::now());
        let claims = token.split('.').nth(1).unwrap();
        let header = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);

        assert_eq!(tokens.check(&format!("{header}.{claims}."), TokenKind::Access), Err(TokenError::Invalid));
    }

    #[test]
    fn a_verified_token_is_accepted_again_only_as_its_own_kind() {
        let tokens = tokens("one secret");
        let access = issue(&tokens, TokenKind::Access, Timestamp::now());

        let first = tokens.check(&access, TokenKind::Access);

        assert_eq!(tokens.verified.count(), 1);
        assert_eq!(tokens.check(&access, TokenKind::Access), first);
        assert_eq!(tokens.check(&access, TokenKind::Refresh), Err(TokenError::Invalid));
    }

    #[test]
    fn a_verified_token_expires_like_any_other() {
        let tokens = tokens("one secret");
        let access = issue(&tokens, TokenKind::Access, Timestamp::now());
        let claims = tokens.check(&access, TokenKind::Access).unwrap();

        // As if its time had come.
        tokens.verified.remember(Fingerprint::of(&access), Claims { exp: claims.iat - 1, ..claims });

        assert_eq!(tokens.check(&access, TokenKind::Access), Err(TokenError::Expired));
    }

    #[test]
    fn refused_tokens_are_not_remembered() {
        let tokens = tokens("one secret");
        let foreign = issue(&self::tokens("another secret"), TokenKind::Access, Timestamp::now());
        let old = issue(&tokens, TokenKind::Access, Timestamp::now().plus_millis(-61_000));
        let refresh = issue(&tokens, TokenKind::Refresh, Timestamp::now());

        for token in [&foreign, &old, &refresh] {
            assert!(tokens.check(token, TokenKind::Access).is_err());
        }
        tokens.check(&refresh, TokenKind::Refresh).unwrap();

        assert_eq!(tokens.verified.count(), 0);
    }

    #[test]
    fn the_claims_of_a_verified_token_are_refused_with_another_signature() {
        let tokens = tokens("one secret");
        let access = issue(&tokens, TokenKind::Access, Timestamp::now());
        tokens.check(&access, TokenKind::Access).unwrap();

        let (signed, signature) = access.rsplit_once('.').unwrap();
        let forged = format!("{signed}.{}", signature.chars().rev().collect::<String>());

        assert_eq!(tokens.check(&forged, TokenKind::Access), Err(TokenError::Invalid));
        assert_eq!(tokens.check(&access.to_lowercase(), TokenKind::Access), Err(TokenError::Invalid));
    }

    #[test]
    fn a_service_with_another_secret_refuses_tokens_that_this_one_verified() {
        let (ours, others) = (tokens("one secret"), tokens("another secret"));
        let access = issue(&ours, TokenKind::Access, Timestamp::now());
        ours.check(&access, TokenKind::Access).unwrap();

        assert_eq!(others.check(&access, TokenKind::Access), Err(TokenError::Invalid));
    }
}
