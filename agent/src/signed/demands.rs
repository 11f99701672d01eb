//! What the owner's policy demands of what is signed.

use std::path::{Path, PathBuf};

use signalbox_protocol::agent::{MAX_SIGNERS, SignerInfo, SigningInfo};
use signalbox_signing::payload::MAX_NAME_BYTES;
use signalbox_signing::signers::Key;
use signalbox_signing::ssh::fingerprint;
use signalbox_signing::{Signers, SignersError};

use super::allow::Allowed;
use super::trust::{self, TrustError};
use crate::info::bounded;
use crate::policy::{Policy, Switch};

/// The most people who may have to sign one command.
const MAX_APPROVALS: u32 = 10;

/// The signers that the agent names are at most so many bytes of its first message, which is bounded and has the commands that it holds,
/// too.
const MAX_SIGNERS_BYTES: usize = 4 * 1024;

/// The owner's demands, from files that only root can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demands {
    /// What signers call this server.
    pub name: String,
    pub signers: Signers,
    /// How many different people have to sign.
    pub approvals: usize,
    pub allowed: Allowed,
}

/// Why a policy that asks for signatures is refused.
#[derive(Debug, thiserror::Error)]
pub enum DemandsError {
    #[error("policy file: {0}")]
    Policy(TrustError),
    #[error("signers: {0}")]
    Signers(TrustError),
    #[error("signers: {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: SignersError },
    #[error("signers: {} names {people} people whose signatures count, and approvals = {approvals}", .path.display())]
    TooFew { path: PathBuf, people: usize, approvals: usize },
    #[error("{0}")]
    Invalid(String),
}

/// Checks the policy's values about signatures, without any file.
pub fn check(policy: &Policy) -> Result<(), String> {
    let Policy { name, signers, approvals, allow, .. } = policy;
    if !policy.asks_for_signatures() {
        let is_empty = name.is_none() && signers.is_none() && approvals.is_none() && allow.is_empty();
        let detail = "name, signers, approvals and allow need commands, terminal or docker = \"signed\"";
        return if is_empty { Ok(()) } else { Err(detail.to_owned()) };
    }
    match name {
        None => return Err("\"signed\" needs `name`, which signers call this server".to_owned()),
        Some(name) if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) => {
            return Err(format!("name: 1 to {MAX_NAME_BYTES} bytes without control characters are needed"));
        }
        Some(_) => {}
    }
    match signers {
        None => return Err("\"signed\" needs `signers`, a file in OpenSSH's format of allowed signers".to_owned()),
        Some(path) if !path.is_absolute() => {
            return Err(format!("signers: `{}` is not an absolute path", path.display()));
        }
        Some(_) => {}
    }
    if approvals.is_some_and(|count| !(1..=MAX_APPROVALS).contains(&count)) {
        return Err(format!("approvals: a number from 1 to {MAX_APPROVALS} is needed"));
    }
    if !allow.is_empty() && policy.commands.grade != Switch::Signed {
        return Err("allow: it needs commands = \"signed\"".to_owned());
    }
    Allowed::parse(allow).map(|_| ())
}

impl Demands {
    /// Reads the files of a policy that asks for signatures; none if it does not.
    pub fn read(file: &Path, policy: &Policy) -> Result<Option<Self>, DemandsError> {
        if !policy.asks_for_signatures() {
            return Ok(None);
        }
        // Read again, so that what was checked is what counts.
        let text = trust::read(file).map_err(DemandsError::Policy)?;
        if Policy::parse(&text).as_ref() != Ok(policy) {
            return Err(DemandsError::Invalid("policy file: it changed while it was read: start again".to_owned()));
        }
        let missing = || DemandsError::Invalid("\"signed\" needs `name` and `signers`".to_owned());
        let name = policy.name.clone().ok_or_else(missing)?;
        let path = policy.signers.clone().ok_or_else(missing)?;
        let text = trust::read(&path).map_err(DemandsError::Signers)?;
        let signers =
            Signers::parse(&text).map_err(|source| DemandsError::Unreadable { path: path.clone(), source })?;
        let approvals = usize::try_from(policy.approvals.unwrap_or(1)).unwrap_or(usize::MAX);
        if signers.people() < approvals {
            return Err(DemandsError::TooFew { path, people: signers.people(), approvals });
        }
        let allowed = Allowed::parse(&policy.allow).map_err(DemandsError::Invalid)?;
        Ok(Some(Self { name, signers, approvals, allowed }))
    }

    /// What the agent reports of it, for those who sign.
    pub fn info(&self) -> SigningInfo {
        let Self { name, signers, approvals, allowed: _ } = self;
        let keys = signers.all();
        let mut bytes_left = MAX_SIGNERS_BYTES;
        let named = keys.iter().take(MAX_SIGNERS).map(|signer| {
            let (kind, bytes) = match &signer.key {
                Key::Ssh { kind, bytes } => (kind.clone(), bytes),
                Key::Passkey { cose, .. } => ("passkey".to_owned(), cose),
            };
            SignerInfo { name: bounded(Some(signer.principals.clone())), kind, fingerprint: fingerprint(bytes) }
        });
        let named: Vec<SignerInfo> = named
            .take_while(|SignerInfo { name, kind, fingerprint }| {
                let left = bytes_left.checked_sub(name.len() + kind.len() + fingerprint.len());
                bytes_left = left.unwrap_or_default();
                left.is_some()
            })
            .collect();
        SigningInfo {
            name: name.clone(),
            approvals: u32::try_from(*approvals).unwrap_or(u32::MAX),
            more_signers: u32::try_from(keys.len().saturating_sub(named.len())).unwrap_or(u32::MAX),
            signers: named,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of as many people, each with a key of their own, whose names end like this.
    fn demands_of(people: usize, end: &str) -> Demands {
        let key = |number: usize| {
            let mut bytes = Vec::new();
            signalbox_signing::ssh::put_string(&mut bytes, b"ssh-ed25519").unwrap();
            signalbox_signing::ssh::put_string(&mut bytes, &[u8::try_from(number).unwrap(); 32]).unwrap();
            base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes)
        };
        let lines: Vec<String> =
            (0..people).map(|number| format!("p{number}@{end} ssh-ed25519 {}", key(number))).collect();
        let signers = Signers::parse(&lines.join("\n")).unwrap();
        Demands { name: "web-1".to_owned(), signers, approvals: 2, allowed: Allowed::default() }
    }

    fn demands(people: usize) -> Demands {
        demands_of(people, "example.org")
    }

    #[test]
    fn long_names_leave_room_for_the_rest_of_the_first_message() {
        let info = demands_of(32, &"x".repeat(300)).info();

        let bytes = serde_json::to_vec(&info.signers).unwrap().len();
        assert!(bytes < 6 * 1024, "{bytes} bytes");
        assert!(!info.signers.is_empty());
        assert_eq!(info.signers.len() + info.more_signers as usize, 32);
    }

    #[test]
    fn the_agent_reports_whose_signatures_count() {
        let info = demands(2).info();

        assert_eq!((info.name.as_str(), info.approvals, info.more_signers), ("web-1", 2, 0));
        let [first, second] = info.signers.as_slice() else { panic!("{info:?}") };
        assert_eq!((first.name.as_str(), first.kind.as_str()), ("p0@example.org", "ssh-ed25519"));
        assert!(first.fingerprint.starts_with("SHA256:") && first.fingerprint != second.fingerprint, "{info:?}");
    }

    #[test]
    fn of_a_long_list_it_names_a_part_and_counts_the_rest() {
        let info = demands(40).info();

        assert_eq!((info.signers.len(), info.more_signers), (32, 8));
    }
}
