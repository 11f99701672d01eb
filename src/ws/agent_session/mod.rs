//! One agent's connection.

mod calls;
mod clock;
mod dropped;
mod events;
mod kept;
mod live;
mod outgoing;
mod recordings;
mod samples;
mod series;
mod services;
mod terminals;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Handler, StreamHandler, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use actix_web_actors::ws;
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, Auth, AuthResponse, ServiceMessage};
use signalbox_protocol::{Decoded, Encoding, MAX_AUTH_MESSAGE_BYTES, MAX_MESSAGE_BYTES, close};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::assembly::{Assembly, CompleteMessage};
use super::authenticate::{Admitted, OVERLOADED, Refusal, SessionRequest, authenticate};
use super::gate::{Gate, GateControl};
use super::handover::{Incoming, hand_over};
use super::{code_of, reason};
use crate::clock::agent::{AgentClock, NOTABLE_MS};
use crate::ingest::Accepted;
use crate::metrics::described::Described;
use crate::registry::{CallError, Heartbeat, Order, SessionEnd, StreamSink};
use crate::shares::seats::Eviction;
use crate::shares::{Connection, Seat, Share};
#[cfg(test)]
use crate::state::State;
use calls::MAILBOX;
use clock::ClockTold;
use dropped::SeriesDropped;
use events::Allowance;
use live::{LiveSamples, Pace};
use recordings::Noting;
use series::HelpToNote;
pub use services::Services;
use terminals::Terminals;

/// An agent's connection, in one of its phases.
pub struct AgentSession {
    services: Arc<Services>,
    /// The address that the agent connects from.
    address: String,
    gate: GateControl,
    heartbeat: Arc<Heartbeat>,
    assembly: Assembly,
    encoding: Encoding,
    phase: Phase,
    /// The share that it counts for until it has authenticated.
    share: Share,
    connection: Option<Connection>,
    /// The last note on a terminal that is being written, or was.
    last_note: Option<JoinHandle<()>>,
}

enum Phase {
    /// Nothing is known of the peer: it has one of the few seats for silent peers, until another peer needs it.
    Greeting {
        _seat: Seat,
        eviction: Option<Eviction>,
    },
    /// Its key is being looked up; nothing is read until then.
    Checking {
        /// Orders that arrived before it was admitted: it is shown as online a moment earlier.
        early: Vec<Order>,
    },
    Active(Box<Active>),
    Ended,
}

/// An admitted agent.
struct Active {
    server_id: Uuid,
    /// The owner of the server.
    owner_id: Uuid,
    session_id: Uuid,
    boot_id: String,
    clock: AgentClock,
    /// The state of its clock that was last written and shown.
    clock_told: ClockTold,
    /// The agent's description of itself as stored: a JSON object. Parsed, it would take several times the memory.
    description: Box<str>,
    /// Bytes handed to the recorder and not yet durable.
    bytes_waiting: usize,
    /// A batch that the recorder had no room for.
    deferred: Option<Accepted>,
    /// Samples arrived while none could be kept: nothing later may be acknowledged.
    is_behind: bool,
    /// A check whether the waiting samples are stuck is already scheduled.
    looks_again: bool,
    /// Alerts of this server could not be written in time: until they are, its samples do not wait for them.
    alerts_are_late: bool,
    /// The log says that a sample was too large.
    too_large_told: bool,
    calls: HashMap<Uuid, oneshot::Sender<Result<Value, CallError>>>,
    streams: HashMap<Uuid, StreamSink>,
    terminals: Terminals,
    /// Commands whose results are being stored.
    settling: HashSet<Uuid>,
    noting: Noting,
    series_dropped: SeriesDropped,
    described: Described,
    help: HelpToNote,
    events: Allowance,
    live: LiveSamples,
}

type Context = ws::WebsocketContext<AgentSession>;

