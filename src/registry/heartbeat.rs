//! When a peer was last heard. Read from outside, because an actor stands still when its peer stops reading.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shared by a socket, which updates it, and by the code that watches the socket.
#[derive(Debug)]
pub struct Heartbeat {
    born: Instant,
    /// Milliseconds after `born`.
    last_ms: AtomicU64,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { born: Instant::now(), last_ms: AtomicU64::new(0) }
    }
}

impl Heartbeat {
    /// Notes that the peer sent something.
    pub fn beat(&self) {
        self.last_ms.store(self.age_ms(), Ordering::Relaxed);
    }

    /// How long the peer was silent while the service ran. After the service was paused, only the time since it resumed
    /// counts: what the peer sent during the pause is still in its socket, which is read first.
    pub fn silence(&self, resumed: Option<Duration>) -> Duration {
        let silence = Duration::from_millis(self.age_ms().saturating_sub(self.last_ms.load(Ordering::Relaxed)));
        resumed.map_or(silence, |resumed| silence.min(resumed))
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
