//! When a peer was last heard. Judged from outside, because an actor whose peer stops reading stands still.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shared by a socket, which beats it, and by whoever watches over it.
#[derive(Debug)]
pub struct Pulse {
    born: Instant,
    /// Milliseconds after `born`.
    last_ms: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self { born: Instant::now(), last_ms: AtomicU64::new(0) }
    }
}

impl Pulse {
    /// The peer said something, anything.
    pub fn beat(&self) {
        self.last_ms.store(self.age_ms(), Ordering::Relaxed);
    }

    /// For how long the peer has said nothing while there was somebody to hear it. What it said while the service was
    /// paused, a pause that ended so long ago, lies in its socket, which is read first.
    pub fn silence(&self, resumed: Option<Duration>) -> Duration {
        let silence = Duration::from_millis(self.age_ms().saturating_sub(self.last_ms.load(Ordering::Relaxed)));
        resumed.map_or(silence, |resumed| silence.min(resumed))
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
