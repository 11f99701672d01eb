//! Where an agent's samples come from.

use signalbox_protocol::Sample;

use crate::catalog::Catalog;

/// Yields one sample each time it is asked: this machine, or a simulated one.
pub trait Source: Send {
    /// The next sample. None when there is none this time; the next tick asks again.
    fn sample(&mut self) -> impl Future<Output = Option<Sample>> + Send;

    /// What the ids of its samples' values stand for.
    fn catalog(&self) -> Catalog {
        Catalog::default()
    }
}
