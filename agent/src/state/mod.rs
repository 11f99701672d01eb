//! The state directory: it is one agent's alone, nobody else reads what lies in it, and a disk that hangs under it holds
//! up nobody.

mod desk;
mod directory;

pub use desk::{Desk, Opening, Presence, WAIT};
pub use directory::{OpenError, StateDir, close_to_others};
