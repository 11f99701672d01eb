//! Terminals that wait for their clients to come back.
//!
//! A terminal that is kept continues when its client is lost, as far as the agent has credit, and is held after that: no output is
//! lost. The next client gets what it missed, and then what comes. A terminal ends when its client says so, when it was alone
//! for too long, and with the session.

use std::collections::HashMap;
use std::time::Instant;

use actix::{ActorFutureExt, AsyncContext, SpawnHandle, WrapFuture};
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, RequestError, ServiceMessage, TerminalOutput, TerminalSize};
use uuid::Uuid;

use super::kept::{Credit, Ring};
use super::{AgentSession, Context, Phase};
use crate::audit::{Outcome, action};
use crate::registry::terminal::{Holder, Intent, KEPT_BYTES, KeptRequest, TERMINAL_CREDIT, client_behind};
use crate::registry::{CallError, StreamOver, StreamSink};
use crate::shares::{Gate, Permit, Share};
use crate::store::TerminalNote;

/// Terminals of one agent that are open or have ended a moment ago: twice as many as an agent opens.
const MAX_TERMINALS: usize = 8;

/// The terminals of an agent that are kept, by their ids.
pub(super) type Terminals = HashMap<Uuid, Terminal>;

pub(super) struct Terminal {
    holder: Holder,
    /// The stream of its client, or of the last one that it had.
    stream_id: Uuid,
    client: Option<StreamSink>,
    ring: Ring,
    credit: Credit,
    /// When and how it ended, for a client that comes back later.
    outcome: Option<(Instant, Result<Value, CallError>)>,
    /// Its place among the sockets of its account, while it has no client or is only remembered.
    place: Option<Permit>,
    /// Its end.
    timer: Option<SpawnHandle>,
}

impl Terminal {
    /// Whether its account has a place for it among its sockets. It is taken.
    fn has_place(&mut self, places: &Gate) -> bool {
        if self.place.is_none() {
            self.place = places.try_enter(Share::Account(self.holder.user_id)).ok();
        }
        self.place.is_some()
    }

    /// Shows output to the client, if there is one. An error means that the client does not take it.
    fn show(&self, data: String, offset: u64) -> Result<(), StreamOver> {
        let Some(client) = &self.client else { return Ok(()) };
        let output = TerminalOutput { stream_id: self.stream_id, data, offset: Some(offset) };
        match client.deliver(AgentMessage::TerminalOutput(output)) {
            // Its parting follows.
            Err(StreamOver::Unread) => Ok(()),
            shown => shown,
        }
    }

    /// Shows what a client missed. It begins with an output without text, which says where.
    fn catch_up(&self, offset: u64) -> Result<u64, StreamOver> {
        let (begins, pieces) = self.ring.after(offset);
        self.show(String::new(), begins)?;
        let mut place = begins;
        for piece in pieces {
            let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            self.show(piece, place)?;
            place += length;
        }
        Ok(place - begins)
    }
}

fn error(code: &str, detail: &str) -> CallError {
    CallError::Agent(RequestError::new(code, detail))
}

impl AgentSession {
    /// Opens a terminal that is kept, or gives one another client.
    pub(super) fn open_kept(&mut self, request: KeptRequest, sink: StreamSink, ctx: &mut Context) {
        match request {
            KeptRequest::Start { stream_id, start, holder } => {
                let Phase::Active(active) = &mut self.phase else { return sink.end(Err(CallError::Offline)) };
                let terminal_id = start.stream_id;
                if active.terminals.len() >= MAX_TERMINALS {
                    let ended =
                        active.terminals.iter().filter_map(|(id, terminal)| Some((terminal.outcome.as_ref()?.0, *id)));
                    let Some((_, oldest)) = ended.min() else { return sink.end(Err(CallError::Busy)) };
                    active.terminals.remove(&oldest);
                }
                let mut terminal = Terminal {
                    holder,
                    stream_id,
                    client: None,
                    ring: Ring::new(KEPT_BYTES),
                    credit: Credit::new(TERMINAL_CREDIT),
                    outcome: None,
                    place: None,
                    timer: None,
                };
                self.attend(terminal_id, &mut terminal, (stream_id, sink), ctx);
                // Nothing is there yet that could be too much.
                _ = terminal.catch_up(0);
                let Phase::Active(active) = &mut self.phase else { return };
                active.terminals.insert(terminal_id, terminal);
                self.send(&ServiceMessage::TerminalStart(start), ctx);
            }
            KeptRequest::Resume { stream_id, terminal_id, holder, size, offset, intent } => {
                match self.may_resume(terminal_id, &holder) {
                    Err(denied) => sink.end(Err(denied.error())),
                    Ok(()) if intent == Intent::Check => sink.end(Ok(Value::Null)),
                    Ok(()) => self.resume(terminal_id, (stream_id, sink), (size, offset), ctx),
                }
            }
        }
    }

