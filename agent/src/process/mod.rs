//! Programs that the service asked for: in a group of their own, without the agent's secrets, ended with all their children.

mod environment;
mod group;
mod members;

pub use environment::names_to_leave_out;
pub use group::Group;
pub use members::{Identity, is_alive, terminate};
