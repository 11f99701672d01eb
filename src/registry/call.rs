//! One request to an agent, and the answer that somebody waits for.

use std::time::Duration;

use serde_json::Value;
use signalbox_protocol::agent::{Request, RequestError};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Answer;

/// A request on its way to an agent.
#[derive(Debug)]
pub struct Call {
    pub request_id: Uuid,
    pub method: String,
    pub params: Value,
    pub timeout: Duration,
    pub answer: Answer,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("the agent is offline")]
    Offline,
    #[error("the agent gave no answer in time")]
    Timeout,
    #[error("too many requests to this agent")]
    Busy,
    #[error("the agent's connection was lost")]
    Disconnected,
    /// The agent itself refused or failed.
    #[error("{}", .0.detail)]
    Agent(RequestError),
}

impl Call {
    /// A call, and where its answer will come.
    pub fn new(method: &str, params: Value, timeout: Duration) -> (Self, oneshot::Receiver<Result<Value, CallError>>) {
        let (answer, receiver) = oneshot::channel();
        let call = Self { request_id: Uuid::now_v7(), method: method.to_owned(), params, timeout, answer };
        (call, receiver)
    }

    /// The message for the agent, and what is kept until it answers.
    pub fn into_request(self) -> (Request, Answer) {
        let timeout_ms = u64::try_from(self.timeout.as_millis()).ok();
        let request = Request { request_id: self.request_id, method: self.method, params: self.params, timeout_ms };
        (request, self.answer)
    }

    /// Tells whoever waits that it came to nothing.
    pub fn fail(self, error: CallError) {
        _ = self.answer.send(Err(error));
    }
}
