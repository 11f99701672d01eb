//! One dashboard that watches one server.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use signalbox_protocol::frontend::{FeedMessage, ServerStatus};
use uuid::Uuid;

use super::dashboard::{self, Context, Dashboard, Feature, Pass};
use crate::feeds::Topic;
use crate::fleet::Snapshot;
use crate::metrics::pipeline::metrics_message;
use crate::state::State;

/// A socket that shows what happens to a server.
pub type MetricsSubscription = Dashboard<LiveMetrics>;

/// What the database says of the server; the fleet knows better once an agent has connected.
pub struct LiveMetrics {
    pub server_id: Uuid,
    pub status: ServerStatus,
    pub latest: Option<Arc<Snapshot>>,
}

/// Upgrades a request to a socket that shows what happens to a server.
pub fn open(
    state: State,
    pass: Pass,
    recorded: LiveMetrics,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    dashboard::open(state, pass, recorded, request, payload)
}

impl Feature for LiveMetrics {
    fn topics(&self, _: &Pass) -> Vec<Topic> {
        vec![Topic::Server(self.server_id)]
    }

    /// The status, and the latest metrics if there are any.
    fn opened(subscription: &mut MetricsSubscription, ctx: &mut Context<Self>) {
        let server_id = subscription.feature.server_id;
        let presence = subscription.state.fleet.presence(server_id);
        let status = presence.map_or(subscription.feature.status, |presence| presence.status);
        subscription.send(&FeedMessage::Status { status }, ctx);
        let latest = subscription.state.fleet.latest(server_id).or_else(|| subscription.feature.latest.take());
        if let Some(latest) = latest {
            ctx.text(metrics_message(&latest));
        }
    }
}
