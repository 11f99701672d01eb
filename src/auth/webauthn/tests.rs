//! The test vectors of the specification (Level 3, section 16), and an authenticator in software that lies on request.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;
use uuid::Uuid;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn the_vector_of_the_specification_is_verified() {
    // none.ES256, whose authenticator did not check the user.
    let object = bytes(
        "a363666d74646e6f6e656761747453746d74a068617574684461746158a4bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2\
         e4b559000000008446ccb9ab1db374750b2367ff6f3a1f0020f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94ff3ec330084be4a50102\
         03262001215820afefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61225820930a56b87a2fca66334b03458abf879717c1\
         2cc68ed73290af2e2664796b9220",
    );
    let client_data = bytes(
        "7b2274797065223a22776562617574686e2e676574222c226368616c6c656e6765223a224f63446e55685158756c5455506f334a5558543049393770\
         767a7a59425039745a63685879617630314167222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f72\
         6967696e223a66616c73657d",
    );
    let data = bytes("bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b51900000000");
    let signature = bytes(
        "3046022100f50a4e2e4409249c4a853ba361282f09841df4dd4547a13a87780218deffcd380221008480ac0f0b93538174f575bf11a1dd5d78c6e486\
         013f937295ea13653e331e87",
    );
    let (value, _) = cbor::read(&object).unwrap();
    let made = AuthenticatorData::parse(value.bytes_of("authData").unwrap()).unwrap();
    let credential = made.credential.unwrap();

    assert_eq!(credential.id, bytes("f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94ff3ec330084be4"));
    assert_eq!((made.is_user_present, made.is_user_verified, made.sign_count), (true, false, 0));
    assert_eq!(*made.relying_party_hash, *RelyingParty::of(Some("https://example.org"), false).unwrap().hash());
    let client = ClientData::parse(&client_data).unwrap();
    assert_eq!((client.kind.as_str(), client.origin.as_str()), (client::GET, "https://example.org"));
    assert_eq!(client.challenge, bytes("39c0e7521417ba54d43e8dc95174f423dee9bf3cd804ff6d65c857c9abf4d408"));
    let signed = [data.as_slice(), &Sha256::digest(&client_data)].concat();
    assert_eq!(key::verify(credential.public_key, &signed, &signature), Ok(()));
    let altered = [&signed[..], &[0]].concat();
    assert_eq!(key::verify(credential.public_key, &altered, &signature), Err(WebauthnError::WrongSignature));
}

const HOST: &str = "box.example.com";
const ORIGIN: &str = "https://box.example.com";

/// What the authenticator and its browser say.
#[derive(Clone)]
struct Said {
    kind: &'static str,
    origin: &'static str,
    host: &'static str,
    flags: u8,
    cross_origin: bool,
}

const TRUTH: Said = Said { kind: client::GET, origin: ORIGIN, host: HOST, flags: 0b101, cross_origin: false };

struct Software {
    key: EcdsaKeyPair,
}

impl Software {
    fn new() -> Self {
        Self { key: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap() }
    }

    fn cose(&self) -> Vec<u8> {
        let point = self.key.public_key().as_ref();
        [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32], &point[1..33], &[0x22, 0x58, 32], &point[33..]].concat()
    }

    fn client_data(said: &Said, challenge: &[u8]) -> Vec<u8> {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge);
        let data = json!({ "type": said.kind, "challenge": challenge, "origin": said.origin, "crossOrigin": said.cross_origin });
        data.to_string().into_bytes()
    }

    fn sign(&self, said: &Said, challenge: &[u8], count: u32) -> Assertion {
        let client_data = Self::client_data(said, challenge);
        let hash = Sha256::digest(said.host.as_bytes());
        let authenticator_data = [hash.as_slice(), &[said.flags], &count.to_be_bytes()].concat();
        let signed = [authenticator_data.as_slice(), &Sha256::digest(&client_data)].concat();
        let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap().as_ref().to_vec();
        Assertion { credential_id: vec![1; 16], client_data, authenticator_data, signature, user_handle: None }
    }

    fn register(&self, said: &Said, challenge: &[u8]) -> Registration {
        let hash = Sha256::digest(said.host.as_bytes());
        let flags = [said.flags | 1 << 6];
        let data = [hash.as_slice(), &flags, &[0; 4], &[0; 16], &[0, 16], &[1; 16], &self.cose()].concat();
        let length = u8::try_from(data.len()).unwrap();
        let attestation_object = [
            &[0xa3, 0x63][..],
            b"fmt",
            &[0x64],
            b"none",
            &[0x67],
            b"attStmt",
            &[0xa0, 0x68],
            b"authData",
            &[0x58, length],
            &data,
        ]
        .concat();
        Registration { client_data: Self::client_data(said, challenge), attestation_object }
    }
}

