//! Which agents are connected, and how to reach them.
//!
//! One actor decides which session holds a server: the newest. HTTP handlers and sessions talk to it through
//! [`RegistryHandle`]; it knows a session only by the [`Recipient`] of its orders. Orders for a server whose session
//! another instance holds go [`RemoteRouter`]. The [`Observer`] handles what follows when sessions begin or end.

mod actor;
mod call;
mod heartbeat;
mod observer;
mod router;
mod stream;
pub mod terminal;

use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, Message, Recipient};
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_protocol::agent::{Execute, LogsStart, Request, ServiceMessage, TerminalStart};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::store::Departure;
use actor::Registry;
pub use actor::Settings;
pub use call::{Call, CallError, Question};
pub use heartbeat::Heartbeat;
pub use observer::{Gone, Observer, Writing, Written};
pub use router::{Advertisement, NoPeers, RemoteRouter};
pub use stream::StreamKind;
pub use stream::{AgentLink, AgentStream, Opening, StreamOver, StreamSink, StreamSource, cost};
pub use terminal::StreamRequest;

/// A message to a session.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum Order {
    Call(Call),
    /// The caller of this call has gone.
    CancelCall(Uuid),
    /// A stream that a reader wants to open.
    Open(Opening),
    /// A message without an answer. Its sender may want to know that it was sent.
    Tell(ServiceMessage, Option<oneshot::Sender<Result<(), CallError>>>),
    Close(SessionEnd),
}

impl Order {
    /// Reports to the waiting caller that the order failed.
    pub fn fail(self, error: CallError) {
        match self {
            Self::Call(call) => call.fail(error),
            Self::Open(opening) => opening.sink.end(Err(error)),
            Self::Tell(_, Some(sent)) => _ = sent.send(Err(error)),
            // If a cancellation is lost, the session notices later that no caller waits.
            Self::Tell(_, None) | Self::CancelCall(_) | Self::Close(_) => {}
        }
    }
}

/// Why the service ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// A newer connection holds the server.
    Replaced,
    /// Its key was revoked or expired.
    KeyRevoked,
    ServerDeleted,
    /// The server has got another owner.
    Moved,
    Restarting,
    /// It was silent for too long.
    Silent,
}

impl SessionEnd {
    /// The reason that the server's events show.
    fn departure(self) -> Departure {
        match self {
            Self::Silent => Departure::Silent,
            Self::KeyRevoked => Departure::Revoked,
            Self::Restarting => Departure::Stopping,
            Self::Replaced | Self::ServerDeleted | Self::Moved => Departure::Left,
        }
    }
}

/// A session that wants to hold its server.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), JoinError>")]
pub struct Join {
    pub server_id: Uuid,
    /// The owner of the server.
    pub owner_id: Uuid,
    pub session_id: Uuid,
    pub key_id: Uuid,
    pub key_expires_at: Option<signalbox_protocol::Timestamp>,
    pub orders: Recipient<Order>,
    pub heartbeat: Arc<Heartbeat>,
}

/// Why a session may not hold its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    #[error("the key was revoked, or the server was deleted")]
    Revoked,
    #[error("the server has got another owner since the handshake began")]
    Moved,
    #[error("the service is stopping")]
    Stopping,
    #[error("a newer session already holds the server")]
    Late,
    #[error("too many sessions took the server over from each other")]
    TooMany,
}

/// A session's server is online, and the database knows it: inform the subscribers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Announce {
    server_id: Uuid,
    session_id: Uuid,
    /// How other instances reach it.
    place: Advertisement,
}

/// A session that has ended.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Leave {
    server_id: Uuid,
    session_id: Uuid,
}

/// An order for the session that holds the server.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Route {
    server_id: Uuid,
    order: Order,
    reach: Reach,
}

/// The sessions that an order may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Sessions on all instances.
    Anywhere,
    /// Sessions on this instance only, because the order comes from another one.
    Here,
}

/// Ends sessions.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
enum End {
    Server(Uuid),
    /// The sessions of servers that this account owned.
    Owner(Uuid),
    Key(Uuid),
    /// The session with this id, which has lost its server.
    Session {
        server_id: Uuid,
        session_id: Uuid,
        why: SessionEnd,
    },
    /// All sessions, spread over this time.
    All {
        over: Duration,
    },
}

