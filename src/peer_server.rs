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
use crate::bus::post::Post;
use crate::cluster::remote::message::{Answered, Ask, Frame, Sent, Taken};
use crate::cluster::remote::{Answer, TAKEN_WITHIN};
use crate::commands::published::PublishedJobs;
use crate::commands::shared;
use crate::logs::{Logs, Relay};
use crate::registry::{AgentStream, CallError, RegistryHandle};
use crate::vigil::Vigil;

/// How often the reader of a stream gets a message that nothing happens, which also detects that the reader has gone.
const STILL_EVERY: Duration = Duration::from_secs(5);

/// Calls of other instances to agents here at the same time: fewer than the requests that may be in progress, so that
/// there is always room for those that are answered at once.
const MOST_CALLS: usize = 3_072;

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
    pub post: Post,
    /// Reaches only the sessions of this instance.
    pub registry: RegistryHandle,
    pub jobs: PublishedJobs,
    pub logs: Logs,
    pub vigil: Vigil,
}

/// The source of a stream.
enum Source {
    Agent(Box<AgentStream>),
    /// One more reader of a log: the agent has one stream for all readers.
    Log(Box<Relay>),
}

impl Source {
    /// Returns the next message, or `None` when the stream has ended.
    async fn next(&mut self) -> Option<Frame> {
        match self {
            Self::Agent(stream) => stream.next().await.map(Frame::of),
            Self::Log(relay) => relay.next().await.map(Frame::of),
        }
    }

    async fn outcome(&mut self) -> Answered {
        match self {
            Self::Agent(stream) => stream.outcome().await,
            Self::Log(relay) => relay.outcome(),
        }
    }

    async fn grant(&mut self, bytes: u64) {
        match self {
            // An agent that has gone ends the stream, which the next call reports.
            Self::Agent(stream) => _ = stream.grant(bytes).await,
            Self::Log(relay) => relay.grant(bytes),
        }
    }
}

/// A control message to a stream.
enum Control {
    Grant(u64),
}

impl Answer for PeerServer {
    fn answer(&self, server_id: Uuid, asked: Delivery) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.attend(server_id, asked))
    }
}

impl PeerServer {
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts), attended: Arc::default(), streams: Arc::default() }
    }

    /// Handles the request of another instance for a server here, and answers it. A request that cannot be read comes
    /// from an unknown version, and gets no answer.
    async fn attend(&self, server_id: Uuid, delivery: Delivery) {
        let (payload, reply) = delivery.into_parts();
        let Ok(message) = self.parts.post.whole(payload).await else { return };
        if let Some(ask) = message.read_as::<Ask>() {
            self.answer_for_agent(server_id, ask, reply).await;
        } else if let Some(ask) = message.read_as::<shared::Ask>() {
            self.answer_for_jobs(server_id, ask, reply).await;
        } else {
            tracing::warn!(server.id = %server_id, "cannot read a request of another instance");
        }
    }

    async fn answer_for_agent(&self, server_id: Uuid, ask: Ask, reply: impl FnOnce(Bytes) + Send) {
        let post = &self.parts.post;
        match ask {
            Ask::There => post.answer(reply, &post.instance_id),
            Ask::TakenOver => {
                self.parts.vigil.look_at(server_id).await;
                post.answer(reply, &());
            }
            Ask::Call(request) => {
                let answered = self.pass_on(server_id, request).await;
                post.answer(reply, &answered);
            }
            Ask::Cancel { request_id } => {
                if let Some((_, call)) = self.attended.remove(&request_id) {
                    call.abort();
                }
                post.answer(reply, &());
            }
            Ask::Tell(message) => {
                let sent = self.hand_on(server_id, message).await;
                post.answer(reply, &sent);
            }
            Ask::Open(message) => {
                let opened = self.start_stream(server_id, message);
                post.answer(reply, &opened);
            }
        }
    }

    async fn answer_for_jobs(&self, server_id: Uuid, ask: shared::Ask, reply: impl FnOnce(Bytes) + Send) {
        let Parts { post, jobs, .. } = &*self.parts;
        match ask {
            shared::Ask::Room => post.answer(reply, &jobs.has_room(server_id)),
            shared::Ask::Start(start) => {
                let sent = jobs.start(*start).await;
                post.answer(reply, &sent);
            }
            shared::Ask::Follow(follow) => {
                let followed = jobs.follow(server_id, &follow);
                post.answer(reply, &followed);
            }
        }
    }

    /// Calls the agent in a separate task, so that the call can be cancelled.
    async fn pass_on(&self, server_id: Uuid, request: Request) -> Answered {
        if self.attended.len() >= MOST_CALLS {
            return Err(CallError::Busy);
        }
        let deadline = request.timeout_ms.map_or(LONGEST_CALL, Duration::from_millis);
        let (registry, request_id) = (self.parts.registry.clone(), request.request_id);
        let call = tokio::spawn(async move { registry.ask(server_id, request, deadline).await });
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
                // Removing the stream ends its reader.
                self.streams.remove(stream_id);
                Ok(())
            }
            ServiceMessage::Cancel { command_id } => {
                if !self.parts.jobs.request_cancel(server_id, *command_id) {
                    return Ok(());
                }
                self.parts.registry.send(server_id, message).await
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
        let (control, controls) = mpsc::channel(CONTROLS);
        self.streams.insert(stream_id, control);
        let peer_server = self.clone();
        tokio::spawn(async move {
            peer_server.pump(stream_id, source, controls).await;
            peer_server.streams.remove(&stream_id);
        });
        Ok(())
    }

    /// Passes on the messages of a stream until it ends or its reader has gone. Dropping the source ends the stream.
    async fn pump(&self, stream_id: Uuid, mut source: Source, mut controls: mpsc::Receiver<Control>) {
        let post = &self.parts.post;
        let subject = post.subjects.stream(stream_id);
        loop {
            let frame = tokio::select! {
                frame = source.next() => match frame {
                    Some(frame) => frame,
                    None => Frame::End(source.outcome().await),
                },
                control = controls.recv() => match control {
                    Some(Control::Grant(bytes)) => {
                        source.grant(bytes).await;
                        continue;
                    }
                    None => return,
                },
                () = tokio::time::sleep(STILL_EVERY) => Frame::Still,
            };
            match post.ask::<Taken>(subject.clone(), &frame, TAKEN_WITHIN).await {
                Ok(Taken::More) => {}
                Ok(Taken::Enough) | Err(_) => return,
            }
        }
    }
}
