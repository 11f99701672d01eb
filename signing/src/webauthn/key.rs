//! Public keys of authenticators (COSE, RFC 9052 and 9053) and their signatures.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

use super::WebauthnError;
use super::cbor::{self, Value};

/// The algorithms that are accepted, in the order in which authenticators should choose: ES256, EdDSA, RS256.
pub const ALGORITHMS: [i64; 3] = [ES256, EDDSA, RS256];

const ES256: i64 = -7;
const EDDSA: i64 = -8;
const RS256: i64 = -257;

/// Labels of a key's parameters, and their values.
mod label {
    pub const TYPE: i64 = 1;
    pub const ALGORITHM: i64 = 3;
    pub const CURVE: i64 = -1;
    pub const X: i64 = -2;
    pub const Y: i64 = -3;
    pub const MODULUS: i64 = -1;
    pub const EXPONENT: i64 = -2;
    pub const OCTET_PAIR: i64 = 1;
    pub const ELLIPTIC: i64 = 2;
    pub const RSA: i64 = 3;
    pub const P256: i64 = 1;
    pub const ED25519: i64 = 6;
}

/// The bytes of a coordinate of P-256, and of a key of Ed25519.
const COORDINATE: usize = 32;

/// Checks a signature of `message` by the key in COSE form.
pub fn verify(cose: &[u8], message: &[u8], signature: &[u8]) -> Result<(), WebauthnError> {
    let verified = match PublicKey::parse(cose)? {
        PublicKey::Elliptic(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature),
        PublicKey::Edwards(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        PublicKey::Rsa { n, e } => {
            RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
        }
    };
    verified.map_err(|_| WebauthnError::WrongSignature)
}

/// Whether the key is one that [`verify`] can use.
pub fn check(cose: &[u8]) -> Result<(), WebauthnError> {
    PublicKey::parse(cose).map(|_| ())
}

enum PublicKey<'a> {
    /// An uncompressed point of P-256.
    Elliptic(Vec<u8>),
    Edwards(&'a [u8]),
    Rsa {
        n: &'a [u8],
        e: &'a [u8],
    },
}

impl<'a> PublicKey<'a> {
    fn parse(cose: &'a [u8]) -> Result<Self, WebauthnError> {
        let (key, rest) = cbor::read(cose).map_err(|_| WebauthnError::UnknownKey)?;
        if !rest.is_empty() {
            return Err(WebauthnError::UnknownKey);
        }
        Self::of(&key).ok_or(WebauthnError::UnknownKey)
    }

    fn of(key: &Value<'a>) -> Option<Self> {
        let coordinate = |label| key.bytes_at(label).filter(|bytes| bytes.len() == COORDINATE);
        match (key.int_at(label::TYPE)?, key.int_at(label::ALGORITHM)?) {
            (label::ELLIPTIC, ES256) if key.int_at(label::CURVE)? == label::P256 => {
                Some(Self::Elliptic([&[4], coordinate(label::X)?, coordinate(label::Y)?].concat()))
            }
            (label::OCTET_PAIR, EDDSA) if key.int_at(label::CURVE)? == label::ED25519 => {
                Some(Self::Edwards(coordinate(label::X)?))
            }
            (label::RSA, RS256) => {
                Some(Self::Rsa { n: key.bytes_at(label::MODULUS)?, e: key.bytes_at(label::EXPONENT)? })
            }
            _ => None,
        }
    }
}
