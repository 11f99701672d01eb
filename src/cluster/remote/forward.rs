//! Sends orders to servers whose agents are connected to other instances.

use std::time::Duration;

use dashmap::DashMap;
use futures_util::future::{AbortHandle, Abortable};
use serde::Serialize;
use serde::de::DeserializeOwned;
use signalbox_protocol::agent::{Request, ServiceMessage};
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use super::message::{Answered, Demand, PeerRequest, Sent, StreamFrame};
use super::{PROMPT, Remote, failed};
use crate::bus::{BusError, Subscription};
use crate::registry::terminal::client_behind;
use crate::registry::{CallError, Opening, Order, StreamOver, StreamRequest, StreamSink};

/// Added to the agent's deadline, so that the server's home reports the timeout first.
const BEYOND: Duration = Duration::from_secs(1);

/// How long an agent that connects waits for the server's previous home to end its session.
const LET_GO_WITHIN: Duration = Duration::from_secs(1);

/// The limit of a call without a deadline.
const LONGEST_CALL: Duration = Duration::from_secs(3_600);

/// After this long without a message about a stream its home has forgotten it: a home reports at least that nothing
/// happens.
const SILENT_FOR: Duration = Duration::from_secs(20);

impl Remote {
    /// Sends an order to the home of a server, in its own task.
    pub(super) fn send(&self, server_id: Uuid, order: Order) {
        let remote = self.clone();
        match order {
            Order::Call(call) => {
                let (request, answer) = call.into_parts();
                let request_id = request.request_id;
                let (abort, registration) = AbortHandle::new_pair();
                // Inserted first, because the call removes it when it ends.
                self.calls.insert(request_id, abort);
                tokio::spawn(async move {
                    let answered = Abortable::new(remote.call(server_id, request), registration).await;
                    remote.calls.remove(&request_id);
                    // A cancelled call has no receiver any more.
                    _ = answered.map(|answered| answer.send(answered));
                });
            }
            Order::CancelCall(request_id) => {
                if let Some((_, call)) = self.calls.remove(&request_id) {
                    call.abort();
                    tokio::spawn(
                        async move { remote.home::<()>(server_id, &PeerRequest::Cancel { request_id }).await },
                    );
                }
            }
            Order::Tell(message, sent) => {
                tokio::spawn(async move {
                    let outcome = remote.tell(server_id, message).await;
                    _ = sent.map(|sent| sent.send(outcome));
                });
            }
            Order::Open(opening) => {
                let unopened = self.unopened(opening.stream_id);
                tokio::spawn(async move { remote.read(server_id, opening, unopened).await });
            }
            Order::Close(_) => {}
        }
    }

    /// Asks the home of a server, which answers immediately.
    pub async fn home<A: DeserializeOwned>(&self, server_id: Uuid, ask: &impl Serialize) -> Result<A, BusError> {
        self.bus_client.ask(self.bus_client.subjects.agent(server_id), ask, PROMPT).await
    }

    /// Tells the previous home of a server that its agent has connected here, so that it ends its session. If that home
    /// cannot be reached, it finds out later, and the fence keeps it from writing until then.
    pub async fn took_over(&self, server_id: Uuid) {
        _ = tokio::time::timeout(LET_GO_WITHIN, self.home::<()>(server_id, &PeerRequest::TakenOver)).await;
    }

    /// Whether an instance holds a server.
    pub async fn is_there(&self, server_id: Uuid) -> Result<bool, BusError> {
        match self.home::<Uuid>(server_id, &PeerRequest::There).await {
            Err(BusError::NoResponder) => Ok(false),
            answer => answer.map(|_| true),
        }
    }

    async fn tell(&self, server_id: Uuid, message: ServiceMessage) -> Sent {
        let opening = stream_of(&message).and_then(|id| self.openings.get(&id).map(|entry| entry.value().clone()));
        if let Some(mut opening) = opening {
            // An error means that the stream is open, or never will be.
            _ = opening.changed().await;
        }
        self.home(server_id, &PeerRequest::Tell(message)).await.unwrap_or_else(|error| Err(failed(error)))
    }

