//! The state directory: it belongs to one agent, nobody else can read its files, and a disk that hangs under it blocks nothing.

mod desk;
mod directory;

pub use desk::{Desk, Opening, Presence, WAIT};
pub use directory::{OpenError, StateDir, close_to_others};
