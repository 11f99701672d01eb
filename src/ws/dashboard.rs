//! What all dashboard sockets have in common: a user's token and its renewal, pings, the end of the login, of the
//! server and of the service, and messages as JSON text.
//!
//! What differs is a [`Feature`]. A new kind of socket needs three things: a type with what the socket shows, its
//! `Feature`, and a function that calls [`open`] with the [`SocketAuth`] that `http::sockets` has checked. The feature
//! reaches everything through its [`Dashboard`]. The feeds wake it: with a notice on one of its topics, or with
//! [`crate::feeds::Feeds::nudge`] if its data is elsewhere. Texts on its topics are sent without it ([`Outlet`]). Its
//! output is sent only as the peer reads, and the whole actor waits for that. So a feature writes a bounded piece at a
//! time and then calls [`Dashboard::again`].

mod check;
mod renewal;
mod single_flight;

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Handler, SpawnHandle, StreamHandler, WrapFuture};
use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, web};
use actix_web_actors::ws;
use bytestring::ByteString;
use serde_json::Value;
use signalbox_protocol::frontend::{FeedMessage, SubscriberMessage};
use signalbox_protocol::{Encoding, Timestamp, close};
use uuid::Uuid;

use super::assembly::{Assembly, CompleteMessage};
use super::end::Closing;
use super::gate::{Gate, GateControl};
use super::handover::{Incoming, hand_over};
use super::outlet::{Outlet, Tap};
use super::{code_of, reason};
use crate::auth::Caller;
use crate::auth::access::Action;
use crate::auth::account::Accounts;
use crate::clock::Clock;
use crate::feeds::{FeedFrame, Feeds, Subscription, Text, Topic, Wake};
use crate::registry::Heartbeat;
use crate::shares::Permit;
use crate::state::State;
use crate::store::Store;
use single_flight::SingleFlight;

/// The subprotocol that precedes a token.
pub const BEARER_PROTOCOL: &str = "bearer";

/// A dashboard that only watches sends nothing longer than a token.
const MAX_MESSAGE: usize = 16 * 1024;

/// The right to open the socket, checked before the upgrade.
pub struct SocketAuth {
    pub caller: Caller,
    pub token_expires_at: Timestamp,
    /// The client's address, to which the token of a program may be bound.
    pub address: String,
    /// The server that it shows, and what the caller must be allowed to do to it; the socket ends when the server is deleted or
    /// the right is lost. `None` for a socket that shows all servers.
    pub server: Option<(Uuid, Action)>,
    /// Counts the socket for its account.
    pub _permit: Permit,
}

/// Whether a feature knows a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognition {
    Known,
    Unknown,
}

/// What distinguishes the kinds of dashboard sockets.
pub trait Feature: Sized + Unpin + 'static {
    /// The longest message that a dashboard may send.
    const MAX_MESSAGE: usize = MAX_MESSAGE;

    /// The topics in addition to those of every socket: its login, its server's end and the service's.
    fn topics(&self, pass: &SocketAuth) -> Vec<Topic>;

    /// The socket is open: send what the dashboard needs first.
    fn opened(dashboard: &mut Dashboard<Self>, ctx: &mut Context<Self>);

    /// The feature was woken: data outside the feeds may have changed.
    fn woken(_: &mut Dashboard<Self>, _: &mut Context<Self>) {}

    /// [`FeedFrame::Notice`]s arrived. The feature may act on them later; it is woken after this call.
    fn noticed(_: &mut Dashboard<Self>, _: &mut Context<Self>) {}

    /// The caller's rights may have changed. Whether they may still see the one server of the socket is checked without this.
    fn rights_changed(_: &mut Dashboard<Self>, _: &mut Context<Self>) {}

    /// The socket closes. The first call has the reason.
    fn closing(_: &mut Dashboard<Self>, _: Closing) {}

    /// Whether [`Feature::shows`] chooses among the events of its topics for this caller. Texts never bypass the actor then, and
    /// events that come with other rights are dropped: [`Feature::rights_changed`] has to read them.
    fn chooses(_: &SocketAuth) -> bool {
        false
    }

    /// Whether the caller may get this event.
    fn shows(_: &Dashboard<Self>, _: &Text) -> bool {
        true
    }

    /// The dashboard sent `{"type": kind, ...}`, which is no token.
    fn message(_: &mut Dashboard<Self>, _kind: &str, _message: &Value, _: &mut Context<Self>) -> Recognition {
        Recognition::Unknown
    }
}

pub type Context<F> = ws::WebsocketContext<Dashboard<F>>;

/// What every dashboard socket needs of the service.
struct Services {
    clock: Clock,
    store: Store,
    feeds: Feeds,
    accounts: Arc<Accounts>,
    /// How long before its token expires a dashboard gets a message.
    expiry_notice: Duration,
    ping_interval: Duration,
    silence_limit: Duration,
}