/// The sessions that are here and known to the database.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "Vec<HeldSession>")]
struct ListHeld;

/// The session that holds a server here.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "Option<HeldSession>")]
struct Holder {
    server_id: Uuid,
}

/// A session that holds a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSession {
    pub server_id: Uuid,
    pub session_id: Uuid,
    pub key_id: Uuid,
}

/// Messages that may wait for the registry; callers of later ones get `Busy`.
const MAILBOX: usize = 4_096;

/// A handle to the registry. Clones are cheap.
#[derive(Clone)]
pub struct RegistryHandle {
    /// One shared address: each clone of it would add a slot to the mailbox.
    address: Arc<Addr<Registry>>,
    elsewhere: Arc<dyn RemoteRouter>,
    reach: Reach,
}

impl RegistryHandle {
    /// A handle for requests of other instances, which reaches only the sessions of this one.
    pub fn here(&self) -> Self {
        Self { reach: Reach::Here, ..self.clone() }
    }

    /// Announces to other instances that the session of a server is about to be here.
    pub async fn place(&self, server_id: Uuid) -> Advertisement {
        self.elsewhere.hold(server_id).await
    }

    /// Makes a session the holder of its server; an older session is replaced.
    pub async fn join(&self, join: Join) -> Result<(), JoinError> {
        self.address.send(join).await.map_err(|_| JoinError::Stopping)?
    }

    /// Notes that the database knows that this session's server is online.
    pub async fn announce(&self, server_id: Uuid, session_id: Uuid, place: Advertisement) -> Result<(), JoinError> {
        self.address.send(Announce { server_id, session_id, place }).await.map_err(|_| JoinError::Stopping)
    }

    /// Notes that a session has ended.
    pub fn leave(&self, server_id: Uuid, session_id: Uuid) {
        // Lost only if the registry is overloaded; it finds dead sessions itself a little later.
        _ = self.address.try_send(Leave { server_id, session_id });
    }

    /// Sends a request to the agent of a server, and waits for the answer for at most `deadline`.
    ///
    /// Dropping the future cancels the call: the agent is informed, and the session forgets it.
    pub async fn call(&self, server_id: Uuid, question: Question<'_>) -> Result<Value, CallError> {
        let deadline = question.deadline;
        self.request(server_id, question.into_request(), deadline).await
    }

    /// As [`Self::call`], for an answer of this form. Any other answer is an error of the agent.
    pub async fn ask<T: DeserializeOwned>(&self, server_id: Uuid, question: Question<'_>) -> Result<T, CallError> {
        let method = question.method;
        let answer = self.call(server_id, question).await?;
        serde_json::from_value(answer).map_err(|error| {
            tracing::warn!(server.id = %server_id, method, %error, "an agent sent an invalid answer");
            CallError::invalid_answer()
        })
    }

    /// As [`Self::call`], with a complete request.
    pub async fn request(&self, server_id: Uuid, request: Request, deadline: Duration) -> Result<Value, CallError> {
        let (call, answer) = Call::new(request);
        let mut cancel = CancelOnDrop { registry: self, server_id, request_id: Some(call.request_id()) };
        self.route(server_id, Order::Call(call))?;
        match tokio::time::timeout(deadline, answer).await {
            Err(_) => Err(CallError::Timeout),
            Ok(answer) => {
                cancel.request_id = None;
                // A session that ends drops the answers it still owes.
                answer.unwrap_or(Err(CallError::Disconnected))
            }
        }
    }

    /// Sends a command to the agent of a server. `Ok` means that it was sent.
    pub async fn execute(&self, server_id: Uuid, execute: Execute) -> Result<(), CallError> {
        self.send(server_id, ServiceMessage::Execute(execute)).await
    }

    /// The way to a server's agent for messages without an answer.
    pub fn link(&self, server_id: Uuid) -> AgentLink {
        AgentLink::new(self.clone(), server_id)
    }

    /// Sends a message to the agent of a server once.
    pub async fn send(&self, server_id: Uuid, message: ServiceMessage) -> Result<(), CallError> {
        let (sent, is_sent) = oneshot::channel();
        self.route(server_id, Order::Tell(message, Some(sent)))?;
        // A session that ends drops the last messages it got.
        is_sent.await.unwrap_or(Err(CallError::Offline))
    }