    async fn call(&self, server_id: Uuid, request: Request) -> Answered {
        let deadline = request.timeout_ms.map_or(LONGEST_CALL, Duration::from_millis) + BEYOND;
        let subject = self.bus_client.subjects.agent(server_id);
        let ask = PeerRequest::Call(request);
        tokio::select! {
            answer = self.bus_client.ask(subject, &ask, deadline) => answer.unwrap_or_else(|error| Err(failed(error))),
            () = self.gone(server_id) => Err(CallError::Disconnected),
        }
    }

    /// Makes messages about a stream wait until the returned guard is dropped.
    fn unopened(&self, stream_id: Uuid) -> Unopened {
        let (sender, opening) = watch::channel(());
        self.openings.insert(stream_id, opening);
        Unopened { openings: self.openings.clone(), stream_id, _sender: sender }
    }

    /// Opens a stream at the home of a server, and hands on its messages until it ends.
    async fn read(&self, server_id: Uuid, opening: Opening, unopened: Unopened) {
        let Opening { stream_id, request, sink } = opening;
        // Subscribes first, so that no message is missed.
        let mut frames = match self.bus_client.listen(self.bus_client.subjects.stream(stream_id)).await {
            Ok(frames) => frames,
            Err(error) => return sink.end(Err(failed(error))),
        };
        let is_kept = matches!(request, StreamRequest::Kept(_));
        let ask = match request {
            StreamRequest::Plain(message) => PeerRequest::Open(message),
            StreamRequest::Kept(kept) => PeerRequest::OpenKept(kept),
        };
        let opened = self.home::<Sent>(server_id, &ask).await;
        drop(unopened);
        if let Err(error) = opened.unwrap_or_else(|error| Err(failed(error))) {
            return sink.end(Err(error));
        }
        let outcome = tokio::select! {
            taken = self.take_all(&mut frames, &sink) => taken.unwrap_or_else(|over| match is_kept {
                // Its home judges the agent, and keeps it.
                true => Err(client_behind()),
                false => Err(over.error()),
            }),
            () = self.gone(server_id) => Err(CallError::Disconnected),
        };
        sink.end(outcome);
    }

    /// Hands on the messages of a stream, and returns how it ended, or that its reader did not take them.
    async fn take_all(&self, frames: &mut Subscription, sink: &StreamSink) -> Result<Answered, StreamOver> {
        loop {
            let Ok(Some(delivery)) = timeout(SILENT_FOR, frames.next()).await else {
                return Ok(Err(CallError::Disconnected));
            };
            let (payload, reply) = delivery.into_parts();
            let over = match self.bus_client.read(payload).await {
                Ok(StreamFrame::Message(message)) => sink.deliver(*message).err(),
                Ok(StreamFrame::Still) if sink.is_read() => None,
                Ok(StreamFrame::Still) => Some(StreamOver::Unread),
                Ok(StreamFrame::End(outcome)) => {
                    self.bus_client.answer(reply, &Demand::Enough);
                    return Ok(outcome);
                }
                Err(_) => {
                    self.bus_client.answer(reply, &Demand::Enough);
                    return Ok(Err(CallError::Disconnected));
                }
            };
            self.bus_client.answer(reply, &if over.is_some() { Demand::Enough } else { Demand::More });
            if let Some(over) = over {
                return Err(over);
            }
        }
    }
}

/// A stream that its home has not confirmed yet.
struct Unopened {
    openings: std::sync::Arc<DashMap<Uuid, watch::Receiver<()>>>,
    stream_id: Uuid,
    _sender: watch::Sender<()>,
}

impl Drop for Unopened {
    fn drop(&mut self) {
        self.openings.remove(&self.stream_id);
    }
}

/// The stream that a message is about.
fn stream_of(message: &ServiceMessage) -> Option<Uuid> {
    match message {
        ServiceMessage::Credit { stream_id, .. }
        | ServiceMessage::LogsStop { stream_id }
        | ServiceMessage::TerminalStop { stream_id }
        | ServiceMessage::TerminalInput { stream_id, .. }
        | ServiceMessage::TerminalResize { stream_id, .. } => Some(*stream_id),
        _ => None,
    }
}
