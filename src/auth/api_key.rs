//! Agents' keys: `sbk_<public part>_<secret>`. Only a digest of the whole key is stored.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use signalbox_protocol::Timestamp;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::clock::Clock;
use crate::random;
use crate::store::{KnownKey, Store, StoreError};

/// Makes a key recognizable, for people and for scanners of leaked secrets.
const MARK: &str = "sbk_";

/// Hexadecimal digits of the public part: 64 random bits, which identify the row.
const PUBLIC_DIGITS: usize = 16;

/// A new key. Shown only once.
pub struct FreshKey {
    pub key: SecretString,
    /// The public part, with the mark.
    pub prefix: String,
    pub digest: Vec<u8>,
}

/// The server that a key belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub key_id: Uuid,
    pub server_id: Uuid,
    /// The owner of the server.
    pub owner_id: Uuid,
    /// How many sessions have held the server so far.
    pub session_epoch: i64,
    /// When the key stops working.
    pub expires_at: Option<Timestamp>,
    /// Whether a session holds the server, according to the database.
    pub is_held: bool,
    /// The stored description of the last agent, as JSON.
    pub last_agent: Option<String>,
}

/// Why a key was refused. The two reasons are distinguished only in the log, not for the client.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the key is wrong, expired or revoked")]
    Refused,
    /// The agent must not be refused for good because of a clock that may be wrong.
    #[error("the key may have expired")]
    Doubtful,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A new key with 256 random bits after its public part.
pub fn generate() -> Result<FreshKey, getrandom::Error> {
    let public = u64::from_be_bytes(random::bytes::<8>()?);
    let prefix = format!("{MARK}{public:0width$x}", width = PUBLIC_DIGITS);
    let key = format!("{prefix}_{}", BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>()?));
    let digest = digest(&key);
    Ok(FreshKey { key: key.into(), prefix, digest })
}

/// Looks up the server of a key. Fails if the key is malformed, unknown or expired.
pub async fn open(store: &Store, shown: &SecretString, clock: &Clock) -> Result<Opened, KeyError> {
    let shown = shown.expose_secret();
    let prefix = prefix_of(shown).ok_or(KeyError::Refused)?;
    let found = store.find_api_key(prefix).await?.ok_or(KeyError::Refused)?;
    let fits: bool = digest(shown).ct_eq(&found.digest).into();
    if !fits {
        return Err(KeyError::Refused);
    }
    match found.expires_at {
        Some(end) if end <= clock.certain() => return Err(KeyError::Refused),
        Some(end) if end <= clock.now() => return Err(KeyError::Doubtful),
        _ => {}
    }
    let KnownKey { id, server_id, owner_id, session_epoch, expires_at, is_held, agent, .. } = found;
    Ok(Opened { key_id: id, server_id, owner_id, session_epoch, expires_at, is_held, last_agent: agent })
}

fn prefix_of(key: &str) -> Option<&str> {
    let (prefix, secret) = key.split_at_checked(MARK.len() + PUBLIC_DIGITS)?;
    let digits = prefix.strip_prefix(MARK)?;
    (digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && secret.starts_with('_')).then_some(prefix)
}

fn digest(key: &str) -> Vec<u8> {
    Sha256::digest(key.as_bytes()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_public_part_and_256_secret_bits() {
        let fresh = generate().unwrap();
        let key = fresh.key.expose_secret();

        assert_eq!(prefix_of(key), Some(fresh.prefix.as_str()));
        assert_eq!(key.len(), fresh.prefix.len() + 1 + 43);
        assert_eq!(digest(key), fresh.digest);
    }

    #[test]
    fn text_that_is_no_key_has_no_prefix() {
        for text in ["", "sbk_", "sbk_0123456789abcdef", "xyz_0123456789abcdef_secret", "sbk_0123456789abcdé_s"] {
            assert_eq!(prefix_of(text), None, "{text}");
        }
    }
}
