//! What agents and the service say to each other.
//!
//! A question ([`Request`]) has one answer ([`Response`]). What flows for longer, a log or a terminal, has an id of its
//! own (`stream_id`), flows only as far as the other side has given credit for, and ends with a `response` to that id:
//! `ok` when it came to its end, an error when it was refused or broke. A command (`execute`) outlives connections; one
//! that the agent refuses is answered by a `response` to its `command_id` too.

mod auth;
mod command;
mod request;
mod stream;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub use auth::{AgentInfo, Auth, AuthResponse};
pub use command::{CommandOutput, CommandResult, CommandStatus, Execute, Stream};
pub use request::{Request, RequestError, Response};
pub use stream::{LogLine, LogLines, LogsStart, TerminalOutput, TerminalSize, TerminalStart};

use crate::Sample;
use crate::codec::Message;

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
    TerminalOutput(TerminalOutput),
    Event(Event),
}

impl Message for AgentMessage {
    const TYPES: &'static [&'static str] =
        &["auth", "metrics", "command_output", "command_result", "response", "log_lines", "terminal_output", "event"];
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
    TerminalStart(TerminalStart),
    /// What was typed.
    TerminalInput {
        stream_id: Uuid,
        data: String,
    },
    TerminalResize {
        stream_id: Uuid,
        #[serde(flatten)]
        size: TerminalSize,
    },
    TerminalStop {
        stream_id: Uuid,
    },
    /// The agent may send so many bytes more of this stream's text.
    Credit {
        stream_id: Uuid,
        bytes: u64,
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
        "terminal_start",
        "terminal_input",
        "terminal_resize",
        "terminal_stop",
        "credit",
    ];
}

/// A batch of samples, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Rises with every message that an agent sends; the `ack` names it, and means every message up to it. After an
    /// outage live samples come before those of the outage, so the order of messages is not that of their samples.
    pub seq: u64,
    pub samples: Vec<Sample>,
}

/// Something happened on the machine. The fields beside `kind` depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub kind: String,
    #[serde(flatten)]
    pub fields: serde_json::Map<String, Value>,
}
