//! The key that signs tokens: read from a file, or generated once and kept.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::SecretString;

/// A shorter key could be found by trying (RFC 7518, 3.2: at least as long as the hash).
const MIN_BYTES: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("cannot use the signing secret {path} (--jwt-secret-file): {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("the signing secret {path} (--jwt-secret-file) is shorter than 32 bytes")]
    TooShort { path: String },
    #[error("no random numbers: {0}")]
    NoRandomness(#[from] getrandom::Error),
}

/// Reads the secret that an operator keeps in `path`.
pub fn read(path: &Path) -> Result<SecretString, SecretError> {
    let shown = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| SecretError::Unreadable { path: shown.clone(), source })?;
    let secret = text.trim();
    if secret.len() < MIN_BYTES {
        return Err(SecretError::TooShort { path: shown });
    }
    Ok(secret.into())
}

/// Reads the secret in `path`, or makes one there that only the owner may read.
pub fn read_or_generate(path: &Path) -> Result<SecretString, SecretError> {
    if !path.exists() {
        generate(path)?;
    }
    read(path)
}

fn generate(path: &Path) -> Result<(), SecretError> {
    let secret = BASE64_URL_SAFE_NO_PAD.encode(random::<32>()?);
    let draft = path.with_extension(format!("{:x}", u64::from_be_bytes(random::<8>()?)));
    let written = write_private(&draft, &secret).and_then(|()| std::fs::hard_link(&draft, path));
    _ = std::fs::remove_file(&draft);
    match written {
        // Two instances that start together on one directory end up with one secret, and never with half of one.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(SecretError::Unreadable { path: path.display().to_string(), source: error })
        }
        _ => Ok(()),
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Bytes from the system's generator.
pub fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_generated_secret_is_kept_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jwt-secret");

        let first = read_or_generate(&path).unwrap();
        let second = read_or_generate(&path).unwrap();

        assert_eq!(first.expose_secret(), second.expose_secret());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_short_secret_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jwt-secret");
        std::fs::write(&path, "changeme\n").unwrap();

        assert!(matches!(read(&path), Err(SecretError::TooShort { .. })));
    }
}
