//! What the service that a test controls needs of its agent.

use std::time::Duration;

/// For what should happen soon, on a busy machine, too. A build on trial has 60 s.
pub const PATIENCE: Duration = Duration::from_secs(100);
