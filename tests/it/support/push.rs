//! A browser with a push subscription, and its push service: the receiving half of RFC 8291 and RFC 8292. It shares no code
//! with the service: what it derives, it derives by the definitions of the standards.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use aws_lc_rs::signature::{self, ECDSA_P256_SHA256_FIXED};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use signalbox::notify::channel::Settings;

use super::authority::Authority;
use super::receiver::{Reaction, ReceivedRequest, Receiver};

pub struct Browser {
    key: PrivateKey,
    public: Vec<u8>,
    auth: [u8; 16],
}

impl Browser {
    pub fn new() -> Self {
        let key = PrivateKey::generate(&ECDH_P256).unwrap();
        let public = key.compute_public_key().unwrap().as_ref().to_vec();
        Self { key, public, auth: *b"sixteen of bytes" }
    }

    pub fn p256dh(&self) -> String {
        BASE64.encode(&self.public)
    }

    pub fn auth(&self) -> String {
        BASE64.encode(self.auth)
    }

    /// What `PushSubscription.toJSON` gives.
    pub fn subscription(&self, endpoint: &str) -> Value {
        json!({"endpoint": endpoint, "expirationTime": null, "keys": {"p256dh": self.p256dh(), "auth": self.auth()}})
    }

    pub fn settings(&self, endpoint: &str) -> Settings {
        Settings::Push { endpoint: endpoint.to_owned(), p256dh: self.p256dh(), auth: self.auth() }
    }

    /// The content of a push message, without its padding.
    pub fn read(&self, taken: &ReceivedRequest) -> Value {
        let body = &taken.bytes;
        let (salt, rest) = body.split_at(16);
        let (size, rest) = rest.split_at(4);
        assert!(u32::from_be_bytes(size.try_into().unwrap()) as usize >= body.len());
        let (length, rest) = rest.split_first().unwrap();
        let (sender, record) = rest.split_at(usize::from(*length));
        let peer = UnparsedPublicKey::new(&ECDH_P256, sender);
        let secret = agree(&self.key, peer, (), |secret| Ok(secret.to_vec())).unwrap();
        let info = [b"WebPush: info\0".as_slice(), &self.public, sender].concat();
        let input = hkdf(&self.auth, &secret, &info);
        let key = hkdf(salt, &input, b"Content-Encoding: aes128gcm\0");
        let nonce = hkdf(salt, &input, b"Content-Encoding: nonce\0");
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key[..16]).unwrap());
        let mut record = record.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(&nonce[..12]).unwrap();
        let opened = key.open_in_place(nonce, Aad::empty(), &mut record).unwrap();
        let end = opened.iter().rposition(|byte| *byte != 0).unwrap();
        assert_eq!(opened[end], 2, "it is the last record");
        serde_json::from_slice(&opened[..end]).unwrap()
    }
}

/// The first block of HKDF by its definition (RFC 5869).
fn hkdf(salt: &[u8], input: &[u8], info: &[u8]) -> Vec<u8> {
    let extracted = sign(&Key::new(HMAC_SHA256, salt), input);
    sign(&Key::new(HMAC_SHA256, extracted.as_ref()), &[info, &[1]].concat()).as_ref().to_vec()
}

/// What the token in a request says, after its signature was verified with the key that the request names. Also returns
/// that key.
pub fn claims(taken: &ReceivedRequest) -> (Value, String) {
    let header = taken.header("Authorization").expect("it says who sends");
    let (token, key) = header.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let verifier = signature::UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, BASE64.decode(key).unwrap());
    verifier.verify(signed.as_bytes(), &BASE64.decode(signature).unwrap()).expect("the key has signed it");
    let (head, claims) = signed.split_once('.').unwrap();
    let read = |part: &str| -> Value { serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap() };
    assert_eq!(read(head), json!({"typ": "JWT", "alg": "ES256"}));
    (read(claims), key.to_owned())
}

/// A push service on this machine.
pub struct PushService {
    pub authority: Authority,
    pub receiver: Receiver,
}

impl PushService {
    pub async fn start(react: impl Fn(&ReceivedRequest) -> Reaction + Send + Sync + 'static) -> Self {
        let authority = Authority::new();
        let receiver = Receiver::tls_with(authority.acceptor("localhost"), react).await;
        Self { authority, receiver }
    }

    /// Accepts every message.
    pub async fn healthy() -> Self {
        Self::start(|_| Reaction::Answer(201)).await
    }

    pub fn origin(&self) -> String {
        format!("https://localhost:{}", self.receiver.address.port())
    }

    pub fn endpoint(&self) -> String {
        format!("{}/send/hush-hush", self.origin())
    }
}
