//! Terminals that are kept for a while when their clients are lost.
//!
//! The session of the agent keeps them, so they end with it, and a client can resume its terminal through any instance. Each client
//! reads the terminal through a stream of its own; the terminal has another id, which the agent knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use signalbox_protocol::agent::{Asker, RequestError, ServiceMessage, TerminalSize, TerminalStart};
use uuid::Uuid;

use super::stream::{AgentStream, Opening, StreamKind};
use super::{CallError, Order, RegistryHandle};

/// Bytes that the agent of a terminal may send ahead of its client.
pub const TERMINAL_CREDIT: u64 = 256 * 1024;

/// The newest output that is kept of a terminal: what a client has not taken, and as much that was on its way to it.
pub const KEPT_BYTES: u64 = 2 * TERMINAL_CREDIT;

/// What a stream asks for.
#[derive(Debug, Clone)]
pub enum StreamRequest {
    /// A log, or a terminal that ends with its client: the message for the agent.
    Plain(ServiceMessage),
    Kept(Box<KeptRequest>),
}

/// A terminal that is kept, or a client that comes back to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum KeptRequest {
    Start {
        /// The id of the client's stream.
        stream_id: Uuid,
        /// Names the terminal.
        start: TerminalStart,
        holder: Holder,
    },
    Resume {
        stream_id: Uuid,
        terminal_id: Uuid,
        holder: Holder,
        size: TerminalSize,
        /// How many bytes of output the client has read.
        offset: u64,
        intent: Intent,
    },
}

/// What a client that comes back wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// To know whether it may have the terminal. The stream ends at once with the answer.
    Check,
    /// The terminal, which another client may have.
    Take,
}

/// Who may resume a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub user_id: Uuid,
    /// The token of a program: it resumes only what it has opened, and a sign-in none of that.
    pub token_id: Option<Uuid>,
    /// The SHA-256 of the terminal's secret.
    pub secret_digest: Vec<u8>,
    /// As the agent's policy names the person.
    pub asker: Option<Asker>,
}

impl KeptRequest {
    pub fn stream_id(&self) -> Uuid {
        match self {
            Self::Start { stream_id, .. } | Self::Resume { stream_id, .. } => *stream_id,
        }
    }
}

/// How the stream of a client ends that does not take what its terminal shows. It can come back.
pub fn client_behind() -> CallError {
    let detail = "the client did not take the output of the terminal in time: resume it";
    CallError::Agent(RequestError::new("terminal_detached", detail))
}

impl RegistryHandle {
    /// Opens a terminal that is kept when its client is lost, or resumes one.
    pub fn open_kept(&self, server_id: Uuid, request: KeptRequest) -> Result<AgentStream, CallError> {
        let stream_id = request.stream_id();
        let is_new = matches!(request, KeptRequest::Start { .. });
        let credit = match &request {
            KeptRequest::Start { .. } => TERMINAL_CREDIT,
            // What it missed comes beside the agent's credit.
            KeptRequest::Resume { .. } => TERMINAL_CREDIT + KEPT_BYTES,
        };
        let (stream, sink) = AgentStream::new(self.clone(), server_id, stream_id, credit, StreamKind::Terminal);
        let request = StreamRequest::Kept(Box::new(request));
        self.route(server_id, Order::Open(Opening { stream_id, request, sink }))?;
        Ok(stream.kept(Closer::new(is_new)))
    }
}

/// Says whether the end of a stream ends its terminal. Otherwise it only means that the client was lost.
///
/// A new terminal ends with its stream until its client has what resumes it.
#[derive(Debug, Clone)]
pub struct Closer(Arc<AtomicBool>);

impl Closer {
    pub(super) fn new(is_closed: bool) -> Self {
        Self(Arc::new(AtomicBool::new(is_closed)))
    }

    /// The end of the stream leaves the terminal to its next client.
    pub fn keep(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// The end of the stream ends the terminal.
    pub fn close(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
