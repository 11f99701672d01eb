//! Answers other instances about servers whose agents are connected here: requests to the agents themselves, and
//! requests of features to each other.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use signalbox_protocol::agent::{Request, ServiceMessage};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::bus::Delivery;
use crate::bus::client::BusClient;
use crate::cluster::remote::message::{Answered, Demand, PeerRequest, Sent, StreamFrame};
use crate::cluster::remote::{Answer, TAKEN_WITHIN};
use crate::commands::peer_messages;
use crate::commands::published::PublishedJobs;
use crate::logs::{Logs, Relay};
use crate::reconciler::Reconciler;
use crate::registry::terminal::Closer;
use crate::registry::{AgentStream, CallError, RegistryHandle};

/// How often the reader of a stream gets a message that nothing happens, which also detects that the reader has gone.
const STILL_EVERY: Duration = Duration::from_secs(5);

/// Calls of other instances to agents here at the same time: fewer than the requests that may be in progress, so that
/// there is always room for those that are answered at once.
const MAX_CALLS: usize = 3_072;

/// Control messages that may wait for one stream.
const CONTROLS: usize = 64;

/// The limit of a call without a deadline.
const LONGEST_CALL: Duration = Duration::from_secs(3_600);

/// Answers other instances. Clones are cheap.
#[derive(Clone)]
pub struct PeerServer {
    parts: Arc<Parts>,
    /// Calls of other instances on their way to agents here, by request.
    attended: Arc<DashMap<Uuid, AbortHandle>>,
    /// Streams of agents here that other instances read.
    streams: Arc<DashMap<Uuid, mpsc::Sender<Control>>>,
}

/// What it uses for its answers.
pub struct Parts {
    pub bus_client: BusClient,
    /// Reaches only the sessions of this instance.
    pub registry: RegistryHandle,
    pub jobs: PublishedJobs,
    pub logs: Logs,
    pub reconciler: Reconciler,
}

/// The source of a stream.
enum Source {
    Agent(Box<AgentStream>),
    /// One more reader of a log: readers share the agent's streams.
    Log(Box<Relay>),
}

impl Source {
    /// Returns the next message, or `None` when the stream has ended.
    async fn next(&mut self) -> Option<StreamFrame> {
        match self {
            Self::Agent(stream) => stream.next().await.map(StreamFrame::of),
            Self::Log(relay) => relay.next().await.map(StreamFrame::of),
        }
    }

    async fn outcome(&mut self) -> Answered {
        match self {
            Self::Agent(stream) => stream.outcome().await,
            Self::Log(relay) => relay.outcome(),
        }
    }

    /// The end of the stream is meant.
    fn close(&self) {
        _ = self.closer().map(|closer| closer.close());
    }

    /// The reader has the stream, and says itself when it means its end.
    fn keep(&self) {
        _ = self.closer().map(|closer| closer.keep());
    }

    fn closer(&self) -> Option<Closer> {
        match self {
            Self::Agent(stream) => stream.closer(),
            Self::Log(_) => None,
        }
    }

    async fn grant(&mut self, bytes: u64) {
        match self {
            // The agent is here: if it has gone, the next call reports that.
            Self::Agent(stream) => _ = stream.grant(bytes).await,
            Self::Log(relay) => relay.grant(bytes),
        }
    }
}

/// A control message to a stream.
enum Control {
    Grant(u64),
    /// The reader wants no more of it.
    Close,
}

impl Answer for PeerServer {
    fn answer(&self, server_id: Uuid, asked: Delivery) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.handle_request(server_id, asked))
    }
}

