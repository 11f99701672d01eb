//! A connection's place among those of unidentified clients.

use std::sync::Arc;

use parking_lot::Mutex;

use super::gate::Permit;
use super::share::Share;

/// The permit that a connection holds as long as it is open.
#[derive(Clone)]
pub struct Connection(Arc<Mutex<Permit>>);

impl Connection {
    pub fn new(permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(permit)))
    }

    /// Stops counting it for its address: its client has identified itself, and its account limits it.
    pub fn count_as_known(&self) {
        self.0.lock().change(Share::Service);
    }
}
