//! Compares this instance's sessions, statuses and sockets with the database, so that a message lost between instances is
//! made up for within seconds.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use uuid::Uuid;

use crate::auth::logins::Logins;
use crate::feeds::{Closing, Feeds, Topic};
use crate::periodic::ticks;
use crate::registry::{HeldSession, RegistryHandle, SessionEnd};
use crate::store::{SessionRow, Store, StoreError, has_replaced};

/// How often to compare everything.
const RECONCILE_EVERY: Duration = Duration::from_secs(5);

/// Compares this instance's state with the database; cheap to clone.
#[derive(Clone)]
pub struct Reconciler {
    pub store: Store,
    pub registry: RegistryHandle,
    pub feeds: Feeds,
    pub logins: Logins,
}

impl Reconciler {
    /// Compares periodically, and at once when the other instances took this one for dead.
    pub async fn keep(self, mut lost: watch::Receiver<u64>) {
        let mut ticks = ticks(RECONCILE_EVERY);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                Ok(()) = lost.changed() => {}
            }
            if let Err(error) = self.reconcile().await {
                tracing::warn!(%error, "sessions could not be compared with the database, will try again");
            }
        }
    }

    async fn reconcile(&self) -> Result<(), StoreError> {
        self.reconcile_sessions().await?;
        self.reconcile_statuses().await?;
        let logins = self.feeds.watched_logins();
        let alive = self.store.logins_among(&logins).await?;
        logins.into_iter().filter(|id| !alive.contains(id)).for_each(|id| self.logins.ended(id));
        let servers = self.feeds.watched_servers();
        let alive = self.store.servers_among(&servers).await?;
        for server_id in servers.into_iter().filter(|id| !alive.contains(id)) {
            self.feeds.close(Topic::ServerEnd(server_id), Closing::ServerDeleted);
        }
        Ok(())
    }

    /// Corrects the statuses that dashboards have of servers of other instances.
    async fn reconcile_statuses(&self) -> Result<(), StoreError> {
        let relay = self.feeds.relay();
        let (servers, asked_at) = (relay.watched_servers(), Instant::now());
        for (server_id, row) in self.store.session_rows(&servers).await? {
            relay.correct(server_id, row.session_id.is_some(), asked_at);
        }
        Ok(())
    }

    /// Ends sessions that the database does not contain: another instance took the server, or the server or key was deleted.
    async fn reconcile_sessions(&self) -> Result<(), StoreError> {
        let held = self.registry.held().await;
        let ids: Vec<Uuid> = held.iter().map(|session| session.server_id).collect();
        let rows = self.store.session_rows(&ids).await?;
        let keys: Vec<Uuid> = held.iter().map(|session| session.key_id).collect();
        let keys: HashSet<Uuid> = self.store.keys_among(&keys).await?;
        for session in held {
            match rows.get(&session.server_id) {
                None => self.registry.end_server(session.server_id).await,
                Some(_) if !keys.contains(&session.key_id) => self.registry.end_key(session.key_id).await,
                Some(row) => self.compare(session, *row).await,
            }
        }
        Ok(())
    }

    /// Checks a server's session after another instance has announced that it took the server over.
    pub async fn reconcile_server(&self, server_id: Uuid) {
        let Some(session) = self.registry.holder(server_id).await else { return };
        match self.store.session_rows(&[server_id]).await {
            Ok(rows) => {
                if let Some(row) = rows.get(&server_id) {
                    self.compare(session, *row).await;
                }
            }
            // The periodic comparison follows soon.
            Err(error) => tracing::warn!(server.id = %server_id, %error, "a server's session could not be looked up"),
        }
    }

    async fn compare(&self, held: HeldSession, row: SessionRow) {
        let why = match row.session_id {
            Some(session_id) if session_id == held.session_id => return,
            Some(session_id) if has_replaced(session_id, held.session_id) => SessionEnd::Replaced,
            // The other instances took this one for dead, or the database has forgotten the session. The agent may reconnect
            // at once.
            Some(_) | None => SessionEnd::Restarting,
        };
        tracing::warn!(server.id = %held.server_id, session.id = %held.session_id, ?why, "a session has lost its server");
        self.registry.end_session(held, why).await;
    }
}