    /// Whether this person may have the terminal.
    fn may_resume(&self, terminal_id: Uuid, holder: &Holder) -> Result<(), Denied> {
        let Phase::Active(active) = &self.phase else { return Err(Denied::NoTerminal) };
        let known = &active.terminals.get(&terminal_id).ok_or(Denied::NoTerminal)?.holder;
        // Digests of secrets that nobody can guess: how long the comparison takes says nothing.
        if (known.user_id, known.token_id, &known.secret_digest)
            != (holder.user_id, holder.token_id, &holder.secret_digest)
        {
            return Err(Denied::NoTerminal);
        }
        // The agent's policy may name people, and has judged this one.
        if known.asker == holder.asker { Ok(()) } else { Err(Denied::OtherPerson) }
    }

    fn resume(
        &mut self,
        terminal_id: Uuid,
        (stream_id, sink): (Uuid, StreamSink),
        (size, offset): (TerminalSize, u64),
        ctx: &mut Context,
    ) {
        let Phase::Active(active) = &mut self.phase else { return sink.end(Err(CallError::Offline)) };
        let Some(mut terminal) = active.terminals.remove(&terminal_id) else {
            return sink.end(Err(Denied::NoTerminal.error()));
        };
        if let Some(displaced) = terminal.client.take() {
            displaced.end(Err(error("terminal_resumed", "the terminal was resumed elsewhere")));
        }
        self.attend(terminal_id, &mut terminal, (stream_id, sink), ctx);
        let missed = terminal.catch_up(offset);
        if let Some((_, outcome)) = &terminal.outcome {
            if let Some(client) = terminal.client.take() {
                client.end(outcome.clone());
            }
        } else {
            terminal.place = None;
            terminal.timer.take().map(|timer| ctx.cancel_future(timer));
            let bytes = missed.map_or(0, |missed| terminal.credit.resume(missed));
            if bytes > 0 {
                self.send(&ServiceMessage::Credit { stream_id: terminal_id, bytes }, ctx);
            }
            self.send(&ServiceMessage::TerminalResize { stream_id: terminal_id, size }, ctx);
        }
        let Phase::Active(active) = &mut self.phase else { return };
        active.terminals.insert(terminal_id, terminal);
        if missed.is_err() {
            self.let_go(terminal_id, ctx);
        }
    }

    /// Attaches a client to a terminal, and waits for its parting.
    fn attend(
        &mut self,
        terminal_id: Uuid,
        terminal: &mut Terminal,
        (stream_id, mut sink): (Uuid, StreamSink),
        ctx: &mut Context,
    ) {
        if let Some(parting) = sink.take_parting() {
            ctx.spawn(parting.into_actor(self).map(move |parting, session, ctx| match parting {
                Ok(()) => session.closed(terminal_id, stream_id, ctx),
                Err(_) => session.lost(terminal_id, stream_id, ctx),
            }));
        }
        terminal.stream_id = stream_id;
        terminal.client = Some(sink);
    }

    /// The client of a terminal has ended it.
    fn closed(&mut self, terminal_id: Uuid, stream_id: Uuid, ctx: &mut Context) {
        let Phase::Active(active) = &self.phase else { return };
        if active.terminals.get(&terminal_id).is_some_and(|terminal| terminal.stream_id == stream_id) {
            self.close_terminal(terminal_id, ctx);
        }
    }

