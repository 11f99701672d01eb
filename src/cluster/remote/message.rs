//! Messages between instances about servers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, Request, ServiceMessage};
use uuid::Uuid;

use crate::registry::CallError;
use crate::registry::terminal::KeptRequest;

/// What other instances ask the home of a server; each variant names the type of its answer. Features define their own
/// messages, but all go to one subject, so no two may have the same name.
#[derive(Debug, Serialize, Deserialize)]
pub enum PeerRequest {
    /// Asks which instance it is. Answer: `Uuid`.
    There,
    /// Another instance has the server now: end the session. Answer: `()`, once that is done.
    TakenOver,
    /// Asks the agent. Answer: [`Answered`].
    Call(Request),
    /// The caller of this call has gone. Answer: `()`.
    Cancel { request_id: Uuid },
    /// Sends a message to the agent, or grants credit to a stream. Answer: [`Sent`].
    Tell(ServiceMessage),
    /// Opens a stream of the agent; its messages go to the subject of the stream. Answer: [`Sent`].
    Open(ServiceMessage),
    /// As `Open`, for a terminal that is kept. Answer: [`Sent`].
    OpenKept(Box<KeptRequest>),
}

/// The outcome of a call.
pub type Answered = Result<Value, CallError>;

/// Whether a message was sent.
pub type Sent = Result<(), CallError>;

/// A message to the reader of a stream. The reader answers with [`Demand`] before the next one is sent.
#[derive(Debug, Serialize, Deserialize)]
pub enum StreamFrame {
    Message(Box<AgentMessage>),
    /// Nothing has happened for a while, and the stream has not ended.
    Still,
    /// The stream has ended.
    End(Answered),
}

impl StreamFrame {
    pub fn of(message: AgentMessage) -> Self {
        Self::Message(Box::new(message))
    }
}

/// Whether the reader wants more of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Demand {
    More,
    Enough,
}
