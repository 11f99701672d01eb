//! A dashboard that watches all servers that its user can see.
//!
//! Samples cost the socket nothing when they arrive: once a second it compares the fleet with what it sent last, and
//! sends the differences. So a slow reader gets fewer messages, each with the newest values, and only indices of
//! servers wait for it. The list of servers is read from the store at the start, when it changes, and periodically for
//! changes on other instances.

mod places;
mod recall;
mod view;

use std::time::{Duration, Instant};

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use signalbox_protocol::close;
use signalbox_protocol::frontend::FeedMessage;
use uuid::Uuid;

pub use self::places::ListPlaces;
use self::view::{ChangeFilter, View, VisibleServers};
use super::dashboard::{self, Context, Dashboard, Feature, SocketAuth};
use crate::auth::Caller;
use crate::auth::access::Access;
use crate::feeds::{Feeds, Topic};
use crate::fleet::Fleet;
use crate::metrics::query::History;
use crate::state::State;
use crate::store::{Store, StoreError};

/// How often samples are compared.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The shortest pause between two checks for agents that came or went: when thousands reconnect, one message carries
/// many.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The pause before the list is read again after a failure.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// A socket that shows all servers.
pub type FleetSubscription = Dashboard<LiveFleet>;

/// Where the state of servers is looked up, and how often.
#[derive(Clone)]
struct Sources {
    access: Access,
    fleet: Fleet,
    feeds: Feeds,
    store: Store,
    history: History,
    /// How often the list is read again for changes on other instances.
    server_list: Duration,
    /// The shortest pause between two messages that the list has changed.
    list_news: Duration,
}

/// The servers that the user who opened the socket can see.
pub struct LiveFleet {
    sources: Sources,
    view: View,
    places: ListPlaces,
    /// The list was read once: before that there is nothing to show.
    is_begun: bool,
    reading: ListRead,
    /// The dashboard knows that the list has changed since it was last read.
    is_told: bool,
    /// A failed read of the list will be retried.
    tries_again: bool,
    /// When the dashboard last got a message that the list has changed.
    told_at: Option<Instant>,
    /// Another message about changes waits for its time.
    tells_later: bool,
    /// When agents that came or went were last checked.
    looked_at: Option<Instant>,
    /// Another check for them waits for its time.
    looks_later: bool,
    /// A check for samples waits for its time.
    has_round: bool,
    /// The last samples are being looked up.
    is_recalling: bool,
}

/// Whether the list is being read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ListRead {
    #[default]
    No,
    Yes,
    /// The list changed during the read.
    Again,
}

/// Upgrades a request to a socket that shows all servers.
pub fn open(
    state: &State,
    pass: SocketAuth,
    places: ListPlaces,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    let timing = &state.config.timing;
    let sources = Sources {
        access: state.accounts.access.clone(),
        fleet: state.fleet.clone(),
        feeds: state.feeds.clone(),
        store: state.store.clone(),
        history: state.metrics.history.clone(),
        server_list: timing.server_list,
        list_news: timing.list_news,
    };
    dashboard::open(state, pass, LiveFleet::new(sources, places), request, payload)
}

impl LiveFleet {
    fn new(sources: Sources, places: ListPlaces) -> Self {
        Self {
            sources,
            view: View::default(),
            places,
            is_begun: false,
            reading: ListRead::default(),
            is_told: false,
            tries_again: false,
            told_at: None,
            tells_later: false,
            looked_at: None,
            looks_later: false,
            has_round: false,
            is_recalling: false,
        }
    }
}

impl Feature for LiveFleet {
    fn topics(&self, pass: &SocketAuth) -> Vec<Topic> {
        topics_of(&self.sources.access.owners_seen(&pass.caller))
    }

    /// Starts with all servers. The list is read after the subscription, so no change of it is missed.
    fn opened(subscription: &mut FleetSubscription, ctx: &mut Context<Self>) {
        let (sources, caller) = (subscription.feature.sources.clone(), subscription.pass.caller.clone());
        ctx.wait(sources.read(caller).into_actor(subscription).map(begin));
    }

