//! Takes samples from the backlog in the order in which the service should have them, and gives back to it what the
//! service acknowledges.

use bytes::Bytes;
use tokio::time::Instant;

use super::window::{Lane, Window};
use crate::backlog::Backlog;
use crate::buffer::Batch;
use crate::wire;

/// What one connection has delivered of the backlog.
pub struct Delivery<'a> {
    backlog: &'a Backlog,
    window: Window,
}

impl<'a> Delivery<'a> {
    /// Begins with what is not acknowledged yet, whatever earlier connections sent of it.
    pub fn new(backlog: &'a Backlog) -> Self {
        Self { backlog, window: Window::new(backlog.acked()) }
    }

    /// Resolves when there is a new sample.
    pub async fn news(&self) {
        self.backlog.appended().await;
    }

    /// The next `metrics` message while the window has a place for it. Once it was taken it counts as sent.
    pub fn next_message(&mut self) -> Option<Bytes> {
        let live = self.live_batch().map(|batch| (Lane::Live, batch));
        let (lane, batch) = live.or_else(|| self.batch_behind().map(|batch| (Lane::Behind, batch)))?;
        let seq = self.backlog.number_message();
        self.window.push(seq, lane, batch.last);
        Some(wire::metrics_message(seq, batch.count, &batch.samples))
    }

    /// Every message up to this number is durable.
    pub fn ack(&mut self, seq: u64) {
        let durable = self.window.ack(seq);
        self.backlog.ack(durable);
    }

    /// Since when the service owes an acknowledgement.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.window.waiting_since()
    }

    /// What is new. Where that is more than a batch, the newest sample alone: the others follow behind it.
    fn live_batch(&mut self) -> Option<Batch> {
        let batch = self.backlog.batch(self.window.live_place(), u64::MAX)?;
        let before_newest = self.backlog.newest().saturating_sub(1);
        if batch.last <= before_newest && self.window.leave_behind(before_newest) {
            return self.backlog.batch(before_newest, u64::MAX);
        }
        Some(batch)
    }

    fn batch_behind(&mut self) -> Option<Batch> {
        let (after, until) = self.window.place_behind()?;
        let batch = self.backlog.batch(after, until);
        if batch.is_none() {
            let durable = self.window.nothing_more_behind();
            self.backlog.ack(durable);
        }
        batch
    }
}
