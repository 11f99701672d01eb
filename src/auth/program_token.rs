//! Tokens of programs: `sbt_<public part>_<secret>` ([`super::marked_token`]).

use super::marked_token::{self, FreshToken, Shown};

/// The mark of these tokens.
const MARK: &str = "sbt_";

/// A new token.
pub fn generate() -> Result<FreshToken, getrandom::Error> {
    marked_token::generate(MARK)
}

/// Whether this is meant as a token of a program, and not of a login.
pub fn is_marked(text: &str) -> bool {
    text.starts_with(MARK)
}

/// The parts of a token; none if it has not the form of one.
pub fn read(text: &str) -> Option<Shown<'_>> {
    marked_token::read(text, MARK)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_token_is_known_by_its_mark() {
        let fresh = generate().unwrap();
        let token = fresh.token.expose_secret();

        assert!(is_marked(token) && read(token).is_some());
        let other = token.replacen(MARK, "sbk_", 1);
        assert!(!is_marked(&other) && read(&other).is_none());
    }
}