    /// An agent came or went, or there is more to send.
    fn woken(subscription: &mut FleetSubscription, ctx: &mut Context<Self>) {
        let feature = &mut subscription.feature;
        if !feature.is_begun {
            return;
        }
        match rest_of(LOOK_AGAIN_AFTER, feature.looked_at) {
            None => look(subscription, ChangeFilter::Status),
            Some(_) if feature.looks_later => {}
            Some(rest) => {
                feature.looks_later = true;
                ctx.run_later(rest, |subscription, ctx| {
                    subscription.feature.looks_later = false;
                    look(subscription, ChangeFilter::Status);
                    write(subscription, ctx);
                });
            }
        }
        write(subscription, ctx);
    }

    /// The servers may be others now, and with them the owners whose agents are followed.
    fn rights_changed(subscription: &mut FleetSubscription, ctx: &mut Context<Self>) {
        subscription.subscribe(ctx);
        Self::noticed(subscription, ctx);
    }

    /// The list has changed.
    fn noticed(subscription: &mut FleetSubscription, ctx: &mut Context<Self>) {
        let pause = subscription.feature.sources.list_news;
        match rest_of(pause, subscription.feature.told_at) {
            None => tell_change(subscription, ctx),
            Some(_) if subscription.feature.tells_later => {}
            Some(rest) => {
                subscription.feature.tells_later = true;
                ctx.run_later(rest, |subscription, ctx| {
                    subscription.feature.tells_later = false;
                    tell_change(subscription, ctx);
                });
            }
        }
    }
}

impl Sources {
    /// Reads the list, once the owners' agents are followed.
    async fn read(self, caller: Caller) -> Result<VisibleServers, StoreError> {
        let presence: Vec<Topic> = self.access.owners_seen(&caller).into_iter().map(Topic::Presence).collect();
        self.feeds.relay().settled(&presence).await;
        VisibleServers::read(&self.store, &self.access.visible(&caller)).await
    }
}

/// The topics that announce changes of these owners' servers.
fn topics_of(owners: &[Uuid]) -> Vec<Topic> {
    owners.iter().flat_map(|owner_id| [Topic::Servers(*owner_id), Topic::Presence(*owner_id)]).collect()
}

/// What is left of a pause that began at `since`.
fn rest_of(pause: Duration, since: Option<Instant>) -> Option<Duration> {
    pause.checked_sub(since?.elapsed()).filter(|rest| !rest.is_zero())
}

fn tell_change(subscription: &mut FleetSubscription, ctx: &mut Context<LiveFleet>) {
    subscription.feature.told_at = Some(Instant::now());
    subscription.feature.is_told = true;
    subscription.send(&FeedMessage::Servers {}, ctx);
    read_again(subscription, ctx);
}

fn begin(
    servers: Result<VisibleServers, StoreError>,
    subscription: &mut FleetSubscription,
    ctx: &mut Context<LiveFleet>,
) {
    let servers = match servers {
        Ok(servers) => servers,
        Err(error) => {
            tracing::error!(%error, "cannot read the servers for a dashboard");
            return subscription.end(close::OVERLOADED, "try again later", ctx);
        }
    };
    if subscription.feature.places.resize(servers.records.len()).is_err() {
        return subscription.end(close::OVERLOADED, "try again later", ctx);
    }
    subscription.feature.is_begun = true;
    subscription.feature.view.replace(servers);
    look(subscription, ChangeFilter::Anything);
    if subscription.feature.view.is_empty() {
        // So that the dashboard knows that there are no servers.
        subscription.send(&FeedMessage::Fleet { servers: Vec::new() }, ctx);
    }
    write(subscription, ctx);
    plan_round(subscription, ctx);
    plan_reading(subscription, ctx);
    recall(subscription, ctx);
}

/// Marks the servers that have news.
fn look(subscription: &mut FleetSubscription, news: ChangeFilter) {
    subscription.feature.looked_at = Some(Instant::now());
    let LiveFleet { view, sources, .. } = &mut subscription.feature;
    view.look(&sources.fleet, news);
}

