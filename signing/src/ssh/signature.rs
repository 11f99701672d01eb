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
/// The longest line between them that ssh-keygen writes.
const LINE_CHARACTERS: usize = 70;
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

/// The bytes that a key signs, so that its signature covers `message` for this purpose.
pub fn to_sign(namespace: &str, message: &[u8]) -> Result<Vec<u8>, SshError> {
    signed_bytes(namespace.as_bytes(), Hash::Sha512, message)
}

fn signed_bytes(namespace: &[u8], hash: Hash, message: &[u8]) -> Result<Vec<u8>, SshError> {
    let mut bytes = MAGIC.to_vec();
    put_string(&mut bytes, namespace)?;
    put_string(&mut bytes, &[])?;
    put_string(&mut bytes, hash.name())?;
    put_string(&mut bytes, digest(hash.algorithm(), message).as_ref())?;
    Ok(bytes)
}

impl SshSignature {
    /// Of what a key made of [`to_sign`]: the name of its algorithm, and the signature.
    pub fn new(public_key: Vec<u8>, namespace: &str, signature: Vec<u8>) -> Self {
        Self { public_key, namespace: namespace.as_bytes().to_vec(), hash: Hash::Sha512, signature }
    }

    /// Writes what `ssh-keygen -Y sign` writes.
    pub fn to_text(&self) -> Result<String, SshError> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        for part in [&self.public_key[..], &self.namespace, &[], self.hash.name(), &self.signature] {
            put_string(&mut bytes, part)?;
        }
        let mut text = format!("{FIRST_LINE}\n");
        for (index, character) in BASE64_STANDARD.encode(bytes).chars().enumerate() {
            if index > 0 && index % LINE_CHARACTERS == 0 {
                text.push('\n');
            }
            text.push(character);
        }
        text.push('\n');
        text.push_str(LAST_LINE);
        text.push('\n');
        Ok(text)
    }

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
        let signed = signed_bytes(&self.namespace, self.hash, message)?;
        PublicKey::parse(&self.public_key)?.verify(&signed, &self.signature)
    }
}
