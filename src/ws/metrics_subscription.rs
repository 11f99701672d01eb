//! One dashboard that watches one server.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Handler, SpawnHandle, StreamHandler, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use actix_web_actors::ws;
use bytestring::ByteString;
use signalbox_protocol::frontend::{FeedMessage, ServerStatus, SubscriberMessage};
use signalbox_protocol::{Encoding, Timestamp, close};
use uuid::Uuid;

use super::assembly::{Assembly, Whole};
use super::gate::{Gate, GateControl};
use super::{code_of, reason};
use crate::auth::Caller;
use crate::auth::token::TokenKind;
use crate::feeds::{Frame, Subscription, Topic, Wake};
use crate::fleet::Snapshot;
use crate::metrics::pipeline::metrics_message;
use crate::registry::Pulse;
use crate::state::{OpenSocket, State};
use crate::store::StoreError;

/// A dashboard says nothing longer than a token.
const MAX_MESSAGE: usize = 16 * 1024;

/// The subprotocol that carries a token beside it.
pub const BEARER_PROTOCOL: &str = "bearer";

/// Who watches what, checked by whoever opens the socket.
pub struct Watch {
    pub caller: Caller,
    pub token_expires_at: Timestamp,
    pub server_id: Uuid,
    /// What the database says; the fleet knows better once an agent has connected.
    pub status: ServerStatus,
    pub latest: Option<Arc<Snapshot>>,
}

/// A dashboard's socket.
pub struct MetricsSubscription {
    state: State,
    watch: Watch,
    gate: GateControl,
    pulse: Arc<Pulse>,
    assembly: Assembly,
    subscription: Option<Subscription>,
    expiry: Vec<SpawnHandle>,
    _open: OpenSocket,
}

type Context = ws::WebsocketContext<MetricsSubscription>;

/// Upgrades a request to a dashboard's socket.
pub fn open(
    state: State,
    watch: Watch,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    let pulse = Arc::new(Pulse::default());
    let gate = GateControl::new(MAX_MESSAGE, pulse.clone());
    let open = state.sockets.opened();
    let subscription = MetricsSubscription {
        state,
        watch,
        gate: gate.clone(),
        pulse,
        assembly: Assembly::default(),
        subscription: None,
        expiry: Vec::new(),
        _open: open,
    };
    ws::WsResponseBuilder::new(subscription, request, Gate::new(payload, gate))
        .protocols(&[BEARER_PROTOCOL])
        .frame_size(MAX_MESSAGE)
        .start()
}

impl MetricsSubscription {
    fn subscribe(&mut self, ctx: &mut Context) {
        let topics =
            vec![Topic::Server(self.watch.server_id), Topic::Login(self.watch.caller.login_id), Topic::Service];
        self.subscription = Some(self.state.feeds.subscribe(topics, ctx.address().recipient()));
    }

    /// Writes what waits in the subscription, and closes the socket if it is to be closed.
    fn drain(&mut self, ctx: &mut Context) {
        let Some(subscription) = &self.subscription else { return };
        let (frames, closing) = subscription.take();
        for frame in frames {
            match frame {
                Frame::Metrics(text) | Frame::Event(text) => ctx.text(text),
            }
        }
        if let Some(closing) = closing {
            end(closing.code(), closing.reason(), ctx);
        }
    }

    /// What a dashboard sees at once: the status, and the latest metrics if there are any.
    fn greet(&mut self, ctx: &mut Context) {
        let server_id = self.watch.server_id;
        let status = self.state.fleet.presence(server_id).map_or(self.watch.status, |presence| presence.status);
        send(&FeedMessage::Status { status }, ctx);
        if let Some(latest) = self.state.fleet.latest(server_id).or_else(|| self.watch.latest.take()) {
            ctx.text(metrics_message(&latest));
        }
    }

    /// Says before the token expires that it will, and closes when it has.
    fn await_expiry(&mut self, ctx: &mut Context) {
        for timer in self.expiry.drain(..) {
            ctx.cancel_future(timer);
        }
        let left = self.watch.token_expires_at.millis_since(Timestamp::now());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        let notice = left.saturating_sub(self.state.config.timing.expiry_notice);
        self.expiry.push(ctx.run_later(notice, |_, ctx| send(&FeedMessage::TokenExpiring, ctx)));
        self.expiry.push(ctx.run_later(left, |_, ctx| end(close::UNAUTHORIZED, "the token expired", ctx)));
    }

    /// Pings, and looks whether the peer and its login still live.
    fn tend(&mut self, ctx: &mut Context) {
        if self.pulse.silence() > self.state.config.timing.silence_limit {
            return end(1001, "silent for too long", ctx);
        }
        ctx.ping(b"");
        self.look_again(ctx);
    }

