//! Streams from an agent: a log or a terminal, open as long as it has a reader.
//!
//! The agent sends only what it has credit for. The reader grants credit as it takes messages, so a busy log waits on
//! its own host. A stream whose agent exceeds its credit ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, LogLine, RequestError, ServiceMessage};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::terminal::{Closer, StreamRequest};
use super::{CallError, RegistryHandle};

/// Messages of one stream that may wait for its reader; the credit bounds their bytes.
const MESSAGES_WAITING: usize = 1_024;

/// The pause before a message is sent again to a session that was busy.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The pause before credit is sent again where no instance has the session.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The session's end of a stream.
#[derive(Debug)]
pub struct StreamSink {
    kind: StreamKind,
    messages: mpsc::Sender<AgentMessage>,
    credit: Arc<AtomicI64>,
    ended: oneshot::Sender<Result<Value, CallError>>,
    parting: Option<oneshot::Receiver<()>>,
}

/// The kind of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    Log,
    Terminal,
}

impl StreamKind {
    fn allows(self, message: &AgentMessage) -> bool {
        match message {
            AgentMessage::LogLines(_) => self == Self::Log,
            AgentMessage::TerminalOutput(_) => self == Self::Terminal,
            _ => false,
        }
    }
}

/// A stream to be opened.
#[derive(Debug)]
pub struct Opening {
    pub stream_id: Uuid,
    pub request: StreamRequest,
    pub sink: StreamSink,
}

/// A stream of an agent. Dropping it ends the stream, unless it is of a terminal that is kept.
pub struct AgentStream {
    registry: RegistryHandle,
    server_id: Uuid,
    stream_id: Uuid,
    stop: Option<ServiceMessage>,
    messages: mpsc::Receiver<AgentMessage>,
    credit: Arc<AtomicI64>,
    ended: Option<oneshot::Receiver<Result<Value, CallError>>>,
    held: Option<oneshot::Sender<()>>,
    /// Of a terminal that is kept.
    closer: Option<Closer>,
}

/// The way to a server's agent.
#[derive(Clone)]
pub struct AgentLink {
    registry: RegistryHandle,
    server_id: Uuid,
}

impl AgentLink {
    pub(super) fn new(registry: RegistryHandle, server_id: Uuid) -> Self {
        Self { registry, server_id }
    }

    /// Sends a message, in order with those sent before it. Waits while the session is busy; an error means that there
    /// is no session any more.
    pub async fn send(&self, message: ServiceMessage) -> Result<(), CallError> {
        while let Err(error) = self.registry.send(self.server_id, message.clone()).await {
            if error != CallError::Busy {
                return Err(error);
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
        }
        Ok(())
    }
}

/// The credit that a message uses.
pub fn cost(message: &AgentMessage) -> u64 {
    match message {
        AgentMessage::LogLines(lines) => lines.lines.iter().map(LogLine::cost).sum(),
        AgentMessage::TerminalOutput(output) => u64::try_from(output.data.len()).unwrap_or(u64::MAX),
        AgentMessage::Auth(_)
        | AgentMessage::Metrics(_)
        | AgentMessage::Live { .. }
        | AgentMessage::Series { .. }
        | AgentMessage::CommandOutput(_)
        | AgentMessage::CommandResult(_)
        | AgentMessage::Response(_)
        | AgentMessage::TerminalRecorded(_)
        | AgentMessage::Event(_) => 0,
    }
}

/// The reader's end of a stream.
pub struct StreamSource {
    pub messages: mpsc::Receiver<AgentMessage>,
    pub ended: oneshot::Receiver<Result<Value, CallError>>,
    credit: Arc<AtomicI64>,
    /// Dropped with the reader. A value says that the reader has closed the stream on purpose.
    held: oneshot::Sender<()>,
}

impl StreamSink {
    /// Both ends of a stream.
    pub fn new(kind: StreamKind, credit: u64) -> (Self, StreamSource) {
        let (sender, messages) = mpsc::channel(MESSAGES_WAITING);
        let (end, ended) = oneshot::channel();
        let credit = Arc::new(AtomicI64::new(i64::try_from(credit).unwrap_or(i64::MAX)));
        let (held, parting) = oneshot::channel();
        let sink = Self { kind, messages: sender, credit: credit.clone(), ended: end, parting: Some(parting) };
        (sink, StreamSource { messages, ended, credit, held })
    }

