//! Samples of an agent on their way to the recorder, and their acknowledgement.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Handler, WrapFuture};
use signalbox_protocol::agent::{Metrics, ServiceMessage};
use signalbox_protocol::close;

use super::{AgentSession, Context, Phase};
use crate::fleet::Acknowledged;
use crate::ingest::{Accepted, Source};
use crate::metrics::recorder::Recorded;
use crate::store::history::Why;

/// Bytes of one agent's samples that may wait to be durable, some 4,000 ordinary samples. Beyond that its socket is not
/// read. One message may exceed the limit if nothing else waits.
const MAX_BYTES_WAITING: usize = 1024 * 1024;

/// How long the socket waits for an alert to be written. If it takes longer, the socket stops waiting for alerts until
/// all are written: a database that is away must not keep people from watching and using the server.
const ALERT_WITHIN: Duration = Duration::from_secs(5);

/// The pause before a batch is offered again to a recorder that had no room.
const OFFER_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// How long a batch of an agent that catches up waits while memory is over its budget. A live sample comes after at
/// most two such batches, which is how many an agent sends ahead.
const LATE_BATCH_WAITS: Duration = Duration::from_secs(1);

/// The pause before a batch is offered again while nothing can be written: neither a full disk nor a database outage
/// ends within a moment.
const OFFER_AGAIN_LATER: Duration = Duration::from_secs(1);

impl AgentSession {
    /// Processes samples once the alerts of earlier samples are written. Otherwise the service could lose an alert if
    /// it ended in between, because the next sample may show that the value is back to normal.
    pub(super) fn metrics(&mut self, metrics: Metrics, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        match self.services.alerts.idle(active.server_id) {
            None => active.alerts_are_late = false,
            Some(idle) if !active.alerts_are_late => {
                let raised = tokio::time::timeout(ALERT_WITHIN, idle).into_actor(self);
                return ctx.wait(raised.map(move |raised, session, ctx| {
                    if let (Err(_), Phase::Active(active)) = (raised, &mut session.phase) {
                        active.alerts_are_late = true;
                    }
                    session.accept(metrics, ctx);
                }));
            }
            Some(_) => {}
        }
        self.accept(metrics, ctx);
    }

    fn accept(&mut self, metrics: Metrics, ctx: &mut Context) {
        let moment = self.hear_clock(&metrics);
        let Phase::Active(active) = &mut self.phase else { return };
        let server_id = active.server_id;
        let source = Source { server_id, owner_id: active.owner_id };
        let accepted = self.services.pipeline.accept(source, metrics, &mut active.described, moment);
        if matches!(&accepted, Ok(Accepted { has_too_large: true, .. }))
            && !std::mem::replace(&mut active.too_large_told, true)
        {
            tracing::warn!(server.id = %server_id, "samples of more than 256 KiB are left out: they are too large to store");
        }
        if let Ok(Accepted { series_dropped: Some(dropped), .. }) = &accepted {
            self.dropped(*dropped, ctx);
        }
        match accepted {
            Ok(accepted) if !accepted.is_live && self.services.memory.is_over() => self.hold_back(accepted, ctx),
            Ok(accepted) => self.record(accepted, ctx),
            Err(error) => {
                tracing::debug!(server.id = %server_id, %error, "samples were refused");
                self.end(close::MALFORMED, &error.to_string(), ctx);
            }
        }
    }

    /// Delays a batch and its socket: an agent that catches up sends the next batch when this one is acknowledged.
    fn hold_back(&mut self, batch: Accepted, ctx: &mut Context) {
        match &mut self.phase {
            Phase::Active(active) if active.deferred.is_none() => {
                metrics::counter!("signalbox_memory_batches_held_back_total").increment(1);
                active.deferred = Some(batch);
                ctx.run_later(LATE_BATCH_WAITS, |session, ctx| session.offer_again(ctx));
                self.read_or_wait(ctx);
            }
            _ => self.record(batch, ctx),
        }
    }

    /// Hands a batch to the recorder, unless an earlier one waits: a later batch must not be acknowledged before it.
    pub(super) fn record(&mut self, batch: Accepted, ctx: &mut Context) {
        match &mut self.phase {
            Phase::Active(active) if active.deferred.is_some() => active.is_behind = true,
            _ => self.offer(batch, ctx),
        }
    }

