//! The key by which push services know the service (RFC 8292). Browsers bind their subscriptions to it.

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

/// As browsers write their keys; some pad them.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_encode_padding(false).with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How long a token is valid. Push services accept at most 24 hours (RFC 8292, 2), by their own clocks.
const VALID_SECONDS: i64 = 12 * 3_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushKeyError {
    #[error("the push key (--push-key-file) must be 32 bytes in base64: openssl rand -base64 32")]
    NotAKey,
}

/// The key pair. Has no `Debug`.
pub struct PushKey {
    pair: EcdsaKeyPair,
    public_key: String,
}

impl PushKey {
    /// Reads the private key from its text: a number of 32 bytes in base64, as programs for Web Push write it.
    pub fn new(secret: &SecretString) -> Result<Self, PushKeyError> {
        let text = secret.expose_secret().replace('+', "-").replace('/', "_");
        let bytes = BASE64.decode(text).map_err(|_| PushKeyError::NotAKey)?;
        Self::of(&bytes).ok_or(PushKeyError::NotAKey)
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let public_key = PrivateKey::from_private_key(&ECDH_P256, bytes).ok()?.compute_public_key().ok()?;
        let public_key = public_key.as_ref();
        let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(signing, bytes, public_key).ok()?;
        Some(Self { pair, public_key: BASE64.encode(public_key) })
    }

    /// Returns the public key in base64, as browsers take it.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// Returns the header `Authorization` of a request to this push service.
    pub(super) fn authorization(
        &self,
        endpoint: &Url,
        contact: Option<&str>,
        now: Timestamp,
    ) -> Result<String, Unspecified> {
        let mut claims = json!({
            "aud": endpoint.origin().ascii_serialization(),
            "exp": now.as_seconds() + VALID_SECONDS,
        });
        if let (Some(contact), Some(claims)) = (contact, claims.as_object_mut()) {
            claims.insert("sub".to_owned(), json!(contact));
        }
        let part = |part: &Value| BASE64.encode(part.to_string());
        let signed = format!("{}.{}", part(&json!({"typ": "JWT", "alg": "ES256"})), part(&claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes())?;
        Ok(format!("vapid t={signed}.{}, k={}", BASE64.encode(signature), self.public_key))
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    /// The private key of the sender in RFC 8291, appendix A, and its public key.
    const PRIVATE: &str = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
    const PUBLIC: &str = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";

    #[test]
    fn the_public_key_follows_from_the_private_one_in_either_alphabet() {
        for text in [PRIVATE.to_owned(), format!("{}=", PRIVATE.replace('-', "+"))] {
            assert_eq!(PushKey::new(&text.into()).unwrap().public_key(), PUBLIC);
        }
    }

    #[test]
    fn what_is_no_number_of_the_curve_is_no_key() {
        let zero = BASE64.encode([0; 32]);
        for text in ["", "short", "not base64, but longer than thirty-two bytes", &zero, &BASE64.encode([0xff; 32])] {
            assert_eq!(PushKey::new(&text.into()).err(), Some(PushKeyError::NotAKey), "{text}");
        }
    }

    #[test]
    fn a_token_is_for_one_push_service_and_for_half_a_day() {
        let key = PushKey::new(&PRIVATE.into()).unwrap();
        let endpoint = Url::parse("https://push.example.com:8443/send/secret?x=1").unwrap();
        let now = Timestamp::parse("2026-11-21T09:00:00Z").unwrap();

        let header = key.authorization(&endpoint, Some("https://signalbox.example.com"), now).unwrap();

        let (token, public) = header.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        assert_eq!(public, PUBLIC);
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let verifier = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, BASE64.decode(public).unwrap());
        verifier.verify(signed.as_bytes(), &BASE64.decode(signature).unwrap()).unwrap();
        let parts: Vec<Value> =
            signed.split('.').map(|part| serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap()).collect();
        let claims = json!({
            "aud": "https://push.example.com:8443",
            "exp": now.as_seconds() + 43_200,
            "sub": "https://signalbox.example.com",
        });
        assert_eq!(parts, [json!({"typ": "JWT", "alg": "ES256"}), claims]);
        assert!(!header.contains("secret"));
    }
}
