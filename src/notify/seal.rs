//! Settings as they are kept: encrypted, so that who reads the database or a backup of it finds no address and no secret.
//!
//! AES-256-GCM with a random nonce. The channel's id is authenticated with it: settings that are moved to another
//! channel's row do not open there. One byte in front says how it was done.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::channel::Settings;

/// How it was encrypted: another way gets another number.
const VERSION: u8 = 1;

const KEY_BYTES: usize = 32;

/// What keys are made for: the same secret gives other keys for other uses.
const SALT: &[u8] = b"signalbox";
const USE: &[u8] = b"notification channel settings";

/// Encrypts settings and opens them, behind cheap clones.
#[derive(Clone)]
pub struct Sealer {
    key: Arc<RandomizedNonceKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Or somebody has changed what is there.
    #[error("the settings were encrypted with another key: set them again, or start the service with the key of then")]
    WrongKey,
    #[error("the settings are not understood: they were written by another version")]
    Unknown,
    #[error("the settings could not be encrypted")]
    Failed,
}

/// How long the key is.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl Sealer {
    /// With a key that is made of the secret (HKDF, RFC 5869).
    pub fn new(secret: &SecretString) -> Result<Self, SealError> {
        let failed = |Unspecified| SealError::Failed;
        let mut bytes = [0; KEY_BYTES];
        let extracted = Salt::new(HKDF_SHA256, SALT).extract(secret.expose_secret().as_bytes());
        extracted.expand(&[USE], Length).and_then(|key| key.fill(&mut bytes)).map_err(failed)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(failed)?;
        Ok(Self { key: Arc::new(key) })
    }

    /// The settings of this channel, for nobody to read.
    pub fn seal(&self, channel_id: Uuid, settings: &Settings) -> Result<Vec<u8>, SealError> {
        let mut text = serde_json::to_vec(settings).map_err(|_| SealError::Failed)?;
        let nonce = self.key.seal_in_place_append_tag(Aad::from(channel_id.as_bytes()), &mut text);
        let nonce = nonce.map_err(|Unspecified| SealError::Failed)?;
        Ok([[VERSION].as_slice(), nonce.as_ref(), &text].concat())
    }

    /// What [`Self::seal`] made.
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
    fn what_is_sealed_opens_with_the_same_secret() {
        let id = Uuid::now_v7();

        let sealed = sealer("one secret").seal(id, &settings()).unwrap();

        assert!(sealer("one secret").open(id, &sealed).unwrap() == settings());
        assert!(!sealed.windows(7).any(|window| window == b"example"));
    }

    #[test]
    fn the_same_settings_never_look_the_same() {
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
    fn what_is_sealed_for_one_channel_does_not_open_in_another() {
        let (id, sealer) = (Uuid::now_v7(), sealer("one secret"));

        let sealed = sealer.seal(id, &settings()).unwrap();

        assert!(sealer.open(Uuid::now_v7(), &sealed).err() == Some(SealError::WrongKey));
    }

    #[test]
    fn damage_is_an_error_wherever_it_is() {
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
