//! Signatures of files and texts (SSHSIG).

use aws_lc_rs::digest::{Algorithm, SHA256, SHA512, digest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::SshError;
use super::key::PublicKey;
use super::reader::{Reader, put_string};

const FIRST_LINE: &str = "-----BEGIN SSH SIGNATURE-----";
const LAST_LINE: &str = "-----END SSH SIGNATURE-----";
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;
/// What may stand around and between the lines.
const BLANKS: [char; 4] = ['\r', '\n', ' ', '\t'];

/// A signature with the key that it claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshSignature {
    public_key: Vec<u8>,
    namespace: Vec<u8>,
    hash: Hash,
    signature: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn of(name: &[u8]) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|hash| hash.name() == name)
    }

    fn name(self) -> &'static [u8] {
        match self {
            Self::Sha256 => b"sha256",
            Self::Sha512 => b"sha512",
        }
    }

    fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::Sha256 => &SHA256,
            Self::Sha512 => &SHA512,
        }
    }
}

impl SshSignature {
    /// Reads what `ssh-keygen -Y sign` writes.
    pub fn parse(text: &str) -> Result<Self, SshError> {
        let body = text.trim_matches(BLANKS).strip_prefix(FIRST_LINE).and_then(|rest| rest.strip_suffix(LAST_LINE));
        let body: String = body.ok_or(SshError::NotArmored)?.chars().filter(|it| !BLANKS.contains(it)).collect();
        Self::read(&BASE64_STANDARD.decode(body).map_err(|_| SshError::NotArmored)?)
    }

    /// Reads the bytes between the lines.
    pub fn read(bytes: &[u8]) -> Result<Self, SshError> {
        let mut reader = Reader::new(bytes);
        reader.expect(MAGIC)?;
        if reader.number()? != VERSION {
            return Err(SshError::Malformed);
        }
        let (public_key, namespace, reserved) = (reader.string()?, reader.string()?, reader.string()?);
        let hash = Hash::of(reader.string()?).ok_or(SshError::UnknownAlgorithm)?;
        let signature = reader.string()?;
        reader.end()?;
        if !reserved.is_empty() {
            return Err(SshError::Malformed);
        }
        Ok(Self { public_key: public_key.to_vec(), namespace: namespace.to_vec(), hash, signature: signature.to_vec() })
    }

    /// The key that it claims, as allowed signers have it.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Checks that its key signed `message` for this purpose. Whose key it is is the caller's question.
    pub fn verify(&self, namespace: &str, message: &[u8]) -> Result<(), SshError> {
        if self.namespace != namespace.as_bytes() {
            return Err(SshError::WrongNamespace);
        }
        let mut signed = MAGIC.to_vec();
        put_string(&mut signed, &self.namespace)?;
        put_string(&mut signed, &[])?;
        put_string(&mut signed, self.hash.name())?;
        put_string(&mut signed, digest(self.hash.algorithm(), message).as_ref())?;
        PublicKey::parse(&self.public_key)?.verify(&signed, &self.signature)
    }
}
