//! Decides whether another connection would do better than one on which nothing is acknowledged.
//!
//! A service that pings but stores nothing mostly has lost its database. It still shows what it receives and runs what people
//! ask for, and could accept no new connection: an agent that left it would be disconnected until the database is back. But it
//! may be one of several instances, and the only one that is cut off, or may have lost count. So the agent asks at the address
//! of a new connection whether the service there is ready, and leaves only then.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::dial::Endpoint;
use crate::backoff;

/// Why and how long one connection is doubted.
pub struct AckWatchdog<'a> {
    endpoint: Endpoint<'a>,
    /// How long the service may owe an acknowledgement.
    patience: Duration,
    /// The next question is not asked before this time.
    not_before: Instant,
    /// The question in progress.
    asking: Option<Pin<Box<dyn Future<Output = bool> + Send + 'a>>>,
}

impl<'a> AckWatchdog<'a> {
    pub fn new(endpoint: Endpoint<'a>) -> Self {
        let patience = endpoint.timing.unacknowledged + endpoint.timing.doubt.mul_f64(backoff::random());
        Self { endpoint, patience, not_before: Instant::now(), asking: None }
    }

    /// Resolves when the service has owed an acknowledgement since `waiting_since` for too long, and says that it is ready. May
    /// be dropped and called again with current arguments; a question in progress continues.
    pub async fn is_well_founded(&mut self, waiting_since: Option<Instant>) {
        let Some(since) = waiting_since else {
            self.asking = None;
            return pending().await;
        };
        let overdue = since + self.patience;
        if Instant::now() < overdue {
            self.asking = None;
        }
        loop {
            sleep_until(overdue.max(self.not_before)).await;
            let is_ready = self.asking.get_or_insert_with(|| Box::pin(self.endpoint.is_ready())).await;
            self.asking = None;
            self.not_before = Instant::now() + self.endpoint.timing.doubt;
            if is_ready {
                return;
            }
            tracing::debug!("the service stores nothing now, nor would another connection");
        }
    }
}
