//! Tokens of enrolments: `sbe_<public part>_<secret>` ([`super::marked_token`]). They open nothing but `POST /enrol`.

use signalbox_protocol::Timestamp;
use subtle::ConstantTimeEq;

use super::bearer::{BearerError, is_within};
use super::marked_token::{self, FreshToken};
use super::token::TokenError;
use crate::store::{KnownEnrolment, Store};

/// The mark of these tokens.
const MARK: &str = "sbe_";

/// A new token.
pub fn generate() -> Result<FreshToken, getrandom::Error> {
    marked_token::generate(MARK)
}

/// The digest of a machine's request id.
pub fn request_digest(request_id: &str) -> Vec<u8> {
    marked_token::digest(request_id).to_vec()
}

/// Looks up the enrolment of a token that comes from this address. Whether it has uses left is decided when one is taken.
pub async fn open(store: &Store, token: &str, address: &str, now: Timestamp) -> Result<KnownEnrolment, BearerError> {
    let shown = marked_token::read(token, MARK).ok_or(TokenError::Invalid)?;
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
        assert!(marked_token::read(enrolment.token.expose_secret(), MARK).is_some());
        assert!(marked_token::read(program.token.expose_secret(), MARK).is_none());
        assert!(program_token::read(enrolment.token.expose_secret()).is_none());
    }
}
