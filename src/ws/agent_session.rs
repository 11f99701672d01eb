//! One agent's connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Handler, StreamHandler, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use actix_web_actors::ws;
use bytes::Bytes;
use bytestring::ByteString;
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, Auth, AuthResponse, Metrics, Response, ServiceMessage};
use signalbox_protocol::{Decoded, Encoding, MAX_AUTH_MESSAGE_BYTES, MAX_MESSAGE_BYTES, Timestamp, close};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use uuid::Uuid;

use super::assembly::{Assembly, Whole};
use super::authenticate::{Admitted, OVERLOADED, Refusal, authenticate};
use super::gate::{Gate, GateControl};
use super::{code_of, reason};
use crate::fleet::Acknowledged;
use crate::metrics::pipeline::Accepted;
use crate::metrics::recorder::Recorded;
use crate::registry::{Call, CallError, Order, Pulse, SessionEnd};
use crate::state::{OpenSocket, State};

/// Seconds between samples for an agent that does not say what its owner chose.
const SAMPLE_INTERVAL_SECONDS: f64 = 5.0;

/// Bytes of samples of one agent that may wait to be durable, some 4,000 ordinary samples; then its socket is not
/// read any more. A message that is larger alone waits alone.
const MAX_BYTES_WAITING: usize = 1024 * 1024;

/// Requests to one agent that may wait for their answers.
const MAX_CALLS_WAITING: usize = 64;

/// Room for every call that may wait and for as many cancellations, so that a burst of calls is refused by their own
/// bound and not by the mailbox's.
const MAILBOX: usize = 2 * MAX_CALLS_WAITING;

/// When to offer a batch again that the recorder had no room for.
const OFFER_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// When to offer it again while the disk is full: a full disk does not empty itself in a moment.
const OFFER_AGAIN_LATER: Duration = Duration::from_secs(1);

/// An agent's connection, in one of its phases.
pub struct AgentSession {
    state: State,
    gate: GateControl,
    pulse: Arc<Pulse>,
    assembly: Assembly,
    encoding: Encoding,
    phase: Phase,
    _open: OpenSocket,
}

enum Phase {
    /// Nothing is known of the peer: it holds a place among the few that may be in here.
    Greeting {
        place: OwnedSemaphorePermit,
    },
    /// Its key is looked up; nothing is read meanwhile.
    Checking {
        _place: OwnedSemaphorePermit,
    },
    Active(Box<Active>),
    Ended,
}

/// An agent that was let in.
struct Active {
    server_id: Uuid,
    session_id: Uuid,
    boot_id: String,
    /// Handed to the recorder, not yet durable.
    bytes_waiting: usize,
    /// The recorder had no room for it.
    deferred: Option<Accepted>,
    /// Samples came that were not kept, because none are taken now: nothing later may be acknowledged.
    is_behind: bool,
    calls: HashMap<Uuid, oneshot::Sender<Result<Value, CallError>>>,
}

type Context = ws::WebsocketContext<AgentSession>;

/// Upgrades a request to an agent's connection. One more than may authenticate at a time is sent away with 1013.
pub fn open(state: State, request: &HttpRequest, payload: web::Payload) -> Result<HttpResponse, actix_web::Error> {
    let pulse = Arc::new(Pulse::default());
    let gate = GateControl::new(MAX_AUTH_MESSAGE_BYTES, pulse.clone());
    let phase = match state.handshakes.clone().try_acquire_owned() {
        Ok(place) => Phase::Greeting { place },
        Err(_) => Phase::Ended,
    };
    let open = state.sockets.opened();
    let session = AgentSession {
        state,
        gate: gate.clone(),
        pulse,
        assembly: Assembly::default(),
        encoding: Encoding::Json,
        phase,
        _open: open,
    };
    ws::WsResponseBuilder::new(session, request, Gate::new(payload, gate)).frame_size(MAX_MESSAGE_BYTES).start()
}