    /// Hands a message to the reader. An error ends the stream: it has no reader, or the agent exceeded its credit.
    pub fn deliver(&self, message: AgentMessage) -> Result<(), StreamOver> {
        if !self.kind.allows(&message) {
            metrics::counter!("signalbox_agent_messages_unasked_total").increment(1);
            return Ok(());
        }
        let cost = i64::try_from(cost(&message)).unwrap_or(i64::MAX);
        // One message may be larger than the rest of the credit.
        if self.credit.fetch_sub(cost, Ordering::Relaxed) <= 0 {
            return Err(StreamOver::Overrun);
        }
        self.messages.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StreamOver::Overrun,
            mpsc::error::TrySendError::Closed(_) => StreamOver::Unread,
        })
    }

    /// Resolves when the reader goes: `Ok` if it has closed the stream on purpose. There is one such future.
    pub fn take_parting(&mut self) -> Option<oneshot::Receiver<()>> {
        self.parting.take()
    }

    /// Whether the stream still has a reader.
    pub fn is_read(&self) -> bool {
        !self.messages.is_closed()
    }

    /// Ends the stream with its outcome.
    pub fn end(self, outcome: Result<Value, CallError>) {
        _ = self.ended.send(outcome);
    }
}

/// Why a stream ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamOver {
    /// It has no reader any more.
    Unread,
    /// The agent sent more than it had credit for.
    Overrun,
}

impl StreamOver {
    pub fn error(self) -> CallError {
        let detail = match self {
            Self::Unread => "the stream has no reader",
            Self::Overrun => "the agent sent more than it was allowed to",
        };
        CallError::Agent(RequestError::new("stream_overrun", detail))
    }
}

impl AgentStream {
    /// Both ends of a stream: one to read, one for the session.
    pub(super) fn new(
        registry: RegistryHandle,
        server_id: Uuid,
        stream_id: Uuid,
        credit: u64,
        kind: StreamKind,
    ) -> (Self, StreamSink) {
        let stop = match kind {
            StreamKind::Log => ServiceMessage::LogsStop { stream_id },
            StreamKind::Terminal => ServiceMessage::TerminalStop { stream_id },
        };
        let (sink, StreamSource { messages, ended, credit, held }) = StreamSink::new(kind, credit);
        let (stop, ended, held) = (Some(stop), Some(ended), Some(held));
        (Self { registry, server_id, stream_id, stop, messages, credit, ended, held, closer: None }, sink)
    }

    /// The same stream, of a terminal that may be kept when it is dropped.
    pub(super) fn kept(mut self, closer: Closer) -> Self {
        self.closer = Some(closer);
        self
    }

    /// Ends a terminal that is kept.
    pub fn closer(&self) -> Option<Closer> {
        self.closer.clone()
    }

    /// Returns the next message, or `None` when the stream has ended; [`AgentStream::outcome`] then says how.
    pub async fn next(&mut self) -> Option<AgentMessage> {
        self.messages.recv().await
    }

    /// Returns how the stream ended. Waits until it has.
    pub async fn outcome(&mut self) -> Result<Value, CallError> {
        let Some(ended) = self.ended.take() else { return Err(CallError::Disconnected) };
        let outcome = ended.await.unwrap_or(Err(CallError::Disconnected));
        // The stream has ended, so the agent need not be asked to stop.
        self.stop = None;
        outcome
    }

    /// Allows the agent to send this many more bytes.
    ///
    /// An error means that the agent may never learn of it, and would wait for it for ever: the stream has to be given up. One that
    /// has ended is no error, because [`AgentStream::next`] says so.
    pub async fn grant(&self, bytes: u64) -> Result<(), CallError> {
        self.credit.fetch_add(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
        loop {
            match self.link().send(ServiceMessage::Credit { stream_id: self.stream_id, bytes }).await {
                Err(CallError::Offline) if self.messages.is_closed() => return Ok(()),
                // Its home is back in a moment, with the stream, or the stream ends.
                Err(CallError::Offline) => tokio::time::sleep(LOOK_AGAIN_AFTER).await,
                sent => return sent,
            }
        }
    }

    /// The way to the agent, for messages about this stream.
    pub fn link(&self) -> AgentLink {
        self.registry.link(self.server_id)
    }

    pub fn stream_id(&self) -> Uuid {
        self.stream_id
    }
}

impl Drop for AgentStream {
    fn drop(&mut self) {
        if self.closer.as_ref().is_some_and(|closer| !closer.is_closed()) {
            return;
        }
        if let Some(held) = self.held.take() {
            _ = held.send(());
        }
        if let Some(stop) = self.stop.take() {
            self.registry.tell(self.server_id, stop);
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
