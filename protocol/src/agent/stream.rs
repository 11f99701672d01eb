//! What flows for as long as somebody watches: logs and terminals.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;

/// Starts to stream a log. The fields beside `source` depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogsStart {
    pub stream_id: Uuid,
    /// `system`, `container` or `file`.
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many of the lines that are there already come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
    /// How many bytes of lines may be sent before more credit comes. Absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u64>,
    /// Who asks, for the log that the agent keeps on its own host: a user's name and address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
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
    /// `stdout` or `stderr`, or where else in its source the line comes from; absent where there is only one.
    #[serde(default)]
    pub stream: Option<String>,
    pub message: String,
}

impl LogLine {
    /// What a line costs of a stream's credit: its text and a little for what is around it.
    pub fn cost(&self) -> u64 {
        let text = self.message.len() + self.stream.as_ref().map_or(0, String::len);
        u64::try_from(text).unwrap_or(u64::MAX).saturating_add(64)
    }
}

/// Opens a terminal: a login shell behind a pseudo-terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalStart {
    pub stream_id: Uuid,
    #[serde(flatten)]
    pub size: TerminalSize,
    /// How many bytes of output may be sent before more credit comes. Absent: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u64>,
    /// Who asks, for the log that the agent keeps on its own host: a user's name and address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// How many characters a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// What a terminal shows. Never ends within a character; what is no UTF-8 was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalOutput {
    pub stream_id: Uuid,
    pub data: String,
}
