//! Streams that last while somebody watches: logs and terminals.
//!
//! Each stream is a task with a [`StreamPort`]. It sends only as much as the service has granted credit for, and through one
//! narrow channel that the connection empties when nothing more urgent waits. So a busy log delays no sample, no answer and no
//! ping, and fills no memory. Every stream, whether it ends on its own or is refused, ends with a response to its id.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, RequestError, Response};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use uuid::Uuid;

/// The most concurrent streams; more are refused.
const MAX_STREAMS: usize = 32;
/// Messages between the streams and the connection: one is being written, one is ready.
const CHANNEL: usize = 1;

/// The streams of one connection. They end with it.
pub struct Streams {
    sender: mpsc::Sender<AgentMessage>,
    receiver: mpsc::Receiver<AgentMessage>,
    running: HashMap<Uuid, Running>,
}

struct Running {
    task: AbortHandle,
    credit: Option<Arc<Semaphore>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Streams {
    pub fn new() -> Self {
        let (sender, receiver) = mpsc::channel(CHANNEL);
        Self { sender, receiver, running: HashMap::new() }
    }

    /// Starts a stream, or returns the refusal at once. `credit` is in bytes; none means any number.
    pub fn start<F>(
        &mut self,
        stream_id: Uuid,
        credit: Option<u64>,
        flow: impl FnOnce(StreamPort) -> F,
    ) -> Option<Response>
    where
        F: Future<Output = Result<Value, RequestError>> + Send + 'static,
    {
        let refuse = |code, detail| Some(Response::new(stream_id, Err(RequestError::new(code, detail))));
        if self.running.contains_key(&stream_id) {
            return refuse("duplicate_request", "a stream of this id is running");
        }
        if self.running.len() >= MAX_STREAMS {
            return refuse("agent_busy", "the agent has too many streams already");
        }
        let credit = credit.map(|bytes| Arc::new(Semaphore::new(permits(bytes))));
        let port = StreamPort {
            stream_id,
            most: credit.as_ref().map_or(usize::MAX, |credit| credit.available_permits()).max(1),
            credit: credit.clone(),
            sender: self.sender.clone(),
        };
        let (flow, sender) = (flow(port), self.sender.clone());
        let task = tokio::spawn(async move {
            let ended = AgentMessage::Response(Response::new(stream_id, flow.await));
            // A connection that has ended needs no answer.
            _ = sender.send(ended).await;
        });
        self.running.insert(stream_id, Running { task: task.abort_handle(), credit });
        None
    }

    /// Adds this many bytes of credit.
    pub fn credit(&self, stream_id: Uuid, bytes: u64) {
        if let Some(credit) = self.running.get(&stream_id).and_then(|running| running.credit.as_ref()) {
            let room = Semaphore::MAX_PERMITS.saturating_sub(credit.available_permits());
            credit.add_permits(permits(bytes).min(room));
        }
    }

    /// Ends a stream that nobody watches any more. There will be no answer.
    pub fn stop(&mut self, stream_id: Uuid) {
        self.running.remove(&stream_id);
    }

    /// The next message of any stream. Waits for ever while no stream sends anything.
    pub async fn next(&mut self) -> AgentMessage {
        let Some(message) = self.receiver.recv().await else { std::future::pending().await };
        if let AgentMessage::Response(response) = &message {
            self.running.remove(&response.request_id);
        }
        message
    }
}

fn permits(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// A stream's connection to the service.
pub struct StreamPort {
    pub stream_id: Uuid,
    credit: Option<Arc<Semaphore>>,
    /// No message costs more than the first credit, or it would wait for ever.
    most: usize,
    sender: mpsc::Sender<AgentMessage>,
}

impl StreamPort {
    /// Sends a message that costs this many bytes of credit, when there is credit and room for it.
    ///
    /// An error means that the connection has ended; then the stream must end, too.
    pub async fn send(&self, cost: u64, message: AgentMessage) -> Result<(), RequestError> {
        let gone = || RequestError::new("disconnected", "the connection has ended");
        if let Some(credit) = &self.credit {
            let cost = u32::try_from(permits(cost).min(self.most)).unwrap_or(u32::MAX);
            credit.acquire_many(cost).await.map_err(|_| gone())?.forget();
        }
        self.sender.send(message).await.map_err(|_| gone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use signalbox_protocol::agent::TerminalOutput;

    use super::*;

    const ID: Uuid = Uuid::from_u128(1);

    fn output(text: &str) -> AgentMessage {
        AgentMessage::TerminalOutput(TerminalOutput { stream_id: ID, data: text.to_owned(), offset: None })
    }

    #[tokio::test]
    async fn a_stream_sends_as_much_as_its_credit_and_then_waits() {
        let mut streams = Streams::new();
        let started = streams.start(ID, Some(2), async |port: StreamPort| {
            for text in ["a", "b", "c"] {
                port.send(1, output(text)).await?;
            }
            Ok(json!({"exit_code": 0}))
        });
        assert_eq!(started, None);

        assert_eq!(streams.next().await, output("a"));
        assert_eq!(streams.next().await, output("b"));
        let without_credit = tokio::time::timeout(std::time::Duration::from_millis(20), streams.next()).await;
        assert!(without_credit.is_err(), "{without_credit:?}");
        streams.credit(ID, 1);

        assert_eq!(streams.next().await, output("c"));
        let ended = Response::new(ID, Ok(json!({"exit_code": 0})));
        assert_eq!(streams.next().await, AgentMessage::Response(ended));
    }

    #[tokio::test]
    async fn a_message_larger_than_the_first_credit_still_goes() {
        let mut streams = Streams::new();
        streams.start(ID, Some(2), async |port: StreamPort| {
            port.send(1_000, output("long")).await?;
            Ok(Value::Null)
        });

        assert_eq!(streams.next().await, output("long"));
    }

    #[tokio::test]
    async fn a_stopped_stream_ends_without_an_answer_and_frees_its_place() {
        let mut streams = Streams::new();
        let forever = |_: StreamPort| std::future::pending::<Result<Value, RequestError>>();
        assert_eq!(streams.start(ID, None, forever), None);
        let twice = streams.start(ID, None, forever).and_then(|refusal| refusal.error).map(|error| error.code);
        assert_eq!(twice.as_deref(), Some("duplicate_request"));

        streams.stop(ID);

        assert_eq!(streams.start(ID, None, forever), None);
    }

    #[tokio::test]
    async fn one_stream_too_many_is_refused() {
        let mut streams = Streams::new();
        let forever = |_: StreamPort| std::future::pending::<Result<Value, RequestError>>();
        for number in 0..MAX_STREAMS {
            assert_eq!(streams.start(Uuid::from_u128(number as u128), None, forever), None);
        }

        let refused = streams.start(Uuid::max(), None, forever).and_then(|refusal| refusal.error);

        assert_eq!(refused.map(|error| error.code).as_deref(), Some("agent_busy"));
    }
}
