//! The test vectors of the W3C: sign-ins of "Test Vectors", section 16 of Web Authentication Level 3
//! (<https://www.w3.org/TR/webauthn-3/#sctn-test-vectors>; W3C Software and Document License), of the kinds of keys that signers
//! have. `vectors/webauthn.json` has the values in hexadecimal digits, as they are published.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use signalbox_signing::webauthn::{Assertion, WebauthnError, key, verify};

const VECTORS: &str = include_str!("vectors/webauthn.json");

/// The relying party of all of them.
const HERE: &str = "example.org";

/// The bit of the authenticator's flags that says that it has checked its user.
const USER_VERIFIED: u8 = 1 << 2;

/// What `verify` says of each. It demands a verified user, and a page that is in no frame.
const VERDICTS: [(&str, Result<(), WebauthnError>); 9] = [
    ("none.ES256", Err(WebauthnError::NotVerified)),
    ("packed-self.ES256", Err(WebauthnError::NotVerified)),
    ("none.ES256.crossOrigin", Err(WebauthnError::WrongPage)),
    ("none.ES256.topOrigin", Err(WebauthnError::WrongPage)),
    ("none.ES256.long-credential-id", Ok(())),
    ("packed.ES256", Ok(())),
    ("packed.RS256", Err(WebauthnError::NotVerified)),
    ("packed.EdDSA", Err(WebauthnError::NotVerified)),
    ("apple.ES256", Err(WebauthnError::NotVerified)),
];

#[derive(Clone)]
struct Vector {
    name: String,
    challenge: Vec<u8>,
    client_data: Vec<u8>,
    authenticator_data: Vec<u8>,
    signature: Vec<u8>,
    public_key: Vec<u8>,
}

impl Vector {
    fn verify(&self) -> Result<(), WebauthnError> {
        self.verify_for(HERE)
    }

    fn verify_for(&self, relying_party: &str) -> Result<(), WebauthnError> {
        let Self { client_data, authenticator_data, signature, .. } = self;
        verify(
            Assertion { client_data, authenticator_data, signature },
            &self.challenge,
            &self.public_key,
            relying_party,
        )
    }

    /// Whether the key has signed this, whatever it says.
    fn is_signed(&self) -> bool {
        let hash = digest(&SHA256, &self.client_data);
        key::verify(&self.public_key, &[self.authenticator_data.as_slice(), hash.as_ref()].concat(), &self.signature)
            .is_ok()
    }

    /// What is signed, the signature and the key.
    fn part(&mut self, number: usize) -> &mut Vec<u8> {
        match number {
            0 => &mut self.client_data,
            1 => &mut self.authenticator_data,
            2 => &mut self.signature,
            _ => &mut self.public_key,
        }
    }
}

fn vectors() -> Vec<Vector> {
    let all: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let read = |value: &Value| {
        let bytes = |name: &str| {
            let hex = value[name].as_str().unwrap();
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        };
        Vector {
            name: value["name"].as_str().unwrap().to_owned(),
            challenge: bytes("challenge"),
            client_data: bytes("client_data_json"),
            authenticator_data: bytes("authenticator_data"),
            signature: bytes("signature"),
            public_key: bytes("public_key"),
        }
    };
    all.iter().map(read).collect()
}

#[test]
fn the_vectors_of_the_w3c_are_verified_and_no_bit_of_them_can_be_changed() {
    let vectors = vectors();
    assert_eq!(vectors.len(), VERDICTS.len());

    let mut tries = 0;
    for (vector, (name, verdict)) in vectors.iter().zip(VERDICTS) {
        assert_eq!((vector.name.as_str(), vector.verify()), (name, verdict));
        assert!(vector.is_signed(), "{name}");
        for number in 0..4 {
            let bits = vector.clone().part(number).len() * 8;
            for bit in 0..bits {
                let mut altered = vector.clone();
                altered.part(number)[bit / 8] ^= 1 << (bit % 8);
                assert!(altered.verify().is_err(), "{name}: part {number}, bit {bit}");
                assert!(!altered.is_signed(), "{name}: part {number}, bit {bit}");
                tries += 1;
            }
        }
    }
    println!("{tries} tries: W3C vectors with one other bit");
    assert!(tries > 30_000, "{tries}");
}

#[test]
fn a_vector_is_about_its_challenge_and_its_relying_party_only() {
    for vector in vectors() {
        for bit in 0..vector.challenge.len() * 8 {
            let mut altered = vector.clone();
            altered.challenge[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(altered.verify(), Err(WebauthnError::WrongRequest), "{}: bit {bit}", vector.name);
        }
        for elsewhere in ["example.com", "org", "www.example.org", "xample.org", ""] {
            assert_eq!(vector.verify_for(elsewhere), Err(WebauthnError::WrongPage), "{}: {elsewhere}", vector.name);
        }
    }
}

#[test]
fn a_user_who_was_not_verified_cannot_be_said_to_have_been() {
    let unverified: Vec<Vector> =
        vectors().into_iter().filter(|vector| vector.verify() == Err(WebauthnError::NotVerified)).collect();
    assert_eq!(unverified.len(), 5);

    for mut vector in unverified {
        assert_eq!(vector.authenticator_data[32] & USER_VERIFIED, 0);
        vector.authenticator_data[32] |= USER_VERIFIED;
        assert_eq!(vector.verify(), Err(WebauthnError::WrongSignature), "{}", vector.name);
    }
}
