//! Recordings of terminals: asks the agents that keep them, and accepts only answers of the expected form.

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_protocol::agent::{
    Asker, LIST_RECORDINGS, ListRecordings, MAX_RECORDING_BYTES, MAX_RECORDING_PIECE, READ_RECORDING, ReadRecording,
    RecordingPiece, RecordingsListed,
};
use uuid::Uuid;

use crate::registry::{CallError, Question, RegistryHandle};

/// The time for an answer: the agent waits for its disk for 5 s.
const DEADLINE: Duration = Duration::from_secs(15);

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    #[error("no such recording")]
    NotFound,
    #[error(transparent)]
    Call(CallError),
}

impl From<CallError> for RecordingError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Agent(error) if error.code == "not_found" => Self::NotFound,
            error => Self::Call(error),
        }
    }
}

fn invalid() -> RecordingError {
    RecordingError::Call(CallError::invalid_answer())
}

/// The recordings of one server, for a caller whose right was checked.
pub struct Recordings {
    pub registry: RegistryHandle,
    pub server_id: Uuid,
    /// The caller, for the log of the agent's own host.
    pub by: String,
    /// The same person, for a policy that names people.
    pub asker: Option<Asker>,
}

/// A recording, read from its beginning, a piece at a time: nothing is asked for before the reader has taken what came before.
pub struct Reader {
    recordings: Recordings,
    recording_id: Uuid,
    offset: u64,
    bytes: u64,
}

impl Recordings {
    /// Lists some of them, newest first.
    pub async fn list(&self, offset: u64, limit: u32) -> Result<RecordingsListed, RecordingError> {
        let params = ListRecordings { limit, offset, asker: self.asker.clone() };
        let mut listed: RecordingsListed = self.call(LIST_RECORDINGS, &params).await?;
        listed.recordings.truncate(limit as usize);
        for recorded in &mut listed.recordings {
            recorded.clean();
        }
        let mut seen = HashSet::new();
        let is_sound = listed.recordings.iter().all(|recorded| recorded.is_sound() && seen.insert(recorded.stream_id));
        if is_sound { Ok(listed) } else { Err(invalid()) }
    }

    /// Begins to read one. Also returns its first piece.
    pub async fn read(self, recording_id: Uuid) -> Result<(Reader, String), RecordingError> {
        let first = self.piece(recording_id, 0).await?;
        let offset = first.data.len() as u64;
        let reader = Reader { recordings: self, recording_id, offset, bytes: first.bytes };
        let is_sound = offset <= reader.bytes && reader.bytes <= MAX_RECORDING_BYTES;
        if is_sound { Ok((reader, first.data)) } else { Err(invalid()) }
    }

    async fn piece(&self, recording_id: Uuid, offset: u64) -> Result<RecordingPiece, RecordingError> {
        let params = ReadRecording { recording_id, offset, asker: self.asker.clone() };
        let piece: RecordingPiece = self.call(READ_RECORDING, &params).await?;
        if piece.data.len() > MAX_RECORDING_PIECE { Err(invalid()) } else { Ok(piece) }
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<T, RecordingError> {
        let params = serde_json::to_value(params).unwrap_or(Value::Null);
        let question = Question { method, params, deadline: DEADLINE, by: Some(self.by.clone()) };
        Ok(self.registry.ask(self.server_id, question).await?)
    }
}

impl Reader {
    /// The length of the whole recording.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next piece. None at the end; an error where the file has ended early, or has become longer.
    pub async fn next(&mut self) -> Result<Option<String>, RecordingError> {
        if self.offset >= self.bytes {
            return Ok(None);
        }
        let RecordingPiece { data, bytes } = self.recordings.piece(self.recording_id, self.offset).await?;
        self.offset += data.len() as u64;
        if data.is_empty() || bytes != self.bytes || self.offset > self.bytes {
            return Err(invalid());
        }
        Ok(Some(data))
    }
}
