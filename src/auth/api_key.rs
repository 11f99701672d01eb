//! Agents' keys: `sbk_<public part>_<secret>` ([`super::marked_token`]).

use secrecy::{ExposeSecret, SecretString};
use signalbox_protocol::Timestamp;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::marked_token::{self, FreshToken, digest};
use crate::clock::Clock;
use crate::store::{KnownKey, Store, StoreError};

/// The mark of these keys.
const MARK: &str = "sbk_";

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

/// A new key.
pub fn generate() -> Result<FreshToken, getrandom::Error> {
    marked_token::generate(MARK)
}

/// Looks up the server of a key. Fails if the key is malformed, unknown or expired.
pub async fn open(store: &Store, shown: &SecretString, clock: &Clock) -> Result<Opened, KeyError> {
    let shown = shown.expose_secret();
    let prefix = prefix_of(shown).ok_or(KeyError::Refused)?;
    let found = store.find_api_key(prefix).await?.ok_or(KeyError::Refused)?;
    let fits: bool = digest(shown).as_slice().ct_eq(&found.digest).into();
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

/// The public part of a key. The secret may have any length: the digest decides.
fn prefix_of(key: &str) -> Option<&str> {
    marked_token::split(key, MARK).map(|(prefix, _)| prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_public_part_and_256_secret_bits() {
        let fresh = generate().unwrap();
        let key = fresh.token.expose_secret();

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
