//! Answering for servers whose agents are here.

use std::time::Duration;

use signalbox_protocol::agent::{Request, ServiceMessage};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::message::{Answered, Ask, Frame, Sent, Taken};
use super::{Remote, TAKEN_WITHIN};
use crate::bus::Delivery;
use crate::cluster::vigil::Vigil;
use crate::commands::Jobs;
use crate::logs::{Logs, Relay};
use crate::registry::{AgentStream, CallError, RegistryHandle};

/// How often whoever reads a stream is told that nothing happens, by which one that has gone is noticed.
const STILL_EVERY: Duration = Duration::from_secs(5);

/// Calls of other instances that agents here look after at a time: fewer than may be asked at a time, so that there is
/// always room for what is answered at once.
const MOST_CALLS: usize = 3_072;

/// What may wait to be done to a stream.
const CONTROLS: usize = 64;

/// As long as a call without a deadline may take.
const LONGEST_CALL: Duration = Duration::from_secs(3_600);

/// What answers.
#[derive(Clone)]
pub struct Home {
    /// Reaches the sessions of this instance alone.
    pub registry: RegistryHandle,
    pub jobs: Jobs,
    pub logs: Logs,
    pub vigil: Vigil,
}

/// What flows.
enum Source {
    Agent(Box<AgentStream>),
    /// One more watcher of a log that is streamed here: the agent has one stream for all.
    Log(Box<Relay>),
}

impl Source {
    /// The next message; none when it has ended.
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
            // An agent that has gone ends the stream, which is told next.
            Self::Agent(stream) => _ = stream.grant(bytes).await,
            Self::Log(relay) => relay.grant(bytes),
        }
    }
}

/// What is done to a stream.
pub(super) enum Control {
    Grant(u64),
}

impl Remote {
    /// Does what another instance asks of a server here, and answers.
    pub(super) async fn attend(&self, server_id: Uuid, delivery: Delivery) {
        let (payload, reply) = delivery.into_parts();
        let Some(home) = self.home.get() else { return };
        // What cannot be read is of a version that this one does not know: whoever asked hears nothing.
        let Ok(ask) = self.post.read::<Ask>(payload).await else { return };
        match ask {
            Ask::There => self.post.answer(reply, &self.post.instance_id),
            Ask::TakenOver => {
                home.vigil.look_at(server_id).await;
                self.post.answer(reply, &());
            }
            Ask::Call(request) => {
                let answered = self.pass_on(home, server_id, request).await;
                self.post.answer(reply, &answered);
            }
            Ask::Cancel { request_id } => {
                if let Some((_, call)) = self.attended.remove(&request_id) {
                    call.abort();
                }
                self.post.answer(reply, &());
            }
            Ask::Tell(message) => {
                let sent = self.hand_on(home, server_id, message).await;
                self.post.answer(reply, &sent);
            }
            Ask::Open(message) => {
                let opened = self.start_stream(home, server_id, message);
                self.post.answer(reply, &opened);
            }
            Ask::Room => self.post.answer(reply, &home.jobs.has_room(server_id)),
            Ask::Start(start) => {
                let sent = home.jobs.start_for(*start).await;
                self.post.answer(reply, &sent);
            }
            Ask::Follow(follow) => {
                let followed = home.jobs.follow_for(server_id, &follow);
                self.post.answer(reply, &followed);
            }
        }
    }

    /// Asks the agent. The call is a task of its own, so that it can be called off.
    async fn pass_on(&self, home: &Home, server_id: Uuid, request: Request) -> Answered {
        if self.attended.len() >= MOST_CALLS {
            return Err(CallError::Busy);
        }
        let deadline = request.timeout_ms.map_or(LONGEST_CALL, Duration::from_millis);
        let (registry, request_id) = (home.registry.clone(), request.request_id);
        let call = tokio::spawn(async move { registry.ask(server_id, request, deadline).await });
        self.attended.insert(request_id, call.abort_handle());
        let answered = call.await;
        self.attended.remove(&request_id);
        // Called off: nobody waits.
        answered.unwrap_or(Err(CallError::Disconnected))
    }

    async fn hand_on(&self, home: &Home, server_id: Uuid, message: ServiceMessage) -> Sent {
        match &message {
            ServiceMessage::Credit { stream_id, bytes } => {
                let stream = self.streams.get(stream_id).map(|entry| entry.value().clone());
                let Some(stream) = stream else { return Err(CallError::Offline) };
                stream.send(Control::Grant(*bytes)).await.map_err(|_| CallError::Offline)
            }
            ServiceMessage::LogsStop { stream_id } | ServiceMessage::TerminalStop { stream_id } => {
                // Whatever reads it ends with this.
                self.streams.remove(stream_id);
                Ok(())
            }
            ServiceMessage::Cancel { command_id } => {
                // It is remembered here, should the agent be away when it is told.
                let was_called_off = home.jobs.find(server_id, *command_id).is_some_and(|job| !job.call_off());
                if was_called_off {
                    return Ok(());
                }
                home.registry.send(server_id, message).await
            }
            // A command without its job would have no result.
            ServiceMessage::Execute(_) => Err(CallError::Unreachable),
            _ => home.registry.send(server_id, message).await,
        }
    }

    fn start_stream(&self, home: &Home, server_id: Uuid, message: ServiceMessage) -> Sent {
        let (stream_id, source) = match message {
            ServiceMessage::LogsStart(start) => {
                (start.stream_id, Source::Log(Box::new(home.logs.relay(server_id, start)?)))
            }
            message => {
                let stream = home.registry.open_stream(server_id, message)?;
                (stream.stream_id(), Source::Agent(Box::new(stream)))
            }
        };
        let (control, controls) = mpsc::channel(CONTROLS);
        self.streams.insert(stream_id, control);
        let remote = self.clone();
        tokio::spawn(async move {
            remote.pump(stream_id, source, controls).await;
            remote.streams.remove(&stream_id);
        });
        Ok(())
    }

    /// Hands on what flows until it ends, or nobody takes it any more. Dropping the source ends it.
    async fn pump(&self, stream_id: Uuid, mut source: Source, mut controls: mpsc::Receiver<Control>) {
        let subject = self.post.subjects.stream(stream_id);
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
            match self.post.ask::<Taken>(subject.clone(), &frame, TAKEN_WITHIN).await {
                Ok(Taken::More) => {}
                Ok(Taken::Enough) | Err(_) => return,
            }
        }
    }
}