/// Upgrades a request to an agent's connection. Silent peers have a bounded number of seats: a peer that gets none, or
/// loses its seat to another, is closed with 1013.
///
/// `share` is the share that the peer counts for, and `address` is where the agent connects from, as far as is known.
pub fn open(
    services: Arc<Services>,
    (share, address): (Share, String),
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    let (sockets, connection) = (services.sockets.clone(), request.conn_data::<Connection>().cloned());
    let session = AgentSession::new(services, share, address, connection);
    let gate = session.gate.clone();
    let incoming = Gate::new(Incoming::of(request, payload), gate.clone());
    let answer = ws::WsResponseBuilder::new(session, request, incoming).frame_size(MAX_MESSAGE_BYTES).start()?;
    Ok(hand_over(&sockets, gate, request, answer))
}

/// A session whose agent is a stream of bytes, and its output.
#[cfg(test)]
pub fn without_socket<S>(
    state: &State,
    address: &str,
    incoming: S,
) -> impl futures_util::Stream<Item = Result<bytes::Bytes, actix_web::Error>> + use<S>
where
    S: futures_util::Stream<Item = Result<bytes::Bytes, actix_web::error::PayloadError>> + Unpin + 'static,
{
    let services = Arc::new(Services::of(state));
    let session = AgentSession::new(services, Share::of_written(address), address.to_owned(), None);
    let gate = Gate::new(incoming, session.gate.clone());
    ws::WebsocketContext::create(session, gate)
}

impl AgentSession {
    /// A session of a peer that has sent nothing yet. Without a seat for it, it is closed.
    fn new(services: Arc<Services>, share: Share, address: String, connection: Option<Connection>) -> Self {
        let heartbeat = Arc::new(Heartbeat::default());
        let phase = match services.silent.take(share) {
            Ok((seat, eviction)) => Phase::Greeting { _seat: seat, eviction: Some(eviction) },
            Err(_) => Phase::Ended,
        };
        Self {
            services,
            address,
            gate: GateControl::new(MAX_AUTH_MESSAGE_BYTES, heartbeat.clone()),
            heartbeat,
            assembly: Assembly::default(),
            encoding: Encoding::Json,
            phase,
            share,
            connection,
            last_note: None,
        }
    }

    fn received(&mut self, message: ws::Message, ctx: &mut Context) {
        match message {
            ws::Message::Text(text) => self.whole(Encoding::Json, text.as_bytes(), ctx),
            ws::Message::Binary(bytes) => self.whole(Encoding::MessagePack, &bytes, ctx),
            ws::Message::Continuation(item) => match self.assembly.add(item) {
                Ok(None) => {}
                Ok(Some(CompleteMessage::Text(text))) => self.whole(Encoding::Json, text.as_bytes(), ctx),
                Ok(Some(CompleteMessage::Binary(bytes))) => self.whole(Encoding::MessagePack, &bytes, ctx),
                Err(error) => self.end(close::MALFORMED, &error.to_string(), ctx),
            },
            ws::Message::Ping(payload) => ctx.pong(&payload),
            ws::Message::Pong(_) | ws::Message::Nop => {}
            ws::Message::Close(_) => self.end(1000, "", ctx),
        }
    }

    fn whole(&mut self, encoding: Encoding, bytes: &[u8], ctx: &mut Context) {
        match encoding.decode::<AgentMessage>(bytes) {
            Ok(Decoded::Known(message)) => self.message(encoding, message, ctx),
            Ok(Decoded::Unknown) => metrics::counter!("signalbox_agent_messages_unknown_total").increment(1),
            Err(error) => {
                tracing::debug!(%error, "an agent sent a malformed message");
                self.end(close::MALFORMED, "malformed message", ctx);
            }
        }
    }

