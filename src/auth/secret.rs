//! The service's own keys: read from a file, or generated once and stored.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use signalbox_agent::secret_file::{self, SecretFileError};

use crate::random;

/// A shorter key could be guessed (RFC 7518, 3.2: at least as long as the hash).
const MIN_BYTES: usize = 32;

/// The purpose of a key, for messages to the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose {
    name: &'static str,
    flag: &'static str,
    /// The file in the data directory.
    pub file_name: &'static str,
}

/// The key that signs tokens.
pub const SIGNING: Purpose = Purpose { name: "signing secret", flag: "--jwt-secret-file", file_name: "jwt-secret" };

/// The key that encrypts secrets in the database.
pub const ENCRYPTION: Purpose =
    Purpose { name: "encryption key", flag: "--encryption-key-file", file_name: "encryption-key" };

/// The private key by which push services know the service. 32 random bytes are one, as good as always.
pub const PUSH: Purpose = Purpose { name: "push key", flag: "--push-key-file", file_name: "push-key" };

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("cannot use the {} {path} ({}): {source}", purpose.name, purpose.flag)]
    Unreadable { purpose: Purpose, path: String, source: SecretFileError },
    #[error("the {} {path} ({}) is shorter than 32 bytes", purpose.name, purpose.flag)]
    TooShort { purpose: Purpose, path: String },
    #[error("no random numbers: {0}")]
    NoRandomness(#[from] getrandom::Error),
}

/// Reads the key from `file`, if the operator has set one; otherwise from the data directory, where it is created if
/// missing.
pub fn obtain(purpose: Purpose, file: Option<&Path>, data_dir: &Path) -> Result<SecretString, SecretError> {
    match file {
        Some(path) => read(purpose, path),
        None => read_or_generate(purpose, &data_dir.join(purpose.file_name)),
    }
}

/// An identifier of secrets, to compare them without knowing them.
pub fn mark(secrets: &[&SecretString]) -> String {
    let digest = secrets.iter().fold(Sha256::new_with_prefix("signalbox secrets"), |digest, secret| {
        // Each secret follows its length, so that no two lists look the same.
        let secret = secret.expose_secret().as_bytes();
        digest.chain_update(secret.len().to_le_bytes()).chain_update(secret)
    });
    BASE64_URL_SAFE_NO_PAD.encode(digest.finalize())
}

/// Reads the secret in `path`.
fn read(purpose: Purpose, path: &Path) -> Result<SecretString, SecretError> {
    let shown = path.display().to_string();
    let text =
        secret_file::read(path).map_err(|source| SecretError::Unreadable { purpose, path: shown.clone(), source })?;
    let secret = text.trim();
    if secret.len() < MIN_BYTES {
        return Err(SecretError::TooShort { purpose, path: shown });
    }
    Ok(secret.into())
}

/// Reads the secret in `path`, or creates one there that only the owner may read.
fn read_or_generate(purpose: Purpose, path: &Path) -> Result<SecretString, SecretError> {
    if !path.exists() {
        generate(purpose, path)?;
    }
    read(purpose, path)
}

fn generate(purpose: Purpose, path: &Path) -> Result<(), SecretError> {
    let secret = BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>()?);
    let draft = path.with_extension(format!("{:x}", u64::from_be_bytes(random::bytes::<8>()?)));
    let written = write_private(&draft, &secret).and_then(|()| std::fs::hard_link(&draft, path));
    _ = std::fs::remove_file(&draft);
    match written {
        // Two instances that start together in one directory get the same secret, and never half of one.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(SecretError::Unreadable { purpose, path: path.display().to_string(), source: error.into() })
        }
        _ => Ok(()),
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_generated_secret_is_kept_and_private() {
        let directory = tempfile::tempdir().unwrap();

        for purpose in [SIGNING, ENCRYPTION, PUSH] {
            let first = obtain(purpose, None, directory.path()).unwrap();
            let second = obtain(purpose, None, directory.path()).unwrap();

            assert_eq!(first.expose_secret(), second.expose_secret());
            let file = std::fs::metadata(directory.path().join(purpose.file_name)).unwrap();
            assert_eq!(file.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_short_secret_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        write_private(&path, "changeme\n").unwrap();

        let refused = obtain(ENCRYPTION, Some(&path), directory.path()).unwrap_err();

        assert!(matches!(refused, SecretError::TooShort { .. }));
        assert!(refused.to_string().contains("encryption key"), "{refused}");
        assert!(refused.to_string().contains("--encryption-key-file"), "{refused}");
    }
}
