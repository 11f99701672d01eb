//! Public keys, and the signatures that they verify.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;

use super::SshError;
use super::reader::Reader;

const ED25519_NAME: &str = "ssh-ed25519";
const RSA_NAME: &str = "ssh-rsa";
const SK_ED25519_NAME: &str = "sk-ssh-ed25519@openssh.com";
const SK_ECDSA_NAME: &str = "sk-ecdsa-sha2-nistp256@openssh.com";

/// The bytes of an Ed25519 key.
const ED25519_BYTES: usize = 32;

/// The bits of an RSA modulus.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;

/// The flag of a security key that somebody touched.
const USER_PRESENT: u8 = 1;

/// The curves of ECDSA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    const ALL: [Self; 3] = [Self::P256, Self::P384, Self::P521];

    fn key_name(self) -> &'static str {
        match self {
            Self::P256 => "ecdsa-sha2-nistp256",
            Self::P384 => "ecdsa-sha2-nistp384",
            Self::P521 => "ecdsa-sha2-nistp521",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::P256 => "nistp256",
            Self::P384 => "nistp384",
            Self::P521 => "nistp521",
        }
    }

    /// The bytes of a coordinate.
    fn bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    fn algorithm(self) -> &'static EcdsaVerificationAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED,
            Self::P384 => &ECDSA_P384_SHA384_FIXED,
            Self::P521 => &ECDSA_P521_SHA512_FIXED,
        }
    }

    fn is_point(self, point: &[u8]) -> bool {
        point.first() == Some(&4) && point.len() == 1 + 2 * self.bytes()
    }

    fn verify(self, point: &[u8], message: &[u8], encoded: &[u8]) -> Result<(), SshError> {
        let mut reader = Reader::new(encoded);
        let (r, s) = (reader.integer()?, reader.integer()?);
        reader.end()?;
        let mut fixed = Vec::with_capacity(2 * self.bytes());
        for number in [r, s] {
            let zeros = self.bytes().checked_sub(number.len()).ok_or(SshError::WrongSignature)?;
            fixed.resize(fixed.len() + zeros, 0);
            fixed.extend_from_slice(number);
        }
        let key = UnparsedPublicKey::new(self.algorithm(), point);
        key.verify(message, &fixed).map_err(|_| SshError::WrongSignature)
    }
}

/// Whether a line of allowed signers may have this type of key.
pub fn key_type_is_known(name: &str) -> bool {
    [ED25519_NAME, RSA_NAME, SK_ED25519_NAME, SK_ECDSA_NAME].contains(&name)
        || Curve::ALL.iter().any(|curve| curve.key_name() == name)
}

/// What `ssh-keygen -l` and `ssh-add -l` print of a public key.
pub fn fingerprint(public_key: &[u8]) -> String {
    format!("SHA256:{}", BASE64_STANDARD_NO_PAD.encode(digest(&SHA256, public_key)))
}

/// A public key that borrows its bytes.
#[derive(Debug, Clone, Copy)]
pub struct PublicKey<'a> {
    name: &'a str,
    material: Material<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Material<'a> {
    Ed25519(&'a [u8]),
    Ecdsa(Curve, &'a [u8]),
    Rsa { e: &'a [u8], n: &'a [u8] },
    SkEd25519 { key: &'a [u8], application: &'a [u8] },
    SkEcdsa { point: &'a [u8], application: &'a [u8] },
}

impl<'a> PublicKey<'a> {
    /// Reads the bytes that a line of allowed signers has in base64.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, SshError> {
        let mut reader = Reader::new(bytes);
        let name = std::str::from_utf8(reader.string()?).map_err(|_| SshError::UnknownKey)?;
        let material = Material::read(name, &mut reader)?;
        reader.end()?;
        Ok(Self { name, material })
    }

    /// The type of key, as a line of allowed signers names it.
    pub fn name(self) -> &'a str {
        self.name
    }

    /// Checks a signature of `message`, with the name of its algorithm before it.
    pub fn verify(self, message: &[u8], signature: &[u8]) -> Result<(), SshError> {
        let mut reader = Reader::new(signature);
        let algorithm = reader.string()?;
        let encoded = reader.string()?;
        if let Material::Rsa { e, n } = self.material {
            reader.end()?;
            return verify_rsa(e, n, algorithm, message, encoded);
        }
        if algorithm != self.name.as_bytes() {
            return Err(SshError::UnknownAlgorithm);
        }
        match self.material {
            Material::Ed25519(key) => {
                reader.end()?;
                verify_ed25519(key, message, encoded)
            }
            Material::Ecdsa(curve, point) => {
                reader.end()?;
                curve.verify(point, message, encoded)
            }
            Material::SkEd25519 { key, application } => {
                verify_ed25519(key, &touched(application, message, reader)?, encoded)
            }
            Material::SkEcdsa { point, application } => {
                Curve::P256.verify(point, &touched(application, message, reader)?, encoded)
            }
            Material::Rsa { .. } => Err(SshError::UnknownAlgorithm),
        }
    }
}

impl<'a> Material<'a> {
    fn read(name: &str, reader: &mut Reader<'a>) -> Result<Self, SshError> {
        match name {
            ED25519_NAME => Ok(Self::Ed25519(ed25519(reader)?)),
            SK_ED25519_NAME => Ok(Self::SkEd25519 { key: ed25519(reader)?, application: reader.string()? }),
            SK_ECDSA_NAME => Ok(Self::SkEcdsa { point: point(Curve::P256, reader)?, application: reader.string()? }),
            RSA_NAME => {
                let (e, n) = (reader.integer()?, reader.integer()?);
                let bits = n.first().map_or(0, |first| 8 * n.len() - first.leading_zeros() as usize);
                if RSA_BITS.contains(&bits) { Ok(Self::Rsa { e, n }) } else { Err(SshError::RsaSize) }
            }
            _ => {
                let curve = Curve::ALL.into_iter().find(|curve| curve.key_name() == name);
                let curve = curve.ok_or(SshError::UnknownKey)?;
                Ok(Self::Ecdsa(curve, point(curve, reader)?))
            }
        }
    }
}

fn ed25519<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], SshError> {
    Some(reader.string()?).filter(|key| key.len() == ED25519_BYTES).ok_or(SshError::Malformed)
}

fn point<'a>(curve: Curve, reader: &mut Reader<'a>) -> Result<&'a [u8], SshError> {
    if reader.string()? != curve.name().as_bytes() {
        return Err(SshError::Malformed);
    }
    Some(reader.string()?).filter(|point| curve.is_point(point)).ok_or(SshError::Malformed)
}

fn verify_ed25519(key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), SshError> {
    UnparsedPublicKey::new(&ED25519, key).verify(message, signature).map_err(|_| SshError::WrongSignature)
}

fn verify_rsa(e: &[u8], n: &[u8], algorithm: &[u8], message: &[u8], signature: &[u8]) -> Result<(), SshError> {
    let parameters = match algorithm {
        b"rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
        b"rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
        _ => return Err(SshError::UnknownAlgorithm),
    };
    RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).map_err(|_| SshError::WrongSignature)
}

/// What a security key signs for a message, if somebody touched it.
fn touched(application: &[u8], message: &[u8], mut rest: Reader<'_>) -> Result<Vec<u8>, SshError> {
    let (flags, counter) = (rest.byte()?, rest.number()?);
    rest.end()?;
    if flags & USER_PRESENT == 0 {
        return Err(SshError::NotTouched);
    }
    let hash = |bytes: &[u8]| digest(&SHA256, bytes);
    Ok([hash(application).as_ref(), &[flags], &counter.to_be_bytes(), hash(message).as_ref()].concat())
}
