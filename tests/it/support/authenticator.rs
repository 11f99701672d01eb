//! Second factors of a person in a test: an authenticator app, and an authenticator of passkeys with its browser.

use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::passkey::Passkey;
use super::text_of;

/// An app with a secret in base 32.
pub struct App(Vec<u8>);

impl App {
    pub fn new(secret: &str) -> Self {
        let digits = secret.bytes().map(|byte| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'2'..=b'7' => byte - b'2' + 26,
            _ => panic!("{secret} is not base 32"),
        });
        let bits: Vec<bool> = digits.flat_map(|digit| (0..5).rev().map(move |bit| digit >> bit & 1 == 1)).collect();
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        Self(bits.chunks_exact(8).map(byte).collect())
    }

    pub fn secret(&self) -> &[u8] {
        &self.0
    }

    /// The code of the present step, or of one `steps` later.
    pub fn code(&self, steps: i64) -> String {
        let step = Timestamp::now().as_seconds() / 30 + steps;
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let tag = hmac::sign(&key, &step.to_be_bytes());
        let at = usize::from(tag.as_ref()[19] & 15);
        let word = u32::from_be_bytes(tag.as_ref()[at..at + 4].try_into().unwrap());
        format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
    }
}

/// An authenticator with one passkey, and the browser that asks it.
pub struct Device {
    key: Passkey,
    id: [u8; 16],
    /// The next signature's number.
    pub count: u32,
    /// The page that asks.
    pub origin: String,
    /// The service that the passkey is for.
    pub host: String,
    /// Whether it checks who uses it.
    pub verifies: bool,
}

impl Device {
    pub fn new() -> Self {
        let key = Passkey::es256();
        let (origin, host) = ("http://localhost:8000".to_owned(), "localhost".to_owned());
        Self { key, id: *Uuid::new_v4().as_bytes(), count: 1, origin, host, verifies: true }
    }

    /// Answers options for a new passkey.
    pub fn make(&self, options: &Value) -> Value {
        let data = [self.data(1 << 6, 0).as_slice(), &[0; 16], &[0, 16], &self.id, &self.key.cose].concat();
        let length = u8::try_from(data.len()).unwrap();
        let object = [&b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData"[..], &[0x58, length], &data].concat();
        let client_data = self.client_data("webauthn.create", options);
        let id = encoded(&self.id);
        json!({
            "id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {},
            "response": {"clientDataJSON": encoded(&client_data), "attestationObject": encoded(&object)},
        })
    }

    /// Answers a challenge.
    pub fn sign(&mut self, options: &Value) -> Value {
        let (client_data, data) = (self.client_data("webauthn.get", options), self.data(0, self.count));
        self.count += 1;
        let signed = [data.as_slice(), digest::digest(&digest::SHA256, &client_data).as_ref()].concat();
        let signature = self.key.sign(&signed);
        let id = encoded(&self.id);
        json!({
            "id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {},
            "response": {
                "clientDataJSON": encoded(&client_data), "authenticatorData": encoded(&data),
                "signature": encoded(&signature),
            },
        })
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        let challenge = text_of(&options["challenge"]);
        json!({"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": false})
            .to_string()
            .into_bytes()
    }

    fn data(&self, flags: u8, count: u32) -> Vec<u8> {
        let hash = digest::digest(&digest::SHA256, self.host.as_bytes());
        let flags = flags | 1 | if self.verifies { 4 } else { 0 };
        [hash.as_ref(), &[flags], &count.to_be_bytes()].concat()
    }
}

fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
