//! Requests and messages to an agent, and its answers.

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use signalbox_protocol::agent::{AgentMessage, CommandResult, RequestError, Response, ServiceMessage};
use signalbox_protocol::text::is_plain;
use signalbox_signing::Reason;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{AgentSession, Context, Phase};
use crate::registry::{Call, CallError, Opening, StreamRequest};
use crate::updates::is_refusal;

/// Requests to one agent that may wait for their answers.
const MAX_CALLS_WAITING: usize = 64;

/// Results of one agent that may wait to be stored: as many commands as our agents hold. A result beyond is not acknowledged, so
/// the agent sends it again on its next connection.
const MAX_SETTLING: usize = 256;

/// Streams of one agent that may be open at the same time.
const MAX_STREAMS: usize = 64;

/// Room for every call that may wait, for as many cancellations, and for messages about streams, so that a burst of
/// calls hits its own limit before the mailbox's.
pub(super) const MAILBOX: usize = 4 * MAX_CALLS_WAITING;

/// Characters of an agent's reason that are passed on: it is one sentence for people.
const MAX_DETAIL: usize = 1_000;

/// Characters of a reason's error code.
const MAX_CODE: usize = 64;

/// Bounds the agent's reason, so that it fits in an error and in the database, and makes it one line without control
/// characters.
fn bounded(response: Response) -> Response {
    let text = |text: String, most: usize, otherwise: &str| {
        let spaced = text.chars().map(|character| if matches!(character, '\n' | '\t') { ' ' } else { character });
        let kept: String = spaced.filter(|character| is_plain(*character)).take(most).collect();
        if kept.trim().is_empty() { otherwise.to_owned() } else { kept }
    };
    let error = response.error.map(|error| RequestError {
        code: text(error.code, MAX_CODE, "agent_error"),
        detail: text(error.detail, MAX_DETAIL, "the agent gave no reason"),
        reason: error.reason.filter(|reason| Reason::of(reason).is_some() || is_refusal(reason)),
    });
    Response { error, ..response }
}

impl AgentSession {
    /// Resolves the call that this response answers. Late, repeated and invented responses are dropped.
    pub(super) fn answered(&mut self, response: Response, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let response = bounded(response);
        let id = response.request_id;
        if let Some(answer) = active.calls.remove(&id) {
            _ = answer.send(response.into_outcome().map_err(CallError::Agent));
        } else if let Some(sink) = active.streams.remove(&id) {
            sink.end(response.into_outcome().map_err(CallError::Agent));
        } else if self.has_terminal(id) {
            self.terminal_ended(id, response.into_outcome().map_err(CallError::Agent), ctx);
        } else if let Err(error) = response.into_outcome() {
            self.command_refused(id, error);
        } else {
            metrics::counter!("signalbox_agent_messages_unasked_total").increment(1);
        }
    }

    /// Handles the agent's refusal to run a command.
    fn command_refused(&self, id: Uuid, error: RequestError) {
        let Phase::Active(active) = &self.phase else { return };
        if !self.services.reports.refused(active.server_id, id, error) {
            metrics::counter!("signalbox_agent_messages_unasked_total").increment(1);
        }
    }

    /// Stores how a command ended, and confirms it to the agent, which then stops keeping the result.
    pub(super) fn settle(&mut self, result: CommandResult, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let command_id = result.command_id;
        if active.settling.contains(&command_id) {
            // A repetition: the agent gets its confirmation once the result is stored.
            return;
        }
        if active.settling.len() >= MAX_SETTLING {
            metrics::counter!("signalbox_agent_messages_unasked_total").increment(1);
            return;
        }
        active.settling.insert(command_id);
        let settled = self.services.reports.result(active.server_id, result);
        ctx.spawn(settled.into_actor(self).map(move |settled, session, ctx| {
            if let Phase::Active(active) = &mut session.phase {
                active.settling.remove(&command_id);
            }
            if settled.is_ok() {
                session.send(&ServiceMessage::ResultAck { command_id }, ctx);
            }
        }));
    }

    pub(super) fn call(&mut self, call: Call, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return call.fail(CallError::Offline) };
        if active.calls.len() >= MAX_CALLS_WAITING {
            // A caller that gave up may not have been able to cancel.
            active.calls.retain(|_, answer| !answer.is_closed());
        }
        if active.calls.len() >= MAX_CALLS_WAITING {
            return call.fail(CallError::Busy);
        }
        let (request, answer) = call.into_parts();
        active.calls.insert(request.request_id, answer);
        self.send(&ServiceMessage::Request(request), ctx);
    }

    pub(super) fn cancel_call(&mut self, request_id: Uuid, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        if active.calls.remove(&request_id).is_some() {
            self.send(&ServiceMessage::RequestCancel { request_id }, ctx);
        }
    }

    pub(super) fn open_stream(&mut self, opening: Opening, ctx: &mut Context) {
        let Opening { stream_id, request, sink } = opening;
        let message = match request {
            StreamRequest::Plain(message) => message,
            StreamRequest::Kept(kept) => return self.open_kept(*kept, sink, ctx),
        };
        let Phase::Active(active) = &mut self.phase else { return sink.end(Err(CallError::Offline)) };
        // The agent may not know which streams have lost their readers.
        let unread: Vec<Uuid> = match active.streams.len() {
            MAX_STREAMS.. => active.streams.extract_if(|_, sink| !sink.is_read()).map(|(id, _)| id).collect(),
            _ => Vec::new(),
        };
        if active.streams.len() >= MAX_STREAMS {
            return sink.end(Err(CallError::Busy));
        }
        active.streams.insert(stream_id, sink);
        for stream_id in unread {
            self.send(&ServiceMessage::LogsStop { stream_id }, ctx);
        }
        self.send(&message, ctx);
    }

    /// Hands on a message of a stream. If the stream has lost its reader, it ends here and on the agent.
    pub(super) fn flowed(&mut self, stream_id: Uuid, message: AgentMessage, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let Some(sink) = active.streams.get(&stream_id) else { return };
        let Err(over) = sink.deliver(message) else { return };
        if let Some(sink) = active.streams.remove(&stream_id) {
            sink.end(Err(over.error()));
        }
        // An agent stops any kind of stream by either message.
        self.send(&ServiceMessage::LogsStop { stream_id }, ctx);
    }

    pub(super) fn tell(
        &mut self,
        message: ServiceMessage,
        sent: Option<oneshot::Sender<Result<(), CallError>>>,
        ctx: &mut Context,
    ) {
        let Phase::Active(active) = &mut self.phase else {
            return sent.map_or((), |sent| _ = sent.send(Err(CallError::Offline)));
        };
        if let ServiceMessage::LogsStop { stream_id } | ServiceMessage::TerminalStop { stream_id } = &message {
            active.streams.remove(stream_id);
        }
        if let Some(message) = self.of_terminal(message, ctx) {
            self.send(&message, ctx);
        }
        if let Some(sent) = sent {
            _ = sent.send(Ok(()));
        }
    }
}
