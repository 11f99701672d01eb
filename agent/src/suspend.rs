//! Detects that the machine slept: its connections are dead then, however alive they look.
//!
//! The monotonic clock stops while the machine is suspended, the boot-time clock does not. Where a hypervisor paused the whole
//! machine both stopped, and only the wall clock shows it, once corrected.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use signalbox_protocol::Timestamp;

/// A smaller jump may be a correction of the clock; a connection survives such a pause anyway.
const SHORTEST_SUSPEND: Duration = Duration::from_secs(10);

/// The three clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    pub monotonic: Duration,
    pub boot_time: Duration,
    pub wall: Duration,
}

impl Clocks {
    pub fn now() -> Self {
        let read = |clock| {
            let time = clock_gettime(clock);
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
        };
        let wall = u64::try_from(Timestamp::now().as_millis()).map(Duration::from_millis).unwrap_or_default();
        Self { monotonic: read(ClockId::Monotonic), boot_time: read(ClockId::Boottime), wall }
    }

    /// How much more the boot-time or the wall clock has advanced since `earlier` than the monotonic clock.
    fn jump_since(self, earlier: Self) -> Duration {
        let awake = self.monotonic.saturating_sub(earlier.monotonic);
        let boot_time = self.boot_time.saturating_sub(earlier.boot_time);
        let wall = self.wall.saturating_sub(earlier.wall);
        boot_time.max(wall).saturating_sub(awake)
    }
}

/// Compares each reading of the clocks with the previous one.
#[derive(Debug)]
pub struct SuspendWatch {
    last: Clocks,
}

impl SuspendWatch {
    pub fn new(now: Clocks) -> Self {
        Self { last: now }
    }

    /// How long the machine slept since the last call, if it did.
    pub fn observe(&mut self, now: Clocks) -> Option<Duration> {
        let jump = now.jump_since(self.last);
        self.last = now;
        (jump >= SHORTEST_SUSPEND).then_some(jump)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(monotonic: u64, boot_time: u64, wall: u64) -> Clocks {
        let seconds = Duration::from_secs;
        Clocks { monotonic: seconds(monotonic), boot_time: seconds(boot_time), wall: seconds(wall) }
    }

    #[test]
    fn time_that_passed_for_every_clock_is_no_suspend() {
        let mut watch = SuspendWatch::new(clocks(100, 100, 1000));

        assert_eq!(watch.observe(clocks(5000, 5000, 5900)), None);
    }

    #[test]
    fn a_sleeping_laptop_shows_in_the_boot_time_clock() {
        let mut watch = SuspendWatch::new(clocks(100, 100, 1000));

        assert_eq!(watch.observe(clocks(105, 3705, 1005)), Some(Duration::from_secs(3600)));
        assert_eq!(watch.observe(clocks(110, 3710, 1010)), None, "noticed once");
    }

    #[test]
    fn a_paused_virtual_machine_shows_in_the_wall_clock() {
        let mut watch = SuspendWatch::new(clocks(100, 100, 1000));

        assert_eq!(watch.observe(clocks(105, 105, 1065)), Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_clock_that_is_corrected_a_little_or_back_is_no_suspend() {
        let mut watch = SuspendWatch::new(clocks(100, 100, 1000));

        assert_eq!(watch.observe(clocks(105, 105, 1014)), None);
        assert_eq!(watch.observe(clocks(110, 110, 10)), None);
    }

    #[test]
    fn the_real_clocks_agree_with_each_other() {
        let mut watch = SuspendWatch::new(Clocks::now());

        assert_eq!(watch.observe(Clocks::now()), None);
    }
}
