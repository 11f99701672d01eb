//! Takes samples from the backlog in the order in which the service should receive them, and returns the service's
//! acknowledgements to it.

use std::collections::BTreeSet;

use bytes::Bytes;
use signalbox_protocol::agent::AgentMessage;
use signalbox_protocol::{Sample, Timestamp};
use tokio::time::Instant;

use super::window::{Freshness, Window};
use crate::backlog::Backlog;
use crate::buffer::Batch;
use crate::wire;

/// The progress of one connection through the backlog.
pub struct Delivery<'a> {
    backlog: &'a Backlog,
    window: Window,
    /// The epoch of the numbers in the window.
    epoch: u64,
    /// The ids of the series that this connection has described.
    described: BTreeSet<u16>,
    /// Samples that wait until their series are described. They count as sent.
    held: Option<Bytes>,
}

impl<'a> Delivery<'a> {
    /// Begins after what is acknowledged, whatever earlier connections have sent.
    pub fn new(backlog: &'a Backlog) -> Self {
        let epoch = backlog.epoch();
        let window = Window::new(backlog.acked());
        Self { backlog, window, epoch, described: BTreeSet::new(), held: None }
    }

    /// Resolves when there is a new sample.
    pub async fn news(&self) {
        self.backlog.appended().await;
    }

    /// The next `metrics` message while the window has room for it, preceded by a `series` message where it has series that
    /// were not described yet. A message that was taken counts as sent.
    pub fn next_message(&mut self) -> Option<Bytes> {
        self.follow_numbers();
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let live = self.live_batch().map(|batch| (Freshness::Live, batch));
        let (freshness, batch) = live.or_else(|| self.batch_behind().map(|batch| (Freshness::Late, batch)))?;
        let seq = self.backlog.number_message();
        self.window.push(seq, freshness, batch.last);
        let metrics = wire::metrics_message(seq, batch.count, &batch.samples, Timestamp::now());
        let Some(series) = self.describe(&batch) else { return Some(metrics) };
        self.held = Some(metrics);
        Some(series)
    }

    /// Removes the values of series that this connection has not described.
    pub fn keep_described(&self, sample: &mut Sample) {
        sample.values.retain(|(id, _)| self.described.contains(id));
    }

    /// The message that describes the ids of a batch that this connection does not know.
    fn describe(&mut self, batch: &Batch) -> Option<Bytes> {
        let mut ids = wire::series_of(batch.count, &batch.samples);
        ids.retain(|id| self.described.insert(*id));
        let series = self.backlog.catalog().describe(&ids);
        if series.is_empty() {
            return None;
        }
        match wire::ENCODING.encode(&AgentMessage::Series { series }) {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::error!(%error, "the series of samples cannot be described");
                None
            }
        }
    }

    /// Records that every message up to this number is durable.
    pub fn ack(&mut self, seq: u64) {
        self.follow_numbers();
        let durable = self.window.ack(seq);
        self.backlog.ack(durable);
    }

    /// Begins again after what is acknowledged, when all samples were renumbered or that number went back.
    fn follow_numbers(&mut self) {
        if self.backlog.epoch() != self.epoch {
            // The ids of series do not change.
            let described = std::mem::take(&mut self.described);
            *self = Self { described, ..Self::new(self.backlog) };
        }
    }

    /// Since when the service owes an acknowledgement.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.window.waiting_since()
    }

    /// The new samples. Where they are more than a batch, only the newest one; the backlog lane sends the others.
    ///
    /// While the disk with older ones hangs, those are left to the backlog lane, too.
    fn live_batch(&mut self) -> Option<Batch> {
        let unreadable = self.backlog.unreadable_until();
        if self.window.live_place() < unreadable && !self.window.leave_behind(unreadable) {
            return None;
        }
        // Where the disk goes away only now, the next call leaves its samples behind.
        let batch = self.backlog.batch(self.window.live_place(), u64::MAX).ok().flatten()?;
        let before_newest = self.backlog.newest().saturating_sub(1);
        if batch.last <= before_newest && self.window.leave_behind(before_newest) {
            return self.backlog.batch(before_newest, u64::MAX).ok().flatten();
        }
        Some(batch)
    }

    fn batch_behind(&mut self) -> Option<Batch> {
        let (after, until) = self.window.place_behind()?;
        // What is on a disk that is away still exists.
        let batch = self.backlog.batch(after, until).ok()?;
        if batch.is_none() {
            let durable = self.window.nothing_more_behind();
            self.backlog.ack(durable);
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Decoded;

    use super::*;
    use crate::buffer::fixture::HangingFile;
    use crate::catalog::Catalog;
    use crate::config::Config;
    use crate::state::StateDir;

    /// More samples than one batch has.
    const SAMPLES: i64 = 300;

    /// How many samples a message has.
    fn count(message: &[u8]) -> usize {
        match wire::ENCODING.decode(message).unwrap() {
            Decoded::Known(AgentMessage::Metrics(metrics)) => metrics.samples.len(),
            other => panic!("samples, not {other:?}"),
        }
    }

    #[test]
    fn a_backlog_whose_disk_answers_too_late_is_still_sent() {
        // In memory: on a disk under load a call may take as long as on one that hangs.
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let state = Some(StateDir::new(dir.path()));
        let backlog = Backlog::open(&Config::default(), state, Catalog::default()).unwrap();
        let mut encoded = Vec::new();
        for number in 0..SAMPLES {
            let sample = Sample { timestamp: Timestamp::from_millis(number), ..Sample::default() };
            wire::encode_sample(&sample, &mut encoded).unwrap();
            backlog.append(&encoded);
        }
        let mut delivery = Delivery::new(&backlog);
        let newest = delivery.next_message().unwrap();
        let hang = HangingFile::oldest(dir.path());

        let during = delivery.next_message();
        hang.release();
        while backlog.unreadable_until() > 0 {
            std::thread::yield_now();
        }
        let late = [delivery.next_message(), delivery.next_message()].map(|message| count(&message.unwrap()));

        assert_eq!((count(&newest), during), (1, None));
        assert_eq!(late, [256, 43]);
        assert_eq!(backlog.acked(), 0);
    }
}
