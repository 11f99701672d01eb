//! The buffer, shared by the sampler and the connection.

use parking_lot::{Mutex, MutexGuard};
use signalbox_protocol::Timestamp;
use tokio::sync::Notify;

use crate::buffer::{Away, Batch, Buffer};
use crate::catalog::Catalog;
use crate::config::{Config, Interval};
use crate::state::{OpenError, StateDir};

/// Locked for the length of one call, never across an await.
#[derive(Debug)]
pub struct Backlog {
    buffer: Mutex<Buffer>,
    /// The meaning of the ids in its samples.
    catalog: Catalog,
    appended: Notify,
    refused: Notify,
}

impl Backlog {
    pub fn open(config: &Config, state: Option<StateDir>, catalog: Catalog) -> Result<Self, OpenError> {
        let millis = u64::try_from(Timestamp::now().as_millis()).unwrap_or(1).max(1);
        let buffer = Buffer::open(state, config.limits, catalog.clone(), millis)?;
        Ok(Self { buffer: Mutex::new(buffer), catalog, appended: Notify::new(), refused: Notify::new() })
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Makes room for 24 hours of samples at this interval.
    pub fn expect_every(&self, interval: Interval) {
        self.lock().expect_every(interval);
    }

    pub fn append(&self, sample: &[u8]) {
        let mut buffer = self.lock();
        buffer.append(sample);
        if buffer.refusal().is_some() {
            self.refused.notify_one();
        }
        drop(buffer);
        self.appended.notify_one();
    }

    /// Resolves when the state directory, which hung at the start, turns out to be another agent's.
    pub async fn refused(&self) -> OpenError {
        loop {
            self.refused.notified().await;
            if let Some(error) = self.lock().refusal() {
                return error.clone();
            }
        }
    }

    /// How often all samples were renumbered, or the acknowledged number went back. Callers that remember numbers forget them
    /// when this rises.
    pub fn epoch(&self) -> u64 {
        self.lock().epoch()
    }

    /// Resolves when a sample was added since the last await.
    pub async fn appended(&self) {
        self.appended.notified().await;
    }

    /// The next samples after number `after`, up to number `until`; none without any.
    pub fn batch(&self, after: u64, until: u64) -> Result<Option<Batch>, Away> {
        self.lock().batch(after, until)
    }

    /// The number up to which samples cannot be read at present; 0 where all can be.
    pub fn unreadable_until(&self) -> u64 {
        self.lock().unreadable_until()
    }

    pub fn newest(&self) -> u64 {
        self.lock().newest()
    }

    pub fn number_message(&self) -> u64 {
        self.lock().number_message()
    }

    pub fn ack(&self, seq: u64) {
        self.lock().ack(seq);
    }

    pub fn acked(&self) -> u64 {
        self.lock().acked()
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock()
    }
}
