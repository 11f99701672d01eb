//! When the samples of one server were sent, so that a dashboard can tell how long each was under way.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use signalbox_protocol::Timestamp;

/// Moments of sending by a sample's time, on the monotonic clock: the time in the sample has whole milliseconds only.
#[derive(Debug, Default)]
pub struct SentTimes {
    /// Ascending, since an agent's samples are. Bounded by the length of the run.
    times: Mutex<Vec<(Timestamp, Instant)>>,
}

impl SentTimes {
    /// Notes that the sample taken at `time` is being sent now.
    pub fn note(&self, time: Timestamp) {
        self.lock().push((time, Instant::now()));
    }

    /// How long ago the sample taken at `time` was sent. `None` when it is none of these.
    pub fn age(&self, time: Timestamp) -> Option<Duration> {
        let times = self.lock();
        let found = times.binary_search_by_key(&time, |(sent, _)| *sent).ok()?;
        times.get(found).map(|(_, since)| since.elapsed())
    }

    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Nobody panics while holding the lock, and a half-made push cannot be seen.
    fn lock(&self) -> MutexGuard<'_, Vec<(Timestamp, Instant)>> {
        self.times.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_noted_samples_have_an_age() {
        let sent_times = SentTimes::default();
        sent_times.note(Timestamp::from_millis(1000));
        sent_times.note(Timestamp::from_millis(2000));

        assert!(sent_times.age(Timestamp::from_millis(2000)).is_some());
        assert_eq!(sent_times.age(Timestamp::from_millis(1500)), None);
        assert_eq!(sent_times.count(), 2);
    }
}