impl PeerServer {
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts), attended: Arc::default(), streams: Arc::default() }
    }

    /// Handles the request of another instance for a server here, and answers it. A request that cannot be read comes
    /// from an unknown version, and gets no answer.
    async fn handle_request(&self, server_id: Uuid, delivery: Delivery) {
        let (payload, reply) = delivery.into_parts();
        let Ok(message) = self.parts.bus_client.whole(payload).await else { return };
        if let Some(ask) = message.read_as::<PeerRequest>() {
            self.answer_for_agent(server_id, ask, reply).await;
        } else if let Some(ask) = message.read_as::<peer_messages::CommandRequest>() {
            self.answer_for_jobs(server_id, ask, reply).await;
        } else {
            tracing::warn!(server.id = %server_id, "cannot read a request of another instance");
        }
    }

    async fn answer_for_agent(&self, server_id: Uuid, ask: PeerRequest, reply: impl FnOnce(Bytes) + Send) {
        let bus_client = &self.parts.bus_client;
        match ask {
            PeerRequest::There => bus_client.answer(reply, &bus_client.instance_id),
            PeerRequest::TakenOver => {
                self.parts.reconciler.reconcile_server(server_id).await;
                bus_client.answer(reply, &());
            }
            PeerRequest::Call(request) => {
                let answered = self.pass_on(server_id, request).await;
                bus_client.answer(reply, &answered);
            }
            PeerRequest::Cancel { request_id } => {
                if let Some((_, call)) = self.attended.remove(&request_id) {
                    call.abort();
                }
                bus_client.answer(reply, &());
            }
            PeerRequest::Tell(message) => {
                let sent = self.hand_on(server_id, message).await;
                bus_client.answer(reply, &sent);
            }
            PeerRequest::Open(message) => {
                let opened = self.start_stream(server_id, message);
                bus_client.answer(reply, &opened);
            }
            PeerRequest::OpenKept(request) => {
                let opened = self.parts.registry.open_kept(server_id, *request);
                let opened = opened.map(|stream| self.publish(stream.stream_id(), Source::Agent(Box::new(stream))));
                bus_client.answer(reply, &opened);
            }
        }
    }

    async fn answer_for_jobs(
        &self,
        server_id: Uuid,
        ask: peer_messages::CommandRequest,
        reply: impl FnOnce(Bytes) + Send,
    ) {
        let Parts { bus_client, jobs, .. } = &*self.parts;
        match ask {
            peer_messages::CommandRequest::Room => bus_client.answer(reply, &jobs.has_room(server_id)),
            peer_messages::CommandRequest::Start(start) => {
                let sent = jobs.start(*start).await;
                bus_client.answer(reply, &sent);
            }
            peer_messages::CommandRequest::Follow(follow) => {
                let followed = jobs.follow(server_id, &follow);
                bus_client.answer(reply, &followed);
            }
        }
    }

    /// Calls the agent in a separate task, so that the call can be cancelled.
    async fn pass_on(&self, server_id: Uuid, request: Request) -> Answered {
        if self.attended.len() >= MAX_CALLS {
            return Err(CallError::Busy);
        }
        let deadline = request.timeout_ms.map_or(LONGEST_CALL, Duration::from_millis);
        let (registry, request_id) = (self.parts.registry.clone(), request.request_id);
        let call = tokio::spawn(async move { registry.request(server_id, request, deadline).await });
        self.attended.insert(request_id, call.abort_handle());
        let answered = call.await;
        self.attended.remove(&request_id);
        // Cancelled: the caller has gone.
        answered.unwrap_or(Err(CallError::Disconnected))
    }

    async fn hand_on(&self, server_id: Uuid, message: ServiceMessage) -> Sent {
        match &message {
            ServiceMessage::Credit { stream_id, bytes } => {
                let stream = self.streams.get(stream_id).map(|entry| entry.value().clone());
                let Some(stream) = stream else { return Err(CallError::Offline) };
                stream.send(Control::Grant(*bytes)).await.map_err(|_| CallError::Offline)
            }
            ServiceMessage::LogsStop { stream_id } | ServiceMessage::TerminalStop { stream_id } => {
                // A stream that has ended in between needs nothing.
                if let Some((_, stream)) = self.streams.remove(stream_id) {
                    _ = stream.send(Control::Close).await;
                }
                // A stream with output on its way may learn first that its reader has gone, and that would keep the terminal. So its
                // session gets the message as well, and what comes second finds nothing.
                if matches!(message, ServiceMessage::TerminalStop { .. }) {
                    self.parts.registry.tell(server_id, message);
                }
                Ok(())
            }
            ServiceMessage::Cancel { command_id } => {
                if !self.parts.jobs.request_cancel(server_id, *command_id) {
                    return Ok(());
                }
                // Until there is room: a caller that asks again gets the answer that it was asked already.
                self.parts.registry.link(server_id).send(message.clone()).await
            }
            // Without its job a command would have no result.
            ServiceMessage::Execute(_) => Err(CallError::Unreachable),
            _ => self.parts.registry.send(server_id, message).await,
        }
    }

    fn start_stream(&self, server_id: Uuid, message: ServiceMessage) -> Sent {
        let (stream_id, source) = match message {
            ServiceMessage::LogsStart(start) => {
                (start.stream_id, Source::Log(Box::new(self.parts.logs.relay(server_id, start)?)))
            }
            message => {
                let stream = self.parts.registry.open_stream(server_id, message)?;
                (stream.stream_id(), Source::Agent(Box::new(stream)))
            }
        };
        self.publish(stream_id, source);
        Ok(())
    }

    /// Passes on the messages of a stream in a task of its own.
    fn publish(&self, stream_id: Uuid, source: Source) {
        let (control, controls) = mpsc::channel(CONTROLS);
        self.streams.insert(stream_id, control);
        let peer_server = self.clone();
        tokio::spawn(async move {
            peer_server.pump(stream_id, source, controls).await;
            peer_server.streams.remove(&stream_id);
        });
    }

    /// Passes on the messages of a stream until it ends or its reader has gone. Dropping the source ends the stream.
    async fn pump(&self, stream_id: Uuid, mut source: Source, mut controls: mpsc::Receiver<Control>) {
        let bus_client = &self.parts.bus_client;
        let subject = bus_client.subjects.stream(stream_id);
        loop {
            let frame = tokio::select! {
                frame = source.next() => match frame {
                    Some(frame) => frame,
                    None => StreamFrame::End(source.outcome().await),
                },
                control = controls.recv() => match control {
                    Some(Control::Grant(bytes)) => {
                        source.grant(bytes).await;
                        continue;
                    }
                    Some(Control::Close) => return source.close(),
                    None => return,
                },
                () = tokio::time::sleep(STILL_EVERY) => StreamFrame::Still,
            };
            match bus_client.ask::<Demand>(subject.clone(), &frame, TAKEN_WITHIN).await {
                Ok(Demand::More) => source.keep(),
                Ok(Demand::Enough) | Err(_) => return,
            }
        }
    }
}