    /// The client of a terminal was lost: it has some time to come back.
    fn lost(&mut self, terminal_id: Uuid, stream_id: Uuid, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let Some(terminal) = active.terminals.get_mut(&terminal_id) else { return };
        if terminal.stream_id == stream_id && terminal.client.take().is_some() {
            self.detached(terminal_id, ctx);
        }
    }

    /// The client of a terminal does not take its output: it is lost, until it comes back.
    fn let_go(&mut self, terminal_id: Uuid, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let Some(client) = active.terminals.get_mut(&terminal_id).and_then(|terminal| terminal.client.take()) else {
            return;
        };
        client.end(Err(client_behind()));
        self.detached(terminal_id, ctx);
    }

    /// A terminal has no client any more.
    fn detached(&mut self, terminal_id: Uuid, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let Some(terminal) = active.terminals.get_mut(&terminal_id) else { return };
        if !terminal.has_place(&self.services.dashboards) {
            return self.close_terminal(terminal_id, ctx);
        }
        terminal.timer = Some(Self::end_later(terminal_id, self.services.timing.terminal_kept, ctx));
        self.note_terminal(terminal_id, TerminalNote::new(action::TERMINAL_DETACH, Outcome::Ok));
    }

    fn end_later(terminal_id: Uuid, after: std::time::Duration, ctx: &mut Context) -> SpawnHandle {
        ctx.run_later(after, move |session, ctx| session.close_terminal(terminal_id, ctx))
    }

    /// Ends a terminal, at the agent as well, and forgets it.
    fn close_terminal(&mut self, terminal_id: Uuid, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let Some(terminal) = active.terminals.remove(&terminal_id) else { return };
        terminal.timer.map(|timer| ctx.cancel_future(timer));
        if terminal.outcome.is_none() {
            self.send(&ServiceMessage::TerminalStop { stream_id: terminal_id }, ctx);
            self.note_terminal(terminal_id, TerminalNote::new(action::TERMINAL_OPEN, Outcome::Ok));
        }
    }

    /// The agent shows something of a terminal.
    pub(super) fn shown(&mut self, mut output: TerminalOutput, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let terminal_id = output.stream_id;
        let Some(terminal) = active.terminals.get_mut(&terminal_id) else {
            output.offset = None;
            return self.flowed(terminal_id, AgentMessage::TerminalOutput(output), ctx);
        };
        if terminal.outcome.is_some() {
            return;
        }
        let bytes = u64::try_from(output.data.len()).unwrap_or(u64::MAX);
        let offset = terminal.ring.end();
        if !terminal.credit.take(bytes) {
            self.send(&ServiceMessage::TerminalStop { stream_id: terminal_id }, ctx);
            return self.terminal_ended(terminal_id, Err(StreamOver::Overrun.error()), ctx);
        }
        terminal.ring.push(&output.data);
        if terminal.show(output.data, offset).is_err() {
            self.let_go(terminal_id, ctx);
        }
    }

    /// Whether a response is the end of a terminal that is kept.
    pub(super) fn has_terminal(&self, terminal_id: Uuid) -> bool {
        matches!(&self.phase, Phase::Active(active) if active.terminals.contains_key(&terminal_id))
    }

    /// A terminal has ended. A client that has not heard of it may still come back.
    pub(super) fn terminal_ended(&mut self, terminal_id: Uuid, outcome: Result<Value, CallError>, ctx: &mut Context) {
        let kept_for = self.services.timing.terminal_kept;
        let Phase::Active(active) = &mut self.phase else { return };
        let Some(terminal) = active.terminals.get_mut(&terminal_id) else { return };
        if terminal.outcome.is_some() {
            return;
        }
        let noted = match &outcome {
            Ok(_) => Outcome::Ok,
            Err(error) => Outcome::Failed(error.code().to_owned().into()),
        };
        let reason = outcome.as_ref().err().and_then(CallError::reason).map(str::to_owned);
        if let Some(client) = terminal.client.take() {
            client.end(outcome.clone());
        }
        if terminal.has_place(&self.services.dashboards) {
            terminal.outcome = Some((Instant::now(), outcome));
            terminal.timer.get_or_insert_with(|| Self::end_later(terminal_id, kept_for, ctx));
        } else {
            active.terminals.remove(&terminal_id);
        }
        self.note_terminal(terminal_id, TerminalNote { action: action::TERMINAL_OPEN, outcome: noted, reason });
    }

