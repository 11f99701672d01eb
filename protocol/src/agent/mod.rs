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
use serde_json::{Map, Value};
use uuid::Uuid;

pub use auth::{AgentInfo, Auth, AuthResponse};
pub use command::{CommandOutput, CommandResult, CommandStatus, Execute, Stream};
pub use request::{Request, RequestError, Response};
pub use stream::{LogLine, LogLines, LogsStart, TerminalOutput, TerminalSize, TerminalStart};

use crate::codec::Message;
use crate::series::SeriesDescription;
use crate::{Sample, Timestamp, text};

/// The most samples one `metrics` message may carry. An agent that catches up sends more messages, not longer ones.
pub const MAX_SAMPLES: usize = 1024;

/// Agent to service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum AgentMessage {
    /// The first message of a connection, within 10 s.
    Auth(Auth),
    Metrics(Metrics),
    /// The open series that `values` of samples name by their ids. Sent before the first sample that needs it, and again
    /// with only what is new.
    Series {
        series: Vec<SeriesDescription>,
    },
    CommandOutput(CommandOutput),
    CommandResult(CommandResult),
    /// Answers a [`Request`].
    Response(Response),
    LogLines(LogLines),
    TerminalOutput(TerminalOutput),
    Event(Event),
}

impl Message for AgentMessage {
    const TYPES: &'static [&'static str] = &[
        "auth",
        "metrics",
        "series",
        "command_output",
        "command_result",
        "response",
        "log_lines",
        "terminal_output",
        "event",
    ];
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
    /// The agent's clock when it wrote this, from which the service goes on telling how far off it is: samples may be old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
}

/// Something happened on the machine. The fields beside `kind` depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub kind: String,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Event {
    /// Takes out of every text what does not belong in a name, the names of fields included.
    pub fn clean(&mut self) {
        text::clean(&mut self.kind);
        clean_map(&mut self.fields, MAX_DEPTH);
    }
}

/// How deep a text may lie: whatever an event has below is not looked at by anybody, and goes.
const MAX_DEPTH: usize = 8;

fn clean_map(fields: &mut Map<String, Value>, depth: usize) {
    if !fields.keys().all(|name| name.chars().all(text::is_plain)) {
        let named = std::mem::take(fields).into_iter().map(|(mut name, value)| {
            text::clean(&mut name);
            (name, value)
        });
        *fields = named.collect();
    }
    fields.values_mut().for_each(|value| clean_value(value, depth));
}

fn clean_value(value: &mut Value, depth: usize) {
    let Some(below) = depth.checked_sub(1) else { return *value = Value::Null };
    match value {
        Value::String(text) => text::clean(text),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_value(item, below)),
        Value::Object(fields) => clean_map(fields, below),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
