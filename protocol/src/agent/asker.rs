//! Who asks.

use serde::{Deserialize, Serialize};

/// The person who asks the service, as policies name people. The agent has the service's word for it alone: where
/// that does not suffice, signatures are needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// The user's name.
    pub user: String,
    /// The names of the user's teams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<String>,
}
