//! Recovery codes, each of which replaces a code of a lost authenticator app once.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::totp::base32;
use crate::random;
use crate::store::CODES;

/// 80 bits: their hashes cannot be guessed either, and people can still type them.
const BYTES: usize = 10;

/// Characters between hyphens.
const GROUP: usize = 4;

/// Fresh codes, as people see them.
pub fn generate() -> Result<Vec<String>, getrandom::Error> {
    (0..CODES).map(|_| Ok(grouped(&base32(&random::bytes::<BYTES>()?).to_ascii_lowercase()))).collect()
}

fn grouped(text: &str) -> String {
    let groups: Vec<&str> = (0..text.len()).step_by(GROUP).filter_map(|at| text.get(at..at + GROUP)).collect();
    groups.join("-")
}

/// What is stored of a code. Ignores hyphens, spaces and case.
pub fn digest(code: &SecretString) -> Vec<u8> {
    let characters = code.expose_secret().bytes().filter(u8::is_ascii_alphanumeric);
    let text: Vec<u8> = characters.map(|byte| byte.to_ascii_lowercase()).collect();
    Sha256::new_with_prefix("signalbox recovery code").chain_update(text).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_differ_and_are_found_however_they_are_typed() {
        let codes = generate().unwrap();
        let digests: HashSet<Vec<u8>> = codes.iter().map(|code| digest(&code.as_str().into())).collect();

        assert_eq!((codes.len(), digests.len()), (CODES, CODES));
        for code in codes {
            assert_eq!(code.len(), 19, "{code}");
            let typed = format!(" {} ", code.replace('-', " ").to_uppercase());
            assert_eq!(digest(&typed.into()), digest(&code.into()));
        }
    }
}