    /// Whether samples of this agent cannot be kept for a while: either nothing can be written, or they wait until our
    /// own clock is right.
    fn is_stuck(&self) -> bool {
        let waits_for_clock = match &self.phase {
            Phase::Active(active) => {
                active.deferred.as_ref().is_some_and(|batch| self.services.pipeline.is_waiting(batch))
            }
            _ => false,
        };
        self.services.recorder.is_stuck() || waits_for_clock
    }

    /// Offers a batch to the recorder. If the recorder has no room, the batch waits here and the socket with it. While
    /// nothing can be written, which may last, the socket is read all the same, so that people can still watch and use
    /// the server.
    pub(super) fn offer(&mut self, batch: Accepted, ctx: &mut Context) {
        let is_stuck = self.is_stuck() || batch.waits_for.is_some();
        let Phase::Active(active) = &mut self.phase else { return };
        if let Some(at) = batch.waits_for {
            if !active.is_behind {
                tracing::warn!(
                    server.id = %active.server_id, sample.timestamp = %at,
                    "samples dated more than a day ahead stay with their agent: its clock or this machine's may be wrong"
                );
            }
            active.is_behind = true;
        }
        let bytes = batch.bytes();
        let held_by = self.services.handshake.company.holder(active.session_id);
        // The session is behind: only the newest batch is kept until there is room.
        let refused = if active.is_behind || (is_stuck && active.bytes_waiting >= MAX_BYTES_WAITING) {
            Err(batch)
        } else {
            self.services.pipeline.record(batch, held_by, ctx.address().recipient())
        };
        if let Err(batch) = refused {
            metrics::counter!("signalbox_batches_deferred_total").increment(1);
            active.deferred = Some(batch);
            let again_after = if is_stuck { OFFER_AGAIN_LATER } else { OFFER_AGAIN_AFTER };
            ctx.run_later(again_after, |session, ctx| session.offer_again(ctx));
        } else {
            active.bytes_waiting += bytes;
        }
        self.read_or_wait(ctx);
    }

    pub(super) fn offer_again(&mut self, ctx: &mut Context) {
        let is_stuck = self.is_stuck();
        let Phase::Active(active) = &mut self.phase else { return };
        if active.is_behind && !is_stuck {
            // The agent kept what was not acknowledged, and sends it again when it reconnects.
            return self.end(close::OVERLOADED, "samples can be stored again, please resend them", ctx);
        }
        if let Some(batch) = active.deferred.take() {
            self.offer(batch, ctx);
        }
    }

    /// Reads the socket, unless there is a reason to wait.
    pub(super) fn read_or_wait(&mut self, ctx: &mut Context) {
        let is_stuck = self.is_stuck();
        let Phase::Active(active) = &mut self.phase else { return };
        let has_too_much = active.bytes_waiting >= MAX_BYTES_WAITING;
        if is_stuck || (active.deferred.is_none() && !has_too_much) {
            return self.gate.resume();
        }
        self.gate.pause();
        if has_too_much && active.deferred.is_none() && !std::mem::replace(&mut active.looks_again, true) {
            // Nothing else would notice that the waiting samples are stuck.
            ctx.run_later(OFFER_AGAIN_LATER, |session, ctx| {
                if let Phase::Active(active) = &mut session.phase {
                    active.looks_again = false;
                    session.read_or_wait(ctx);
                }
            });
        }
    }
}

impl Handler<Recorded> for AgentSession {
    type Result = ();

    fn handle(&mut self, recorded: Recorded, ctx: &mut Self::Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        active.bytes_waiting = active.bytes_waiting.saturating_sub(recorded.bytes);
        match recorded.lost {
            Some(Why::Replaced) => return self.end(close::REPLACED, "another connection holds the server", ctx),
            Some(Why::Released | Why::Gone) => {
                return self.end(close::RESTARTING, "the session has ended, please reconnect", ctx);
            }
            None => {}
        }
        let acknowledged = Acknowledged { boot_id: active.boot_id.clone(), seq: recorded.seq };
        self.services.fleet.acknowledge(active.server_id, acknowledged);
        self.send(&ServiceMessage::Ack { seq: recorded.seq }, ctx);
        self.read_or_wait(ctx);
    }
}
