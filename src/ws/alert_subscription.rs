//! A dashboard that watches the alerts of all servers that its user can see.
//!
//! Who publishes an alert addresses everybody who may see its server, so one topic is enough whatever the user's rights are.
//! When these change, the socket compares the servers; if they are others, it sends the unresolved alerts again. A token that is
//! not for all servers gets only some of its user's alerts, so its socket looks at each, and sends them again with each change of
//! a server.

use std::collections::HashMap;
use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use signalbox_protocol::alert::{Alert as AlertView, Owner};
use signalbox_protocol::close;
use signalbox_protocol::frontend::FeedMessage;
use uuid::Uuid;

use super::dashboard::{self, Context, Dashboard, Feature, SocketAuth};
use crate::auth::Caller;
use crate::auth::access::Access;
use crate::feeds::{Feeds, Text, Topic};
use crate::state::State;
use crate::store::alert_view;
use crate::store::{Store, StoreError};

/// Alerts that are sent at the start: some hundred kilobytes. A client with more of them reads the list.
const MAX_AT_ONCE: u64 = 500;

/// Each instance says that alerts may have been lost, once a second: they are read once for all of them.
const NOTICES_WITHIN: Duration = Duration::from_secs(1);

/// A socket that shows alerts.
pub type AlertSubscription = Dashboard<LiveAlerts>;

/// Where alerts are looked up.
#[derive(Clone)]
struct Sources {
    store: Store,
    feeds: Feeds,
    access: Access,
}

/// The alerts that the user who opened the socket can see.
pub struct LiveAlerts {
    sources: Sources,
    /// The servers whose alerts were sent, in order: those of others, or all of a token.
    passing: Vec<Uuid>,
    /// They are read again in a moment.
    reads_again: bool,
}

/// The part of an alert that says whose it is.
#[derive(Deserialize)]
struct Sent {
    data: OfServer,
}

#[derive(Deserialize)]
struct OfServer {
    server_id: Uuid,
}

/// What a dashboard starts with.
struct Beginning {
    alerts: Vec<AlertView>,
    passing: Vec<Uuid>,
}

/// Whether the dashboard has alerts that it must forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    Again,
}

/// Upgrades a request to a socket that shows alerts.
pub fn open(
    state: &State,
    pass: SocketAuth,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    let access = state.accounts.access.clone();
    let sources = Sources { store: state.store.clone(), feeds: state.feeds.clone(), access };
    dashboard::open(state, pass, LiveAlerts { sources, passing: Vec::new(), reads_again: false }, request, payload)
}

impl Feature for LiveAlerts {
    fn topics(&self, pass: &SocketAuth) -> Vec<Topic> {
        vec![Topic::Alerts(pass.caller.user_id)]
    }

    /// Sends the unresolved alerts. The socket has subscribed by then, on other instances too, and waits for the query.
    /// So changes that happen during the query are sent after it, and none is missed.
    fn opened(subscription: &mut AlertSubscription, ctx: &mut Context<Self>) {
        read(subscription, Turn::First, ctx);
    }

    fn chooses(pass: &SocketAuth) -> bool {
        pass.caller.is_for_some_servers()
    }

    fn shows(subscription: &AlertSubscription, text: &Text) -> bool {
        if !Self::chooses(&subscription.pass) {
            return true;
        }
        let alert = serde_json::from_str::<Sent>(&text.text());
        alert.is_ok_and(|alert| subscription.feature.passing.binary_search(&alert.data.server_id).is_ok())
    }

    /// Alerts of other instances may have been lost.
    fn noticed(subscription: &mut AlertSubscription, ctx: &mut Context<Self>) {
        if !std::mem::replace(&mut subscription.feature.reads_again, true) {
            ctx.run_later(NOTICES_WITHIN, |subscription, ctx| {
                subscription.feature.reads_again = false;
                read_again(subscription, ctx);
            });
        }
    }