impl Services {
    fn of(state: &State) -> Self {
        let timing = &state.config.timing;
        Self {
            clock: state.clock.clone(),
            store: state.store.clone(),
            feeds: state.feeds.clone(),
            accounts: state.accounts.clone(),
            expiry_notice: timing.expiry_notice,
            ping_interval: timing.ping_interval,
            silence_limit: timing.silence_limit,
        }
    }
}

/// The actor of a dashboard's socket.
pub struct Dashboard<F: Feature> {
    services: Services,
    pub pass: SocketAuth,
    pub feature: F,
    gate: GateControl,
    heartbeat: Arc<Heartbeat>,
    assembly: Assembly,
    subscription: Option<Subscription>,
    /// Open while texts of the subscription bypass this actor.
    tap: Tap,
    expiry: Vec<SpawnHandle>,
    /// The check of a new token.
    renewal: SingleFlight<String>,
    /// The check whether it may stay open.
    look: SingleFlight<()>,
    is_ended: bool,
}

/// Upgrades a request to a dashboard's socket.
pub fn open<F: Feature>(
    state: &State,
    pass: SocketAuth,
    feature: F,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    let heartbeat = Arc::new(Heartbeat::default());
    let gate = GateControl::new(F::MAX_MESSAGE, heartbeat.clone());
    let tap = Tap::default();
    let dashboard = Dashboard {
        services: Services::of(state),
        pass,
        feature,
        gate: gate.clone(),
        heartbeat,
        assembly: Assembly::default(),
        subscription: None,
        tap: tap.clone(),
        expiry: Vec::new(),
        renewal: SingleFlight::default(),
        look: SingleFlight::default(),
        is_ended: false,
    };
    let incoming = Gate::new(Incoming::of(request, payload), gate.clone());
    let response = ws::WsResponseBuilder::new(dashboard, request, incoming)
        .protocols(&[BEARER_PROTOCOL])
        .frame_size(F::MAX_MESSAGE)
        .start()?;
    let response = response.map_body(|_, actor| BoxBody::new(Outlet::new(actor, tap)));
    Ok(hand_over(&state.limits.sockets, gate, request, response))
}

impl<F: Feature> Dashboard<F> {
    /// Sends a message.
    pub fn send(&mut self, message: &FeedMessage, ctx: &mut Context<F>) {
        match Encoding::Json.encode(message) {
            Ok(bytes) => ctx.text(ByteString::try_from(bytes).unwrap_or_default()),
            Err(error) => tracing::error!(%error, "cannot encode a message to a dashboard"),
        }
    }

    /// Closes the socket after everything sent before.
    pub fn end(&mut self, code: u16, description: &str, ctx: &mut Context<F>) {
        if !std::mem::replace(&mut self.is_ended, true) {
            F::closing(self, Closing::Service(code));
            self.tap.shut();
            ctx.close(reason(code, description));
            ctx.stop();
        }
    }

    /// Wakes the feature once its output was sent: for more output than fits in one piece.
    pub fn again(&mut self, ctx: &mut Context<F>) {
        // A message to the own address would be handled before anything is sent; this future is polled like the socket
        // itself.
        let later = tokio::task::yield_now();
        ctx.spawn(later.into_actor(self).map(|(), dashboard, ctx| dashboard.drain(ctx)));
    }

    /// Subscribes to the topics of the feature, again if they have changed. What waits in the previous subscription is lost, so
    /// it is taken before.
    pub fn subscribe(&mut self, ctx: &mut Context<F>) {
        self.tap.shut();
        let caller = &self.pass.caller;
        let mut topics = vec![Topic::Login(caller.login_id), Topic::Access(caller.user_id), Topic::Service];
        if caller.is_for_some_servers() {
            topics.extend(self.services.accounts.access.owners_seen(caller).into_iter().map(Topic::Scope));
        }
        topics.extend(self.pass.server.map(|(server_id, _)| Topic::ServerEnd(server_id)));
        topics.extend(self.feature.topics(&self.pass));
        self.subscription = Some(self.services.feeds.subscribe(topics, ctx.address().recipient()));
    }

    /// Sends what waits in the subscription, and closes the socket if the subscription says so. Otherwise the feature
    /// has sent its first messages by now; from the first call on, texts bypass the actor.
    fn drain(&mut self, ctx: &mut Context<F>) {
        let Some(subscription) = &self.subscription else { return };
        if self.is_ended {
            return;
        }
        let (frames, closing) = subscription.take();
        let has_notice = frames.iter().any(|frame| matches!(frame, FeedFrame::Notice));
        let has_other_rights = frames.iter().any(|frame| matches!(frame, FeedFrame::Rights));
        // A feature that chooses does not yet know among which servers; it reads what it missed.
        let is_unsure = has_other_rights && F::chooses(&self.pass);
        for frame in frames {
            match frame {
                FeedFrame::Metrics(text) => ctx.text(text.text()),
                FeedFrame::Event(text) if !is_unsure && F::shows(self, &text) => ctx.text(text.text()),
                FeedFrame::Event(_) => {}
                FeedFrame::Notice | FeedFrame::Rights => {}
            }
        }
        if let Some(closing) = closing {
            return self.end(closing.code(), closing.reason(), ctx);
        }
        if !self.tap.is_open() && !F::chooses(&self.pass) {
            self.tap.open(subscription.texts());
        }
        if has_other_rights {
            self.look_again(ctx);
            F::rights_changed(self, ctx);
        }
        if has_notice {
            F::noticed(self, ctx);
        }
        F::woken(self, ctx);
    }

