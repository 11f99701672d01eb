//! Passkeys: verifies what browsers and authenticators send (W3C Web Authentication, Level 2, sections 7.1 and 7.2).
//!
//! No attestation is asked for or verified: the service lets people choose their authenticator. Nothing here knows the
//! database; that a challenge counts once and that counters grow is decided there.

mod challenge;
mod relying_party;
#[cfg(test)]
mod tests;

pub use challenge::{CHALLENGE_SECONDS, Challenges, Purpose};
pub use relying_party::{NoRelyingParty, RelyingParty};

use sha2::{Digest, Sha256};
use signalbox_protocol::Timestamp;
use signalbox_signing::webauthn::authenticator::AuthenticatorData;
pub use signalbox_signing::webauthn::authenticator::MAX_CREDENTIAL_ID;
use signalbox_signing::webauthn::client::ClientData;
pub use signalbox_signing::webauthn::key::ALGORITHMS;
use signalbox_signing::webauthn::{WebauthnError, cbor, client, key};

use crate::store::SpentChallenge;

/// Why a passkey was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyError {
    #[error("the browser's data cannot be read")]
    MalformedClientData,
    #[error("the authenticator's data cannot be read")]
    MalformedAuthenticatorData,
    #[error("it answers another kind of request")]
    WrongKind,
    #[error("it was made for another address than this service's")]
    WrongOrigin,
    #[error("it was made for another service")]
    WrongRelyingParty,
    #[error("the authenticator did not check who uses it")]
    NotVerified,
    #[error("the challenge is not one of this service for this purpose")]
    WrongChallenge,
    #[error("the challenge has expired: begin again")]
    Expired,
    #[error("the challenge was used already: begin again")]
    Spent,
    #[error("the authenticator's kind of key is not supported")]
    UnknownKey,
    #[error("the signature is wrong")]
    WrongSignature,
    #[error("the passkey is not known")]
    Unknown,
    #[error("the authenticator's counter went back: there may be a copy of it")]
    CountedBack,
    #[error("this passkey is registered already")]
    AlreadyRegistered,
    #[error("there are too many passkeys: delete one first")]
    TooMany,
}

impl From<WebauthnError> for PasskeyError {
    fn from(error: WebauthnError) -> Self {
        match error {
            WebauthnError::MalformedClientData => Self::MalformedClientData,
            WebauthnError::MalformedAuthenticatorData => Self::MalformedAuthenticatorData,
            WebauthnError::WrongRequest => Self::WrongKind,
            WebauthnError::WrongPage => Self::WrongOrigin,
            WebauthnError::NotVerified => Self::NotVerified,
            WebauthnError::UnknownKey => Self::UnknownKey,
            WebauthnError::WrongSignature => Self::WrongSignature,
        }
    }
}

/// What a browser sends when it made a passkey.
#[derive(Debug, Clone)]
pub struct Registration {
    pub client_data: Vec<u8>,
    pub attestation_object: Vec<u8>,
}

/// A passkey that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub credential_id: Vec<u8>,
    pub public_key: Vec<u8>,
    pub sign_count: u32,
}

/// What a browser sends when a passkey signed.
#[derive(Debug, Clone)]
pub struct Assertion {
    pub credential_id: Vec<u8>,
    pub client_data: Vec<u8>,
    pub authenticator_data: Vec<u8>,
    pub signature: Vec<u8>,
    /// The user whom the authenticator made the passkey for.
    pub user_handle: Option<Vec<u8>>,
}

/// Checks all that browsers and authenticators say.
#[derive(Clone)]
pub struct Verifier {
    pub relying_party: RelyingParty,
    pub challenges: Challenges,
}

impl Verifier {
    /// Verifies a new passkey (section 7.1).
    pub fn registration(
        &self,
        given: &Registration,
        purpose: Purpose,
        now: Timestamp,
    ) -> Result<(Registered, SpentChallenge), PasskeyError> {
        let spent = self.client(&given.client_data, client::CREATE, purpose, now)?;
        let malformed = PasskeyError::MalformedAuthenticatorData;
        let (object, rest) = cbor::read(&given.attestation_object).map_err(|_| malformed)?;
        if !rest.is_empty() {
            return Err(malformed);
        }
        let data = AuthenticatorData::parse(object.bytes_of("authData").ok_or(malformed)?)?;
        self.authenticator(&data)?;
        let credential = data.credential.ok_or(malformed)?;
        key::check(credential.public_key)?;
        let registered = Registered {
            credential_id: credential.id.to_vec(),
            public_key: credential.public_key.to_vec(),
            sign_count: data.sign_count,
        };
        Ok((registered, spent))
    }

    /// Verifies a signature by the passkey with this public key (section 7.2). Returns the authenticator's counter.
    pub fn assertion(
        &self,
        given: &Assertion,
        public_key: &[u8],
        purpose: Purpose,
        now: Timestamp,
    ) -> Result<(u32, SpentChallenge), PasskeyError> {
        let spent = self.client(&given.client_data, client::GET, purpose, now)?;
        let data = AuthenticatorData::parse(&given.authenticator_data)?;
        self.authenticator(&data)?;
        let signed = [given.authenticator_data.as_slice(), &Sha256::digest(&given.client_data)].concat();
        key::verify(public_key, &signed, &given.signature)?;
        Ok((data.sign_count, spent))
    }

    /// Checks what the browser says.
    fn client(
        &self,
        json: &[u8],
        kind: &str,
        purpose: Purpose,
        now: Timestamp,
    ) -> Result<SpentChallenge, PasskeyError> {
        let data = ClientData::parse(json)?;
        if data.kind != kind {
            return Err(PasskeyError::WrongKind);
        }
        if data.is_embedded() || !self.relying_party.has(&data.origin) {
            return Err(PasskeyError::WrongOrigin);
        }
        self.challenges.check(&data.challenge, purpose, now)
    }

    /// Checks what the authenticator says.
    fn authenticator(&self, data: &AuthenticatorData<'_>) -> Result<(), PasskeyError> {
        if *data.relying_party_hash != *self.relying_party.hash() {
            return Err(PasskeyError::WrongRelyingParty);
        }
        if !(data.is_user_present && data.is_user_verified) {
            return Err(PasskeyError::NotVerified);
        }
        Ok(())
    }
}

/// Reads what an authenticator sends. A key that it names is part of what it sent, and no signature of it is empty.
#[doc(hidden)]
pub(super) fn fuzz(data: &[u8]) {
    _ = client::ClientData::parse(data);
    let object = cbor::read(data).ok().and_then(|(object, _)| object.bytes_of("authData"));
    let Ok(parsed) = AuthenticatorData::parse(object.unwrap_or(data)) else { return };
    let Some(credential) = parsed.credential else { return };
    let is_part = data.windows(credential.public_key.len()).any(|part| part == credential.public_key);
    assert!(is_part, "a key comes from elsewhere");
    if key::check(credential.public_key).is_ok() {
        assert!(key::verify(credential.public_key, data, &[]).is_err(), "nothing is a signature");
    }
}
