//! One request to an agent, and the answer that the caller waits for.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use signalbox_protocol::agent::{Request, RequestError};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Answer;

/// A request to an agent.
#[derive(Debug, Clone, Default)]
pub struct Question<'a> {
    /// The method, such as `docker.list`.
    pub method: &'a str,
    pub params: Value,
    /// How long the caller waits for the answer.
    pub deadline: Duration,
    /// The user who asks, for the log on the agent's own host.
    pub by: Option<String>,
}

impl Question<'_> {
    /// The request in the form that the agent gets.
    pub fn into_request(self) -> Request {
        Request {
            request_id: Uuid::now_v7(),
            method: self.method.to_owned(),
            params: self.params,
            timeout_ms: u64::try_from(self.deadline.as_millis()).ok(),
            by: self.by,
        }
    }
}

/// A request on its way to an agent.
#[derive(Debug)]
pub struct Call {
    request: Request,
    answer: Answer,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CallError {
    #[error("the agent is offline")]
    Offline,
    #[error("the agent did not answer in time")]
    Timeout,
    #[error("too many requests to this agent")]
    Busy,
    #[error("the agent's connection was lost")]
    Disconnected,
    /// Another instance holds the agent's session, and cannot be reached now.
    #[error("the agent cannot be reached from here right now")]
    Unreachable,
    /// The agent itself refused or failed.
    #[error("{}", .0.detail)]
    Agent(RequestError),
}

impl CallError {
    /// The agent's answer does not have the expected form.
    pub fn invalid_answer() -> Self {
        Self::Agent(RequestError::new("agent_error", "the server's agent sent an invalid answer"))
    }

    /// Why a signature did not suffice, where that is why the agent refused.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Agent(error) => error.reason.as_deref(),
            Self::Offline | Self::Timeout | Self::Busy | Self::Disconnected | Self::Unreachable => None,
        }
    }

    /// The error code for clients.
    pub fn code(&self) -> &str {
        match self {
            Self::Offline => "agent_offline",
            Self::Timeout => "agent_timeout",
            Self::Busy | Self::Unreachable => "busy",
            Self::Disconnected => "agent_disconnected",
            Self::Agent(error) => &error.code,
        }
    }
}

impl Call {
    /// A new call, and the receiver of its answer.
    pub fn new(request: Request) -> (Self, oneshot::Receiver<Result<Value, CallError>>) {
        let (answer, receiver) = oneshot::channel();
        (Self { request, answer }, receiver)
    }

    pub fn request_id(&self) -> Uuid {
        self.request.request_id
    }

    /// The message for the agent, and what to keep until it answers.
    pub fn into_parts(self) -> (Request, Answer) {
        (self.request, self.answer)
    }

    /// Reports to the caller that the call failed.
    pub fn fail(self, error: CallError) {
        _ = self.answer.send(Err(error));
    }
}
