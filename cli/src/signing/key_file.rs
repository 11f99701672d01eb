//! Key files of OpenSSH (PROTOCOL.key), with and without a passphrase.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use aws_lc_rs::cipher::{AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use signalbox_signing::ssh::{PublicKey, Reader, SshError};

use super::private_key::PrivateKey;
use super::{Key, ssh_agent};
use crate::commands::prompt;
use crate::context::store::expect_private;
use crate::error::Failure;
use crate::output;

const FIRST_LINE: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const LAST_LINE: &str = "-----END OPENSSH PRIVATE KEY-----";
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// The largest keys, of 16,384 bits, have 13 kB.
const MAX_BYTES: u64 = 64 * 1024;
/// A passphrase may be mistyped, as for ssh itself.
const ATTEMPTS: usize = 3;
const KEY_BYTES: usize = 32;
const IV_BYTES: usize = 16;
/// ssh-keygen makes 16 or 24 rounds, each of some ten milliseconds. More than these take minutes.
const MAX_ROUNDS: u32 = 10_000;

/// What a file has before anybody gives a passphrase.
pub struct KeyFile {
    public: Vec<u8>,
    secret: Secret,
}

enum Secret {
    Plain(Vec<u8>),
    Encrypted { salt: Vec<u8>, rounds: u32, bytes: Vec<u8> },
}

/// Why a file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    #[error("it is not a private key as ssh-keygen writes it")]
    NotAKey,
    #[error("it has an older format: convert it with `ssh-keygen -p -f` and the name of the file")]
    Old,
    #[error(
        "it is encrypted in another way than ssh-keygen does by itself: add it to the ssh-agent, and use --sign ssh-agent"
    )]
    Cipher,
    #[error("the passphrase is wrong")]
    Passphrase,
    #[error("it belongs to a security key: add it to the ssh-agent with ssh-add, and use --sign ssh-agent")]
    SecurityKey,
    #[error(transparent)]
    Ssh(#[from] SshError),
}

/// The key of a file. Asks for the passphrase. For a file with a public key, the ssh-agent has the private one.
pub async fn open(path: &Path) -> Result<Key, Failure> {
    let fault = |what: String| Failure::usage(format!("cannot sign with {}: {what}", path.display()));
    let mut text = String::new();
    let file = File::open(path).map_err(|error| fault(error.to_string()))?;
    let read = (&file).take(MAX_BYTES).read_to_string(&mut text);
    read.map_err(|_| fault(KeyFileError::NotAKey.to_string()))?;
    if let Some(public) = public_key(&text) {
        return ssh_agent::of_public(public).await;
    }
    let key_file = KeyFile::parse(&text).map_err(|error| fault(error.to_string()))?;
    expect_private(&file).map_err(fault)?;
    if !key_file.is_encrypted() {
        return key_file.key("").map_err(|error| fault(error.to_string()));
    }
    if !prompt::can_ask_secret() {
        return Err(fault("nobody can be asked for its passphrase here: use --sign ssh-agent".to_owned()));
    }
    for attempt in 1..=ATTEMPTS {
        let passphrase = prompt::ask_secret(&format!("Passphrase of {}", path.display())).await?;
        match key_file.key(&passphrase) {
            Err(KeyFileError::Passphrase) if attempt < ATTEMPTS => output::complain("the passphrase is wrong"),
            outcome => return outcome.map_err(|error| fault(error.to_string())),
        }
    }
    Err(fault(KeyFileError::Passphrase.to_string()))
}

/// Of a file as `id_ed25519.pub`.
fn public_key(text: &str) -> Option<Vec<u8>> {
    let mut words = text.split_whitespace();
    let (name, encoded) = (words.next()?, words.next()?);
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    PublicKey::parse(&bytes).is_ok_and(|key| key.name() == name).then_some(bytes)
}

