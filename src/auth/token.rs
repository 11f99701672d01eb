//! JWTs: what they say, how they are signed, and when they are believed.

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

/// An access token is never taken for a refresh token, nor the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    Access,
    Refresh,
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The user.
    pub sub: Uuid,
    /// The login that the token descends from.
    pub sid: Uuid,
    /// This token.
    pub jti: Uuid,
    /// Issued at, in seconds since the epoch.
    pub iat: i64,
    /// Expires at, in seconds since the epoch.
    pub exp: i64,
    pub typ: TokenKind,
}

/// Why a token is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid")]
    Invalid,
}

/// What is hashed before the secret, so that its mark is of no use elsewhere.
const MARKED: &[u8] = b"signalbox mark of the signing secret:";

/// Bytes of a hash that tell the secrets of a few services apart.
const MARK_BYTES: usize = 4;

/// Signs and checks tokens. Cheap to check: no database is asked, and a signature is verified once.
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
        // One algorithm, ours: a token never chooses how it is checked.
        let mut validation = Validation::new(Algorithm::HS256);
        // By the service's clock, which several instances share, instead of this machine's.
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

    /// The time by which tokens are issued and expire.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A few digits by which the tokens of one service are told from another's.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// How long a token of this kind lives.
    pub fn lifetime(&self, kind: TokenKind) -> Duration {
        match kind {
            TokenKind::Access => self.access,
            TokenKind::Refresh => self.refresh,
        }
    }

    /// A signed token, issued at `at`.
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

    /// What `token` says, if it is ours, of this kind and not expired.
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
        // A refresh token is shown once.
        if is_new && kind == TokenKind::Access {
            self.verified.remember(fingerprint, claims.clone());
        }
        Ok(claims)
    }

    /// What a token says that is signed by us. Depends on nothing but the token and the secret, so it stays true.
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
    fn a_token_is_believed_as_its_own_kind_alone() {
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
    fn a_foreign_signature_is_not_believed() {
        let foreign = issue(&tokens("another secret"), TokenKind::Access, Timestamp::now());

        assert_eq!(tokens("one secret").check(&foreign, TokenKind::Access), Err(TokenError::Invalid));
    }

    #[test]
    fn each_secret_has_a_mark_of_its_own() {
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
    fn a_verified_token_is_believed_again_as_its_own_kind_alone() {
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
    fn what_is_not_believed_is_not_remembered() {
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
    fn the_claims_of_a_verified_token_are_not_believed_under_another_signature() {
        let tokens = tokens("one secret");
        let access = issue(&tokens, TokenKind::Access, Timestamp::now());
        tokens.check(&access, TokenKind::Access).unwrap();

        let (signed, signature) = access.rsplit_once('.').unwrap();
        let forged = format!("{signed}.{}", signature.chars().rev().collect::<String>());

        assert_eq!(tokens.check(&forged, TokenKind::Access), Err(TokenError::Invalid));
        assert_eq!(tokens.check(&access.to_lowercase(), TokenKind::Access), Err(TokenError::Invalid));
    }

    #[test]
    fn a_service_with_another_secret_does_not_believe_what_this_one_verified() {
        let (ours, others) = (tokens("one secret"), tokens("another secret"));
        let access = issue(&ours, TokenKind::Access, Timestamp::now());
        ours.check(&access, TokenKind::Access).unwrap();

        assert_eq!(others.check(&access, TokenKind::Access), Err(TokenError::Invalid));
    }
}
