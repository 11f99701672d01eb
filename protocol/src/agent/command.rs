//! Shell commands.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Runs a command in `/bin/sh -c`, at most once: an agent that holds a command of this id already does nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execute {
    pub command_id: Uuid,
    pub command: String,
    #[serde(default)]
    pub stdin: Option<String>,
    pub timeout_seconds: u32,
    /// Who asks, for the log that the agent keeps on its own host: a user's name and address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A piece of a running command's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandOutput {
    pub command_id: Uuid,
    pub stream: Stream,
    pub data: String,
    /// How many bytes of output, both streams together and in the order they came, lie before this piece. What lies
    /// between two pieces was left out by the agent (the middle of a long output); what was sent before, on an earlier
    /// connection, is sent again with the same offset. Absent: right after the piece before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    pub command_id: Uuid,
    /// One of [`CommandStatus`]; another counts as failed.
    pub status: String,
    /// 128 + n when signal n ended it, 124 when it took too long.
    #[serde(default)]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub duration_ms: u64,
    /// The output was longer than is kept, and its middle was left out.
    #[serde(default)]
    pub truncated: bool,
}

/// How a command ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    /// Exit code 0.
    Succeeded,
    Failed,
    TimedOut,
    Cancelled,
    /// Nobody knows: the agent was ended while it ran.
    Lost,
}

impl CommandStatus {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// The status of this name.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Succeeded, Self::Failed, Self::TimedOut, Self::Cancelled, Self::Lost]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}
