//! A sign-in on its way, which the browser carries to the provider and back.
//!
//! The service remembers nothing: what it has to know again stands in a cookie that it encrypts (AES-256-GCM). So any
//! instance can finish what another one began, and a browser can finish only what it began itself.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::OidcSetupError;

/// How long a person may take at the provider: a second factor may have to be fetched.
pub const LIFETIME_SECONDS: i64 = 10 * 60;

/// The version of the format. It is authenticated, so that no other cookie passes for one of these.
const VERSION: &[u8] = b"oidc attempt v1";

/// What the key is for: the same secret yields different keys for different uses.
const SALT: &[u8] = b"signalbox";
const USE: &[u8] = b"oidc sign-in attempts";

const KEY_BYTES: usize = 32;

/// No sealed attempt is longer: browsers keep cookies of up to 4 KB.
const MAX_SEALED: usize = 4_000;

/// What has to be known again when the provider sends the browser back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Stands in the address at the provider and in the one it sends the browser back to.
    pub state: String,
    /// Stands in the token that the provider signs.
    pub nonce: String,
    /// Proves to the provider that the service that began redeems the code (RFC 7636).
    pub pkce_verifier: String,
    /// Where the provider sends the browser back to.
    pub redirect_uri: String,
    /// The page that was wanted.
    pub return_to: String,
    /// The login of somebody who links their account.
    pub link: Option<Uuid>,
    /// In seconds since the epoch.
    pub expires_at: i64,
}

/// Encrypts and decrypts attempts; cheap to clone.
#[derive(Clone)]
pub struct AttemptSealer(Arc<RandomizedNonceKey>);

struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl AttemptSealer {
    /// Derives the key from the secret that all instances share (HKDF, RFC 5869).
    pub fn new(secret: &SecretString) -> Result<Self, OidcSetupError> {
        let failed = |Unspecified| OidcSetupError::Client("no key could be derived".to_owned());
        let mut bytes = [0; KEY_BYTES];
        let extracted = Salt::new(HKDF_SHA256, SALT).extract(secret.expose_secret().as_bytes());
        extracted.expand(&[USE], Length).and_then(|key| key.fill(&mut bytes)).map_err(failed)?;
        Ok(Self(Arc::new(RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(failed)?)))
    }

    /// The attempt as the value of a cookie; none if it is too long for one.
    pub fn seal(&self, attempt: &Attempt) -> Option<String> {
        let mut text = serde_json::to_vec(attempt).ok()?;
        let nonce = self.0.seal_in_place_append_tag(Aad::from(VERSION), &mut text).ok()?;
        let sealed = BASE64_URL_SAFE_NO_PAD.encode([nonce.as_ref().as_slice(), &text].concat());
        (sealed.len() <= MAX_SEALED).then_some(sealed)
    }

    /// The attempt of a cookie, if the service made it, it has not expired, and `state` belongs to it.
    pub fn open(&self, sealed: &str, state: &str, now: Timestamp) -> Option<Attempt> {
        if sealed.len() > MAX_SEALED {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let opened = self.0.open_in_place(Nonce::from(nonce), Aad::from(VERSION), &mut text).ok()?;
        let attempt: Attempt = serde_json::from_slice(opened).ok()?;
        let is_its_own = bool::from(attempt.state.as_bytes().ct_eq(state.as_bytes()));
        (is_its_own && now.as_seconds() < attempt.expires_at).then_some(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Attempt {
        Attempt {
            state: "the state".to_owned(),
            nonce: "the nonce".to_owned(),
            pkce_verifier: "the verifier".to_owned(),
            redirect_uri: "https://box.example.com/api/v1/auth/oidc/callback".to_owned(),
            return_to: "/alerts".to_owned(),
            link: Some(Uuid::from_u128(7)),
            expires_at: 1_000,
        }
    }

    fn sealer(secret: &str) -> AttemptSealer {
        AttemptSealer::new(&secret.into()).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn another_instance_with_the_same_secret_opens_it() {
        let sealed = sealer("one secret").seal(&attempt()).unwrap();

        assert_eq!(sealer("one secret").open(&sealed, "the state", at(999)), Some(attempt()));
        assert_eq!(sealer("another secret").open(&sealed, "the state", at(999)), None);
        assert!(!sealed.contains("verifier"));
    }

    #[test]
    fn it_counts_only_with_its_state_and_in_time() {
        let sealed = sealer("one secret").seal(&attempt()).unwrap();

        assert_eq!(sealer("one secret").open(&sealed, "another state", at(999)), None);
        assert_eq!(sealer("one secret").open(&sealed, "", at(999)), None);
        assert_eq!(sealer("one secret").open(&sealed, "the state", at(1_000)), None);
    }

    #[test]
    fn damage_at_any_character_is_noticed() {
        let sealer = sealer("one secret");
        let sealed = sealer.seal(&attempt()).unwrap();

        for place in 0..sealed.len() {
            let other = if sealed.as_bytes()[place] == b'A' { "B" } else { "A" };
            let mut damaged = sealed.clone();
            damaged.replace_range(place..=place, other);
            assert_eq!(sealer.open(&damaged, "the state", at(0)), None, "character {place}");
        }
        assert_eq!(sealer.open("", "the state", at(0)), None);
        assert_eq!(sealer.open(&"A".repeat(10_000), "the state", at(0)), None);
    }

    #[test]
    fn what_does_not_fit_in_a_cookie_is_refused() {
        let long = Attempt { return_to: format!("/{}", "a".repeat(4_000)), ..attempt() };

        assert_eq!(sealer("one secret").seal(&long), None);
    }
}
