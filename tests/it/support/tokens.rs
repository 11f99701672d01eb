//! Parses the service's tokens and forges others.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::Value;

/// The claims of a token, unverified.
#[track_caller]
pub fn claims_of(token: &str) -> Value {
    part_of(token, 1)
}

/// The header of a token: its algorithm.
#[track_caller]
pub fn header_of(token: &str) -> Value {
    part_of(token, 0)
}

#[track_caller]
fn part_of(token: &str, index: usize) -> Value {
    let part = token.split('.').nth(index).unwrap_or_else(|| panic!("not a JWT: {token}"));
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// A token of any header and claims, with `signature` as its third part.
pub fn assembled(header: &Value, claims: &Value, signature: &str) -> String {
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    format!("{}.{}.{signature}", encode(header), encode(claims))
}

/// A well-made token of a signer that the service does not trust.
pub fn signed_by(secret: &[u8], algorithm: Algorithm, claims: &Value) -> String {
    jsonwebtoken::encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret)).unwrap()
}
