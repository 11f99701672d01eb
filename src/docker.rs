//! Containers of servers: asks the agents, and takes nothing they answer that is not what was asked for.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_protocol::container::{Acted, ContainerParams, ContainerQuestion, STOP_SECONDS, VERB_SECONDS};
use uuid::Uuid;

use crate::audit::{Outcome, action};
use crate::registry::{CallError, Question, RegistryHandle};

/// For the way to the agent and back, beside what the agent gives its engine.
const WAY: Duration = Duration::from_secs(5);
/// What the agent gives its engine for a question at the most: a long log's part.
const READING: Duration = Duration::from_secs(25);

/// What is done to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Start,
    Stop,
    Restart,
    Pause,
    Unpause,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DockerError {
    #[error(transparent)]
    Call(#[from] CallError),
    /// It answered something else than it was asked for.
    #[error("the server's agent gave an answer that is not understood")]
    Nonsense,
}

impl DockerError {
    /// As the audit log is told.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Call(CallError::Agent(error)) if error.code == "agent_refused" => Outcome::Refused,
            Self::Call(error) => Outcome::Failed(error.code().to_owned().into()),
            Self::Nonsense => Outcome::Failed("agent_error".into()),
        }
    }
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Unpause => "unpause",
        }
    }

    /// What the audit log calls it.
    pub fn action(self) -> &'static str {
        match self {
            Self::Start => action::CONTAINER_START,
            Self::Stop => action::CONTAINER_STOP,
            Self::Restart => action::CONTAINER_RESTART,
            Self::Pause => action::CONTAINER_PAUSE,
            Self::Unpause => action::CONTAINER_UNPAUSE,
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Start => "docker.start",
            Self::Stop => "docker.stop",
            Self::Restart => "docker.restart",
            Self::Pause => "docker.pause",
            Self::Unpause => "docker.unpause",
        }
    }

    /// How long the agent and its engine may take.
    fn deadline(self, timeout_seconds: Option<u32>) -> Duration {
        let stopping = match self {
            Self::Stop | Self::Restart => timeout_seconds.unwrap_or(STOP_SECONDS),
            Self::Start | Self::Pause | Self::Unpause => 0,
        };
        Duration::from_secs(u64::from(stopping) + u64::from(VERB_SECONDS))
    }
}

/// The containers of one server, asked for by somebody who may.
pub struct Containers<'a> {
    pub registry: &'a RegistryHandle,
    pub server_id: Uuid,
    /// Who asks, for the log of the agent's own host.
    pub by: Option<String>,
}

impl Containers<'_> {
    pub async fn ask<Q: ContainerQuestion>(&self, params: Q::Params) -> Result<Q::Answer, DockerError> {
        let mut answer = self.call(Q::METHOD, &params, READING).await?;
        Q::clean(&mut answer);
        Ok(answer)
    }

    /// Answers when the engine has done it.
    pub async fn act(&self, verb: Verb, params: ContainerParams) -> Result<Acted, DockerError> {
        let mut acted: Acted = self.call(verb.method(), &params, verb.deadline(params.timeout_seconds)).await?;
        acted.clean();
        Ok(acted)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        within: Duration,
    ) -> Result<T, DockerError> {
        let params = serde_json::to_value(params).unwrap_or(Value::Null);
        let question = Question { method, params, deadline: within + WAY, by: self.by.clone() };
        let answer = self.registry.call(self.server_id, question).await?;
        serde_json::from_value(answer).map_err(|error| {
            tracing::warn!(server.id = %self.server_id, method, %error, "an agent's answer is not understood");
            DockerError::Nonsense
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_may_take_its_time_to_stop_is_waited_for() {
        assert_eq!(Verb::Stop.deadline(Some(300)), Duration::from_secs(320));
        assert_eq!(Verb::Restart.deadline(None), Duration::from_secs(80));
        assert_eq!(Verb::Start.deadline(Some(300)), Duration::from_secs(20));
    }
}
