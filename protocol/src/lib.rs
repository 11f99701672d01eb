//! The wire: every message that an agent, the service or a dashboard sends, and how it is encoded.
//!
//! A message is `{"type": "...", "data": {...}}` in both directions and on every socket. Text frames are JSON, binary
//! frames are the same maps with the same keys in MessagePack. This crate knows no socket, no clock and no database,
//! so that the service, the agent, the tests and the load generator can all stand on it.
//!
//! - [`agent`]: what agents and the service say to each other
//! - [`container`]: what is asked and told of containers
//! - [`frontend`]: what the service and dashboards say to each other
//! - [`sample`]: one reading of one server, and what makes it valid
//! - [`series`]: what an agent measures beyond the fields of a sample
//! - [`traffic`]: which interfaces of a sample make up the machine's traffic
//! - [`codec`]: JSON and MessagePack, and what happens to a message that is not understood
//! - [`text`]: what may stand in a name
//! - [`timestamp`]: the one form of time on the wire
//! - [`close`]: close codes

pub mod agent;
pub mod alert;
pub mod close;
pub mod codec;
pub mod container;
pub mod frontend;
pub mod sample;
pub mod series;
pub mod text;
pub mod timestamp;
pub mod traffic;

pub use codec::{Decoded, Encoding, FrameError};
pub use sample::Sample;
pub use timestamp::Timestamp;

/// The protocol version that this build speaks. A peer one version older is understood too.
pub const PROTOCOL_VERSION: u32 = 1;

/// The oldest protocol version that is still understood.
pub const OLDEST_PROTOCOL_VERSION: u32 = 1;

/// The largest message, in bytes, that either side accepts after authentication.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// The largest message, in bytes, before authentication: an `auth` message is far below 1 KiB, and whoever has
/// not shown a key yet gets no more memory than this.
pub const MAX_AUTH_MESSAGE_BYTES: usize = 16 * 1024;
