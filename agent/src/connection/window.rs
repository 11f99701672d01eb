//! Which batches are on their way, so that both sides hold only a few of them.

use std::collections::VecDeque;

use tokio::time::Instant;

/// Batches that may be unacknowledged at once: enough to keep a far-away service busy, and half a mebibyte at most.
pub const MOST_IN_FLIGHT: usize = 4;

#[derive(Debug)]
pub struct Window {
    /// The number of each batch, oldest first.
    in_flight: VecDeque<u64>,
    /// The last number that was sent on this connection, or was acknowledged before it.
    sent: u64,
    /// When the service last acknowledged something, or was last owed nothing.
    progress: Instant,
}

impl Window {
    /// Starts behind `acked`: everything after it is sent again.
    pub fn new(acked: u64) -> Self {
        Self { in_flight: VecDeque::new(), sent: acked, progress: Instant::now() }
    }

    pub fn is_open(&self) -> bool {
        self.in_flight.len() < MOST_IN_FLIGHT
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn push(&mut self, seq: u64) {
        if self.in_flight.is_empty() {
            self.progress = Instant::now();
        }
        self.in_flight.push_back(seq);
        self.sent = seq;
    }

    /// Takes an acknowledgement; gives the number up to which it is believed: never beyond what was sent.
    pub fn ack(&mut self, seq: u64) -> u64 {
        while self.in_flight.front().is_some_and(|oldest| *oldest <= seq) {
            self.in_flight.pop_front();
            self.progress = Instant::now();
        }
        seq.min(self.sent)
    }

    /// Since when the service owes an acknowledgement.
    pub fn waiting_since(&self) -> Option<Instant> {
        (!self.in_flight.is_empty()).then_some(self.progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_closes_at_its_bound_and_opens_with_an_ack() {
        let mut window = Window::new(10);
        (0..MOST_IN_FLIGHT).for_each(|number| window.push(11 + number as u64));

        let closed = window.is_open();
        let believed = window.ack(12);

        assert!(!closed && window.is_open());
        assert_eq!((believed, window.sent()), (12, 14));
    }

    #[test]
    fn an_ack_beyond_what_was_sent_frees_only_what_was_sent() {
        let mut window = Window::new(10);
        window.push(11);

        assert_eq!(window.ack(u64::MAX), 11);
        assert_eq!(window.waiting_since(), None);
    }

    #[test]
    fn an_old_ack_changes_nothing() {
        let mut window = Window::new(10);
        window.push(11);

        assert_eq!(window.ack(3), 3);
        assert!(window.waiting_since().is_some());
    }
}
