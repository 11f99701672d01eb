//! Applies connections and disconnections of agents: in the database, the fleet, the evaluators and the feeds.

use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use crate::alerts::Alerts;
use crate::clock::Clock;
use crate::cluster::company::Company;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::metrics::recorder::RecorderHandle;
use crate::registry::{Gone, Observer, Writing, Written};
use crate::store::Disconnected;

/// After this time a disconnected server is shown as offline, even if the database could not be updated yet.
const SHOW_OFFLINE_AFTER: Duration = Duration::from_secs(2);

/// Applies what the registry decides.
pub struct Presence {
    pub clock: Clock,
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub recorder: RecorderHandle,
    pub alerts: Alerts,
    pub company: Arc<dyn Company>,
}

impl Presence {
    fn publish_status(&self, server_id: Uuid, owner_id: Uuid, status: ServerStatus) {
        self.alerts.presence(server_id);
        self.feeds.publish_status(server_id, owner_id, status);
    }
}

impl Observer for Presence {
    fn replaced(&self, server_id: Uuid, older: Uuid, newer: Uuid) {
        self.fleet.hand_over(server_id, older, newer);
    }

    /// Shows a server as online. Called after the database was updated, so that dashboards never know more than it does.
    fn online(&self, server_id: Uuid, session_id: Uuid, owner_id: Uuid) {
        let was_online = self.fleet.presence(server_id).is_some_and(|presence| presence.status == ServerStatus::Online);
        self.fleet.online(server_id, session_id, owner_id, self.clock.now());
        self.alerts.arrived(server_id, session_id);
        if !was_online {
            self.publish_status(server_id, owner_id, ServerStatus::Online);
        }
    }

    fn last_seen_at(&self, server_id: Uuid) -> Timestamp {
        let last_seen_at = self.fleet.presence(server_id).and_then(|presence| presence.last_seen_at);
        last_seen_at.unwrap_or_else(|| self.clock.now())
    }

    fn write(&self, gone: Disconnected) -> Writing {
        let recorder = self.recorder.clone();
        let company = self.company.clone();
        Box::pin(async move {
            let server_id = gone.server_id;
            // An unavailable database must not keep a disconnected server online on every screen.
            match tokio::time::timeout(SHOW_OFFLINE_AFTER, recorder.disconnected(gone)).await {
                Ok(Err(_)) => Written::No,
                Ok(Ok(())) if has_moved(&*company, server_id).await => Written::Moved,
                _ => Written::Yes,
            }
        })
    }

    fn offline(&self, gone: &Gone, written: Written) {
        let Disconnected { server_id, session_id, .. } = gone.disconnected;
        if !self.fleet.offline(server_id, session_id) {
            return;
        }
        self.alerts.departed(server_id);
        if written == Written::Moved {
            self.alerts.presence(server_id);
        } else {
            self.publish_status(server_id, gone.owner_id, ServerStatus::Offline);
        }
    }

    fn write_seen(&self) {
        self.recorder.seen(self.fleet.online_servers());
    }
}

/// Returns whether another instance has taken the server whose session here has ended.
async fn has_moved(company: &dyn Company, server_id: Uuid) -> bool {
    tokio::time::timeout(SHOW_OFFLINE_AFTER, company.has_taken(server_id)).await.unwrap_or(false)
}
