//! A connection's place among those that have not shown who they are.

use std::sync::Arc;

use parking_lot::Mutex;

use super::gate::Permit;
use super::share::Share;

/// What a connection holds for as long as it is open.
#[derive(Clone)]
pub struct Connection(Arc<Mutex<Permit>>);

impl Connection {
    pub fn new(permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(permit)))
    }

    /// Counts it no longer as of its address: the client at its other end has shown who it is, and is bounded by its
    /// account.
    pub fn count_as_known(&self) {
        self.0.lock().change(Share::Service);
    }
}
