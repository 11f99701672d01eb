//! Encrypts the settings of channels, so that somebody who reads the database or a backup finds no address and no secret.
//!
//! AES-256-GCM with a random nonce. The channel's id is authenticated with the settings, so that they cannot be decrypted
//! in another channel's row. The first byte is the version of the format.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::channel::Settings;

/// The version of the format, written as the first byte.
const VERSION: u8 = 1;

const KEY_BYTES: usize = 32;

/// What the key is for: the same secret yields different keys for different uses.
const SALT: &[u8] = b"signalbox";
const USE: &[u8] = b"notification channel settings";

/// Encrypts and decrypts settings; cheap to clone.
#[derive(Clone)]
pub struct Sealer {
    key: Arc<RandomizedNonceKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Also returned for settings that were altered.
    #[error(
        "the settings were encrypted with another key: set them again, or restart the service with the original key"
    )]
    WrongKey,
    #[error("the settings cannot be read: another version of the service wrote them")]
    Unknown,
    #[error("the settings could not be encrypted")]
    Failed,
}

/// The length of the key.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl Sealer {
    /// Derives the key from the secret (HKDF, RFC 5869).
    pub fn new(secret: &SecretString) -> Result<Self, SealError> {
        let failed = |Unspecified| SealError::Failed;
        let mut bytes = [0; KEY_BYTES];
        let extracted = Salt::new(HKDF_SHA256, SALT).extract(secret.expose_secret().as_bytes());
        extracted.expand(&[USE], Length).and_then(|key| key.fill(&mut bytes)).map_err(failed)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(failed)?;
        Ok(Self { key: Arc::new(key) })
    }

    /// Returns the encrypted settings of this channel.
    pub fn seal(&self, channel_id: Uuid, settings: &Settings) -> Result<Vec<u8>, SealError> {
        let mut text = serde_json::to_vec(settings).map_err(|_| SealError::Failed)?;
        let nonce = self.key.seal_in_place_append_tag(Aad::from(channel_id.as_bytes()), &mut text);
        let nonce = nonce.map_err(|Unspecified| SealError::Failed)?;
        Ok([[VERSION].as_slice(), nonce.as_ref(), &text].concat())
    }

    /// Decrypts what [`Self::seal`] returned.
    pub fn open(&self, channel_id: Uuid, sealed: &[u8]) -> Result<Settings, SealError> {
        let (version, rest) = sealed.split_first().ok_or(SealError::Unknown)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>().ok_or(SealError::Unknown)?;
        if *version != VERSION {
            return Err(SealError::Unknown);
        }
        let mut text = text.to_vec();
        let opened = self.key.open_in_place(Nonce::from(nonce), Aad::from(channel_id.as_bytes()), &mut text);
        let opened = opened.map_err(|Unspecified| SealError::WrongKey)?;
        serde_json::from_slice(opened).map_err(|_| SealError::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(secret: &str) -> Sealer {
        Sealer::new(&secret.into()).unwrap()
    }

    fn settings() -> Settings {
        Settings::Slack { url: "https://hooks.example.com/T000/B000/token".to_owned() }
    }

    #[test]
    fn sealed_settings_open_with_the_same_secret() {
        let id = Uuid::now_v7();

        let sealed = sealer("one secret").seal(id, &settings()).unwrap();

        assert!(sealer("one secret").open(id, &sealed).unwrap() == settings());
        assert!(!sealed.windows(7).any(|window| window == b"example"));
    }

    #[test]
    fn sealing_the_same_settings_twice_differs() {
        let (id, sealer) = (Uuid::now_v7(), sealer("one secret"));

        assert_ne!(sealer.seal(id, &settings()).unwrap(), sealer.seal(id, &settings()).unwrap());
    }

    #[test]
    fn another_key_opens_nothing() {
        let id = Uuid::now_v7();

        let sealed = sealer("one secret").seal(id, &settings()).unwrap();

        assert!(sealer("another secret").open(id, &sealed).err() == Some(SealError::WrongKey));
    }

    #[test]
    fn settings_sealed_for_one_channel_do_not_open_in_another() {
        let (id, sealer) = (Uuid::now_v7(), sealer("one secret"));

        let sealed = sealer.seal(id, &settings()).unwrap();

        assert!(sealer.open(Uuid::now_v7(), &sealed).err() == Some(SealError::WrongKey));
    }

    #[test]
    fn damage_at_any_byte_is_an_error() {
        let (id, sealer) = (Uuid::now_v7(), sealer("one secret"));
        let sealed = sealer.seal(id, &settings()).unwrap();

        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(sealer.open(id, &damaged).is_err(), "byte {at}");
            assert!(sealer.open(id, &sealed[..at]).is_err(), "cut at {at}");
        }
    }
}
