//! Streams that last until the service ends them: logs and terminals.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Asker;
use crate::Timestamp;
use crate::signed::Signed;

/// Starts to stream a log. The fields beside `source` depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogsStart {
    /// Chosen by the service; lines and credit name it.
    pub stream_id: Uuid,
    /// `system`, `container` or `file`.
    pub source: String,
    /// Of `container`: the id, the beginning of it, or the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// Of `file`: the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many of the existing lines come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
    /// How many bytes of lines the agent may send before it needs more credit. Absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u64>,
    /// The user's name and address, for the log that the agent keeps on its own host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Lines of a log, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLines {
    /// The stream that they belong to.
    pub stream_id: Uuid,
    /// The lines.
    pub lines: Vec<LogLine>,
    /// How many lines before these were lost.
    #[serde(default)]
    pub dropped: u64,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When the line was written, where its source says so.
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
    /// `stdout`, `stderr`, or another origin within the source; absent where there is only one.
    #[serde(default)]
    pub stream: Option<String>,
    /// The text, without the line's end.
    pub message: String,
}

impl LogLine {
    /// What the line costs of a stream's credit, in bytes: its text plus 64 for the envelope.
    pub fn cost(&self) -> u64 {
        let text = self.message.len() + self.stream.as_ref().map_or(0, String::len);
        u64::try_from(text).unwrap_or(u64::MAX).saturating_add(64)
    }
}

/// Opens a terminal: a login shell behind a pseudo-terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalStart {
    /// Chosen by the service; input, output and credit name it.
    pub stream_id: Uuid,
    /// The size at the beginning.
    #[serde(flatten)]
    pub size: TerminalSize,
    /// How many bytes of output the agent may send before it needs more credit. Absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u64>,
    /// The user's name and address, for the log that the agent keeps on its own host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The person who asks, for a policy that names people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// What operators signed for it. A server whose policy says `signed` opens no other terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

/// A terminal's size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// Output of a terminal. It never ends within a character, and bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalOutput {
    /// The terminal.
    pub stream_id: Uuid,
    /// The text, with its escape sequences.
    pub data: String,
    /// How many bytes of output come before this. Only instances of the service tell each other; what an agent says of it is
    /// ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}
