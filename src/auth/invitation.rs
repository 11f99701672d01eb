//! Invitations to make an account: `sbi_<secret>`. Only a digest is stored.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::random;

/// Makes a token recognizable, for people and for scanners of leaked secrets.
const MARK: &str = "sbi_";

/// A new invitation. Its token is shown only once.
pub struct FreshInvitation {
    pub token: SecretString,
    pub digest: Vec<u8>,
}

/// A new invitation with 256 random bits.
pub fn generate() -> Result<FreshInvitation, getrandom::Error> {
    let token = SecretString::from(format!("{MARK}{}", BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>()?)));
    Ok(FreshInvitation { digest: digest(&token), token })
}

/// The digest by which an invitation is found. It is the same time's work for any text.
pub fn digest(token: &SecretString) -> Vec<u8> {
    Sha256::digest(token.expose_secret().as_bytes()).to_vec()
}

/// The page on which somebody makes an account with this invitation. The token stands behind `#`, so that browsers send it
/// to nobody and no log has it.
pub fn url(base: &str, token: &SecretString) -> String {
    format!("{}/register#invitation={}", base.trim_end_matches('/'), token.expose_secret())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_256_secret_bits_and_is_found_by_its_digest() {
        let (one, other) = (generate().unwrap(), generate().unwrap());

        assert_eq!(one.token.expose_secret().len(), MARK.len() + 43);
        assert_eq!(digest(&one.token), one.digest);
        assert_ne!(one.digest, other.digest);
    }

    #[test]
    fn no_server_gets_the_token_in_an_address() {
        let url = url("https://box.example.com/", &"sbi_x".into());

        assert_eq!(url, "https://box.example.com/register#invitation=sbi_x");
    }
}
