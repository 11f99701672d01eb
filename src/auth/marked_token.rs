//! Secrets that begin with a mark: `<mark><public part>_<secret>`. The mark makes them recognizable, for the service, for people and
//! for scanners of leaked secrets; the public part finds the row. Only a digest of the whole text is stored.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::random;

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
pub fn generate(mark: &str) -> Result<FreshToken, getrandom::Error> {
    let public = u64::from_be_bytes(random::bytes::<8>()?);
    let prefix = format!("{mark}{public:0width$x}", width = PUBLIC_DIGITS);
    let token = SecretString::from(format!("{prefix}_{}", BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>()?)));
    let digest = digest(token.expose_secret());
    Ok(FreshToken { token, prefix, digest })
}

/// The parts of a token; none if it has not the form of one with this mark.
pub fn read<'a>(text: &'a str, mark: &str) -> Option<Shown<'a>> {
    let (prefix, secret) = split(text, mark)?;
    (secret.len() == SECRET_CHARACTERS).then(|| Shown { prefix, digest: digest(text) })
}

/// The public part with the mark, and whatever follows it as the secret.
pub(super) fn split<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let (prefix, rest) = text.split_at_checked(mark.len() + PUBLIC_DIGITS)?;
    let digits = prefix.strip_prefix(mark)?;
    let secret = rest.strip_prefix('_')?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some((prefix, secret))
}

/// The digest under which a secret text is stored.
pub fn digest(text: &str) -> TokenDigest {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "sbx_";

    #[test]
    fn a_token_has_a_public_part_and_256_secret_bits() {
        let fresh = generate(MARK).unwrap();
        let token = fresh.token.expose_secret();

        let shown = read(token, MARK).unwrap();
        assert_eq!((shown.prefix, shown.digest), (fresh.prefix.as_str(), fresh.digest));
        assert_eq!(token.len(), MARK.len() + PUBLIC_DIGITS + 1 + SECRET_CHARACTERS);
        assert_eq!(digest(token), fresh.digest);
    }

    #[test]
    fn text_of_another_form_is_no_token() {
        let secret = "s".repeat(SECRET_CHARACTERS);
        let texts = [
            String::new(),
            "sbx_".to_owned(),
            "sbx_0123456789abcdef".to_owned(),
            format!("sby_0123456789abcdef_{secret}"),
            format!("sbx_0123456789abcdeg_{secret}"),
            format!("sbx_0123456789abcdé_{secret}"),
            format!("sbx_0123456789abcdef_{secret}s"),
            format!("sbx_0123456789abcdef{secret}"),
        ];

        for text in texts {
            assert!(read(&text, MARK).is_none(), "{text}");
        }
    }
}
