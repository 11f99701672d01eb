//! The state directory: it belongs to one agent, nobody else can read its files, and a disk that hangs under it blocks nothing.

mod directory;
mod disk_worker;

pub use directory::{OpenError, StateDir, Usage, close_to_others, open_regular};
pub use disk_worker::{DiskWorker, Opening, Presence, WAIT};
