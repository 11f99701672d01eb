//! What the service and dashboards say to each other.

use serde::{Deserialize, Serialize};

use crate::agent::Event;
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
    /// Messages that this reader was too slow for.
    Dropped {
        count: u64,
    },
    Error {
        code: String,
        detail: String,
    },
    /// The token expires in 60 s: send `auth` with a new one.
    TokenExpiring,
}

impl Message for FeedMessage {
    const TYPES: &'static [&'static str] = &["status", "event", "dropped", "error", "token_expiring"];
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
