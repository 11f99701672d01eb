//! Encrypts what is secret in the database, so that somebody who reads the database or a backup finds no secret.
//!
//! AES-256-GCM with a random nonce. The id of the row is authenticated with the text, so that it cannot be decrypted in
//! another row. The first byte is the version of the format.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

/// The version of the format, written as the first byte.
const VERSION: u8 = 1;

const KEY_BYTES: usize = 32;

const SALT: &[u8] = b"signalbox";

/// Encrypts and decrypts; cheap to clone.
#[derive(Clone)]
pub struct Sealer {
    key: Arc<RandomizedNonceKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Also returned for a text that was altered.
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

/// Derives a key from a secret (HKDF, RFC 5869): the same secret yields different keys for different purposes.
pub fn derive_key(secret: &SecretString, purpose: &[u8]) -> Result<[u8; KEY_BYTES], SealError> {
    let mut bytes = [0; KEY_BYTES];
    let extracted = Salt::new(HKDF_SHA256, SALT).extract(secret.expose_secret().as_bytes());
    let derived = extracted.expand(&[purpose], Length).and_then(|key| key.fill(&mut bytes));
    derived.map(|()| bytes).map_err(|Unspecified| SealError::Failed)
}

impl Sealer {
    /// A sealer of what this purpose needs, with a key of its own.
    pub fn new(secret: &SecretString, purpose: &[u8]) -> Result<Self, SealError> {
        let bytes = derive_key(secret, purpose)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|Unspecified| SealError::Failed)?;
        Ok(Self { key: Arc::new(key) })
    }

    /// Returns the encrypted text of the row with this id.
    pub fn seal(&self, id: Uuid, mut text: Vec<u8>) -> Result<Vec<u8>, SealError> {
        let nonce = self.key.seal_in_place_append_tag(Aad::from(id.as_bytes()), &mut text);
        let nonce = nonce.map_err(|Unspecified| SealError::Failed)?;
        Ok([[VERSION].as_slice(), nonce.as_ref(), &text].concat())
    }

    /// Decrypts what [`Self::seal`] returned.
    pub fn open(&self, id: Uuid, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (version, rest) = sealed.split_first().ok_or(SealError::Unknown)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>().ok_or(SealError::Unknown)?;
        if *version != VERSION {
            return Err(SealError::Unknown);
        }
        let mut text = text.to_vec();
        let opened = self.key.open_in_place(Nonce::from(nonce), Aad::from(id.as_bytes()), &mut text);
        let length = opened.map_err(|Unspecified| SealError::WrongKey)?.len();
        text.truncate(length);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"the secret of an example";

    fn sealer(secret: &str, purpose: &str) -> Sealer {
        Sealer::new(&secret.into(), purpose.as_bytes()).unwrap()
    }

    #[test]
    fn a_sealed_text_opens_with_the_same_secret_and_purpose() {
        let id = Uuid::now_v7();

        let sealed = sealer("one secret", "a test").seal(id, TEXT.to_vec()).unwrap();

        assert_eq!(sealer("one secret", "a test").open(id, &sealed).unwrap(), TEXT);
        assert!(!sealed.windows(7).any(|window| window == b"example"));
        assert_eq!(sealer("another secret", "a test").open(id, &sealed), Err(SealError::WrongKey));
        assert_eq!(sealer("one secret", "a second test").open(id, &sealed), Err(SealError::WrongKey));
        assert_eq!(sealer("one secret", "a test").open(Uuid::now_v7(), &sealed), Err(SealError::WrongKey));
    }

    #[test]
    fn sealing_the_same_text_twice_differs() {
        let (id, sealer) = (Uuid::now_v7(), sealer("one secret", "a test"));

        assert_ne!(sealer.seal(id, TEXT.to_vec()).unwrap(), sealer.seal(id, TEXT.to_vec()).unwrap());
    }

    #[test]
    fn damage_at_any_byte_is_an_error() {
        let (id, sealer) = (Uuid::now_v7(), sealer("one secret", "a test"));
        let sealed = sealer.seal(id, TEXT.to_vec()).unwrap();

        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(sealer.open(id, &damaged).is_err(), "byte {at}");
            assert!(sealer.open(id, &sealed[..at]).is_err(), "cut at {at}");
        }
    }
}
