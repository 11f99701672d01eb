//! Decides which servers this instance evaluates: [`All`] for a single instance,
//! [`AssignedServers`](super::assigned_servers::AssignedServers) for one of several.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::Alerts;
use super::assignment::Assignment;
use crate::store::{RuleScope, StoreError, WatchedServer};

pub(super) trait Assigner: Send + Sync + 'static {
    /// Starts to evaluate this instance's servers, for as long as it runs.
    fn begin<'a>(self: Arc<Self>, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Starts to evaluate them again, once all evaluators have been asked to end. No rules are handed out in the meantime.
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
        Box::pin(begin_all(alerts))
    }

    fn begin_again<'a>(&'a self, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(begin_all(alerts))
    }

    fn assignment_of(&self, _: &WatchedServer) -> Option<Assignment> {
        Some(Assignment::Sole)
    }

    fn look_soon(&self) {}

    fn arrived(&self, _: &Alerts, _: Uuid, _: Uuid) {}

    fn departed(&self, _: &Alerts, _: Uuid) {}
}

async fn begin_all(alerts: &Alerts) -> Result<(), StoreError> {
    for server in alerts.writer.store.watched_servers(RuleScope::All).await? {
        alerts.begin(server, Assignment::Sole, true);
    }
    Ok(())
}
