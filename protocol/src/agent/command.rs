//! Shell commands.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Asker;
use crate::signed::Signed;

/// Runs a command in `/bin/sh -c`, at most once: an agent that already holds a command of this id does nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execute {
    /// The command's id, chosen by the service.
    pub command_id: Uuid,
    /// The text for the shell.
    pub command: String,
    /// What the command reads from its standard input; nothing when absent.
    #[serde(default)]
    pub stdin: Option<String>,
    /// How long the command may run before the agent ends it.
    pub timeout_seconds: u32,
    /// The user's name and address, for the log that the agent keeps on its own host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The person who asks, for a policy that names people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// What operators signed for it. A server whose policy says `signed` runs nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

/// A piece of a running command's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandOutput {
    /// The command that wrote it.
    pub command_id: Uuid,
    /// Where the command wrote it.
    pub stream: Stream,
    /// The text. Bytes that are not UTF-8 are replaced.
    pub data: String,
    /// How many bytes of output, of both streams together and in the order in which they came, precede this piece. A gap
    /// between two pieces is what the agent left out (the middle of a long output). After a reconnect the agent sends earlier
    /// pieces again with the same offset. Absent: this piece directly follows the one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// The command that ended.
    pub command_id: Uuid,
    /// The name of a [`CommandStatus`]; an unknown one counts as failed.
    pub status: String,
    /// 128 + n when signal n ended it, 124 when it timed out.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// How long the command ran.
    #[serde(default)]
    pub duration_ms: u64,
    /// Whether the output was longer than the agent keeps, so that its middle is missing.
    #[serde(default)]
    pub truncated: bool,
}

/// How a command ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    /// Exit code 0.
    Succeeded,
    /// Another exit code than 0, or a signal.
    Failed,
    /// It ran longer than it was allowed to, and the agent ended it.
    TimedOut,
    /// The service asked the agent to end it.
    Cancelled,
    /// The outcome is unknown: the agent ended while the command ran.
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

    /// The status of this name; none for an unknown name.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Succeeded, Self::Failed, Self::TimedOut, Self::Cancelled, Self::Lost]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

/// Where a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
