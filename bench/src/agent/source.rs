//! The source of an agent's samples.

use bytes::Bytes;
use signalbox_protocol::Timestamp;

use crate::data::Batches;
use crate::template::Template;

/// The content of a sample.
#[derive(Debug)]
pub enum Source {
    /// The cheapest: of one sample, patched.
    Template(Template),
    /// A realistic one.
    Machine(Box<Batches>),
}

impl Source {
    /// A message with one sample, taken at `at`.
    pub fn message(&mut self, seq: u64, at: Timestamp) -> anyhow::Result<Bytes> {
        match self {
            Self::Template(template) => Ok(template.message(seq, at, 0)),
            Self::Machine(batches) => batches.message_at(seq, at),
        }
    }
}
