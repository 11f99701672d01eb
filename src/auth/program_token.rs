//! Tokens of programs: `sbt_<public part>_<secret>`. Only a digest of the whole token is stored.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::random;

/// Makes a token recognizable, for the service, for people and for scanners of leaked secrets.
const MARK: &str = "sbt_";

/// Hexadecimal digits of the public part: 64 random bits, which identify the row.
const PUBLIC_DIGITS: usize = 16;

/// Characters of the secret part: 256 random bits.
const SECRET_CHARACTERS: usize = 43;

/// The digest of a token.
pub type TokenDigest = [u8; 32];

/// A new token. Shown only once.
pub struct FreshToken {
    pub token: SecretString,
    /// The public part, with the mark.
    pub prefix: String,
    pub digest: TokenDigest,
}

/// A text with the form of a token.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub prefix: &'a str,
    pub digest: TokenDigest,
}

/// A new token with 256 random bits after its public part.
pub fn generate() -> Result<FreshToken, getrandom::Error> {
    generate_marked(MARK)
}

/// A token of this form with another mark.
pub(super) fn generate_marked(mark: &str) -> Result<FreshToken, getrandom::Error> {
    let public = u64::from_be_bytes(random::bytes::<8>()?);
    let prefix = format!("{mark}{public:0width$x}", width = PUBLIC_DIGITS);
    let token = SecretString::from(format!("{prefix}_{}", BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>()?)));
    let digest = digest(token.expose_secret());
    Ok(FreshToken { token, prefix, digest })
}

/// Whether this is meant as a token of a program, and not of a login.
pub fn is_marked(text: &str) -> bool {
    text.starts_with(MARK)
}

/// The parts of a token; none if it has not the form of one.
pub fn read(text: &str) -> Option<Shown<'_>> {
    read_marked(text, MARK)
}

/// The parts of a token with another mark.
pub(super) fn read_marked<'a>(text: &'a str, mark: &str) -> Option<Shown<'a>> {
    let (prefix, secret) = text.split_at_checked(mark.len() + PUBLIC_DIGITS)?;
    let digits = prefix.strip_prefix(mark)?;
    let is_formed = digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && secret.starts_with('_')
        && secret.len() == SECRET_CHARACTERS + 1;
    is_formed.then(|| Shown { prefix, digest: digest(text) })
}

fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_public_part_and_256_secret_bits() {
        let fresh = generate().unwrap();

        let shown = read(fresh.token.expose_secret()).unwrap();
        assert_eq!((shown.prefix, shown.digest), (fresh.prefix.as_str(), fresh.digest));
        assert!(is_marked(fresh.token.expose_secret()));
    }

    #[test]
    fn text_of_another_form_is_no_token() {
        let secret = "s".repeat(SECRET_CHARACTERS);
        let texts = [
            String::new(),
            "sbt_".to_owned(),
            "sbt_0123456789abcdef".to_owned(),
            format!("sbk_0123456789abcdef_{secret}"),
            format!("sbt_0123456789abcdeg_{secret}"),
            format!("sbt_0123456789abcdé_{secret}"),
            format!("sbt_0123456789abcdef_{secret}s"),
            format!("sbt_0123456789abcdef{secret}"),
        ];

        for text in texts {
            assert!(read(&text).is_none(), "{text}");
        }
    }
}
