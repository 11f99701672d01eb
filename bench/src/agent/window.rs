//! The messages that an agent has sent and that are not acknowledged.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Unacknowledged batches, oldest first.
#[derive(Debug, Default)]
pub struct Window {
    sent: VecDeque<(u64, Instant)>,
}

impl Window {
    pub fn sent(&mut self, seq: u64) {
        self.sent.push_back((seq, Instant::now()));
    }

    /// Removes what an ack covers: every batch up to `seq`, each with its time in flight.
    pub fn acknowledged(&mut self, seq: u64) -> impl Iterator<Item = Duration> {
        let covered = self.sent.partition_point(|(sent, _)| *sent <= seq);
        self.sent.drain(..covered).map(|(_, since)| since.elapsed())
    }

    pub fn len(&self) -> usize {
        self.sent.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_covers_every_batch_up_to_its_own() {
        let mut window = Window::default();
        (1..=4).for_each(|seq| window.sent(seq));

        let first = window.acknowledged(3).count();
        let again = window.acknowledged(3).count();

        assert_eq!((first, again, window.len()), (3, 0, 1));
    }
}
