//! Decides which servers this instance evaluates: [`All`] for a single instance,
//! [`AssignedServers`](super::assigned_servers::AssignedServers) for one of several.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Alerts;
use super::assignment::Assignment;
use super::inbox::Input;
use crate::store::{RuleScope, StoreError, WatchedServer};

pub(super) trait Assigner: Send + Sync + 'static {
    /// Starts to evaluate this instance's servers, for as long as it runs.
    fn begin<'a>(self: Arc<Self>, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Asks all evaluators to end. From here on inputs wait in new inboxes. Returns what resolves when they have ended.
    fn replace_all(&self, alerts: &Alerts) -> Vec<oneshot::Receiver<()>>;

    /// Starts to evaluate again what was replaced. No rules are handed out in the meantime. After an error it may be called again.
    fn begin_again<'a>(&'a self, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns why this instance evaluates a server whose rules have changed; `None` if it does not, or if the periodic look
    /// for servers without a session decides.
    fn assignment_of(&self, server: &WatchedServer) -> Option<Assignment>;

    /// Asks for a look soon, because the servers without a session to evaluate may have changed.
    fn look_soon(&self);

    /// Takes in that a session of this instance holds the server, and that the database says so.
    fn arrived(&self, alerts: &Alerts, server_id: Uuid, session_id: Uuid);

    /// Takes in that no session of this instance holds the server any more.
    fn departed(&self, alerts: &Alerts, server_id: Uuid);
}

/// This instance evaluates all servers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct All;

impl Assigner for All {
    fn begin<'a>(self: Arc<Self>, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.begin_again(alerts).await })
    }

    fn replace_all(&self, alerts: &Alerts) -> Vec<oneshot::Receiver<()>> {
        let replaced = alerts.inboxes(true).into_iter().filter_map(|(server_id, _)| {
            let inbox = alerts.writer.new_inbox(Assignment::Sole, i64::MAX);
            let ended = alerts.register(server_id, inbox.clone());
            if let Some(states) = alerts.states.of(server_id) {
                inbox.put(Input::KeptStates(states));
            }
            ended
        });
        replaced.collect()
    }

    fn begin_again<'a>(&'a self, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            for server in alerts.writer.store.watched_servers(RuleScope::All).await? {
                match alerts.inbox(server.server_id) {
                    Some(inbox) if server.is_watched() => alerts.evaluate(server, inbox, true, None),
                    Some(_) => {}
                    None => alerts.begin(server, Assignment::Sole, true),
                }
            }
            // Nothing is watched on these any more.
            for (server_id, inbox) in alerts.inboxes(false) {
                inbox.close();
                alerts.writer.ended(server_id, &inbox);
            }
            Ok(())
        })
    }

    fn assignment_of(&self, _: &WatchedServer) -> Option<Assignment> {
        Some(Assignment::Sole)
    }

    fn look_soon(&self) {}

    fn arrived(&self, _: &Alerts, _: Uuid, _: Uuid) {}

    fn departed(&self, _: &Alerts, _: Uuid) {}
}