impl AgentSession {
    fn received(&mut self, message: ws::Message, ctx: &mut Context) {
        match message {
            ws::Message::Text(text) => self.whole(Encoding::Json, text.as_bytes(), ctx),
            ws::Message::Binary(bytes) => self.whole(Encoding::MessagePack, &bytes, ctx),
            ws::Message::Continuation(item) => match self.assembly.add(item) {
                Ok(None) => {}
                Ok(Some(Whole::Text(text))) => self.whole(Encoding::Json, text.as_bytes(), ctx),
                Ok(Some(Whole::Binary(bytes))) => self.whole(Encoding::MessagePack, &bytes, ctx),
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
            (Phase::Active(_), AgentMessage::Response(response)) => self.answered(response),
            (Phase::Active(_), AgentMessage::Auth(_)) => self.end(close::MALFORMED, "authenticated already", ctx),
            // Nothing was asked that these could answer.
            (
                Phase::Active(_),
                AgentMessage::CommandOutput(_)
                | AgentMessage::CommandResult(_)
                | AgentMessage::LogLines(_)
                | AgentMessage::Event(_),
            ) => metrics::counter!("signalbox_agent_messages_unasked_total").increment(1),
            (Phase::Checking { .. } | Phase::Ended, _) => {}
        }
    }

    /// Looks the key up, while the gate lets nothing more in.
    fn check(&mut self, auth: Auth, ctx: &mut Context) {
        let Phase::Greeting { place } = std::mem::replace(&mut self.phase, Phase::Ended) else { return };
        self.phase = Phase::Checking { _place: place };
        self.gate.pause();
        let session_id = Uuid::now_v7();
        let interval_seconds = auth.sample_interval_seconds.unwrap_or(SAMPLE_INTERVAL_SECONDS);
        let checked = authenticate(self.state.clone(), auth, session_id, ctx.address().recipient(), self.pulse.clone());
        // The gate is shut meanwhile, so that nothing else would notice an agent that has gone.
        let checked = tokio::time::timeout(self.state.config.timing.auth_deadline, checked);
        ctx.spawn(checked.into_actor(self).map(move |outcome, session, ctx| match outcome {
            Ok(Ok(admitted)) => session.admitted(admitted, session_id, interval_seconds, ctx),
            Ok(Err(refusal)) => session.refused(refusal, ctx),
            Err(_) => session.refused(OVERLOADED, ctx),
        }));
    }

    fn admitted(&mut self, admitted: Admitted, session_id: Uuid, interval_seconds: f64, ctx: &mut Context) {
        let Admitted { server_id, boot_id, clock_offset_ms } = admitted;
        if matches!(self.phase, Phase::Ended) {
            // Ended while its key was looked up: by a newer session, or because the service stops.
            self.state.registry.leave(server_id, session_id);
            return;
        }
        tracing::info!(server.id = %server_id, session.id = %session_id, "an agent connected");
        let ack_seq = self.state.fleet.acknowledged(server_id, &boot_id);
        let mut response = AuthResponse::accepted(server_id, session_id, interval_seconds, ack_seq);
        response.clock_offset_ms = clock_offset_ms;
        self.phase = Phase::Active(Box::new(Active {
            server_id,
            session_id,
            boot_id,
            bytes_waiting: 0,
            deferred: None,
            is_behind: false,
            calls: HashMap::new(),
        }));
        self.send(&ServiceMessage::AuthResponse(response), ctx);
        self.gate.allow(MAX_MESSAGE_BYTES);
        self.gate.resume();
        ctx.run_interval(self.state.config.timing.ping_interval, |session, ctx| session.ping(ctx));
    }

    fn refused(&mut self, refusal: Refusal, ctx: &mut Context) {
        tracing::debug!(code = refusal.code, "an agent was refused");
        self.send(&ServiceMessage::AuthResponse(refusal.response()), ctx);
        self.end(refusal.close, refusal.detail, ctx);
    }

    fn metrics(&mut self, metrics: Metrics, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        match self.state.pipeline.accept(active.server_id, metrics, Timestamp::now()) {
            Ok(accepted) => self.record(accepted, ctx),
            Err(error) => {
                tracing::debug!(server.id = %active.server_id, %error, "samples were refused");
                self.end(close::MALFORMED, &error.to_string(), ctx);
            }
        }
    }

    /// Hands a batch to the recorder, unless one waits already: what came after it must not be acknowledged before it.
    fn record(&mut self, batch: Accepted, ctx: &mut Context) {
        match &mut self.phase {
            Phase::Active(active) if active.deferred.is_some() => active.is_behind = true,
            _ => self.offer(batch, ctx),
        }
    }

    /// What the recorder has no room for waits here, and so does the socket; but while the disk is full, which may last,
    /// it is read on, so that the server can still be watched and run.
    fn offer(&mut self, batch: Accepted, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let bytes = batch.bytes();
        let is_full = self.state.disk.is_full();
        // Behind: only its place is kept until there is room.
        let refused =
            if active.is_behind { Err(batch) } else { self.state.pipeline.record(batch, ctx.address().recipient()) };
        if let Err(batch) = refused {
            metrics::counter!("signalbox_batches_deferred_total").increment(1);
            active.deferred = Some(batch);
            let again_after = if is_full { OFFER_AGAIN_LATER } else { OFFER_AGAIN_AFTER };
            ctx.run_later(again_after, |session, ctx| session.offer_again(ctx));
        } else {
            active.bytes_waiting += bytes;
        }
        if active.bytes_waiting >= MAX_BYTES_WAITING || (active.deferred.is_some() && !is_full) {
            self.gate.pause();
        }
    }

    fn offer_again(&mut self, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        if active.is_behind && !self.state.disk.is_full() {
            // The agent kept what was not acknowledged, and sends it again when it comes back.
            return self.end(close::OVERLOADED, "samples can be taken again: send them once more", ctx);
        }
        if let Some(batch) = active.deferred.take() {
            self.offer(batch, ctx);
            self.read_on();
        }
    }

    /// Lets the socket be read again when nothing stands against it.
    fn read_on(&mut self) {
        if let Phase::Active(active) = &self.phase
            && active.deferred.is_none()
            && active.bytes_waiting < MAX_BYTES_WAITING
        {
            self.gate.resume();
        }
    }

    /// Resolves the call that this answers. Only a pending one: late, repeated and invented answers are dropped.
    fn answered(&mut self, response: Response) {
        let Phase::Active(active) = &mut self.phase else { return };
        match active.calls.remove(&response.request_id) {
            Some(answer) => _ = answer.send(response.into_outcome().map_err(CallError::Agent)),
            None => metrics::counter!("signalbox_agent_messages_unasked_total").increment(1),
        }
    }

    fn call(&mut self, call: Call, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return call.fail(CallError::Offline) };
        if active.calls.len() >= MAX_CALLS_WAITING {
            // Whoever gave up may not have been able to say so.
            active.calls.retain(|_, answer| !answer.is_closed());
        }
        if active.calls.len() >= MAX_CALLS_WAITING {
            return call.fail(CallError::Busy);
        }
        let (request, answer) = call.into_request();
        active.calls.insert(request.request_id, answer);
        self.send(&ServiceMessage::Request(request), ctx);
    }

