//! Tokens of enrolments: `sbe_<public part>_<secret>`. Only a digest of the whole token is stored, and it opens nothing but
//! `POST /enrol`.

use sha2::{Digest, Sha256};
use signalbox_protocol::Timestamp;
use subtle::ConstantTimeEq;

use super::bearer::{BearerError, is_within};
use super::program_token::{FreshToken, generate_marked, read_marked};
use super::token::TokenError;
use crate::store::{KnownEnrolment, Store};

/// Makes a token recognizable, for people and for scanners of leaked secrets.
const MARK: &str = "sbe_";

/// A new token with 256 random bits after its public part.
pub fn generate() -> Result<FreshToken, getrandom::Error> {
    generate_marked(MARK)
}

/// The digest of a machine's request id.
pub fn request_digest(request_id: &str) -> Vec<u8> {
    Sha256::digest(request_id.as_bytes()).to_vec()
}

/// Looks up the enrolment of a token that comes from this address. Whether it has uses left is decided when one is taken.
pub async fn open(store: &Store, token: &str, address: &str, now: Timestamp) -> Result<KnownEnrolment, BearerError> {
    let shown = read_marked(token, MARK).ok_or(TokenError::Invalid)?;
    let found = store.find_enrolment_by_prefix(shown.prefix).await?;
    let found = found.filter(|found| shown.digest.as_slice().ct_eq(&found.digest).into());
    let found = found.ok_or(BearerError::Revoked)?;
    if found.expires_at <= now {
        return Err(TokenError::Expired.into());
    }
    if !is_within(&found.networks, address) {
        return Err(BearerError::Network(address.to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::auth::program_token;

    #[test]
    fn tokens_of_programs_and_of_enrolments_are_not_taken_for_each_other() {
        let (enrolment, program) = (generate().unwrap(), program_token::generate().unwrap());

        assert!(enrolment.token.expose_secret().starts_with(MARK));
        assert!(read_marked(enrolment.token.expose_secret(), MARK).is_some());
        assert!(read_marked(program.token.expose_secret(), MARK).is_none());
        assert!(program_token::read(enrolment.token.expose_secret()).is_none());
    }
}