    /// Grants and tags change more often than what somebody sees: only then the alerts are sent again.
    fn rights_changed(subscription: &mut AlertSubscription, ctx: &mut Context<Self>) {
        if Self::chooses(&subscription.pass) {
            return read_again(subscription, ctx);
        }
        let (sources, caller) = (subscription.feature.sources.clone(), subscription.pass.caller.clone());
        let passing = async move { sources.passing(&caller).await };
        ctx.spawn(passing.into_actor(subscription).map(|passing, subscription, ctx| match passing {
            Ok(passing) if passing == subscription.feature.passing => {}
            Ok(_) => read_again(subscription, ctx),
            Err(error) => give_up(&error, subscription, ctx),
        }));
    }
}

impl Sources {
    async fn read(self, caller: Caller) -> Result<Beginning, StoreError> {
        self.feeds.relay().settled(&[Topic::Alerts(caller.user_id)]).await;
        let passing = self.passing(&caller).await?;
        let alerts = self.store.unresolved_alerts(&self.access.visible(&caller), MAX_AT_ONCE).await?;
        let mut owners: Vec<Uuid> = alerts.iter().map(|alert| alert.owner_id).collect();
        owners.sort_unstable();
        owners.dedup();
        let names = if owners.is_empty() { HashMap::new() } else { self.store.usernames(&owners).await? };
        let owner = |id: Uuid| names.get(&id).map(|username| Owner { id, username: username.clone() });
        let passing =
            with_those_of(alerts.iter().map(|alert| (alert.owner_id, alert.server_id)), passing, caller.user_id);
        let alerts = alerts.iter().map(|alert| AlertView { owner: owner(alert.owner_id), ..alert_view(alert) });
        Ok(Beginning { alerts: alerts.collect(), passing })
    }

    /// The servers that others share with the caller, or all of a token, in order.
    async fn passing(&self, caller: &Caller) -> Result<Vec<Uuid>, StoreError> {
        self.store.passing_servers(&self.access.visible(caller)).await
    }
}

/// Adds the servers of others that came into sight after `passing` was read, by the owner and the server of each alert. Without
/// them the next comparison would not notice that one is out of sight again, and the socket would keep its alerts.
fn with_those_of(alerts: impl Iterator<Item = (Uuid, Uuid)>, mut passing: Vec<Uuid>, user_id: Uuid) -> Vec<Uuid> {
    passing.extend(alerts.filter(|(owner_id, _)| *owner_id != user_id).map(|(_, server_id)| server_id));
    passing.sort_unstable();
    passing.dedup();
    passing
}

/// Sends the unresolved alerts again. What comes during the query waits in the new subscription, and is sent after the alerts.
fn read_again(subscription: &mut AlertSubscription, ctx: &mut Context<LiveAlerts>) {
    subscription.subscribe(ctx);
    read(subscription, Turn::Again, ctx);
}

fn read(subscription: &mut AlertSubscription, turn: Turn, ctx: &mut Context<LiveAlerts>) {
    let (sources, caller) = (subscription.feature.sources.clone(), subscription.pass.caller.clone());
    let beginning = sources.read(caller).into_actor(subscription);
    ctx.wait(beginning.map(move |beginning, subscription, ctx| match beginning {
        Ok(beginning) => begin(beginning, turn, subscription, ctx),
        Err(error) => give_up(&error, subscription, ctx),
    }));
}

fn begin(beginning: Beginning, turn: Turn, subscription: &mut AlertSubscription, ctx: &mut Context<LiveAlerts>) {
    let Beginning { alerts, passing } = beginning;
    subscription.feature.passing = passing;
    if turn == Turn::Again {
        subscription.send(&FeedMessage::Alerts {}, ctx);
    }
    for alert in alerts {
        subscription.send(&FeedMessage::Alert(Box::new(alert)), ctx);
    }
    // From here on texts bypass this actor again.
    subscription.again(ctx);
}

fn give_up(error: &StoreError, subscription: &mut AlertSubscription, ctx: &mut Context<LiveAlerts>) {
    tracing::error!(%error, "cannot read the alerts for a dashboard");
    subscription.end(close::OVERLOADED, "try again later", ctx);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_others_whose_alerts_are_sent_pass_and_own_ones_need_not() {
        let [me, other, first, second, own] = [1, 2, 3, 4, 5].map(Uuid::from_u128);
        let alerts = [(other, second), (me, own), (other, second), (other, first)];

        assert_eq!(with_those_of(alerts.into_iter(), vec![second], me), [first, second]);
    }
}
