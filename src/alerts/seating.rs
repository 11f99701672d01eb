//! Which servers are watched here: [`All`] where there is one instance, [`Seats`](super::seats::Seats) where there are several.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::Alerts;
use super::seat::Seat;
use crate::store::{RuleScope, StoreError, WatchedServer};

pub(super) trait Seating: Send + Sync + 'static {
    /// Begins to watch what is this instance's, for as long as it lives.
    fn begin<'a>(self: Arc<Self>, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>>;

    /// By what right a server is watched here whose rules have changed; none where it is not, or where that is found out by
    /// looking.
    fn seat_of(&self, server: &WatchedServer) -> Option<Seat>;

    /// Servers without a session may be watched otherwise than before.
    fn look_soon(&self);

    /// A session holds the server from now on, in the database too.
    fn arrived(&self, alerts: &Alerts, server_id: Uuid, session_id: Uuid);

    /// No session here holds the server any more.
    fn departed(&self, alerts: &Alerts, server_id: Uuid);
}

/// All of them, wherever their sessions are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct All;

impl Seating for All {
    fn begin<'a>(self: Arc<Self>, alerts: &'a Alerts) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            for server in alerts.desk.store.watched_servers(RuleScope::All).await? {
                alerts.begin(server, Seat::Alone, true);
            }
            Ok(())
        })
    }

    fn seat_of(&self, _: &WatchedServer) -> Option<Seat> {
        Some(Seat::Alone)
    }

    fn look_soon(&self) {}

    fn arrived(&self, _: &Alerts, _: Uuid, _: Uuid) {}

    fn departed(&self, _: &Alerts, _: Uuid) {}
}