    fn cancel_call(&mut self, request_id: Uuid, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        if active.calls.remove(&request_id).is_some() {
            self.send(&ServiceMessage::RequestCancel { request_id }, ctx);
        }
    }

    fn ping(&mut self, ctx: &mut Context) {
        if self.gate.is_paused() {
            // We do not listen, so its silence is ours. A peer that has gone does not acknowledge the ping either, and
            // the kernel ends that.
            self.pulse.beat();
        }
        ctx.ping(b"");
    }

    fn send(&mut self, message: &ServiceMessage, ctx: &mut Context) {
        match self.encoding.encode(message) {
            Ok(bytes) => send_encoded(self.encoding, bytes, ctx),
            Err(error) => tracing::error!(%error, "a message to an agent could not be written"),
        }
    }

    fn end(&mut self, code: u16, description: &str, ctx: &mut Context) {
        ctx.close(reason(code, description));
        ctx.stop();
        self.leave();
    }

    /// Gives the server back; whoever waits for an answer is told by the drop of what they wait for.
    fn leave(&mut self) {
        if let Phase::Active(active) = std::mem::replace(&mut self.phase, Phase::Ended) {
            tracing::info!(server.id = %active.server_id, session.id = %active.session_id, "an agent disconnected");
            self.state.registry.leave(active.server_id, active.session_id);
        }
    }
}

fn send_encoded(encoding: Encoding, bytes: Bytes, ctx: &mut Context) {
    match encoding {
        Encoding::Json => ctx.text(ByteString::try_from(bytes).unwrap_or_default()),
        Encoding::MessagePack => ctx.binary(bytes),
    }
}

impl Actor for AgentSession {
    type Context = Context;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        if matches!(self.phase, Phase::Ended) {
            metrics::counter!("signalbox_handshakes_refused_total").increment(1);
            return self.end(close::OVERLOADED, "too many agents are authenticating", ctx);
        }
        ctx.run_later(self.state.config.timing.auth_deadline, |session, ctx| {
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

impl Handler<Recorded> for AgentSession {
    type Result = ();

    fn handle(&mut self, recorded: Recorded, ctx: &mut Self::Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        active.bytes_waiting = active.bytes_waiting.saturating_sub(recorded.bytes);
        let acknowledged = Acknowledged { boot_id: active.boot_id.clone(), seq: recorded.seq };
        self.state.fleet.acknowledge(active.server_id, acknowledged);
        self.send(&ServiceMessage::Ack { seq: recorded.seq }, ctx);
        self.read_on();
    }
}

impl Handler<Order> for AgentSession {
    type Result = ();

    fn handle(&mut self, order: Order, ctx: &mut Self::Context) {
        match order {
            Order::Call(call) => self.call(call, ctx),
            Order::CancelCall(request_id) => self.cancel_call(request_id, ctx),
            Order::Close(SessionEnd::Replaced) => self.end(close::REPLACED, "a newer connection took over", ctx),
            Order::Close(SessionEnd::KeyRevoked) => self.end(close::UNAUTHORIZED, "the key was revoked", ctx),
            Order::Close(SessionEnd::ServerDeleted) => self.end(close::SERVER_DELETED, "the server was deleted", ctx),
            Order::Close(SessionEnd::Restarting) => self.end(close::RESTARTING, "the service restarts", ctx),
            Order::Close(SessionEnd::Silent) => self.end(1001, "silent for too long", ctx),
        }
    }
}
