//! Entry points for fuzzers, and the test that replays their findings.

use pbkdf2::password_hash::PasswordVerifier;
use pbkdf2::phc::PasswordHash;
use pbkdf2::{Algorithm, Params, Pbkdf2};

/// More rounds test nothing more of the parser.
const MAX_ROUNDS: u32 = 100;

/// A stored password hash, as it may come from the database: refused, or parsed and then unchanged when written again.
pub fn stored_hash(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(hash) = PasswordHash::new(text) else { return };
    let written = hash.to_string();
    assert_eq!(PasswordHash::new(&written).ok().map(|hash| hash.to_string()), Some(written), "a hash changes");
    let Ok(params) = Params::try_from(&hash) else { return };
    if params.rounds() <= MAX_ROUNDS {
        _ = Pbkdf2::new(Algorithm::Pbkdf2Sha256, params).verify_password(b"password", &hash);
    }
}

/// What a browser and an authenticator say when they made a passkey: the object, or the data alone.
pub fn passkey(data: &[u8]) {
    super::webauthn::fuzz(data);
}
