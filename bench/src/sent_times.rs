//! When the samples of one server were sent, so that a dashboard can calculate the time in transit of each.

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
    /// Records that the sample taken at `time` is being sent now.
    pub fn note(&self, time: Timestamp) {
        self.lock().push((time, Instant::now()));
    }

    /// How long ago the sample taken at `time` was sent; none for another sample.
    pub fn age(&self, time: Timestamp) -> Option<Duration> {
        let times = self.lock();
        let found = times.binary_search_by_key(&time, |(sent, _)| *sent).ok()?;
        times.get(found).map(|(_, since)| since.elapsed())
    }

    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// No code panics while it holds the lock, and nobody can see a half-made push.
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