    /// Sends a message before the token expires, and closes the socket when it has.
    fn await_expiry(&mut self, ctx: &mut Context<F>) {
        for timer in self.expiry.drain(..) {
            ctx.cancel_future(timer);
        }
        let left = self.pass.token_expires_at.millis_since(self.services.clock.now());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        let notice = left.saturating_sub(self.services.expiry_notice);
        self.expiry.push(ctx.run_later(notice, |dashboard, ctx| dashboard.send(&FeedMessage::TokenExpiring, ctx)));
        let expired = |dashboard: &mut Self, ctx: &mut Context<F>| {
            F::closing(dashboard, Closing::Expired);
            dashboard.end(close::UNAUTHORIZED, "the token expired", ctx);
        };
        self.expiry.push(ctx.run_later(left, expired));
    }

    /// Pings, and checks whether the peer and its login are still alive.
    fn tend(&mut self, ctx: &mut Context<F>) {
        if self.heartbeat.silence(self.services.clock.resumed()) > self.services.silence_limit {
            return self.end(close::SILENT, "silent for too long", ctx);
        }
        ctx.ping(b"");
        self.look_again(ctx);
    }

    fn received(&mut self, message: ws::Message, ctx: &mut Context<F>) {
        match message {
            ws::Message::Text(text) => self.text(&text, ctx),
            ws::Message::Binary(_) => self.end(close::MALFORMED, "messages are JSON text", ctx),
            ws::Message::Continuation(item) => match self.assembly.add(item) {
                Ok(None) => {}
                Ok(Some(CompleteMessage::Text(text))) => self.text(&text, ctx),
                Ok(Some(CompleteMessage::Binary(_))) => self.end(close::MALFORMED, "messages are JSON text", ctx),
                Err(error) => self.end(close::MALFORMED, &error.to_string(), ctx),
            },
            ws::Message::Ping(payload) => ctx.pong(&payload),
            ws::Message::Pong(_) | ws::Message::Nop => {}
            ws::Message::Close(reason) => {
                F::closing(self, Closing::by_client(reason.as_ref()));
                self.end(1000, "", ctx);
            }
        }
    }

    fn text(&mut self, text: &str, ctx: &mut Context<F>) {
        match serde_json::from_str::<SubscriberMessage>(text) {
            Ok(SubscriberMessage::Auth { token, data }) => {
                return self.renew(token.or_else(|| data.and_then(|data| data.token)), ctx);
            }
            Ok(SubscriberMessage::Ping) => return self.send(&FeedMessage::Pong, ctx),
            Err(_) => {}
        }
        let message = serde_json::from_str::<Value>(text).unwrap_or_default();
        let Some(kind) = message.get("type").and_then(Value::as_str) else {
            return self.end(close::MALFORMED, "malformed message", ctx);
        };
        if F::message(self, kind, &message, ctx) == Recognition::Unknown {
            metrics::counter!("signalbox_subscriber_messages_unknown_total").increment(1);
        }
    }
}

impl<F: Feature> Actor for Dashboard<F> {
    type Context = Context<F>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.subscribe(ctx);
        F::opened(self, ctx);
        self.await_expiry(ctx);
        self.look_again(ctx);
        ctx.run_interval(self.services.ping_interval, |dashboard, ctx| dashboard.tend(ctx));
    }
}

impl<F: Feature> StreamHandler<Result<ws::Message, ws::ProtocolError>> for Dashboard<F> {
    fn handle(&mut self, item: Result<ws::Message, ws::ProtocolError>, ctx: &mut Self::Context) {
        match item {
            Ok(message) => self.received(message, ctx),
            Err(error) => {
                tracing::debug!(%error, "a dashboard's frame was refused");
                if matches!(error, ws::ProtocolError::Io(_)) {
                    F::closing(self, Closing::Lost);
                }
                self.end(code_of(&self.gate), "malformed frame", ctx);
            }
        }
    }
}

impl<F: Feature> Handler<Wake> for Dashboard<F> {
    type Result = ();

    fn handle(&mut self, _: Wake, ctx: &mut Self::Context) {
        self.drain(ctx);
    }
}
