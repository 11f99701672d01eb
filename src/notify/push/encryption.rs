//! The encryption of a message for one browser (RFC 8291), in the content coding `aes128gcm` (RFC 8188).

use std::fmt;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, ParsedPublicKey, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use base64::Engine;

use super::key::BASE64;

/// A public key as an uncompressed point of P-256.
const POINT_BYTES: usize = 65;

const AUTH_BYTES: usize = 16;
pub(super) const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 16;

/// A message is one record. Push services accept bodies of 4,096 bytes at least (RFC 8030, 7.2).
const RECORD_BYTES: u32 = 4_096;

/// The octet that ends the text of the last record, before the padding (RFC 8188, 2).
const LAST_RECORD: u8 = 2;

/// The longest text: what a body has besides are the salt, the size of a record, our public key and its length, the octet
/// at the end of the text, and the authentication tag.
pub const MAX_TEXT_BYTES: usize = 4_096 - SALT_BYTES - 4 - 1 - POINT_BYTES - 1 - 16;

/// The keys of a browser's subscription. Has no `Debug` that shows them.
#[derive(Clone, PartialEq, Eq)]
pub struct Subscriber {
    public_key: [u8; POINT_BYTES],
    auth: [u8; AUTH_BYTES],
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscriber")
    }
}

impl Subscriber {
    /// Reads a subscription's `p256dh`: a point of the curve in base64.
    pub fn public_key(text: &str) -> Option<[u8; POINT_BYTES]> {
        let bytes: [u8; POINT_BYTES] = BASE64.decode(text).ok()?.try_into().ok()?;
        ParsedPublicKey::try_from(UnparsedPublicKey::new(&ECDH_P256, bytes)).ok().map(|_| bytes)
    }

    /// Reads a subscription's `auth`: 16 bytes in base64.
    pub fn auth(text: &str) -> Option<[u8; AUTH_BYTES]> {
        BASE64.decode(text).ok()?.try_into().ok()
    }

    pub fn new(p256dh: &str, auth: &str) -> Option<Self> {
        Some(Self { public_key: Self::public_key(p256dh)?, auth: Self::auth(auth)? })
    }
}

/// How many bytes to derive.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Returns the body of a request: `text`, padded to `padded` bytes as far as there is room, encrypted for the subscriber.
/// `own` and `salt` must be new for each message: the nonce follows from them.
pub(super) fn encrypt(
    text: &[u8],
    padded: usize,
    subscriber: &Subscriber,
    own: &PrivateKey,
    salt: &[u8; SALT_BYTES],
) -> Result<Vec<u8>, Unspecified> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(Unspecified);
    }
    let public = own.compute_public_key()?;
    let public = public.as_ref();
    let info = [b"WebPush: info\0".as_slice(), &subscriber.public_key, public].concat();
    let peer = UnparsedPublicKey::new(&ECDH_P256, subscriber.public_key);
    let input: [u8; 32] = agree(own, peer, Unspecified, |secret| derive(&subscriber.auth, secret, &info))?;
    let key: [u8; KEY_BYTES] = derive(salt, &input, b"Content-Encoding: aes128gcm\0")?;
    let nonce: [u8; NONCE_LEN] = derive(salt, &input, b"Content-Encoding: nonce\0")?;
    let mut record = text.to_vec();
    record.push(LAST_RECORD);
    record.resize(padded.clamp(text.len(), MAX_TEXT_BYTES) + 1, 0);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)?;
    let length = u8::try_from(public.len()).map_err(|_| Unspecified)?;
    Ok([salt.as_slice(), &RECORD_BYTES.to_be_bytes(), &[length], public, &record].concat())
}

/// HKDF with SHA-256 (RFC 5869).
fn derive<const N: usize>(salt: &[u8], secret: &[u8], info: &[u8]) -> Result<[u8; N], Unspecified> {
    let mut bytes = [0; N];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    extracted.expand(&[info], Length(N))?.fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of RFC 8291, 5 and appendix A.
    const TEXT: &[u8] = b"When I grow up, I want to be a watermelon";
    const P256DH: &str = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";
    const SENDER: &str = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
    const SALT: &str = "DGv6ra1nlYgDCS1FRnbzlw";
    const BODY: &str = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz\
                        AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

    fn encrypted(text: &[u8], padded: usize) -> Result<Vec<u8>, Unspecified> {
        let subscriber = Subscriber::new(P256DH, AUTH).unwrap();
        let own = PrivateKey::from_private_key(&ECDH_P256, &BASE64.decode(SENDER).unwrap()).unwrap();
        let salt = BASE64.decode(SALT).unwrap().try_into().unwrap();
        encrypt(text, padded, &subscriber, &own, &salt)
    }

    #[test]
    fn the_example_of_the_standard_is_encrypted_as_it_says() {
        assert_eq!(BASE64.encode(encrypted(TEXT, 0).unwrap()), BODY);
    }

    #[test]
    fn padding_decides_the_length_and_no_body_is_longer_than_a_push_service_accepts() {
        for (length, padded, body) in [(1, 1_024, 1_127), (900, 1_024, 1_127), (3_000, 4_096, 4_096), (3_993, 0, 4_096)]
        {
            assert_eq!(encrypted(&vec![b'x'; length], padded).unwrap().len(), body, "{length}");
        }
        assert!(encrypted(&[b'x'; MAX_TEXT_BYTES + 1], 0).is_err());
    }

    #[test]
    fn a_key_that_is_no_point_of_the_curve_is_no_subscription() {
        let mut bytes = BASE64.decode(P256DH).unwrap();
        bytes[64] ^= 1;

        assert!(Subscriber::new(&BASE64.encode(bytes), AUTH).is_none());
        assert!(Subscriber::new(&BASE64.encode([4; 64]), AUTH).is_none());
        assert!(Subscriber::new("not base64!", AUTH).is_none());
        assert!(Subscriber::new(P256DH, "BTBZ").is_none());
        assert!(Subscriber::new(&format!("{P256DH}="), AUTH).is_some());
    }
}
