//! What authenticators and browsers send, and what their keys sign (W3C Web Authentication, Level 2).
//!
//! The service uses the parts to sign people in; [`verify`] checks the assertion of a passkey about a payload.

pub mod authenticator;
pub mod cbor;
pub mod client;
pub mod key;

use aws_lc_rs::digest::{SHA256, digest};

use authenticator::AuthenticatorData;
use client::ClientData;

/// Why what a browser or an authenticator sent was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebauthnError {
    #[error("the browser's data cannot be read")]
    MalformedClientData,
    #[error("the authenticator's data cannot be read")]
    MalformedAuthenticatorData,
    #[error("it answers another kind of request, or one about something else")]
    WrongRequest,
    #[error("it was made on a page of somebody else")]
    WrongPage,
    #[error("the authenticator did not check who uses it")]
    NotVerified,
    #[error("the authenticator's kind of key is not supported")]
    UnknownKey,
    #[error("the signature is wrong")]
    WrongSignature,
}

/// The assertion of a passkey.
#[derive(Debug, Clone, Copy)]
pub struct Assertion<'a> {
    pub client_data: &'a [u8],
    pub authenticator_data: &'a [u8],
    pub signature: &'a [u8],
}

/// Checks an assertion about `challenge` by the passkey with this public key, for the relying party with this id. The user must
/// have been verified, and the page must have been one of the relying party.
pub fn verify(
    given: Assertion<'_>,
    challenge: &[u8],
    public_key: &[u8],
    relying_party: &str,
) -> Result<(), WebauthnError> {
    let client = ClientData::parse(given.client_data)?;
    if client.kind != client::GET || client.challenge != challenge {
        return Err(WebauthnError::WrongRequest);
    }
    let data = AuthenticatorData::parse(given.authenticator_data)?;
    let is_here = data.relying_party_hash.as_slice() == digest(&SHA256, relying_party.as_bytes()).as_ref();
    if client.is_embedded() || !is_here || !is_page_of(&client.origin, relying_party) {
        return Err(WebauthnError::WrongPage);
    }
    if !(data.is_user_present && data.is_user_verified) {
        return Err(WebauthnError::NotVerified);
    }
    let signed = [given.authenticator_data, digest(&SHA256, given.client_data).as_ref()].concat();
    key::verify(public_key, &signed, given.signature)
}

/// Whether the page at this origin may use passkeys of this relying party: over HTTPS at its host or below it, or on this
/// machine.
fn is_page_of(origin: &str, relying_party: &str) -> bool {
    let (is_secure, authority) = match (origin.strip_prefix("https://"), origin.strip_prefix("http://")) {
        (Some(authority), _) => (true, authority),
        (None, Some(authority)) => (false, authority),
        (None, None) => return false,
    };
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) => return false,
        None => authority,
    };
    let is_below = host.strip_suffix(relying_party).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    is_below && (is_secure || relying_party == "localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_relying_party_is_at_its_host_or_below_it() {
        let pages = ["https://box.example.com", "https://box.example.com:8443", "https://a.box.example.com"];
        let others = [
            "http://box.example.com",
            "https://example.com",
            "https://evilbox.example.com",
            "https://box.example.com.evil.test",
            "https://box.example.com:",
            "https://box.example.com:1@evil.test",
            "app://box.example.com",
            "",
        ];

        assert!(pages.iter().all(|page| is_page_of(page, "box.example.com")));
        for other in others {
            assert!(!is_page_of(other, "box.example.com"), "{other}");
        }
        assert!(is_page_of("http://localhost:8000", "localhost"));
    }
}
