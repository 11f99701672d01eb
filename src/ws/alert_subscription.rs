//! One dashboard that watches the alerts of all servers of its user.

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use signalbox_protocol::close;
use signalbox_protocol::frontend::FeedMessage;

use super::dashboard::{self, Context, Dashboard, Feature, Pass};
use crate::feeds::Topic;
use crate::state::State;
use crate::store::alert_view;
use crate::store::{Alert, StoreError};

/// Alerts that are told at once: some hundred kilobytes. Who has more reads the list.
const MOST_AT_ONCE: u64 = 500;

/// A socket that shows alerts.
pub type AlertSubscription = Dashboard<LiveAlerts>;

/// The alerts of whoever opened the socket.
pub struct LiveAlerts;

/// Upgrades a request to a socket that shows alerts.
pub fn open(
    state: State,
    pass: Pass,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    dashboard::open(state, pass, LiveAlerts, request, payload)
}

impl Feature for LiveAlerts {
    fn topics(&self, pass: &Pass) -> Vec<Topic> {
        vec![Topic::Alerts(pass.caller.user_id)]
    }

    /// What is not resolved. It is read when the socket is subscribed already, and the socket stands still meanwhile: so
    /// what changes in between is told behind it, and nothing is missed.
    fn opened(subscription: &mut AlertSubscription, ctx: &mut Context<Self>) {
        let (store, user_id) = (subscription.state.store.clone(), subscription.pass.caller.user_id);
        let unresolved = async move { store.unresolved_alerts(user_id, MOST_AT_ONCE).await };
        ctx.wait(unresolved.into_actor(subscription).map(begin));
    }
}

fn begin(
    unresolved: Result<Vec<Alert>, StoreError>,
    subscription: &mut AlertSubscription,
    ctx: &mut Context<LiveAlerts>,
) {
    match unresolved {
        Ok(alerts) => {
            for alert in &alerts {
                subscription.send(&FeedMessage::Alert(Box::new(alert_view(alert))), ctx);
            }
        }
        Err(error) => {
            tracing::error!(%error, "alerts could not be read for a dashboard");
            subscription.end(close::OVERLOADED, "try again later", ctx);
        }
    }
}
