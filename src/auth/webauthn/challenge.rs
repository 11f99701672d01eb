//! Challenges, which prove that a signature is fresh.
//!
//! A challenge carries its own state: a random part, the time when it expires, and a keyed hash of both and of its
//! purpose. So any instance can check what another one asked, and asking costs no memory and no row. The database stores
//! only the challenges that were answered, until they expire.

use aws_lc_rs::hmac;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::PasskeyError;
use crate::random;
use crate::store::SpentChallenge;

/// How long people may take for their authenticator.
pub const CHALLENGE_SECONDS: i64 = 5 * 60;

const NONCE: usize = 16;

/// What a challenge is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// This user makes a passkey.
    Register(Uuid),
    /// Somebody proves who they are.
    Prove,
}

impl Purpose {
    fn bytes(self) -> [u8; 17] {
        let (kind, user) = match self {
            Self::Register(user_id) => (1, user_id),
            Self::Prove => (2, Uuid::nil()),
        };
        let mut bytes = [kind; 17];
        bytes.iter_mut().skip(1).zip(user.as_bytes()).for_each(|(to, from)| *to = *from);
        bytes
    }
}

/// Makes and checks challenges.
#[derive(Clone)]
pub struct Challenges(hmac::Key);

impl Challenges {
    pub fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    pub fn issue(&self, purpose: Purpose, now: Timestamp) -> Result<Vec<u8>, getrandom::Error> {
        let expires = now.plus_millis(CHALLENGE_SECONDS * 1_000).as_millis().to_be_bytes();
        let state = [random::bytes::<NONCE>()?.as_slice(), &expires].concat();
        let tag = hmac::sign(&self.0, &[state.as_slice(), &purpose.bytes()].concat());
        Ok([state.as_slice(), tag.as_ref()].concat())
    }

    /// Checks that a challenge was issued for this purpose and has not expired.
    pub fn check(&self, challenge: &[u8], purpose: Purpose, now: Timestamp) -> Result<SpentChallenge, PasskeyError> {
        let wrong = PasskeyError::WrongChallenge;
        let (nonce, rest) = challenge.split_first_chunk::<NONCE>().ok_or(wrong)?;
        let (expires, tag) = rest.split_first_chunk::<8>().ok_or(wrong)?;
        let signed = [nonce.as_slice(), expires, &purpose.bytes()].concat();
        hmac::verify(&self.0, &signed, tag).map_err(|_| wrong)?;
        let expires_at = Timestamp::from_millis(i64::from_be_bytes(*expires));
        if expires_at < now {
            return Err(PasskeyError::Expired);
        }
        Ok(SpentChallenge { nonce: nonce.to_vec(), expires_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_holds_for_its_purpose_user_key_and_time() {
        let (challenges, now, ada) = (Challenges::new(&[1; 32]), Timestamp::now(), Uuid::from_u128(1));
        let challenge = challenges.issue(Purpose::Register(ada), now).unwrap();
        let check = |purpose, seconds: i64| challenges.check(&challenge, purpose, now.plus_millis(seconds * 1_000));

        assert_eq!(check(Purpose::Register(ada), 300).unwrap().nonce, &challenge[..16]);
        assert_eq!(check(Purpose::Register(ada), 301).unwrap_err(), PasskeyError::Expired);
        assert_eq!(check(Purpose::Register(Uuid::from_u128(2)), 0).unwrap_err(), PasskeyError::WrongChallenge);
        assert_eq!(check(Purpose::Prove, 0).unwrap_err(), PasskeyError::WrongChallenge);
        let foreign = Challenges::new(&[2; 32]).check(&challenge, Purpose::Register(ada), now);
        assert_eq!(foreign.unwrap_err(), PasskeyError::WrongChallenge);
    }

    #[test]
    fn an_altered_challenge_is_refused() {
        let (challenges, now) = (Challenges::new(&[1; 32]), Timestamp::now());
        let challenge = challenges.issue(Purpose::Prove, now).unwrap();

        for at in 0..challenge.len() {
            let mut altered = challenge.clone();
            altered[at] ^= 1;
            assert!(challenges.check(&altered, Purpose::Prove, now).is_err(), "byte {at}");
            assert!(challenges.check(&challenge[..at], Purpose::Prove, now).is_err(), "cut at {at}");
        }
    }
}