    /// A message of a client about its terminal, as the agent takes it. `None` if there is nothing to send.
    ///
    /// A message of a client that has lost its terminal to another one names a stream that is unknown here and at the agent.
    pub(super) fn of_terminal(&mut self, message: ServiceMessage, ctx: &mut Context) -> Option<ServiceMessage> {
        let (ServiceMessage::Credit { stream_id, .. }
        | ServiceMessage::TerminalInput { stream_id, .. }
        | ServiceMessage::TerminalResize { stream_id, .. }
        | ServiceMessage::TerminalStop { stream_id }) = &message
        else {
            return Some(message);
        };
        let Phase::Active(active) = &mut self.phase else { return None };
        let found = active.terminals.iter_mut().find(|(_, terminal)| terminal.stream_id == *stream_id);
        let Some((&terminal_id, terminal)) = found else { return Some(message) };
        match message {
            ServiceMessage::Credit { bytes, .. } => {
                let bytes = terminal.credit.grant(bytes);
                (bytes > 0).then_some(ServiceMessage::Credit { stream_id: terminal_id, bytes })
            }
            ServiceMessage::TerminalInput { data, .. } => {
                Some(ServiceMessage::TerminalInput { stream_id: terminal_id, data })
            }
            ServiceMessage::TerminalResize { size, .. } => {
                Some(ServiceMessage::TerminalResize { stream_id: terminal_id, size })
            }
            _ => {
                self.close_terminal(terminal_id, ctx);
                None
            }
        }
    }

    /// The session has ended, and the terminals with it.
    pub(super) fn note_ends(&mut self, (owner_id, server_id): (Uuid, Uuid), terminals: &Terminals) {
        for (terminal_id, _) in terminals.iter().filter(|(_, terminal)| terminal.outcome.is_none()) {
            let code = CallError::Disconnected.code().to_owned();
            let note = TerminalNote::new(action::TERMINAL_OPEN, Outcome::Failed(code.into()));
            self.write((owner_id, server_id), *terminal_id, note);
        }
    }

    fn note_terminal(&mut self, terminal_id: Uuid, note: TerminalNote) {
        if let Phase::Active(active) = &self.phase {
            let server = (active.owner_id, active.server_id);
            self.write(server, terminal_id, note);
        }
    }

    /// Writes to the audit log, in a task that outlives the session. What is noted first is written first: nothing follows the
    /// end of a terminal.
    fn write(&mut self, server: (Uuid, Uuid), terminal_id: Uuid, note: TerminalNote) {
        let store = self.services.store.clone();
        let before = self.last_note.take();
        self.last_note = Some(tokio::spawn(async move {
            if let Some(before) = before {
                _ = before.await;
            }
            if let Err(error) = store.note_terminal(server, terminal_id, note).await {
                tracing::error!(%error, "cannot record what became of a terminal");
            }
        }));
    }
}

/// Why somebody may not resume a terminal.
enum Denied {
    /// There is none, or it belongs to somebody else.
    NoTerminal,
    /// The agent has not judged this name and these teams.
    OtherPerson,
}

impl Denied {
    fn error(self) -> CallError {
        match self {
            Self::NoTerminal => error("not_found", "no such terminal: it has ended, or it was opened by somebody else"),
            // It ends when nobody else comes: this instance and that of the client may not know the same teams yet.
            Self::OtherPerson => {
                let detail = "your name or your teams have changed since the terminal was opened: open another one";
                error("agent_refused", detail)
            }
        }
    }
}
