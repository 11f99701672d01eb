//! A dashboard that watches one server.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use signalbox_protocol::frontend::{FeedMessage, ServerStatus};
use uuid::Uuid;

use super::dashboard::{self, Context, Dashboard, Feature, SocketAuth};
use crate::feeds::{Feeds, Topic};
use crate::fleet::{Fleet, Snapshot};
use crate::ingest::metrics_message;
use crate::metrics::query::{History, HistoryError};
use crate::state::State;
use crate::store::Store;

/// A socket that shows the metrics and events of a server.
pub type MetricsSubscription = Dashboard<LiveMetrics>;

/// Where the state of a server is looked up.
pub struct Sources {
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub store: Store,
    pub history: History,
}

/// The server as the database knows it; the fleet knows better once an agent has connected.
pub struct LiveMetrics {
    pub sources: Sources,
    pub server_id: Uuid,
    pub status: ServerStatus,
    pub latest: Option<Arc<Snapshot>>,
}

/// Upgrades a request to a socket that shows a server.
pub fn open(
    state: &State,
    pass: SocketAuth,
    recorded: LiveMetrics,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    dashboard::open(state, pass, recorded, request, payload)
}

impl Feature for LiveMetrics {
    fn topics(&self, _: &SocketAuth) -> Vec<Topic> {
        vec![Topic::Server(self.server_id)]
    }

    /// Sends the status, and the latest metrics if there are any. If another instance may hold the server, the database
    /// is queried once this instance receives that one's events.
    fn opened(subscription: &mut MetricsSubscription, ctx: &mut Context<Self>) {
        let server_id = subscription.feature.server_id;
        let Sources { fleet, feeds, store, history } = &subscription.feature.sources;
        let presence = fleet.presence(server_id);
        if fleet.is_sure_of(presence) {
            // Should its session end here unheard, the relay compares what is shown with the database.
            if let Some(presence) = presence {
                feeds.relay().shows(server_id, presence.status);
            }
            let latest = fleet.latest(server_id);
            return begin(subscription, presence.map(|presence| presence.status), latest, ctx);
        }
        let (relay, store, history) = (feeds.relay().clone(), store.clone(), history.clone());
        let read = async move {
            relay.settled(&[Topic::Server(server_id)]).await;
            let rows = store.session_rows(&[server_id]).await?;
            let is_online = rows.get(&server_id).is_some_and(|row| row.session_id.is_some());
            Ok((relay, is_online, history.latest(server_id).await?))
        };
        ctx.wait(read.into_actor(subscription).map(move |read: Result<_, HistoryError>, subscription, ctx| {
            let (status, latest) = match read {
                Ok((relay, is_online, latest)) => {
                    let status = now(subscription.feature.status, is_online);
                    relay.shows(server_id, status);
                    (Some(status), latest)
                }
                Err(error) => {
                    tracing::warn!(server.id = %server_id, %error, "cannot read a server again for a dashboard");
                    (None, None)
                }
            };
            begin(subscription, status, latest, ctx);
        }));
    }
}

/// Sends what is known by now, or else what was recorded before the socket opened.
fn begin(
    subscription: &mut MetricsSubscription,
    status: Option<ServerStatus>,
    latest: Option<Arc<Snapshot>>,
    ctx: &mut Context<LiveMetrics>,
) {
    let status = status.unwrap_or(subscription.feature.status);
    subscription.send(&FeedMessage::Status { status }, ctx);
    if let Some(latest) = latest.or_else(|| subscription.feature.latest.take()) {
        ctx.text(metrics_message(&latest));
    }
}

/// The present status of a server that was recorded with another one.
fn now(recorded: ServerStatus, is_online: bool) -> ServerStatus {
    match (is_online, recorded) {
        (true, _) => ServerStatus::Online,
        (false, ServerStatus::Pending) => ServerStatus::Pending,
        (false, _) => ServerStatus::Offline,
    }
}
