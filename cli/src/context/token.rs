//! Tokens, which nothing prints.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Failure;

/// A token of any kind. What it means is the service's business.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(String);

/// Longer ones are no tokens but files named by mistake. Access tokens have some 300 bytes.
pub const MAX_TOKEN_BYTES: usize = 16 * 1024;

impl Token {
    /// From text as people paste it and files hold it. The text itself is never repeated.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Failure::usage("the token is empty"));
        }
        // As a header's value it must be visible ASCII.
        if text.len() > MAX_TOKEN_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::usage("this is not a token: it has to be one word"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The token itself, for requests.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_is_never_shown() {
        let token = Token::parse("sbt_secret\n").unwrap();

        assert_eq!(token.reveal(), "sbt_secret");
        assert_eq!(format!("{token:?}"), "Token(hidden)");
        for wrong in ["", " \n", "two words", "line\nline", "sch\u{f6}n"] {
            let refusal = Token::parse(wrong).unwrap_err().to_string();
            assert!(wrong.trim().is_empty() || !refusal.contains(wrong), "{refusal}");
        }
    }
}
