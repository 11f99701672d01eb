//! Whether an ID token is what it should be (OpenID Connect Core, 3.1.3.7).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use openidconnect::core::{CoreIdToken, CoreIdTokenVerifier, CoreTokenResponse};
use openidconnect::{
    AccessTokenHash, ClaimsVerificationError, ClientId, IssuerUrl, Nonce, OAuth2TokenResponse,
    SignatureVerificationError, TokenResponse,
};
use serde_json::{Map, Value};
use signalbox_protocol::Timestamp;

use super::logout_token::SKEW_SECONDS;
use super::provider::Known;

/// How old a token of a sign-in may be: it was made for the code that was redeemed a moment ago.
const MAX_TOKEN_AGE_SECONDS: i64 = 10 * 60;

/// The longest subject (OpenID Connect Core, 2). A longer one would not fit the database's index.
const MAX_SUBJECT: usize = 255;

/// What a token has to fit.
pub struct Expected<'a> {
    pub issuer: &'a IssuerUrl,
    pub client_id: &'a str,
    pub nonce: &'a Nonce,
    pub now: Timestamp,
}

/// What is wrong with a token.
#[derive(Debug)]
pub enum Wrong {
    Missing,
    Claims(ClaimsVerificationError),
    Party,
    Hash,
    Subject,
}

impl Wrong {
    /// Whether a key that the provider published since could be the one.
    pub fn is_unknown_key(&self) -> bool {
        use ClaimsVerificationError::SignatureVerification;
        matches!(self, Self::Claims(SignatureVerification(SignatureVerificationError::NoMatchingKey)))
    }

    /// For the log: without what the token says.
    pub fn reason(&self) -> &'static str {
        use ClaimsVerificationError as E;
        match self {
            Self::Claims(E::Expired(_)) => "the token has expired, or was not issued now",
            Self::Claims(E::InvalidAudience(_)) | Self::Party => "the token is for another client",
            Self::Claims(E::InvalidIssuer(_)) => "the token is from another issuer",
            Self::Claims(E::InvalidNonce(_)) => "the token is from another sign-in",
            Self::Claims(E::SignatureVerification(SignatureVerificationError::NoMatchingKey)) => {
                "the key of the token is not one of the provider's"
            }
            Self::Claims(E::SignatureVerification(
                SignatureVerificationError::DisallowedAlg(_)
                | SignatureVerificationError::UnsupportedAlg(_)
                | SignatureVerificationError::NoSignature,
            )) => "the token is not signed in a way that the provider announces",
            Self::Claims(E::SignatureVerification(_)) => "the signature of the token is wrong",
            Self::Claims(_) => "the token is not valid",
            Self::Missing => "the answer has no ID token",
            Self::Hash => "the token belongs to another access token",
            Self::Subject => "the token names nobody",
        }
    }
}

/// All claims of a token that was checked.
pub fn payload_of(token: &CoreIdToken) -> Option<Map<String, Value>> {
    let text = token.to_string();
    let payload = BASE64_URL_SAFE_NO_PAD.decode(text.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&payload).ok()
}

/// Returns the subject of a token that is what it should be.
pub fn check(known: &Known, tokens: &CoreTokenResponse, expected: &Expected<'_>) -> Result<String, Wrong> {
    let token = tokens.id_token().ok_or(Wrong::Missing)?;
    let client_id = ClientId::new(expected.client_id.to_owned());
    let (issuer, keys) = (expected.issuer.clone(), known.metadata.jwks().clone());
    // Even with a secret: none of the algorithms that are allowed would use it.
    let verifier = CoreIdTokenVerifier::new_public_client(client_id.clone(), issuer, keys);
    let seconds = expected.now.as_seconds();
    let verifier = verifier
        .set_allowed_algs(known.algorithms())
        .set_time_fn(move || chrono::DateTime::from_timestamp(seconds - SKEW_SECONDS, 0).unwrap_or_default())
        .set_issue_time_verifier_fn(move |issued| {
            let allowed = seconds - MAX_TOKEN_AGE_SECONDS..=seconds + SKEW_SECONDS;
            allowed.contains(&issued.timestamp()).then_some(()).ok_or_else(|| "not issued now".to_owned())
        })
        // A token for several is for us if we are the one that asked for it, which is checked below.
        .set_other_audience_verifier_fn(|_| true);
    let claims = token.claims(&verifier, expected.nonce).map_err(Wrong::Claims)?;
    let is_for_several = claims.audiences().len() > 1;
    match claims.authorized_party() {
        Some(party) if *party == client_id => {}
        None if !is_for_several => {}
        _ => return Err(Wrong::Party),
    }
    if let Some(hash) = claims.access_token_hash() {
        let key = token.signing_key(&verifier).map_err(|_| Wrong::Hash)?;
        let algorithm = token.signing_alg().map_err(|_| Wrong::Hash)?;
        let actual = AccessTokenHash::from_token(tokens.access_token(), algorithm, key).map_err(|_| Wrong::Hash)?;
        if actual != *hash {
            return Err(Wrong::Hash);
        }
    }
    let subject = claims.subject().as_str();
    if subject.is_empty() || subject.len() > MAX_SUBJECT { Err(Wrong::Subject) } else { Ok(subject.to_owned()) }
}
