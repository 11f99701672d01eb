//! What the service and dashboards say to each other.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;
use crate::agent::{Event, RequestError, Stream};
use crate::alert::Alert;
use crate::codec::Message;

/// Whether a server's agent is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    /// No agent has ever connected.
    Pending,
    Online,
    Offline,
}

/// Service to dashboard. A `metrics` message carries a snapshot, which the service writes itself (once, for every
/// subscriber), so it is not in this list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum FeedMessage {
    Status {
        status: ServerStatus,
    },
    /// Something happened on the server: `{"kind": "container", "action": "die", ...}`.
    Event(Event),
    /// An alert was raised, or changed.
    Alert(Box<Alert>),
    /// A line of a log. `source` is `system`, `container` or `file`.
    Log {
        source: String,
        timestamp: Option<Timestamp>,
        /// `stdout` or `stderr`, or what program it comes from; null where there is only one.
        stream: Option<String>,
        message: String,
    },
    /// Messages that this reader was too slow for, or that were lost on the way.
    Dropped {
        count: u64,
    },
    Error {
        code: String,
        detail: String,
    },
    /// What a command or a terminal wrote. Of a command: which stream, and how many bytes came before.
    Output {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stream: Option<Stream>,
        data: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
    },
    /// So many bytes of a command's output are not kept: its middle.
    LeftOut {
        bytes: u64,
    },
    /// How a command ended. Nothing comes after it.
    Result(CommandEnded),
    /// A terminal's program ended. Nothing comes after it.
    Exit {
        exit_code: Option<i64>,
    },
    /// Those of your servers that are different from what was told last; in the first messages all.
    Fleet {
        servers: Vec<FleetServer>,
    },
    /// The list of your servers has changed: read it again.
    Servers {},
    /// The token expires in 60 s: send `auth` with a new one.
    TokenExpiring,
}

impl Message for FeedMessage {
    const TYPES: &'static [&'static str] = &[
        "status",
        "log",
        "event",
        "alert",
        "dropped",
        "error",
        "output",
        "left_out",
        "result",
        "exit",
        "fleet",
        "servers",
        "token_expiring",
    ];
}

/// A server among all of its owner's: whether its agent is there, and what its latest sample says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetServer {
    pub server_id: Uuid,
    pub status: ServerStatus,
    pub last_seen_at: Option<Timestamp>,
    /// Of the latest sample. Null where there is none, as everything below.
    pub timestamp: Option<Timestamp>,
    pub cpu_percent: Option<f64>,
    pub memory_percent: Option<f64>,
    /// Of the fullest disk.
    pub disk_percent: Option<f64>,
    /// Over one minute.
    pub load_1: Option<f64>,
    /// Bytes a second over all interfaces but the loopback, between the last two samples. Null over a gap and where the
    /// counters began anew.
    pub network_in: Option<f64>,
    pub network_out: Option<f64>,
    pub uptime_seconds: Option<u64>,
    /// How many there are.
    pub containers: Option<u64>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnded {
    pub command_id: Uuid,
    /// `succeeded`, `failed`, `timed_out`, `cancelled`, `lost` or `skipped`.
    pub status: String,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<u64>,
    pub truncated: bool,
    pub error: Option<RequestError>,
}

/// Dashboard to service. The token stands beside the type; `data.token` is taken too.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SubscriberMessage {
    Auth {
        #[serde(default)]
        token: Option<String>,
        #[serde(default)]
        data: Option<TokenData>,
    },
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct TokenData {
    pub token: String,
}

impl SubscriberMessage {
    /// The new access token, wherever it stood.
    pub fn into_token(self) -> Option<String> {
        let Self::Auth { token, data } = self;
        token.or_else(|| data.map(|data| data.token))
    }
}