    fn message(&mut self, encoding: Encoding, message: AgentMessage, ctx: &mut Context) {
        match (&self.phase, message) {
            (Phase::Greeting { .. }, AgentMessage::Auth(auth)) => {
                self.encoding = encoding;
                self.check(auth, ctx);
            }
            (Phase::Greeting { .. }, _) => self.end(close::UNAUTHORIZED, "authenticate first", ctx),
            (Phase::Active(_), AgentMessage::Metrics(metrics)) => self.metrics(metrics, ctx),
            (Phase::Active(_), AgentMessage::Live { sample }) => self.show_live(*sample, ctx),
            (Phase::Active(_), AgentMessage::Series { series }) => self.describe(series, ctx),
            (Phase::Active(_), AgentMessage::Response(response)) => self.answered(response, ctx),
            (Phase::Active(_), AgentMessage::Auth(_)) => self.end(close::MALFORMED, "authenticated already", ctx),
            (Phase::Active(_), AgentMessage::LogLines(lines)) => {
                self.flowed(lines.stream_id, AgentMessage::LogLines(lines), ctx);
            }
            (Phase::Active(_), AgentMessage::TerminalOutput(output)) => self.shown(output, ctx),
            (Phase::Active(active), AgentMessage::CommandOutput(piece)) => {
                self.services.reports.output(active.server_id, &piece);
            }
            (Phase::Active(_), AgentMessage::CommandResult(result)) => self.settle(result, ctx),
            (Phase::Active(_), AgentMessage::TerminalRecorded(recorded)) => self.recorded(recorded, ctx),
            (Phase::Active(_), AgentMessage::Event(event)) => self.happened(event),
            (Phase::Checking { .. } | Phase::Ended, _) => {}
        }
    }

    /// Looks up the key while the gate holds everything else back.
    fn check(&mut self, auth: Auth, ctx: &mut Context) {
        // It has sent its key, so its seat is free.
        self.phase = Phase::Checking { early: Vec::new() };
        self.gate.pause();
        let session_id = self.services.clock.session_id();
        let pace = Pace::of(&auth);
        let arriving = SessionRequest {
            share: self.share,
            address: self.address.clone(),
            session_id,
            orders: ctx.address().recipient(),
            heartbeat: self.heartbeat.clone(),
        };
        let checked = authenticate(self.services.handshake.clone(), auth, arriving);
        // The gate is shut until then, so nothing else would notice that the agent has gone.
        // The agent gives up after the same time, counted from a moment earlier: it must not be admitted after that.
        let checked = tokio::time::timeout(self.services.timing.auth_deadline * 4 / 5, checked);
        ctx.spawn(checked.into_actor(self).map(move |outcome, session, ctx| match outcome {
            Ok(Ok(admitted)) => session.admitted(admitted, session_id, pace, ctx),
            Ok(Err(refusal)) => session.refused(refusal, ctx),
            Err(_) => session.refused(OVERLOADED, ctx),
        }));
    }

    fn admitted(&mut self, admitted: Admitted, session_id: Uuid, pace: Pace, ctx: &mut Context) {
        let Admitted { server_id, owner_id, boot_id, clock, clock_offset_ms, clock_is_wrong, description } = admitted;
        let Phase::Checking { early, .. } = std::mem::replace(&mut self.phase, Phase::Ended) else {
            // Ended while its key was looked up: by a newer session, or because the service stops.
            self.services.registry.leave(server_id, session_id);
            return;
        };
        self.connection.iter().for_each(Connection::count_as_known);
        tracing::info!(server.id = %server_id, session.id = %session_id, "an agent connected");
        let ack_seq = self.services.fleet.acknowledged(server_id, &boot_id);
        let mut response = AuthResponse::accepted(server_id, session_id, pace.interval_seconds, ack_seq);
        response.clock_offset_ms = clock_offset_ms;
        self.phase = Phase::Active(Box::new(Active {
            server_id,
            owner_id,
            session_id,
            boot_id,
            clock,
            clock_told: ClockTold::new(clock_offset_ms.unwrap_or_default(), clock_is_wrong),
            description,
            bytes_waiting: 0,
            deferred: None,
            is_behind: false,
            looks_again: false,
            alerts_are_late: false,
            too_large_told: false,
            calls: HashMap::new(),
            streams: HashMap::new(),
            terminals: Terminals::new(),
            settling: HashSet::new(),
            noting: Noting::default(),
            series_dropped: SeriesDropped::default(),
            described: Described::default(),
            help: HelpToNote::default(),
            events: Allowance::default(),
            live: LiveSamples::new(pace),
        }));
        self.send(&ServiceMessage::AuthResponse(response), ctx);
        if let Some(offset_ms) =
            clock_offset_ms.filter(|offset_ms| offset_ms.unsigned_abs() > NOTABLE_MS.unsigned_abs())
        {
            clock::moved(server_id, offset_ms);
        }
        self.ask_if_watched(ctx);
        early.into_iter().for_each(|order| Handler::<Order>::handle(self, order, ctx));
        self.gate.allow(MAX_MESSAGE_BYTES);
        self.gate.resume();
        let reports = self.services.reports.clone();
        ctx.spawn(async move { reports.remind(server_id).await }.into_actor(self));
        ctx.run_interval(self.services.timing.ping_interval, |session, ctx| session.ping(ctx));
    }

