//! Checks for all waiting callers whether the home of a server is still there: once a second, however many wait.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use super::Remote;
use super::message::PeerRequest;
use crate::periodic::ticks;

/// How often a home is asked whether it is still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long its answer may take.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// How many checks in a row must fail.
const MISSED: u32 = 2;

/// The instance that holds a server, or `None` if no instance answered.
pub(super) type HomeChecks = watch::Sender<Option<Uuid>>;

impl Remote {
    /// Resolves when no instance holds a server any more, or another one does.
    pub(super) async fn gone(&self, server_id: Uuid) {
        let mut looks = self.looks_for(server_id);
        let mut first = None;
        // Earlier results are not reported: they may be long out of date.
        while looks.changed().await.is_ok() {
            let Some(found) = *looks.borrow_and_update() else { return };
            if *first.get_or_insert(found) != found {
                return;
            }
        }
    }

    fn looks_for(&self, server_id: Uuid) -> watch::Receiver<Option<Uuid>> {
        let entry = self.looks.entry(server_id).or_insert_with(|| {
            tokio::spawn(self.clone().look(server_id));
            watch::Sender::new(None)
        });
        entry.subscribe()
    }

    /// Checks until no caller waits any more.
    async fn look(self, server_id: Uuid) {
        let mut ticks = ticks(LOOK_EVERY);
        // The first tick is immediate, and skipped: most calls take less than a second.
        ticks.tick().await;
        let mut missed = 0;
        loop {
            ticks.tick().await;
            if self.looks.remove_if(&server_id, |_, looks| looks.receiver_count() == 0).is_some() {
                return;
            }
            let found = timeout(SEEN_WITHIN, self.home::<Uuid>(server_id, &PeerRequest::There)).await;
            let found = found.ok().and_then(Result::ok);
            missed = if found.is_some() { 0 } else { missed + 1 };
            if (found.is_some() || missed >= MISSED)
                && let Some(looks) = self.looks.get(&server_id)
            {
                looks.send_replace(found);
            }
        }
    }
}
