//! JSON and MessagePack, and what happens to a message that is not understood.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How many levels of lists and maps a reader of MessagePack follows, as many as serde_json: bytes that only open lists must
/// not reach the end of a thread's stack.
pub const MAX_DEPTH: usize = 128;

/// How the messages of one connection are written. The service answers in the encoding of the agent's first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Text frames.
    #[default]
    Json,
    /// Binary frames: the same maps with the same keys; ids and timestamps are strings here too.
    MessagePack,
}

/// A message that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded<T> {
    Known(T),
    /// A well-formed message of a type that this build does not know: ignored and counted, never an error, so that a
    /// newer peer can say more.
    Unknown,
}

/// Why a message could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Not of the encoding, or a known type with data that does not fit it.
    #[error("malformed message: {0}")]
    Malformed(String),
    #[error("message cannot be encoded: {0}")]
    Unencodable(String),
}

/// The envelope alone, to tell an unknown type from a broken message.
#[derive(Deserialize)]
struct Envelope {
    r#type: String,
}

/// A message enum: knows the names of its types.
pub trait Message: Serialize + DeserializeOwned {
    /// Every value of `type` that this build understands.
    const TYPES: &'static [&'static str];
}

impl Encoding {
    /// Reads one message. Costs one pass; only a message that does not fit is looked at twice.
    pub fn decode<T: Message>(self, bytes: &[u8]) -> Result<Decoded<T>, FrameError> {
        let error = match self.read::<T>(bytes) {
            Ok(message) => return Ok(Decoded::Known(message)),
            Err(error) => error,
        };
        match self.read::<Envelope>(bytes) {
            Ok(envelope) if !T::TYPES.contains(&envelope.r#type.as_str()) => Ok(Decoded::Unknown),
            _ => Err(error),
        }
    }

    pub fn encode<T: Message>(self, message: &T) -> Result<Bytes, FrameError> {
        let bytes = match self {
            Self::Json => serde_json::to_vec(message).map_err(|error| FrameError::Unencodable(error.to_string()))?,
            Self::MessagePack => {
                let mut buffer = Vec::with_capacity(256);
                let mut serializer = rmp_serde::Serializer::new(&mut buffer).with_struct_map().with_human_readable();
                message.serialize(&mut serializer).map_err(|error| FrameError::Unencodable(error.to_string()))?;
                buffer
            }
        };
        Ok(Bytes::from(bytes))
    }

    fn read<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, FrameError> {
        match self {
            Self::Json => serde_json::from_slice(bytes).map_err(|error| FrameError::Malformed(error.to_string())),
            Self::MessagePack => {
                let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes).with_human_readable();
                deserializer.set_max_depth(MAX_DEPTH);
                T::deserialize(&mut deserializer).map_err(|error| FrameError::Malformed(error.to_string()))
            }
        }
    }
}
