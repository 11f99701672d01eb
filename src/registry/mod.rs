//! Who is connected, and the way to them.
//!
//! One actor decides which session holds a server: the newest. HTTP handlers and sessions talk to it through
//! [`RegistryHandle`]; it knows sessions only by the [`Recipient`] that takes their orders.

mod actor;
mod call;
mod pulse;
mod stream;

use std::sync::Arc;

use actix::{Actor, Addr, Message, Recipient};
use serde_json::Value;
use signalbox_protocol::agent::{Execute, LogsStart, ServiceMessage, TerminalStart};
use tokio::sync::oneshot;
use uuid::Uuid;

use actor::Registry;
pub use actor::Settings;
pub use call::{Call, CallError, Question};
pub use pulse::Pulse;
use stream::StreamKind;
pub use stream::{AgentLink, AgentStream, Opening, StreamOver, StreamSink, cost};

use crate::alerts::Alerts;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::metrics::recorder::RecorderHandle;

/// What a session is told.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum Order {
    Call(Call),
    /// Nobody waits for this call any more.
    CancelCall(Uuid),
    /// A stream that somebody wants to read.
    Open(Opening),
    /// Something that has no answer. Whoever sends it may want to know that it is on its way.
    Tell(ServiceMessage, Option<oneshot::Sender<Result<(), CallError>>>),
    Close(SessionEnd),
}

impl Order {
    /// Tells whoever waits for it that it came to nothing.
    fn fail(self, error: CallError) {
        match self {
            Self::Call(call) => call.fail(error),
            Self::Open(opening) => opening.sink.end(Err(error)),
            Self::Tell(_, Some(sent)) => _ = sent.send(Err(error)),
            // When a cancellation is lost the session finds by itself that nobody waits.
            Self::Tell(_, None) | Self::CancelCall(_) | Self::Close(_) => {}
        }
    }
}

/// Why a session is ended from our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// A newer connection holds the server.
    Replaced,
    /// Its key was revoked or expired.
    KeyRevoked,
    ServerDeleted,
    Restarting,
    /// It has said nothing for too long.
    Silent,
}

/// A session that wants to hold its server.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), JoinError>")]
pub struct Join {
    pub server_id: Uuid,
    pub session_id: Uuid,
    pub key_id: Uuid,
    pub key_expires_at: Option<signalbox_protocol::Timestamp>,
    pub orders: Recipient<Order>,
    pub pulse: Arc<Pulse>,
}

/// Why a session may not hold its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    #[error("the key or the server is gone")]
    Revoked,
    #[error("the service is stopping")]
    Stopping,
}

/// A session's server is known to be online, in the database too: tell whoever watches.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
struct Announce {
    server_id: Uuid,
    session_id: Uuid,
}

/// A session that has ended by itself.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Leave {
    server_id: Uuid,
    session_id: Uuid,
}

/// An order for whichever session holds the server.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Route {
    server_id: Uuid,
    order: Order,
}

/// Ends sessions.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
enum End {
    Server(Uuid),
    Key(Uuid),
    All,
}

/// Messages that may wait for the registry; whoever comes then is told that it is busy.
const MAILBOX: usize = 4_096;

/// Talks to the registry, behind cheap clones.
#[derive(Clone)]
pub struct RegistryHandle {
    /// One address for all: each clone of it would add a place to the mailbox.
    address: Arc<Addr<Registry>>,
}

impl RegistryHandle {
    /// Starts the registry on the arbiter of the calling thread.
    pub fn start(settings: Settings, fleet: Fleet, feeds: Feeds, recorder: RecorderHandle, alerts: Alerts) -> Self {
        Self { address: Arc::new(Registry::new(settings, fleet, feeds, recorder, alerts).start()) }
    }

    /// Lets a session hold its server; an older one is replaced.
    pub async fn join(&self, join: Join) -> Result<(), JoinError> {
        self.address.send(join).await.map_err(|_| JoinError::Stopping)?
    }

    /// The database knows that this session's server is online.
    pub async fn announce(&self, server_id: Uuid, session_id: Uuid) -> Result<(), JoinError> {
        self.address.send(Announce { server_id, session_id }).await.map_err(|_| JoinError::Stopping)
    }

