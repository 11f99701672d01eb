//! Ends many tasks.

use tokio::sync::watch;

/// Ends every [`Stop`] made from it, at the latest when it is dropped.
#[derive(Debug)]
pub struct StopSource(watch::Sender<bool>);

/// Learns when to end.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl StopSource {
    pub fn new() -> (Self, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Stop(receiver))
    }

    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Waits until it is time to end. Cancel safe.
    pub async fn requested(&mut self) {
        // An error means that the source is gone: nobody waits for the task any more.
        self.0.wait_for(|stop| *stop).await.ok();
    }

    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }
}
