//! The buffer as sampler and connection share it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use signalbox_protocol::Timestamp;
use tokio::sync::Notify;

use crate::buffer::{Batch, Buffer, OpenError};
use crate::config::Config;

/// Locked for the length of one call, never across an await.
#[derive(Debug)]
pub struct Backlog {
    buffer: Mutex<Buffer>,
    appended: Notify,
}

impl Backlog {
    pub fn open(config: &Config) -> Result<Self, OpenError> {
        let millis = u64::try_from(Timestamp::now().as_millis()).unwrap_or(1).max(1);
        let buffer = Buffer::open(config.state_dir.as_deref(), config.limits, millis)?;
        Ok(Self { buffer: Mutex::new(buffer), appended: Notify::new() })
    }

    pub fn append(&self, sample: &[u8]) {
        self.lock().append(sample);
        self.appended.notify_one();
    }

    /// Resolves when a sample was added since this was last awaited.
    pub async fn appended(&self) {
        self.appended.notified().await;
    }

    pub fn batch(&self, after: u64, until: u64) -> Option<Batch> {
        self.lock().batch(after, until)
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
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