fn verifier() -> Verifier {
    let relying_party = RelyingParty::of(Some(ORIGIN), false).unwrap();
    Verifier { relying_party, challenges: Challenges::new(&[7; 32]) }
}

/// Lies, and what they are refused for.
fn lies() -> Vec<(Said, PasskeyError)> {
    vec![
        (Said { origin: "https://evil.example.com", ..TRUTH }, PasskeyError::WrongOrigin),
        (Said { origin: "http://box.example.com", ..TRUTH }, PasskeyError::WrongOrigin),
        (Said { cross_origin: true, ..TRUTH }, PasskeyError::WrongOrigin),
        (Said { host: "evil.example.com", ..TRUTH }, PasskeyError::WrongRelyingParty),
        (Said { flags: 0b001, ..TRUTH }, PasskeyError::NotVerified),
        (Said { flags: 0b100, ..TRUTH }, PasskeyError::NotVerified),
        (Said { flags: 0b10101, ..TRUTH }, PasskeyError::MalformedAuthenticatorData),
    ]
}

#[test]
fn a_signature_is_accepted_only_for_this_service_and_a_verified_user() {
    let (verifier, device, now) = (verifier(), Software::new(), Timestamp::now());
    let challenge = verifier.challenges.issue(Purpose::Prove, now).unwrap();
    let verify = |given: &Assertion| verifier.assertion(given, &device.cose(), Purpose::Prove, now);

    assert_eq!(verify(&device.sign(&TRUTH, &challenge, 7)).unwrap().0, 7);
    for (said, reason) in lies() {
        assert_eq!(verify(&device.sign(&said, &challenge, 7)).unwrap_err(), reason);
    }
    let made = Said { kind: client::CREATE, ..TRUTH };
    assert_eq!(verify(&device.sign(&made, &challenge, 7)).unwrap_err(), PasskeyError::WrongKind);
    assert_eq!(verify(&Software::new().sign(&TRUTH, &challenge, 7)).unwrap_err(), PasskeyError::WrongSignature);
    let mut counted = device.sign(&TRUTH, &challenge, 7);
    counted.authenticator_data[36] = 8;
    assert_eq!(verify(&counted).unwrap_err(), PasskeyError::WrongSignature);
    let foreign = Challenges::new(&[8; 32]).issue(Purpose::Prove, now).unwrap();
    assert_eq!(verify(&device.sign(&TRUTH, &foreign, 7)).unwrap_err(), PasskeyError::WrongChallenge);
    let old = verifier.challenges.issue(Purpose::Prove, now.plus_millis(-301_000)).unwrap();
    assert_eq!(verify(&device.sign(&TRUTH, &old, 7)).unwrap_err(), PasskeyError::Expired);
}

#[test]
fn a_passkey_is_registered_only_for_its_user() {
    let (verifier, device, now) = (verifier(), Software::new(), Timestamp::now());
    let (ada, eve) = (Purpose::Register(Uuid::from_u128(1)), Purpose::Register(Uuid::from_u128(2)));
    let challenge = verifier.challenges.issue(ada, now).unwrap();
    let truth = Said { kind: client::CREATE, ..TRUTH };
    let given = device.register(&truth, &challenge);

    let (made, _) = verifier.registration(&given, ada, now).unwrap();

    assert_eq!((made.credential_id, made.public_key, made.sign_count), (vec![1; 16], device.cose(), 0));
    assert_eq!(verifier.registration(&given, eve, now).unwrap_err(), PasskeyError::WrongChallenge);
    for (said, reason) in lies() {
        let said = Said { kind: client::CREATE, ..said };
        assert_eq!(verifier.registration(&device.register(&said, &challenge), ada, now).unwrap_err(), reason);
    }
    for at in 0..given.attestation_object.len() {
        let cut = Registration { attestation_object: given.attestation_object[..at].to_vec(), ..given.clone() };
        assert!(verifier.registration(&cut, ada, now).is_err(), "cut at {at}");
    }
}
