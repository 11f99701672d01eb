//! Private keys of OpenSSH, and what they sign (RFC 4253, 5656 and 8332).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, RSA_PKCS1_SHA512, RsaKeyPair,
};
use signalbox_signing::ssh::{Reader, SshError, put_string};

use super::rsa::{self, Numbers};

/// The bytes of an Ed25519 seed, which OpenSSH writes with the public key after it.
const SEED_BYTES: usize = 32;
/// RSA signs with SHA-512, as OpenSSH does where it can choose.
const RSA_ALGORITHM: &[u8] = b"rsa-sha2-512";

/// A key that this program can sign with.
pub struct PrivateKey {
    /// The name of its signatures' algorithm.
    algorithm: Vec<u8>,
    pair: Pair,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// The curves of ECDSA, by the name of the key's type.
fn curve(name: &[u8]) -> Option<(&'static EcdsaSigningAlgorithm, usize)> {
    match name {
        b"ecdsa-sha2-nistp256" => Some((&ECDSA_P256_SHA256_FIXED_SIGNING, 32)),
        b"ecdsa-sha2-nistp384" => Some((&ECDSA_P384_SHA384_FIXED_SIGNING, 48)),
        b"ecdsa-sha2-nistp521" => Some((&ECDSA_P521_SHA512_FIXED_SIGNING, 66)),
        _ => None,
    }
}

impl PrivateKey {
    /// Reads the type and the numbers of a key, as PROTOCOL.key has them; the comment follows.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, SshError> {
        let name = reader.string()?;
        let pair = match name {
            b"ssh-ed25519" => {
                let (public, private) = (reader.string()?, reader.string()?);
                let seed = private.get(..SEED_BYTES).ok_or(SshError::Malformed)?;
                Pair::Ed25519(Ed25519KeyPair::from_seed_and_public_key(seed, public).map_err(|_| SshError::Malformed)?)
            }
            b"ssh-rsa" => {
                let (n, e, d) = (reader.integer()?, reader.integer()?, reader.integer()?);
                let (inverse, p, q) = (reader.integer()?, reader.integer()?, reader.integer()?);
                let der = rsa::der(Numbers { n, e, d, p, q, inverse }).ok_or(SshError::Malformed)?;
                Pair::Rsa(RsaKeyPair::from_der(&der).map_err(|_| SshError::RsaSize)?)
            }
            name => {
                let (algorithm, bytes) = curve(name).ok_or(SshError::UnknownKey)?;
                let (_, point, secret) = (reader.string()?, reader.string()?, reader.integer()?);
                let zeros = bytes.checked_sub(secret.len()).ok_or(SshError::Malformed)?;
                let secret = [&vec![0; zeros], secret].concat();
                let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, &secret, point);
                Pair::Ecdsa(pair.map_err(|_| SshError::Malformed)?)
            }
        };
        let algorithm = if matches!(pair, Pair::Rsa(_)) { RSA_ALGORITHM } else { name };
        Ok(Self { algorithm: algorithm.to_vec(), pair })
    }

    /// The name of the algorithm and the signature, as an ssh-agent answers them.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SshError> {
        let encoded = match &self.pair {
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::Ecdsa(pair) => {
                let fixed = pair.sign(&SystemRandom::new(), message).map_err(|_| SshError::WrongSignature)?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                let mut encoded = Vec::new();
                put_integer(&mut encoded, r)?;
                put_integer(&mut encoded, s)?;
                encoded
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA512, &SystemRandom::new(), message, &mut signature);
                signed.map_err(|_| SshError::WrongSignature)?;
                signature
            }
        };
        let mut signature = Vec::new();
        put_string(&mut signature, &self.algorithm)?;
        put_string(&mut signature, &encoded)?;
        Ok(signature)
    }
}

/// A positive integer in its one encoding.
fn put_integer(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), SshError> {
    put_string(to, &rsa::positive(bytes))
}