    fn refused(&mut self, refusal: Refusal, ctx: &mut Context) {
        tracing::debug!(code = refusal.code, "an agent was refused");
        self.send(&ServiceMessage::AuthResponse(refusal.response()), ctx);
        self.end(refusal.close, refusal.detail, ctx);
    }

    fn crowded_out(&mut self, ctx: &mut Context) {
        self.end(close::OVERLOADED, "too many unauthenticated connections", ctx);
    }

    fn end(&mut self, code: u16, description: &str, ctx: &mut Context) {
        ctx.close(reason(code, description));
        ctx.stop();
        self.leave();
    }

    /// Gives up the server; dropping the session's pending answers informs their callers.
    fn leave(&mut self) {
        if let Phase::Active(active) = std::mem::replace(&mut self.phase, Phase::Ended) {
            tracing::info!(server.id = %active.server_id, session.id = %active.session_id, "an agent disconnected");
            self.note_ends((active.owner_id, active.server_id), &active.terminals);
            self.services.pipeline.ended(active.server_id);
            self.services.registry.leave(active.server_id, active.session_id);
        }
    }
}

impl Actor for AgentSession {
    type Context = Context;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        let Phase::Greeting { eviction, .. } = &mut self.phase else { return self.crowded_out(ctx) };
        if let Some(eviction) = eviction.take() {
            let evicted = |evicted: Result<(), _>, session: &mut Self, ctx: &mut Context| {
                if evicted.is_ok() && matches!(session.phase, Phase::Greeting { .. }) {
                    session.crowded_out(ctx);
                }
            };
            ctx.spawn(eviction.into_actor(self).map(evicted));
        }
        ctx.run_later(self.services.timing.auth_deadline, |session, ctx| {
            if matches!(session.phase, Phase::Greeting { .. }) {
                session.end(close::AUTH_TIMEOUT, "no auth message in time", ctx);
            }
        });
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.leave();
    }
}

impl StreamHandler<Result<ws::Message, ws::ProtocolError>> for AgentSession {
    fn handle(&mut self, item: Result<ws::Message, ws::ProtocolError>, ctx: &mut Self::Context) {
        match item {
            Ok(message) => self.received(message, ctx),
            Err(error) => {
                tracing::debug!(%error, "an agent's frame was refused");
                self.end(code_of(&self.gate), "malformed frame", ctx);
            }
        }
    }
}

impl Handler<Order> for AgentSession {
    type Result = ();

    fn handle(&mut self, order: Order, ctx: &mut Self::Context) {
        let order = match (&mut self.phase, order) {
            (_, close @ Order::Close(_)) => close,
            (Phase::Checking { early, .. }, order) if early.len() < MAILBOX => return early.push(order),
            (_, order) => order,
        };
        match order {
            Order::Call(call) => self.call(call, ctx),
            Order::CancelCall(request_id) => self.cancel_call(request_id, ctx),
            Order::Open(opening) => self.open_stream(opening, ctx),
            Order::Tell(ServiceMessage::Watched { interval_seconds, for_seconds }, _) => {
                self.watched(interval_seconds, for_seconds, ctx);
            }
            Order::Tell(message, sent) => self.tell(message, sent, ctx),
            Order::Close(SessionEnd::Replaced) => self.end(close::REPLACED, "a newer connection took over", ctx),
            Order::Close(SessionEnd::KeyRevoked) => self.end(close::UNAUTHORIZED, "the key was revoked", ctx),
            Order::Close(SessionEnd::ServerDeleted) => self.end(close::SERVER_DELETED, "the server was deleted", ctx),
            Order::Close(SessionEnd::Restarting) => self.end(close::RESTARTING, "the service restarts", ctx),
            Order::Close(SessionEnd::Moved) => self.end(close::RESTARTING, "the server has another owner", ctx),
            Order::Close(SessionEnd::Silent) => self.end(close::SILENT, "silent for too long", ctx),
        }
    }
}