    /// Sends a message to the agent of a server without waiting. The message is lost if the agent is offline.
    pub fn tell(&self, server_id: Uuid, message: ServiceMessage) {
        _ = self.route(server_id, Order::Tell(message, None));
    }

    fn route(&self, server_id: Uuid, order: Order) -> Result<(), CallError> {
        let route = Route { server_id, order, reach: self.reach };
        self.address.try_send(route).map_err(|_| CallError::Busy)
    }

    /// Opens a log of a server. The agent may send `start.credit` bytes before more credit is granted.
    pub fn open_log(&self, server_id: Uuid, start: LogsStart) -> Result<AgentStream, CallError> {
        let (stream_id, credit) = (start.stream_id, start.credit.unwrap_or(u64::MAX));
        self.open(server_id, stream_id, credit, ServiceMessage::LogsStart(start), StreamKind::Log)
    }

    /// Opens a terminal on a server. The agent may send `start.credit` bytes before more credit is granted.
    pub fn open_terminal(&self, server_id: Uuid, start: TerminalStart) -> Result<AgentStream, CallError> {
        let (stream_id, credit) = (start.stream_id, start.credit.unwrap_or(u64::MAX));
        self.open(server_id, stream_id, credit, ServiceMessage::TerminalStart(start), StreamKind::Terminal)
    }

    /// Opens the stream that a message requests.
    pub fn open_stream(&self, server_id: Uuid, message: ServiceMessage) -> Result<AgentStream, CallError> {
        match message {
            ServiceMessage::LogsStart(start) => self.open_log(server_id, start),
            ServiceMessage::TerminalStart(start) => self.open_terminal(server_id, start),
            _ => Err(CallError::Unreachable),
        }
    }

    fn open(
        &self,
        server_id: Uuid,
        stream_id: Uuid,
        credit: u64,
        message: ServiceMessage,
        kind: StreamKind,
    ) -> Result<AgentStream, CallError> {
        let (stream, sink) = AgentStream::new(self.clone(), server_id, stream_id, credit, kind);
        self.route(server_id, Order::Open(Opening { stream_id, request: StreamRequest::Plain(message), sink }))?;
        Ok(stream)
    }

    /// Ends the session that uses a revoked key.
    pub async fn end_key(&self, key_id: Uuid) {
        self.end(End::Key(key_id)).await;
    }

    /// Ends the session of a deleted server.
    pub async fn end_server(&self, server_id: Uuid) {
        self.end(End::Server(server_id)).await;
    }

    /// Ends the sessions of a deleted account's servers, so that they begin again with the new owner.
    pub async fn end_owner(&self, owner_id: Uuid) {
        self.end(End::Owner(owner_id)).await;
    }

    /// Ends a session that has lost its server.
    pub async fn end_session(&self, held: HeldSession, why: SessionEnd) {
        let HeldSession { server_id, session_id, .. } = held;
        self.end(End::Session { server_id, session_id, why }).await;
    }

    /// The session that holds a server here, if there is one.
    pub async fn holder(&self, server_id: Uuid) -> Option<HeldSession> {
        self.address.send(Holder { server_id }).await.unwrap_or_default()
    }

    /// The sessions that are here and known to the database.
    pub async fn held(&self) -> Vec<HeldSession> {
        self.address.send(ListHeld).await.unwrap_or_default()
    }

    /// For the end of the service: accepts no new session, and ends the present ones, spread over this time.
    pub async fn end_all(&self, over: Duration) {
        self.end(End::All { over }).await;
    }

    /// This message must not be lost, so it waits for room; there are only as many as requests that revoke or delete.
    async fn end(&self, end: End) {
        if self.address.send(end).await.is_err() {
            tracing::error!(?end, "the registry has stopped");
        }
    }
}

struct CancelOnDrop<'a> {
    registry: &'a RegistryHandle,
    server_id: Uuid,
    request_id: Option<Uuid>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(request_id) = self.request_id {
            _ = self.registry.route(self.server_id, Order::CancelCall(request_id));
        }
    }
}

/// Where the caller of a call gets the answer.
type Answer = oneshot::Sender<Result<Value, CallError>>;

#[cfg(test)]
mod tests;