    /// A session has ended.
    pub fn leave(&self, server_id: Uuid, session_id: Uuid) {
        // Lost only when the registry is overrun; it finds dead sessions by itself a little later.
        _ = self.address.try_send(Leave { server_id, session_id });
    }

    /// Asks the agent of a server for something, and waits for the answer until `deadline` has passed.
    ///
    /// Dropping the future cancels the call: the agent is told, and the session forgets it.
    pub async fn call(&self, server_id: Uuid, question: Question<'_>) -> Result<Value, CallError> {
        let deadline = question.deadline;
        let (call, answer) = Call::new(question);
        let mut cancel = CancelOnDrop { registry: self, server_id, request_id: Some(call.request_id()) };
        self.address.try_send(Route { server_id, order: Order::Call(call) }).map_err(|_| CallError::Busy)?;
        match tokio::time::timeout(deadline, answer).await {
            Err(_) => Err(CallError::Timeout),
            Ok(answer) => {
                cancel.request_id = None;
                // A session that goes drops what it still owes.
                answer.unwrap_or(Err(CallError::Disconnected))
            }
        }
    }

    /// Sends a command to the agent of a server. `Ok` says that it is on its way.
    pub async fn execute(&self, server_id: Uuid, execute: Execute) -> Result<(), CallError> {
        self.send(server_id, ServiceMessage::Execute(execute)).await
    }

    /// The way to a server's agent, for what has no answer.
    pub fn link(&self, server_id: Uuid) -> AgentLink {
        AgentLink::new(self.clone(), server_id)
    }

    async fn send(&self, server_id: Uuid, message: ServiceMessage) -> Result<(), CallError> {
        let (sent, is_sent) = oneshot::channel();
        let order = Order::Tell(message, Some(sent));
        self.address.try_send(Route { server_id, order }).map_err(|_| CallError::Busy)?;
        // A session that goes drops what it was told last.
        is_sent.await.unwrap_or(Err(CallError::Offline))
    }

    /// Tells the agent of a server something. Lost when it is offline.
    pub fn tell(&self, server_id: Uuid, message: ServiceMessage) {
        _ = self.address.try_send(Route { server_id, order: Order::Tell(message, None) });
    }

    /// Opens a log of a server. `start.credit` bytes may come before more are granted.
    pub fn open_log(&self, server_id: Uuid, start: LogsStart) -> Result<AgentStream, CallError> {
        let (stream_id, credit) = (start.stream_id, start.credit.unwrap_or(u64::MAX));
        self.open(server_id, stream_id, credit, ServiceMessage::LogsStart(start), StreamKind::Log)
    }

    /// Opens a terminal on a server. `start.credit` bytes may come before more are granted.
    pub fn open_terminal(&self, server_id: Uuid, start: TerminalStart) -> Result<AgentStream, CallError> {
        let (stream_id, credit) = (start.stream_id, start.credit.unwrap_or(u64::MAX));
        self.open(server_id, stream_id, credit, ServiceMessage::TerminalStart(start), StreamKind::Terminal)
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
        let order = Order::Open(Opening { stream_id, message, sink });
        self.address.try_send(Route { server_id, order }).map_err(|_| CallError::Busy)?;
        Ok(stream)
    }

    /// A key was revoked: ends the session that uses it.
    pub async fn end_key(&self, key_id: Uuid) {
        self.end(End::Key(key_id)).await;
    }

    /// A server was deleted: ends its session.
    pub async fn end_server(&self, server_id: Uuid) {
        self.end(End::Server(server_id)).await;
    }

    /// The service stops: ends every session and takes no new one.
    pub async fn end_all(&self) {
        self.end(End::All).await;
    }

    /// Must not be lost, so it waits for its place; there are only as many as requests that revoke or delete.
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
            let order = Order::CancelCall(request_id);
            _ = self.registry.address.try_send(Route { server_id: self.server_id, order });
        }
    }
}

/// How a call that was answered, or not, is told to whoever waits for it.
type Answer = oneshot::Sender<Result<Value, CallError>>;
