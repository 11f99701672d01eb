//! How a connection begins.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::FailedUpdate;
use crate::Timestamp;
use crate::text::clean;

/// The first message of an agent. Its `Debug` hides the key, so that a logged message never carries a secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Auth {
    /// The agent's API key.
    pub api_key: String,
    /// The protocol version that the agent speaks.
    pub protocol: u32,
    /// The agent's program and its machine.
    pub agent: AgentInfo,
    /// The agent's clock when it wrote this. The service derives the clock's offset from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
    /// The interval that the agent's configuration asks for. The service answers with the one that applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_interval_seconds: Option<f64>,
    /// The shortest interval of live samples that the agent's configuration permits. Absent: it sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_interval_seconds: Option<f64>,
    /// The commands that the agent holds: those that run, and those whose result was not acknowledged. A command that the
    /// service sent and that is not among them never ran, or its agent lost it. Absent: the agent does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<Uuid>>,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("protocol", &self.protocol).field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// What an agent reports about itself and its machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentInfo {
    /// The agent's version.
    pub version: String,
    /// The machine's host name.
    #[serde(default)]
    pub hostname: String,
    /// The operating system's name and version, for people.
    #[serde(default)]
    pub os: String,
    /// The kernel's release.
    #[serde(default)]
    pub kernel: String,
    /// The processor's architecture, such as `x86_64`.
    #[serde(default)]
    pub arch: String,
    /// How many logical processors the machine has.
    #[serde(default)]
    pub cpu_count: u32,
    /// Changes at every boot of the machine, and of a system container that looks like a machine.
    #[serde(default)]
    pub boot_id: String,
    /// Stays the same for the life of the machine, and differs on a copy of it, as far as its hardware shows; empty where the
    /// agent cannot say. The service uses it to distinguish two machines that show one key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_id: String,
    /// What the agent's own policy permits: any of `metrics`, `processes`, `docker`, `docker_control`, `commands`, `logs`,
    /// `terminal`, `recordings`, `updates`.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// What the owner's policy asks of those who sign; none where nothing needs a signature, and from older agents. It is for
    /// people who want to know what to sign: the agent alone decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing: Option<Box<SigningInfo>>,
    /// The last build that the agent tried and that did not work, as long as it runs the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_update: Option<Box<FailedUpdate>>,
}

/// What an agent asks of those who sign.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SigningInfo {
    /// What signers call this server.
    pub name: String,
    /// How many different people have to sign.
    pub approvals: u32,
    /// Whose signatures count, at most [`MAX_SIGNERS`] of them, for people to read; none from older agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<SignerInfo>,
    /// How many more there are.
    #[serde(default)]
    pub more_signers: u32,
}

/// The most signers that an agent names.
pub const MAX_SIGNERS: usize = 32;

/// A key whose signatures count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SignerInfo {
    /// The names of the person, as the file of signers has them.
    pub name: String,
    /// The type of the key, such as `ssh-ed25519`, or `passkey`.
    pub kind: String,
    /// Of the public key, as `ssh-keygen -l` shows it: `SHA256:...`.
    pub fingerprint: String,
}

impl SigningInfo {
    fn texts(&self) -> impl Iterator<Item = &String> {
        let signers = self.signers.iter().flat_map(|SignerInfo { name, kind, fingerprint }| [name, kind, fingerprint]);
        std::iter::once(&self.name).chain(signers)
    }

    fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let signers =
            self.signers.iter_mut().flat_map(|SignerInfo { name, kind, fingerprint }| [name, kind, fingerprint]);
        std::iter::once(&mut self.name).chain(signers)
    }
}

impl AgentInfo {
    /// Removes the characters from every text that a name may not have.
    pub fn clean(&mut self) {
        let Self {
            version,
            hostname,
            os,
            kernel,
            arch,
            cpu_count: _,
            boot_id,
            machine_id,
            capabilities,
            signing,
            failed_update,
        } = self;
        if let Some(failed) = failed_update {
            [&mut failed.version, &mut failed.reason].into_iter().for_each(clean);
        }
        if let Some(signing) = signing {
            signing.texts_mut().for_each(clean);
        }
        [version, hostname, os, kernel, arch, boot_id, machine_id].into_iter().chain(capabilities).for_each(clean);
    }

    /// Whether every text is short enough to be stored (at most 256 bytes each, at most 64 capabilities and 32 signers).
    pub fn is_bounded(&self) -> bool {
        let texts =
            [&self.version, &self.hostname, &self.os, &self.kernel, &self.arch, &self.boot_id, &self.machine_id];
        let of_signing = self.signing.iter().flat_map(|signing| signing.texts());
        let of_update = self.failed_update.iter().flat_map(|failed| [&failed.version, &failed.reason]);
        let mut texts = texts.into_iter().chain(&self.capabilities).chain(of_signing).chain(of_update);
        texts.all(|text| text.len() <= 256 && !text.contains('\0'))
            && self.capabilities.len() <= 64
            && self.signing.as_ref().is_none_or(|signing| signing.signers.len() <= MAX_SIGNERS)
    }
}

/// Whether the service accepts the key. It has one of two shapes: what an accepted agent needs, or why the service refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuthResponse {
    /// Whether the service accepts the agent.
    pub success: bool,
    /// The server that the key belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_id: Option<Uuid>,
    /// The id of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Uuid>,
    /// The interval between samples that the agent is to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_interval_seconds: Option<f64>,
    /// The last batch of this agent run that is durable; 0 when the service does not know one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_seq: Option<u64>,
    /// How far the agent's clock is ahead of the service's, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ms: Option<i64>,
    /// Why the service refused, for programs, such as `unauthorized`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why the service refused, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl AuthResponse {
    /// The answer to an agent that is accepted. The clock's offset is set afterwards, where it is known.
    pub fn accepted(server_id: Uuid, session_id: Uuid, sample_interval_seconds: f64, ack_seq: u64) -> Self {
        Self {
            success: true,
            server_id: Some(server_id),
            session_id: Some(session_id),
            sample_interval_seconds: Some(sample_interval_seconds),
            ack_seq: Some(ack_seq),
            clock_offset_ms: None,
            code: None,
            detail: None,
        }
    }

    /// The answer to an agent that is refused.
    pub fn refused(code: &str, detail: &str) -> Self {
        Self {
            success: false,
            server_id: None,
            session_id: None,
            sample_interval_seconds: None,
            ack_seq: None,
            clock_offset_ms: None,
            code: Some(code.to_owned()),
            detail: Some(detail.to_owned()),
        }
    }
}
