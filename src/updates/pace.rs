//! The pace of rollouts.

use std::time::Duration;

/// The times of a rollout.
#[derive(Debug, Clone)]
pub struct Pace {
    /// How often rollouts are stepped: how late an offer is at most, usually.
    pub look: Duration,
    /// How long an agent may take from an offer to its connection with the build, before the offer is repeated: a download over a
    /// slow line, and a minute of trial.
    pub again: Duration,
    /// How long an agent must stay connected with the build to count as updated. The trial of a build connects for some seconds.
    pub settled: Duration,
    /// How long the last wave waits for servers that are offline.
    pub give_up: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(4),
            again: Duration::from_secs(10 * 60),
            settled: Duration::from_secs(30),
            give_up: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
