//! Whether another connection would do better than one on which nothing is acknowledged.
//!
//! A service that pings but stores nothing is mostly one whose database is away. It still shows what it is sent and runs
//! what people ask for, and could let nobody in: who left it would be in the dark until the database is back. But it may
//! be one of several instances, and the only one that is cut off, or may have lost count. So it is asked, where a new
//! connection would lead to, whether it is ready, and left only if it is.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::dial::Way;
use crate::backoff;

/// What one connection is doubted for.
pub struct Doubt<'a> {
    way: Way<'a>,
    /// How long the service may owe an acknowledgement.
    patience: Duration,
    /// The next question is not asked before.
    not_before: Instant,
    /// The question that is under way.
    asking: Option<Pin<Box<dyn Future<Output = bool> + Send + 'a>>>,
}

impl<'a> Doubt<'a> {
    pub fn new(way: Way<'a>) -> Self {
        let patience = way.timing.unacknowledged + way.timing.doubt.mul_f64(backoff::random());
        Self { way, patience, not_before: Instant::now(), asking: None }
    }

    /// Resolves when the service has owed an acknowledgement since `waiting_since` for too long, and says that it is
    /// ready. May be dropped and called anew, with what is true then: a question goes on.
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
            let is_ready = self.asking.get_or_insert_with(|| Box::pin(self.way.is_ready())).await;
            self.asking = None;
            self.not_before = Instant::now() + self.way.timing.doubt;
            if is_ready {
                return;
            }
            tracing::debug!("the service stores nothing now, nor would another connection");
        }
    }
}
