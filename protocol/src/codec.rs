//! JSON and MessagePack, and how a reader treats a message that it does not understand.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How many levels of lists and maps a reader of MessagePack follows, as many as serde_json. Bytes that only open lists must
/// not exhaust a thread's stack.
pub const MAX_DEPTH: usize = 128;

/// How the messages of one connection are written. The service answers in the encoding of the agent's first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Text frames.
    #[default]
    Json,
    /// Binary frames: the same maps with the same keys. Ids and timestamps are strings here, too.
    MessagePack,
}

/// A message that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded<T> {
    /// A message of a known type.
    Known(T),
    /// A well-formed message of a type that this build does not know. The reader ignores and counts it, and it is never an
    /// error, so that a newer peer can send more.
    Unknown,
}

/// Why a message could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The bytes are not of the encoding, or the data does not fit the message's type.
    #[error("malformed message: {0}")]
    Malformed(String),
    /// The message has a value that the encoding cannot express.
    #[error("message cannot be encoded: {0}")]
    Unencodable(String),
}

/// The envelope alone, to distinguish an unknown type from a broken message.
#[derive(Deserialize)]
struct Envelope {
    r#type: String,
}

/// An enum of messages, which knows the names of its types.
///
/// What reads and writes it is not generic, so that it is compiled once, in this crate, and not in each crate that has messages.
pub trait Message: Sized {
    /// Every value of `type` that this build understands.
    const TYPES: &'static [&'static str];

    /// Reads one message.
    fn read(encoding: Encoding, bytes: &[u8]) -> Result<Self, FrameError>;

    /// Writes it.
    fn write(&self, encoding: Encoding) -> Result<Bytes, FrameError>;
}

impl Encoding {
    /// Reads one message, in one pass; only a message that does not fit is parsed a second time, for its type.
    pub fn decode<T: Message>(self, bytes: &[u8]) -> Result<Decoded<T>, FrameError> {
        let error = match T::read(self, bytes) {
            Ok(message) => return Ok(Decoded::Known(message)),
            Err(error) => error,
        };
        match self.type_of(bytes) {
            Some(name) if !T::TYPES.contains(&name.as_str()) => Ok(Decoded::Unknown),
            _ => Err(error),
        }
    }

    /// The type of a message that does not fit, if there is one.
    fn type_of(self, bytes: &[u8]) -> Option<String> {
        self.read::<Envelope>(bytes).ok().map(|envelope| envelope.r#type)
    }

    /// Writes one message.
    pub fn encode<T: Message>(self, message: &T) -> Result<Bytes, FrameError> {
        message.write(self)
    }

    pub(crate) fn read<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, FrameError> {
        match self {
            Self::Json => serde_json::from_slice(bytes).map_err(|error| FrameError::Malformed(error.to_string())),
            Self::MessagePack => {
                let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes).with_human_readable();
                deserializer.set_max_depth(MAX_DEPTH);
                T::deserialize(&mut deserializer).map_err(|error| FrameError::Malformed(error.to_string()))
            }
        }
    }

    pub(crate) fn write<T: Serialize>(self, message: &T) -> Result<Bytes, FrameError> {
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
}