    /// Closes the socket if its login has ended or its server is gone: what was checked before the upgrade may have
    /// changed before there was anybody to tell, and on another instance.
    fn look_again(&mut self, ctx: &mut Context) {
        let (state, login_id, server_id) = (self.state.clone(), self.watch.caller.login_id, self.watch.server_id);
        let looked = async move {
            let login = state.accounts.logins.caller(login_id).await?;
            let owner = state.store.owner_of_server(server_id).await?;
            Ok::<_, StoreError>((login.is_some(), owner.is_some()))
        };
        ctx.spawn(looked.into_actor(self).map(|outcome, _, ctx| match outcome {
            Ok((true, true)) => {}
            Ok((false, _)) => end(close::UNAUTHORIZED, "the session has ended", ctx),
            Ok((true, false)) => end(close::SERVER_DELETED, "the server was deleted", ctx),
            Err(error) => tracing::warn!(%error, "a login could not be looked up"),
        }));
    }

    fn received(&mut self, message: ws::Message, ctx: &mut Context) {
        match message {
            ws::Message::Text(text) => self.text(&text, ctx),
            ws::Message::Binary(_) => end(close::MALFORMED, "messages are JSON text", ctx),
            ws::Message::Continuation(item) => match self.assembly.add(item) {
                Ok(None) => {}
                Ok(Some(Whole::Text(text))) => self.text(&text, ctx),
                Ok(Some(Whole::Binary(_))) => end(close::MALFORMED, "messages are JSON text", ctx),
                Err(error) => end(close::MALFORMED, &error.to_string(), ctx),
            },
            ws::Message::Ping(payload) => ctx.pong(&payload),
            ws::Message::Pong(_) | ws::Message::Nop => {}
            ws::Message::Close(_) => end(1000, "", ctx),
        }
    }

    fn text(&mut self, text: &str, ctx: &mut Context) {
        if let Ok(message) = serde_json::from_str::<SubscriberMessage>(text) {
            return self.renew(message.into_token(), ctx);
        }
        match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) if value.get("type").is_some_and(serde_json::Value::is_string) => {
                metrics::counter!("signalbox_subscriber_messages_unknown_total").increment(1);
            }
            _ => end(close::MALFORMED, "malformed message", ctx),
        }
    }

    /// Goes on with a new token of the same user.
    fn renew(&mut self, token: Option<String>, ctx: &mut Context) {
        let claims = token.and_then(|token| self.state.accounts.tokens.check(&token, TokenKind::Access).ok());
        let Some(claims) = claims.filter(|claims| claims.sub == self.watch.caller.user_id) else {
            return end(close::UNAUTHORIZED, "the token is not valid", ctx);
        };
        let logins = self.state.accounts.logins.clone();
        let found = async move { logins.caller(claims.sid).await };
        ctx.spawn(found.into_actor(self).map(move |outcome, subscription, ctx| match outcome {
            Ok(Some(caller)) => {
                subscription.watch.caller = caller;
                subscription.watch.token_expires_at = Timestamp::from_millis(claims.exp.saturating_mul(1000));
                // What waits in the old subscription, its end above all, is not thrown away with it.
                subscription.drain(ctx);
                subscription.subscribe(ctx);
                subscription.await_expiry(ctx);
            }
            Ok(None) => end(close::UNAUTHORIZED, "the session has ended", ctx),
            Err(error) => {
                tracing::error!(%error, "a login could not be looked up");
                end(close::OVERLOADED, "try again later", ctx);
            }
        }));
    }
}

fn send(message: &FeedMessage, ctx: &mut Context) {
    match Encoding::Json.encode(message) {
        Ok(bytes) => ctx.text(ByteString::try_from(bytes).unwrap_or_default()),
        Err(error) => tracing::error!(%error, "a message to a dashboard could not be written"),
    }
}

fn end(code: u16, description: &str, ctx: &mut Context) {
    ctx.close(reason(code, description));
    ctx.stop();
}

impl Actor for MetricsSubscription {
    type Context = Context;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.subscribe(ctx);
        self.greet(ctx);
        self.await_expiry(ctx);
        self.look_again(ctx);
        ctx.run_interval(self.state.config.timing.ping_interval, |subscription, ctx| subscription.tend(ctx));
    }
}

impl StreamHandler<Result<ws::Message, ws::ProtocolError>> for MetricsSubscription {
    fn handle(&mut self, item: Result<ws::Message, ws::ProtocolError>, ctx: &mut Self::Context) {
        match item {
            Ok(message) => self.received(message, ctx),
            Err(error) => {
                tracing::debug!(%error, "a dashboard's frame was refused");
                end(code_of(&self.gate), "malformed frame", ctx);
            }
        }
    }
}

impl Handler<Wake> for MetricsSubscription {
    type Result = ();

    fn handle(&mut self, _: Wake, ctx: &mut Self::Context) {
        self.drain(ctx);
    }
}
