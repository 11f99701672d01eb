//! Files with secrets. A file that other users can read is refused, because somebody may already know the secret.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where orchestrators put secrets, each for its own container or unit and with modes of their choice: Docker and Podman 0444,
/// systemd 0440.
const SECRETS: &str = "/run/secrets";

/// Names systemd's directory of the unit.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Why a secret cannot be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("other users can read or change it (mode {0:04o}): `chmod 600` it, and renew it if they may have")]
    Exposed(u32),
}

/// The text of a file that no other user can read.
pub fn read(path: &Path) -> Result<String, SecretFileError> {
    let mut file = private(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Refuses a file that other users can read, for callers that read it themselves.
pub fn check(path: &Path) -> Result<(), SecretFileError> {
    private(path).map(|_| ())
}

fn private(path: &Path) -> Result<File, SecretFileError> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // The mode of a pipe or a terminal means nothing.
    let is_exposed = metadata.is_file() && exposed(metadata.mode(), is_own(metadata.uid())) && !is_handed_over(path);
    if is_exposed { Err(SecretFileError::Exposed(metadata.mode() & 0o7777)) } else { Ok(file) }
}

/// The rules of PostgreSQL: a file of one's own is for nobody else; one of root's, or of a manager of secrets, may be readable
/// for the group through which one reads it.
fn exposed(mode: u32, is_own: bool) -> bool {
    mode & (if is_own { 0o077 } else { 0o037 }) != 0
}

/// Files of root count as managed by root, for root, too: install.sh makes the agent's key readable for the agent's group.
fn is_own(user: u32) -> bool {
    user != 0 && rustix::process::geteuid().as_raw() == user
}

fn is_handed_over(path: &Path) -> bool {
    // Links are followed, so that a link cannot disguise a file elsewhere as a secret of the orchestrator.
    let Ok(path) = path.canonicalize() else { return false };
    let of_unit = std::env::var_os(CREDENTIALS).filter(|directory| !directory.is_empty());
    let directories = [Some(SECRETS.into()), of_unit];
    directories
        .into_iter()
        .flatten()
        .any(|directory| Path::new(&directory).canonicalize().is_ok_and(|it| path.starts_with(it)))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_others_can_read_is_refused_with_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "secret\n").unwrap();

        for mode in [0o644, 0o604, 0o620, 0o666] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let refusal = read(&path).unwrap_err().to_string();
            assert!(refusal.contains(&format!("(mode {mode:04o})")), "{refusal}");
            assert!(check(&path).is_err());
        }
        for mode in [0o600, 0o400, 0o700] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).unwrap(), "secret\n", "{mode:o}");
        }
    }

    #[test]
    fn a_group_may_read_secrets_that_somebody_else_manages() {
        let modes = [(0o400, false), (0o440, false), (0o640, false), (0o660, true), (0o444, true), (0o641, true)];

        for (mode, expected) in modes {
            assert_eq!(exposed(mode, false), expected, "{mode:o}");
        }
    }
}
