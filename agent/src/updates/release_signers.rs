//! The keys that the machine's owner has pinned: whose releases the agent takes.

use std::path::{Path, PathBuf};

use signalbox_protocol::agent::RELEASE_NAMESPACE;
use signalbox_signing::signers::Key;
use signalbox_signing::{Signers, SignersError};

use crate::policy::{Policy, Updates};
use crate::signed::trust::{self, TrustError};

/// Where the keys are, if the policy does not say.
const DEFAULT_FILE: &str = "/etc/signalbox-agent/release_signers";

/// Why a policy that permits updates is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseSignersError {
    #[error("policy file: {0}")]
    Policy(TrustError),
    #[error("policy file: it changed while it was read: start again")]
    Changed,
    #[error("release_signers: {0}")]
    File(TrustError),
    #[error("release_signers: {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: SignersError },
    #[error("release_signers: {} has no SSH key that may sign releases", .0.display())]
    NoKey(PathBuf),
}

/// Checks the policy's values about updates, without any file.
pub fn check(policy: &Policy) -> Result<(), String> {
    match &policy.release_signers {
        Some(_) if policy.updates == Updates::Off => Err("release_signers needs updates = \"signed\"".to_owned()),
        Some(path) if !path.is_absolute() => {
            Err(format!("release_signers: `{}` is not an absolute path", path.display()))
        }
        Some(_) | None => Ok(()),
    }
}

/// The file that a policy names.
pub fn file_of(policy: &Policy) -> PathBuf {
    policy.release_signers.clone().unwrap_or_else(|| DEFAULT_FILE.into())
}

/// Reads the keys, from files that only root can change; none if the policy permits no updates.
pub fn read(file: &Path, policy: &Policy) -> Result<Option<Signers>, ReleaseSignersError> {
    if policy.updates == Updates::Off {
        return Ok(None);
    }
    // Read again, so that what was checked is what counts.
    let text = trust::read(file).map_err(ReleaseSignersError::Policy)?;
    if Policy::parse(&text).as_ref() != Ok(policy) {
        return Err(ReleaseSignersError::Changed);
    }
    let path = file_of(policy);
    let text = trust::read(&path).map_err(ReleaseSignersError::File)?;
    let signers = Signers::parse_for(&text, RELEASE_NAMESPACE)
        .map_err(|source| ReleaseSignersError::Unreadable { path: path.clone(), source })?;
    // A passkey signs nothing but answers to a browser.
    if !signers.all().iter().any(|signer| matches!(signer.key, Key::Ssh { .. })) {
        return Err(ReleaseSignersError::NoKey(path));
    }
    Ok(Some(signers))
}
