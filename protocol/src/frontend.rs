//! What the service and dashboards say to each other.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;
use crate::agent::{Event, RequestError, Stream};
use crate::alert::Alert;
use crate::codec::{Encoding, FrameError, Message};

/// Whether a server's agent is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    /// No agent has ever connected.
    Pending,
    /// An agent is connected.
    Online,
    /// No agent is connected, and one was before.
    Offline,
}

/// What the service sends to a dashboard. The list lacks `metrics`: the service writes that message once for all subscribers
/// and not from an enum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum FeedMessage {
    /// A server's status changed.
    Status {
        /// The new status.
        status: ServerStatus,
    },
    /// Something happened on the server: `{"kind": "container", "action": "die", ...}`.
    Event(Event),
    /// An alert was raised or changed.
    Alert(Box<Alert>),
    /// The caller's servers are others now, or alerts may have been lost: forget all of them. The unresolved ones follow.
    Alerts {},
    /// A line of a log.
    Log {
        /// `system`, `container` or `file`.
        source: String,
        /// When the line was written, where its source says so.
        timestamp: Option<Timestamp>,
        /// `stdout`, `stderr`, or the program that wrote it; null where there is only one.
        stream: Option<String>,
        /// The text, without the line's end.
        message: String,
    },
    /// Messages are missing: this reader was too slow for them, or they were lost on the way.
    Dropped {
        /// How many messages.
        count: u64,
    },
    /// The service refused something, or a stream broke.
    Error {
        /// For programs, as in the REST API.
        code: String,
        /// For people.
        detail: String,
        /// Of a terminal: why signatures did not suffice, as in the REST API.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// What a command or a terminal wrote.
    Output {
        /// Of a command: which stream it wrote to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stream: Option<Stream>,
        /// The text. Bytes that are not UTF-8 are replaced.
        data: String,
        /// Of a command, and of a terminal that is kept: how many bytes of its output come before this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
    },
    /// A part of the output of a command or a terminal was not kept.
    LeftOut {
        /// How many bytes are missing here.
        bytes: u64,
    },
    /// How a command ended. No message follows.
    Result(CommandEnded),
    /// A terminal is kept for a while when its connection is lost. The first message of such a terminal, and of one that was
    /// resumed.
    Kept {
        /// The terminal, as the audit log names it.
        terminal_id: Uuid,
        /// What resumes it. Anyone who has it and the rights of the account can resume the terminal.
        secret: String,
        /// For how long it is kept.
        seconds: u64,
    },
    /// A terminal's program ended. No message follows.
    Exit {
        /// The program's exit code; null where it is not known.
        exit_code: Option<i64>,
    },
    /// The caller's servers that differ from what was sent last; the first messages hold all of them.
    Fleet {
        /// The servers.
        servers: Vec<FleetServer>,
    },
    /// The list of the caller's servers has changed: read it again.
    Servers {},
    /// The token expires in 60 s: send `auth` with a new one.
    TokenExpiring,
    /// Answers `ping`. What sockets of alerts and metrics send at their beginning was sent before.
    Pong,
}

impl Message for FeedMessage {
    const TYPES: &'static [&'static str] = &[
        "status",
        "log",
        "event",
        "alert",
        "alerts",
        "dropped",
        "error",
        "output",
        "left_out",
        "result",
        "kept",
        "exit",
        "fleet",
        "servers",
        "token_expiring",
        "pong",
    ];

    fn read(encoding: Encoding, bytes: &[u8]) -> Result<Self, FrameError> {
        encoding.read(bytes)
    }

    fn write(&self, encoding: Encoding) -> Result<Bytes, FrameError> {
        encoding.write(self)
    }
}

/// One of the caller's servers: whether its agent is connected, and its latest sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetServer {
    /// The server.
    pub server_id: Uuid,
    /// Whether its agent is connected.
    pub status: ServerStatus,
    /// When its agent was last connected; null if it never was.
    pub last_seen_at: Option<Timestamp>,
    /// The time of the latest sample. Null where there is none, like every field below.
    pub timestamp: Option<Timestamp>,
    /// 0 to 100, over all cores.
    pub cpu_percent: Option<f64>,
    /// 0 to 100.
    pub memory_percent: Option<f64>,
    /// 0 to 100, of the fullest disk.
    pub disk_percent: Option<f64>,
    /// The load average over one minute.
    pub load_1: Option<f64>,
    /// Bytes per second that the machine received, over all interfaces but the loopback, between the last two samples. Null
    /// across a gap and where the counters began again at 0.
    pub network_in: Option<f64>,
    /// Bytes per second that the machine sent, as `network_in`.
    pub network_out: Option<f64>,
    /// Seconds since the machine's boot.
    pub uptime_seconds: Option<u64>,
    /// How many containers run.
    pub containers: Option<u64>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnded {
    /// The command.
    pub command_id: Uuid,
    /// `succeeded`, `failed`, `timed_out`, `cancelled`, `lost` or `skipped`.
    pub status: String,
    /// The command's exit code; null when it did not run to an end.
    pub exit_code: Option<i32>,
    /// How long it ran; null when it did not run.
    pub duration_ms: Option<u64>,
    /// Whether its output was longer than what is kept.
    pub truncated: bool,
    /// Why it did not run.
    pub error: Option<RequestError>,
}

/// What a dashboard sends to the service. The token stands beside the type; the service accepts `data.token`, too.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SubscriberMessage {
    /// Shows an access token, or a newer one before the last expires.
    Auth {
        /// The access token.
        #[serde(default)]
        token: Option<String>,
        /// The access token, in the form of other messages.
        #[serde(default)]
        data: Option<TokenData>,
    },
    /// Asks for `pong`: whether the connection still holds, and where the first alerts end.
    Ping,
}

/// The `data` of a message that carries a token.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct TokenData {
    /// The access token.
    #[serde(default)]
    pub token: Option<String>,
}
