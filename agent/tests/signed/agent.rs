//! What the service that a test controls needs of its agent.

use std::time::Duration;

/// For what should happen soon, on a busy machine, too.
pub const PATIENCE: Duration = Duration::from_secs(60);