/// Sends one message with servers that have news, and more once the peer has taken it.
fn write(subscription: &mut FleetSubscription, ctx: &mut Context<LiveFleet>) {
    let LiveFleet { view, sources, .. } = &mut subscription.feature;
    let servers = view.next(&sources.fleet);
    if !servers.is_empty() {
        subscription.send(&FeedMessage::Fleet { servers }, ctx);
    }
    if subscription.feature.view.has_more() {
        subscription.again(ctx);
    }
}

/// Schedules the next check for samples. Each round schedules the next one, so rounds that were missed while the peer
/// did not read are skipped.
fn plan_round(subscription: &mut FleetSubscription, ctx: &mut Context<LiveFleet>) {
    if subscription.feature.view.is_empty() || std::mem::replace(&mut subscription.feature.has_round, true) {
        return;
    }
    ctx.run_later(LOOK_EVERY, |subscription, ctx| {
        subscription.feature.has_round = false;
        look(subscription, ChangeFilter::Anything);
        write(subscription, ctx);
        plan_round(subscription, ctx);
    });
}

fn plan_reading(subscription: &mut FleetSubscription, ctx: &mut Context<LiveFleet>) {
    ctx.run_later(subscription.feature.sources.server_list, |subscription, ctx| {
        read_again(subscription, ctx);
        plan_reading(subscription, ctx);
    });
}

/// Reads the list again, and once more if it changes during the read.
fn read_again(subscription: &mut FleetSubscription, ctx: &mut Context<LiveFleet>) {
    if subscription.feature.reading != ListRead::No {
        subscription.feature.reading = ListRead::Again;
        return;
    }
    subscription.feature.reading = ListRead::Yes;
    let (sources, caller) = (subscription.feature.sources.clone(), subscription.pass.caller.clone());
    ctx.spawn(sources.read(caller).into_actor(subscription).map(take));
}

fn take(
    servers: Result<VisibleServers, StoreError>,
    subscription: &mut FleetSubscription,
    ctx: &mut Context<LiveFleet>,
) {
    let feature = &mut subscription.feature;
    let changed_meanwhile = std::mem::take(&mut feature.reading) == ListRead::Again;
    match servers {
        Ok(servers) => {
            if feature.places.resize(servers.records.len()).is_err() {
                return subscription.end(close::OVERLOADED, "try again later", ctx);
            }
            let is_told = feature.is_told;
            feature.is_told = is_told && changed_meanwhile;
            if feature.view.replace(servers) && !is_told {
                subscription.send(&FeedMessage::Servers {}, ctx);
            }
            look(subscription, ChangeFilter::Status);
            write(subscription, ctx);
            plan_round(subscription, ctx);
            recall(subscription, ctx);
        }
        Err(error) => {
            tracing::warn!(%error, "cannot read the servers again for a dashboard, will retry");
            // At worst the dashboard gets the message twice: the next read may find further changes.
            feature.is_told = false;
            return try_again(subscription, ctx);
        }
    }
    if changed_meanwhile {
        read_again(subscription, ctx);
    }
}

fn try_again(subscription: &mut FleetSubscription, ctx: &mut Context<LiveFleet>) {
    if !std::mem::replace(&mut subscription.feature.tries_again, true) {
        ctx.run_later(TRY_AGAIN_AFTER, |subscription, ctx| {
            subscription.feature.tries_again = false;
            read_again(subscription, ctx);
        });
    }
}

/// Looks up the last samples of servers that have none in memory. Later rounds send them from the fleet.
fn recall(subscription: &mut FleetSubscription, ctx: &mut Context<LiveFleet>) {
    if std::mem::replace(&mut subscription.feature.is_recalling, true) {
        return;
    }
    let (history, fleet) = (subscription.feature.sources.history.clone(), subscription.feature.sources.fleet.clone());
    let missing = subscription.feature.view.without_sample(&fleet);
    let recalled = recall::recall(history, fleet, missing);
    ctx.spawn(recalled.into_actor(subscription).map(|(), subscription, _| subscription.feature.is_recalling = false));
}
