//! How a connection begins.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;
use crate::text::clean;

/// Shows the agent's key. Its `Debug` hides it, so that a logged message never carries a secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Auth {
    pub api_key: String,
    pub protocol: u32,
    pub agent: AgentInfo,
    /// The agent's clock when it wrote this, from which the service tells how far off it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
    /// The interval that the agent's owner chose. The service answers with the one that is to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_interval_seconds: Option<f64>,
    /// The commands that the agent holds: those that run, and those whose result was not acknowledged. A command that
    /// the service sent and that is not among them never ran, or its agent lost it. Absent: not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<Uuid>>,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("protocol", &self.protocol).field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// What an agent says of itself and its machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentInfo {
    pub version: String,
    #[serde(default)]
    pub hostname: String,
    #[serde(default)]
    pub os: String,
    #[serde(default)]
    pub kernel: String,
    #[serde(default)]
    pub arch: String,
    #[serde(default)]
    pub cpu_count: u32,
    /// Changes at every boot of the machine, and of the system container that looks like one.
    #[serde(default)]
    pub boot_id: String,
    /// The same for as long as the machine is the same, and another one on a copy of it, as far as its hardware tells;
    /// empty where that is not known. The service tells two machines that show one key apart by it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_id: String,
    /// Of `metrics`, `processes`, `docker`, `docker_control`, `commands`, `logs`, `terminal`: what the agent's own policy
    /// lets it do.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

impl AgentInfo {
    /// Takes out of every text what does not belong in a name.
    pub fn clean(&mut self) {
        let Self { version, hostname, os, kernel, arch, cpu_count: _, boot_id, machine_id, capabilities } = self;
        [version, hostname, os, kernel, arch, boot_id, machine_id].into_iter().chain(capabilities).for_each(clean);
    }

    /// Whether every text is short enough to be kept (256 bytes, at most 64 capabilities).
    pub fn is_bounded(&self) -> bool {
        let texts =
            [&self.version, &self.hostname, &self.os, &self.kernel, &self.arch, &self.boot_id, &self.machine_id];
        texts.into_iter().chain(&self.capabilities).all(|text| text.len() <= 256 && !text.contains('\0'))
            && self.capabilities.len() <= 64
    }
}

/// Whether the key was taken. One of two shapes: what an accepted agent needs, or why it was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuthResponse {
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_interval_seconds: Option<f64>,
    /// The last batch of this agent run that is durable; 0 when the service does not remember one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_seq: Option<u64>,
    /// How far the agent's clock is ahead of the service's, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl AuthResponse {
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
