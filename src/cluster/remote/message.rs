//! What instances say to each other about servers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, Request, ServiceMessage};
use uuid::Uuid;

use crate::registry::CallError;

/// What the home of a server is asked of its agent. Each says what the answer is. What features ask is theirs; all of it
/// goes to one subject, so no two may have one name.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Which instance it is. `Uuid`.
    There,
    /// The server is another's now: let go of it. `()`, when that is done.
    TakenOver,
    /// Asks the agent. [`Answered`].
    Call(Request),
    /// Nobody waits for this call any more. `()`.
    Cancel { request_id: Uuid },
    /// Tells the agent, or gives a stream credit. [`Sent`].
    Tell(ServiceMessage),
    /// Opens a stream of the agent; what flows goes to the subject of the stream. [`Sent`].
    Open(ServiceMessage),
}

/// How a call ended.
pub type Answered = Result<Value, CallError>;

/// Whether something is on its way.
pub type Sent = Result<(), CallError>;

/// What flows to whoever opened a stream. Answered with [`Taken`] before the next one is sent.
#[derive(Debug, Serialize, Deserialize)]
pub enum Frame {
    Message(Box<AgentMessage>),
    /// Nothing has happened for a while, and it has not ended.
    Still,
    /// It has ended.
    End(Answered),
}

impl Frame {
    pub fn of(message: AgentMessage) -> Self {
        Self::Message(Box::new(message))
    }
}

/// Whether more of what flows is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Taken {
    More,
    Enough,
}
