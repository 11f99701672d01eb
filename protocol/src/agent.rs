//! What agents and the service say to each other.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::codec::Message;
use crate::{Sample, Timestamp};

/// The most samples one `metrics` message may carry. An agent that catches up sends more messages, not longer ones.
pub const MAX_SAMPLES: usize = 1024;

/// Agent to service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum AgentMessage {
    /// The first message of a connection, within 10 s.
    Auth(Auth),
    Metrics(Metrics),
    CommandOutput(CommandOutput),
    CommandResult(CommandResult),
    /// Answers a [`Request`].
    Response(Response),
    LogLines(LogLines),
    Event(Event),
}

impl Message for AgentMessage {
    const TYPES: &'static [&'static str] =
        &["auth", "metrics", "command_output", "command_result", "response", "log_lines", "event"];
}

/// Service to agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum ServiceMessage {
    AuthResponse(AuthResponse),
    /// Every sample of the `metrics` messages up to `seq` is durable.
    Ack {
        seq: u64,
    },
    Execute(Execute),
    Cancel {
        command_id: Uuid,
    },
    /// The result of this command is stored; the agent may forget it.
    ResultAck {
        command_id: Uuid,
    },
    Request(Request),
    /// Nobody waits for the answer to this request any more. (An agent that does not
    /// know it ignores it, and its late response is dropped.)
    RequestCancel {
        request_id: Uuid,
    },
    LogsStart(LogsStart),
    LogsStop {
        stream_id: Uuid,
    },
}

impl Message for ServiceMessage {
    const TYPES: &'static [&'static str] = &[
        "auth_response",
        "ack",
        "execute",
        "cancel",
        "result_ack",
        "request",
        "request_cancel",
        "logs_start",
        "logs_stop",
    ];
}

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
    /// Changes at every boot of the machine; two machines with one key are told apart by it.
    #[serde(default)]
    pub boot_id: String,
    /// Of `metrics`, `processes`, `docker`, `commands`, `logs`, `terminal`: what the agent's own policy lets it do.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

impl AgentInfo {
    /// Whether every text is short enough to be kept (256 bytes, at most 64 capabilities).
    pub fn is_bounded(&self) -> bool {
        let texts = [&self.version, &self.hostname, &self.os, &self.kernel, &self.arch, &self.boot_id];
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

/// A batch of samples, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Rises with every message that an agent sends; the `ack` names it, and means every message up to it. After an
    /// outage live samples come before those of the outage, so the order of messages is not that of their samples.
    pub seq: u64,
    pub samples: Vec<Sample>,
}

/// Asks the agent for something, by a closed list of methods that the agent implements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub request_id: Uuid,
    /// Such as `docker.list`.
    pub method: String,
    #[serde(default)]
    pub params: Value,
    /// After this many milliseconds nobody waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Answers a [`Request`]: `result` when `ok`, `error` otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub request_id: Uuid,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RequestError>,
}

impl Response {
    pub fn new(request_id: Uuid, outcome: Result<Value, RequestError>) -> Self {
        match outcome {
            Ok(result) => Self { request_id, ok: true, result: Some(result), error: None },
            Err(error) => Self { request_id, ok: false, result: None, error: Some(error) },
        }
    }

    /// The outcome. `ok: false` without an error still is an error.
    pub fn into_outcome(self) -> Result<Value, RequestError> {
        if self.ok {
            return Ok(self.result.unwrap_or_default());
        }
        Err(self.error.unwrap_or_else(|| RequestError::new("agent_error", "the agent gave no reason")))
    }
}

/// Why an agent did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestError {
    /// Such as `agent_refused` or `container_not_found`.
    pub code: String,
    pub detail: String,
}

impl RequestError {
    pub fn new(code: &str, detail: &str) -> Self {
        Self { code: code.to_owned(), detail: detail.to_owned() }
    }
}

/// Runs a command in `/bin/sh -c`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execute {
    pub command_id: Uuid,
    pub command: String,
    #[serde(default)]
    pub stdin: Option<String>,
    pub timeout_seconds: u32,
}

/// A piece of a running command's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandOutput {
    pub command_id: Uuid,
    pub stream: Stream,
    pub data: String,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    pub command_id: Uuid,
    pub status: String,
    #[serde(default)]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(default)]
    pub truncated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Starts to stream a log. The fields beside `source` depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogsStart {
    pub stream_id: Uuid,
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLines {
    pub stream_id: Uuid,
    pub lines: Vec<LogLine>,
    /// How many lines were lost before these.
    #[serde(default)]
    pub dropped: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
    #[serde(default)]
    pub stream: Option<String>,
    pub message: String,
}

/// Something happened on the machine. The fields beside `kind` depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub kind: String,
    #[serde(flatten)]
    pub fields: serde_json::Map<String, Value>,
}
