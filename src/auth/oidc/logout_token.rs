//! The provider's word that a session has ended (OpenID Connect Back-Channel Logout 1.0, 2.4 to 2.6).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use openidconnect::core::{CoreJsonWebKey, CoreJwsSigningAlgorithm};
use openidconnect::{JsonWebKey, JsonWebKeySet};
use serde::Deserialize;
use serde_json::{Map, Value};
use signalbox_protocol::Timestamp;

use crate::store::LogoutNotice;

/// The longest token that the service reads: it has a few short claims.
const MAX_TOKEN: usize = 16 * 1024;

/// The longest name in it. Longer ones would not fit the database's index.
const MAX_NAME: usize = 255;

/// How old a token may be: the provider sends it at once, and may try again for a while.
const MAX_AGE_SECONDS: i64 = 5 * 60;

/// How far the clocks of the provider and the service may differ.
pub const SKEW_SECONDS: i64 = 60;

/// The member of `events` that makes it a logout token.
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// Why a token is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogoutError {
    #[error("it is no signed token")]
    NoToken,
    #[error("it is signed in a way that the provider does not use")]
    Algorithm,
    #[error("its key is not one of the provider's")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("it is from another issuer")]
    Issuer,
    #[error("it is for another client")]
    Audience,
    #[error("it is too old, or from the future")]
    Time,
    #[error("it is not about the end of a session")]
    Event,
    #[error("it has a nonce, so it is a token of a sign-in")]
    Nonce,
    #[error("it names neither a person nor a session")]
    Nobody,
    #[error("it has no name of its own (jti)")]
    NoName,
}

#[derive(Deserialize)]
struct Header {
    alg: CoreJwsSigningAlgorithm,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Value,
    iat: f64,
    exp: Option<f64>,
    jti: Option<String>,
    events: Option<Map<String, Value>>,
    sub: Option<String>,
    sid: Option<String>,
    nonce: Option<Value>,
}

/// What a token has to fit.
pub struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub algorithms: &'a [CoreJwsSigningAlgorithm],
    pub keys: &'a JsonWebKeySet<CoreJsonWebKey>,
    pub now: Timestamp,
}

/// Checks a token: first who signed it, then what it says.
pub fn verify(token: &str, expected: &Expected<'_>) -> Result<LogoutNotice, LogoutError> {
    let claims = signed_claims(token, expected)?;
    if claims.iss != expected.issuer {
        return Err(LogoutError::Issuer);
    }
    let is_ours = match &claims.aud {
        Value::String(audience) => audience == expected.client_id,
        Value::Array(audiences) => audiences.iter().any(|audience| audience == expected.client_id),
        _ => false,
    };
    if !is_ours {
        return Err(LogoutError::Audience);
    }
    let (now, issued) = (expected.now.as_seconds(), claims.iat as i64);
    let is_expired = claims.exp.is_some_and(|expires| (expires as i64).saturating_add(SKEW_SECONDS) <= now);
    let is_timely = (now - MAX_AGE_SECONDS..=now + SKEW_SECONDS).contains(&issued);
    if is_expired || !is_timely {
        return Err(LogoutError::Time);
    }
    if !claims.events.is_some_and(|events| events.get(EVENT).is_some_and(Value::is_object)) {
        return Err(LogoutError::Event);
    }
    if claims.nonce.is_some() {
        return Err(LogoutError::Nonce);
    }
    let named = |name: Option<String>| name.filter(|name| (1..=MAX_NAME).contains(&name.len()));
    let (subject, sid) = (named(claims.sub), named(claims.sid));
    if subject.is_none() && sid.is_none() {
        return Err(LogoutError::Nobody);
    }
    let jti = named(claims.jti).ok_or(LogoutError::NoName)?;
    // After that its age alone refuses it.
    let expires_at = Timestamp::from_millis((issued + MAX_AGE_SECONDS + SKEW_SECONDS).saturating_mul(1_000));
    Ok(LogoutNotice { issuer: claims.iss, subject, sid, jti, expires_at })
}

fn signed_claims(token: &str, expected: &Expected<'_>) -> Result<Claims, LogoutError> {
    if token.len() > MAX_TOKEN {
        return Err(LogoutError::NoToken);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(LogoutError::NoToken)?;
    let (header, claims) = signed.split_once('.').ok_or(LogoutError::NoToken)?;
    let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| LogoutError::NoToken);
    let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| LogoutError::NoToken)?;
    let is_known_type = header.typ.is_none_or(|kind| {
        let kind = kind.to_ascii_lowercase();
        kind == "jwt" || kind.trim_start_matches("application/") == "logout+jwt"
    });
    if header.crit.is_some() || !is_known_type {
        return Err(LogoutError::NoToken);
    }
    if !expected.algorithms.contains(&header.alg) {
        return Err(LogoutError::Algorithm);
    }
    let (signature, mut is_known) = (decode(signature)?, false);
    for key in expected.keys.keys() {
        let is_meant = header.kid.as_ref().is_none_or(|kid| key.key_id().is_some_and(|id| id.as_str() == kid));
        if !is_meant {
            continue;
        }
        is_known = true;
        // Refuses keys of another kind, or for another use.
        if key.verify_signature(&header.alg, signed.as_bytes(), &signature).is_ok() {
            return serde_json::from_slice(&decode(claims)?).map_err(|_| LogoutError::NoToken);
        }
    }
    Err(if is_known { LogoutError::Signature } else { LogoutError::UnknownKey })
}
