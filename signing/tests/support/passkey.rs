//! Passkeys in software, and the browser that asks them.

#![allow(dead_code, reason = "each binary of tests uses some of it")]

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;
use signalbox_protocol::signed::Signature;

/// The service that the passkeys are for.
pub const HERE: &str = "box.example.org";

/// Signs a message.
type Sign = Box<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// A passkey.
pub struct Passkey {
    /// The public key in COSE form.
    pub cose: Vec<u8>,
    sign: Sign,
}

/// The client data, the authenticator's data and the signature.
pub type Assertion = [Vec<u8>; 3];

/// What the browser and the authenticator say about the request that they answer.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    pub kind: &'static str,
    pub origin: &'static str,
    pub host: &'static str,
    /// User present is 1, user verified 4.
    pub flags: u8,
    pub is_embedded: bool,
}

/// What counts.
pub const TRUTH: Said =
    Said { kind: "webauthn.get", origin: "https://box.example.org", host: HERE, flags: 0b101, is_embedded: false };

/// One lie each.
pub const LIES: [Said; 12] = [
    Said { kind: "webauthn.create", ..TRUTH },
    Said { kind: "payment.get", ..TRUTH },
    Said { origin: "https://evil.example.org", ..TRUTH },
    Said { origin: "https://box.example.org.evil.test", ..TRUTH },
    Said { origin: "http://box.example.org", ..TRUTH },
    Said { host: "evil.example.org", ..TRUTH },
    Said { host: "example.org", ..TRUTH },
    Said { origin: "https://evil.example.org", host: "evil.example.org", ..TRUTH },
    Said { flags: 0b001, ..TRUTH },
    Said { flags: 0b100, ..TRUTH },
    Said { flags: 0, ..TRUTH },
    Said { is_embedded: true, ..TRUTH },
];

impl Passkey {
    pub fn es256() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let point = pair.public_key().as_ref();
        let cose = [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32], &point[1..33], &[0x22, 0x58, 32], &point[33..]];
        let cose = cose.concat();
        Self { cose, sign: Box::new(move |data| pair.sign(&SystemRandom::new(), data).unwrap().as_ref().to_vec()) }
    }

    pub fn eddsa() -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let cose = [&[0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 32], pair.public_key().as_ref()].concat();
        Self { cose, sign: Box::new(move |data| pair.sign(data).as_ref().to_vec()) }
    }

    pub fn rs256() -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        // RFC 8017, A.1.1: the headers of a sequence and of an integer, a zero, and the modulus.
        let n = &pair.public_key().as_ref()[9..265];
        let cose = [&[0xa4, 1, 3, 3, 0x39, 1, 0, 0x20, 0x59, 1, 0], n, &[0x21, 0x43, 1, 0, 1]].concat();
        let sign = move |data: &[u8]| {
            let mut signature = vec![0; pair.public_modulus_len()];
            pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), data, &mut signature).unwrap();
            signature
        };
        Self { cose, sign: Box::new(sign) }
    }

    /// One of each kind of key.
    pub fn of_each_kind() -> [Self; 3] {
        [Self::es256(), Self::eddsa(), Self::rs256()]
    }

    /// Its line of allowed signers, with the line's end.
    pub fn line(&self, principal: &str) -> String {
        format!("{principal} sk-webauthn {} {HERE} a passkey\n", BASE64_URL_SAFE_NO_PAD.encode(&self.cose))
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        (self.sign)(message)
    }

    /// Answers the request to sign a payload.
    pub fn assert(&self, payload: &[u8], said: &Said) -> Assertion {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, payload));
        let client_data = json!({ "type": said.kind, "challenge": challenge, "origin": said.origin, "crossOrigin": said.is_embedded });
        let client_data = client_data.to_string().into_bytes();
        let authenticator = [digest(&SHA256, said.host.as_bytes()).as_ref(), &[said.flags], &[0, 0, 0, 9]].concat();
        let signature = self.sign(&[&authenticator, digest(&SHA256, &client_data).as_ref()].concat());
        [client_data, authenticator, signature]
    }

    /// A signature of a payload that counts.
    pub fn signature(&self, payload: &[u8]) -> Signature {
        signature_of(&self.assert(payload, &TRUTH))
    }
}

/// An assertion as requests have it.
pub fn signature_of([client_data, authenticator, signature]: &Assertion) -> Signature {
    let encode = |bytes: &Vec<u8>| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    Signature::Webauthn {
        client_data_json: encode(client_data),
        authenticator_data: encode(authenticator),
        signature: encode(signature),
    }
}

/// The assertion with each of its bits changed, one by one: the part, the bit, and what becomes of it.
pub fn altered(given: &Assertion) -> impl Iterator<Item = (usize, usize, Assertion)> {
    let bits = (0..3).flat_map(|part| (0..given[part].len() * 8).map(move |bit| (part, bit)));
    bits.map(|(part, bit)| {
        let mut altered = given.clone();
        altered[part][bit / 8] ^= 1 << (bit % 8);
        (part, bit, altered)
    })
}
