//! The fields of the API's objects that commands use. All others are passed on as they came (`--output json`).

use serde::Deserialize;
use serde_json::Value;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::error::{Failure, Refusal};

#[derive(Debug, Clone, Deserialize)]
pub struct Server {
    pub id: Uuid,
    pub name: String,
    pub host: String,
    pub status: String,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub description: String,
    pub port: Option<u16>,
    pub last_seen_at: Option<Timestamp>,
    pub created_at: Option<Timestamp>,
    pub agent: Option<Agent>,
    pub owner: Option<Owner>,
    pub role: Option<String>,
    #[serde(default)]
    pub rights: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Agent {
    pub version: String,
    pub hostname: String,
    pub os: String,
    pub kernel: String,
    pub arch: String,
    pub cpu_count: u32,
    #[serde(default)]
    pub capabilities: Vec<String>,
    pub conflict: Option<Value>,
    pub signing: Option<Demands>,
}

/// What an agent asks of those who sign.
#[derive(Debug, Clone, Deserialize)]
pub struct Demands {
    /// What they call the server.
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Owner {
    pub username: String,
}

/// A command on one server.
#[derive(Debug, Clone, Deserialize)]
pub struct Command {
    pub command_id: Uuid,
    pub status: String,
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub output: String,
    pub error: Option<Reason>,
}

/// Why a command did not run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reason {
    pub code: String,
    pub detail: String,
    /// Why signatures did not suffice.
    pub reason: Option<String>,
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        let why = reason.reason.as_deref().and_then(signalbox_signing::Reason::of);
        Self::Refused(Refusal { status: 400, code: reason.code, detail: reason.detail, reason: why })
    }
}

/// A command on many servers.
#[derive(Debug, Deserialize)]
pub struct Batch {
    pub id: Uuid,
    pub finished_at: Option<Timestamp>,
    pub counts: Counts,
    pub results: Vec<BatchResult>,
}

#[derive(Debug, Deserialize)]
pub struct Counts {
    pub queued: u64,
    pub running: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct BatchResult {
    pub server_id: Uuid,
    pub server_name: Option<String>,
    pub command_id: Uuid,
    pub status: String,
    pub exit_code: Option<i32>,
    pub preview: String,
    pub truncated: bool,
    pub error: Option<Reason>,
}

/// A signed command that waits for more signatures, or has waited.
#[derive(Debug, Deserialize)]
pub struct Approval {
    pub id: Uuid,
    pub status: String,
    pub command: String,
    pub username: String,
    pub needed: u32,
    pub missing: u32,
    /// Why agents refused the signatures that there were, if it waits again.
    pub refused_reason: Option<String>,
    pub signatures: Vec<ApprovalSignature>,
    /// It does not run before.
    pub not_before: Option<Timestamp>,
    pub expires_at: Timestamp,
    pub batch_id: Option<Uuid>,
    /// The bytes that are signed, in base64. Lists do not have them.
    pub payload: Option<String>,
    pub stdin: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct ApprovalSignature {
    /// The fingerprint of an SSH key, or whose passkey it is.
    pub signer: String,
    pub username: String,
}

#[derive(Debug, Deserialize)]
pub struct Container {
    pub id: String,
    pub name: String,
    pub image: String,
    pub state: String,
    pub status: String,
}

/// What an action on a container led to.
#[derive(Debug, Deserialize)]
pub struct Acted {
    pub container_id: String,
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LogLine {
    pub timestamp: Option<Timestamp>,
    pub stream: Option<String>,
    pub message: String,
}

#[derive(Debug, Deserialize)]
pub struct Logs {
    pub lines: Vec<LogLine>,
    pub truncated: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Alert {
    pub id: Uuid,
    pub server_id: Uuid,
    pub status: String,
    pub severity: String,
    pub message: String,
    pub triggered_at: Timestamp,
}

#[derive(Debug, Deserialize)]
pub struct SeriesName {
    pub name: String,
    pub unit: String,
    /// `counter` for those whose values are rates.
    #[serde(default)]
    pub kind: String,
    pub help: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct SeriesNames {
    pub names: Vec<SeriesName>,
    pub truncated: bool,
}

#[derive(Debug, Deserialize)]
pub struct Series {
    pub resolution_seconds: i64,
    pub timestamps: Vec<i64>,
    pub series: std::collections::BTreeMap<String, Columns>,
}

#[derive(Debug, Deserialize)]
pub struct Columns {
    pub avg: Vec<Option<f64>>,
    pub min: Vec<Option<f64>>,
    pub max: Vec<Option<f64>>,
}

/// A token for programs.
#[derive(Debug, Deserialize)]
pub struct ProgramToken {
    pub id: Uuid,
    pub name: String,
    pub role: String,
    #[serde(default)]
    pub prefix: String,
    pub expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub last_used_address: Option<String>,
    #[serde(default)]
    pub scope: Value,
    #[serde(default)]
    pub rights: Vec<String>,
    #[serde(default)]
    pub networks: Vec<String>,
}
