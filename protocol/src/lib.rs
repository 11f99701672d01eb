//! The wire: every message that an agent, the service or a dashboard sends, and how it is encoded.
//!
//! A message is `{"type": "...", "data": {...}}` in both directions and on every socket. Text frames are JSON; binary frames
//! are the same maps with the same keys in MessagePack. This crate knows no socket, no clock and no database, so that the
//! service, the agent, the tests and the load generator can all use it.
//!
//! - [`agent`]: what agents and the service say to each other
//! - [`container`]: questions about containers and their answers
//! - [`frontend`]: what the service and dashboards say to each other
//! - [`sample`]: one reading of one server, and what makes it valid
//! - [`series`]: what an agent measures beyond the fields of a sample
//! - [`signed`]: what operators have signed
//! - [`traffic`]: which interfaces of a sample make up the machine's traffic
//! - [`codec`]: JSON and MessagePack, and how a reader treats a message that it does not understand
//! - [`text`]: which characters a name may have
//! - [`timestamp`]: the one form of time on the wire
//! - [`close`]: close codes

#![deny(missing_docs)]

pub mod agent;
pub mod alert;
pub mod close;
pub mod codec;
pub mod container;
pub mod frontend;
pub mod sample;
pub mod series;
pub mod signed;
pub mod text;
pub mod timestamp;
pub mod traffic;

pub use codec::{Decoded, Encoding, FrameError};
pub use sample::Sample;
pub use timestamp::Timestamp;

/// The protocol version that this build speaks. It also understands a peer that is one version older.
pub const PROTOCOL_VERSION: u32 = 1;

/// The oldest protocol version that this build understands.
pub const OLDEST_PROTOCOL_VERSION: u32 = 1;

/// The largest message, in bytes, that either side accepts after authentication.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// The largest message, in bytes, before authentication. The longest `auth` message has 10 KiB of commands that its agent holds
/// and 6 KiB of signers at most, and a peer that has not shown a key yet gets no more memory than this.
pub const MAX_AUTH_MESSAGE_BYTES: usize = 16 * 1024;
