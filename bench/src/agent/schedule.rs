//! The time of each batch.

use std::sync::Arc;

use signalbox_protocol::Timestamp;

/// Batches from several time ranges in turns, so that old hours are written at the same time as the current one. Clones share
/// it.
#[derive(Debug, Clone)]
pub struct Schedule(Arc<[Timestamp]>);

impl Schedule {
    /// The beginning of each range. They must be further apart than a run fills them.
    pub fn in_turns(beginnings: impl IntoIterator<Item = Timestamp>) -> Self {
        Self(beginnings.into_iter().collect())
    }

    /// When the batch of this number, from 0 on, begins; each is `length_ms` long.
    pub fn batch(&self, number: u64, length_ms: i64) -> Timestamp {
        let stretches = self.0.len().max(1) as u64;
        let beginning = self.0.iter().cycle().nth((number % stretches) as usize).copied().unwrap_or_default();
        beginning.plus_millis((number / stretches) as i64 * length_ms)
    }
}

impl From<Timestamp> for Schedule {
    /// One stretch.
    fn from(first: Timestamp) -> Self {
        Self::in_turns([first])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_go_through_the_stretches_in_turns() {
        let schedule = Schedule::in_turns([0, 100_000].map(Timestamp::from_millis));

        let begins: Vec<i64> = (0..5).map(|number| schedule.batch(number, 1000).as_millis()).collect();

        assert_eq!(begins, [0, 100_000, 1000, 101_000, 2000]);
    }
}