impl KeyFile {
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let body = text.trim().strip_prefix(FIRST_LINE).and_then(|rest| rest.strip_suffix(LAST_LINE));
        let Some(body) = body else {
            let is_old = text.contains("PRIVATE KEY-----");
            return Err(if is_old { KeyFileError::Old } else { KeyFileError::NotAKey });
        };
        let body: String = body.chars().filter(|character| !character.is_ascii_whitespace()).collect();
        Self::read(&BASE64_STANDARD.decode(body).map_err(|_| KeyFileError::NotAKey)?)
    }

    fn read(bytes: &[u8]) -> Result<Self, KeyFileError> {
        let mut reader = Reader::new(bytes);
        reader.expect(MAGIC)?;
        let (cipher, derivation, options) = (reader.string()?, reader.string()?, reader.string()?);
        if reader.number()? != 1 {
            return Err(KeyFileError::NotAKey);
        }
        let (public, bytes) = (reader.string()?.to_vec(), reader.string()?.to_vec());
        let secret = match (cipher, derivation) {
            (b"none", b"none") => Secret::Plain(bytes),
            (b"aes256-ctr", b"bcrypt") => {
                let mut options = Reader::new(options);
                let (salt, rounds) = (options.string()?.to_vec(), options.number()?);
                if !(1..=MAX_ROUNDS).contains(&rounds) {
                    return Err(KeyFileError::Cipher);
                }
                Secret::Encrypted { salt, rounds, bytes }
            }
            _ => return Err(KeyFileError::Cipher),
        };
        Ok(Self { public, secret })
    }

    pub fn is_encrypted(&self) -> bool {
        matches!(self.secret, Secret::Encrypted { .. })
    }

    /// The key, with the passphrase if the file is encrypted.
    pub fn key(&self, passphrase: &str) -> Result<Key, KeyFileError> {
        match &self.secret {
            Secret::Plain(bytes) => self.unlocked(bytes),
            Secret::Encrypted { salt, rounds, bytes } => {
                self.unlocked(&decrypted(passphrase, salt, *rounds, bytes).ok_or(KeyFileError::Passphrase)?)
            }
        }
    }

    fn unlocked(&self, bytes: &[u8]) -> Result<Key, KeyFileError> {
        let mut reader = Reader::new(bytes);
        // The same number twice: what tells a wrong passphrase.
        if reader.number()? != reader.number()? {
            return Err(if self.is_encrypted() { KeyFileError::Passphrase } else { KeyFileError::NotAKey });
        }
        if PublicKey::parse(&self.public)?.name().starts_with("sk-") {
            return Err(KeyFileError::SecurityKey);
        }
        let private = PrivateKey::read(&mut reader)?;
        let comment = String::from_utf8_lossy(reader.string()?).into_owned();
        Ok(Key::of_file(self.public.clone(), comment, private))
    }
}

/// Nothing for an empty passphrase, which encrypts no file.
fn decrypted(passphrase: &str, salt: &[u8], rounds: u32, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut derived = [0; KEY_BYTES + IV_BYTES];
    bcrypt_pbkdf::bcrypt_pbkdf(passphrase.as_bytes(), salt, rounds, &mut derived).ok()?;
    let (key, iv) = derived.split_at(KEY_BYTES);
    let key = DecryptingKey::ctr(UnboundCipherKey::new(&AES_256, key).ok()?).ok()?;
    let iv: [u8; IV_BYTES] = iv.try_into().ok()?;
    let mut plain = bytes.to_vec();
    let length = key.decrypt(&mut plain, DecryptionContext::Iv128(iv.into())).ok()?.len();
    plain.truncate(length);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> KeyFileError {
        KeyFile::parse(text).map(|_| ()).unwrap_err()
    }

    #[test]
    fn other_files_are_refused_with_what_to_do() {
        let armored = |bytes: &[u8]| format!("{FIRST_LINE}\n{}\n{LAST_LINE}\n", BASE64_STANDARD.encode(bytes));

        assert_eq!(error("hello"), KeyFileError::NotAKey);
        assert_eq!(error("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"), KeyFileError::Old);
        assert_eq!(error(&format!("{FIRST_LINE}\n%%\n{LAST_LINE}")), KeyFileError::NotAKey);
        assert_eq!(error(&armored(b"openssh-key-v1\0\0\0\0\x09")), KeyFileError::Ssh(SshError::Malformed));
        assert_eq!(public_key("ssh-ed25519 AAAA ada"), None);
    }
}
