//! The clocks of this machine at one moment, and what changed between two readings.

use std::sync::LazyLock;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use signalbox_protocol::Timestamp;

/// The monotonic clock counts from the first reading.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A check that is late by this much means that the service did not run. Nothing delays a running service for so long.
const PAUSED_FROM_MS: i64 = 10_000;

/// If the wall clock advanced by this much more or less than the others, it was set. Gradual corrections stay below
/// this.
const SET_FROM_MS: i64 = 5_000;

/// Three clocks, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Stops while the machine is suspended.
    pub monotonic_ms: i64,
    /// Continues while the machine is suspended, and is never set.
    pub boot_ms: i64,
    /// Since the Unix epoch; may be set at any time.
    pub wall_ms: i64,
}

/// What two readings show apart from the passage of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disturbance {
    /// For how long the service did not run; 0 if it ran.
    pub paused_ms: i64,
    /// How far the wall clock was set, forward or back; 0 if it was not set.
    pub set_by_ms: i64,
}

/// Compares each reading of the clocks with the previous one. It must be called about every second.
#[derive(Debug)]
pub struct Watch {
    last: Reading,
}

impl Reading {
    pub fn now() -> Self {
        let boot = clock_gettime(ClockId::Boottime);
        Self {
            monotonic_ms: i64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(i64::MAX),
            boot_ms: boot.tv_sec.saturating_mul(1_000).saturating_add(boot.tv_nsec / 1_000_000),
            wall_ms: Timestamp::now().as_millis(),
        }
    }
}

impl Watch {
    pub fn new(now: Reading) -> Self {
        Self { last: now }
    }

    /// What happened since the last reading; `None` if nothing did.
    pub fn look(&mut self, now: Reading) -> Option<Disturbance> {
        let last = std::mem::replace(&mut self.last, now);
        let elapsed_ms = (now.boot_ms - last.boot_ms).max(now.monotonic_ms - last.monotonic_ms);
        let set_by_ms = now.wall_ms - last.wall_ms - elapsed_ms;
        let disturbance = Disturbance {
            paused_ms: if elapsed_ms >= PAUSED_FROM_MS { elapsed_ms } else { 0 },
            set_by_ms: if set_by_ms.abs() >= SET_FROM_MS { set_by_ms } else { 0 },
        };
        (disturbance != Disturbance::default()).then_some(disturbance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(monotonic_s: i64, boot_s: i64, wall_s: i64) -> Reading {
        Reading { monotonic_ms: monotonic_s * 1_000, boot_ms: boot_s * 1_000, wall_ms: wall_s * 1_000 }
    }

    #[test]
    fn time_that_passes_equally_is_no_disturbance() {
        let mut watch = Watch::new(reading(10, 10, 1_000));

        assert_eq!(watch.look(reading(11, 11, 1_001)), None);
        assert_eq!(watch.look(reading(19, 19, 1_013)), None, "a little late, and corrected a little");
    }

    #[test]
    fn a_stopped_process_shows_in_a_late_reading() {
        let mut watch = Watch::new(reading(10, 10, 1_000));

        assert_eq!(watch.look(reading(130, 130, 1_120)), Some(Disturbance { paused_ms: 120_000, set_by_ms: 0 }),);
        assert_eq!(watch.look(reading(131, 131, 1_121)), None, "noticed once");
    }

    #[test]
    fn a_suspended_machine_shows_in_the_boot_time() {
        let mut watch = Watch::new(reading(10, 10, 1_000));

        assert_eq!(watch.look(reading(11, 3_611, 4_601)), Some(Disturbance { paused_ms: 3_601_000, set_by_ms: 0 }));
    }

    #[test]
    fn a_clock_that_is_set_shows_in_either_direction() {
        let mut watch = Watch::new(reading(10, 10, 1_000));

        assert_eq!(watch.look(reading(11, 11, 8_201)), Some(Disturbance { paused_ms: 0, set_by_ms: 7_200_000 }));
        assert_eq!(watch.look(reading(12, 12, 1_002)), Some(Disturbance { paused_ms: 0, set_by_ms: -7_200_000 }));
    }

    #[test]
    fn the_real_clocks_agree_with_each_other() {
        let mut watch = Watch::new(Reading::now());

        assert_eq!(watch.look(Reading::now()), None);
    }
}
