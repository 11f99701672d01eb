//! A dashboard that watches the alerts of all servers of its user.

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use signalbox_protocol::close;
use signalbox_protocol::frontend::FeedMessage;

use super::dashboard::{self, Context, Dashboard, Feature, SocketAuth};
use crate::feeds::{Feeds, Topic};
use crate::state::State;
use crate::store::alert_view;
use crate::store::{Alert, Store, StoreError};

/// Alerts that are sent at the start: some hundred kilobytes. A client with more of them reads the list.
const MAX_AT_ONCE: u64 = 500;

/// A socket that shows alerts.
pub type AlertSubscription = Dashboard<LiveAlerts>;

/// The alerts of the user who opened the socket.
pub struct LiveAlerts {
    store: Store,
    feeds: Feeds,
}

/// Upgrades a request to a socket that shows alerts.
pub fn open(
    state: &State,
    pass: SocketAuth,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    let alerts = LiveAlerts { store: state.store.clone(), feeds: state.feeds.clone() };
    dashboard::open(state, pass, alerts, request, payload)
}

impl Feature for LiveAlerts {
    fn topics(&self, pass: &SocketAuth) -> Vec<Topic> {
        vec![Topic::Alerts(pass.caller.user_id)]
    }

    /// Sends the unresolved alerts. The socket has subscribed by then, on other instances too, and waits for the query.
    /// So changes that happen during the query are sent after it, and none is missed.
    fn opened(subscription: &mut AlertSubscription, ctx: &mut Context<Self>) {
        let LiveAlerts { store, feeds } = &subscription.feature;
        let (store, relay, user_id) = (store.clone(), feeds.relay().clone(), subscription.pass.caller.user_id);
        let unresolved = async move {
            relay.settled(&[Topic::Alerts(user_id)]).await;
            store.unresolved_alerts(user_id, MAX_AT_ONCE).await
        };
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
            tracing::error!(%error, "cannot read the alerts for a dashboard");
            subscription.end(close::OVERLOADED, "try again later", ctx);
        }
    }
}
