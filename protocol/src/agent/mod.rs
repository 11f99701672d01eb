//! What agents and the service say to each other.
//!
//! A question ([`Request`]) has one answer ([`Response`]). A log or a terminal has an id of its own (`stream_id`). Its sender
//! sends only as much as the other side has granted credit for, and ends it with a `response` to that id: `ok` at its end, an
//! error when it was refused or broke. A command (`execute`) outlives connections. An agent that refuses a command also answers
//! with a `response`, to its `command_id`.

mod asker;
mod auth;
mod command;
mod recording;
mod request;
mod stream;
mod update;
mod version;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

pub use asker::Asker;
pub use auth::{AgentInfo, Auth, AuthResponse, MAX_SIGNERS, SignerInfo, SigningInfo};
pub use command::{CommandOutput, CommandResult, CommandStatus, Execute, Stream};
pub use recording::{
    LIST_RECORDINGS, ListRecordings, MAX_RECORDING_BYTES, MAX_RECORDING_PIECE, MAX_RECORDINGS_LISTED, READ_RECORDING,
    ReadRecording, RecordingPiece, RecordingsListed, TerminalRecorded,
};
pub use request::{Request, RequestError, Response};
pub use stream::{LogLine, LogLines, LogsStart, TerminalOutput, TerminalSize, TerminalStart};
pub use update::{
    FailedUpdate, MAX_RELEASE_BYTES, MAX_RELEASE_SIGNATURE_BYTES, OFFER_UPDATE, RELEASE_FORMAT, RELEASE_NAMESPACE,
    Release, ReleasedProgram, UpdateOffer, UpdateTaken, program_arch,
};
pub use version::{NoVersion, Version};

use crate::codec::{Encoding, FrameError, Message};
use crate::series::SeriesDescription;
use crate::{Sample, Timestamp, text};

/// The most samples of one `metrics` message. An agent with a backlog sends more messages, not longer ones.
pub const MAX_SAMPLES: usize = 1024;

/// What an agent sends to the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum AgentMessage {
    /// The first message of a connection, within 10 s.
    Auth(Auth),
    /// Samples. The service acknowledges them once they are durable.
    Metrics(Metrics),
    /// A sample between those of the interval, after [`ServiceMessage::Watched`]. The service shows it and keeps nothing of it.
    Live {
        /// As complete as any other. What the agent did not read again is as in the sample before.
        sample: Box<Sample>,
    },
    /// Describes the open series that `values` of samples name by their ids. The agent sends it before the first sample that
    /// needs it, and later with new series only.
    Series {
        /// The descriptions, at most [`MAX_VALUES`](crate::series::MAX_VALUES).
        series: Vec<SeriesDescription>,
    },
    /// A piece of a running command's output.
    CommandOutput(CommandOutput),
    /// How a command ended. The agent repeats it until the service acknowledges it.
    CommandResult(CommandResult),
    /// Answers a [`Request`].
    Response(Response),
    /// Lines of a log that the service asked for.
    LogLines(LogLines),
    /// Output of a terminal that the service opened.
    TerminalOutput(TerminalOutput),
    /// A terminal was recorded and has ended. The agent repeats it until the service acknowledges it.
    TerminalRecorded(TerminalRecorded),
    /// Something that happened on the machine.
    Event(Event),
}

impl Message for AgentMessage {
    const TYPES: &'static [&'static str] = &[
        "auth",
        "metrics",
        "live",
        "series",
        "command_output",
        "command_result",
        "response",
        "log_lines",
        "terminal_output",
        "terminal_recorded",
        "event",
    ];

    fn read(encoding: Encoding, bytes: &[u8]) -> Result<Self, FrameError> {
        encoding.read(bytes)
    }

    fn write(&self, encoding: Encoding) -> Result<Bytes, FrameError> {
        encoding.write(self)
    }
}

/// What the service sends to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum ServiceMessage {
    /// The answer to `auth`.
    AuthResponse(AuthResponse),
    /// Every sample of the `metrics` messages up to `seq` is durable.
    Ack {
        /// The highest `seq` that is covered.
        seq: u64,
    },
    /// Somebody watches the server: asks for live samples for a short time. The service repeats it while that is so. An agent
    /// whose configuration permits less sends less.
    Watched {
        /// The interval between two samples, live ones or others.
        interval_seconds: f64,
        /// How long from now on; 0 ends it.
        for_seconds: f64,
    },
    /// Runs a command.
    Execute(Execute),
    /// Ends a running command.
    Cancel {
        /// The command to end.
        command_id: Uuid,
    },
    /// The service has stored the result of this command, so the agent may forget it.
    ResultAck {
        /// The command whose result is stored.
        command_id: Uuid,
    },
    /// Asks a question.
    Request(Request),
    /// Withdraws a request: the caller no longer waits. An agent that does not know the request ignores this, and the service
    /// drops a late response.
    RequestCancel {
        /// The request to withdraw.
        request_id: Uuid,
    },
    /// Starts to stream a log.
    LogsStart(LogsStart),
    /// Ends the stream of a log.
    LogsStop {
        /// The stream to end.
        stream_id: Uuid,
    },
    /// Opens a terminal.
    TerminalStart(TerminalStart),
    /// Keyboard input for a terminal.
    TerminalInput {
        /// The terminal.
        stream_id: Uuid,
        /// What the user typed.
        data: String,
    },
    /// Changes the size of a terminal.
    TerminalResize {
        /// The terminal.
        stream_id: Uuid,
        /// The new size.
        #[serde(flatten)]
        size: TerminalSize,
    },
    /// Closes a terminal.
    TerminalStop {
        /// The terminal.
        stream_id: Uuid,
    },
    /// Allows the agent to send that many more bytes of this stream's text.
    Credit {
        /// The stream.
        stream_id: Uuid,
        /// How many bytes more.
        bytes: u64,
    },
    /// The service has noted the recording of this terminal, so the agent need not report it again.
    RecordedAck {
        /// The terminal.
        stream_id: Uuid,
    },
}

impl Message for ServiceMessage {
    const TYPES: &'static [&'static str] = &[
        "auth_response",
        "ack",
        "watched",
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
        "recorded_ack",
    ];

    fn read(encoding: Encoding, bytes: &[u8]) -> Result<Self, FrameError> {
        encoding.read(bytes)
    }

    fn write(&self, encoding: Encoding) -> Result<Bytes, FrameError> {
        encoding.write(self)
    }
}

/// A batch of samples, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Rises with every message of an agent. An `ack` covers every message up to the `seq` that it names. After an outage the
    /// agent sends live samples before those of the outage, so messages are not ordered by the time of their samples.
    pub seq: u64,
    /// At most [`MAX_SAMPLES`].
    pub samples: Vec<Sample>,
    /// The agent's clock when it wrote this. The service keeps deriving the clock's offset from it, because samples may be old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
}

/// Something that happened on the machine. The fields beside `kind` depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// What happened, such as `container`.
    pub kind: String,
    /// The other fields of the event's `data`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Event {
    /// Removes the characters from every text, the names of fields included, that a name may not have.
    pub fn clean(&mut self) {
        text::clean(&mut self.kind);
        clean_map(&mut self.fields, MAX_DEPTH);
    }
}

/// How deep an event may nest. Nothing reads what lies deeper, so it becomes null.
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
