//! Terminals that the agent has recorded.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Asker;
use crate::Timestamp;
use crate::text::clean;

/// The method that lists recordings.
pub const LIST_RECORDINGS: &str = "recordings.list";

/// The method that reads a piece of a recording.
pub const READ_RECORDING: &str = "recordings.read";

/// The longest piece of a recording, in bytes.
pub const MAX_RECORDING_PIECE: usize = 128 * 1024;

/// The longest recording, in bytes.
pub const MAX_RECORDING_BYTES: u64 = 16 * 1024 * 1024;

/// The most recordings of one list.
pub const MAX_RECORDINGS_LISTED: u32 = 500;

/// A terminal that has ended, and its recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TerminalRecorded {
    /// The terminal.
    pub stream_id: Uuid,
    /// Who opened it, as the service said then.
    #[serde(default)]
    pub by: String,
    /// When it was opened, in whole seconds.
    pub started_at: Timestamp,
    /// The time from then to the last event of the recording.
    pub seconds: f64,
    /// The length of the file.
    pub bytes: u64,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// The terminal's size at its beginning.
    pub columns: u16,
    /// The terminal's size at its beginning.
    pub rows: u16,
    /// Whether the agent was killed in between, so that its next start ended the recording. Nobody can say whether the file
    /// was changed until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl TerminalRecorded {
    /// Removes the characters from its texts that a name may not have.
    pub fn clean(&mut self) {
        clean(&mut self.by);
        clean(&mut self.sha256);
    }

    /// Whether its hash is one, its time a time, and its length one that a recording can have.
    pub fn is_sound(&self) -> bool {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        self.sha256.len() == 64
            && self.sha256.bytes().all(is_digit)
            && self.seconds.is_finite()
            && self.seconds >= 0.0
            && self.bytes <= MAX_RECORDING_BYTES
    }
}

/// The parameters of [`LIST_RECORDINGS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRecordings {
    /// At most [`MAX_RECORDINGS_LISTED`].
    pub limit: u32,
    /// How many of the newest to leave out.
    #[serde(default)]
    pub offset: u64,
    /// The person who asks, for a policy that names people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
}

/// The recordings of terminals that have ended, newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecordingsListed {
    /// Those that were asked for.
    pub recordings: Vec<TerminalRecorded>,
    /// How many there are.
    pub total: u64,
}

/// The parameters of [`READ_RECORDING`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRecording {
    /// The terminal whose recording is read.
    pub recording_id: Uuid,
    /// How many bytes precede the piece.
    #[serde(default)]
    pub offset: u64,
    /// The person who asks, for a policy that names people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
}

/// A piece of a recording. It ends between two characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingPiece {
    /// At most [`MAX_RECORDING_PIECE`] bytes; empty at the end of the file.
    pub data: String,
    /// The length of the whole file.
    pub bytes: u64,
}
