//! The source of an agent's samples.

use signalbox_protocol::Sample;

use crate::catalog::Catalog;

/// Yields one sample per call: this machine, or a simulated one.
pub trait Source: Send {
    /// The next sample. None when there is none this time; the next tick asks again.
    fn sample(&mut self) -> impl Future<Output = Option<Sample>> + Send;

    /// A sample for people who watch, between two that are kept; `latest` is the newest of those. None when there is none.
    fn live(&mut self, _latest: &Sample) -> impl Future<Output = Option<Sample>> + Send {
        self.sample()
    }

    /// The meaning of the ids in its samples' values.
    fn catalog(&self) -> Catalog {
        Catalog::default()
    }
}
