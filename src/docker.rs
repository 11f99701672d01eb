//! Containers of servers: asks the agents, and accepts only answers of the expected form.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_protocol::container::{Acted, ContainerParams, ContainerQuestion, STOP_SECONDS, VERB_SECONDS};
use uuid::Uuid;

use crate::audit::{Outcome, action};
use crate::registry::{CallError, Question, RegistryHandle};

/// The time for the way to the agent and back, in addition to what the agent allows its engine.
const WAY: Duration = Duration::from_secs(5);
/// The longest time that an agent allows its engine for a question, such as a part of a long log.
const READING: Duration = Duration::from_secs(25);

/// An action on a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Start,
    Stop,
    Restart,
    Pause,
    Unpause,
}

/// Returns the outcome of an action that failed, for the audit log.
pub fn outcome_of(error: &CallError) -> Outcome {
    match error {
        CallError::Agent(error) if error.code == "agent_refused" => Outcome::Refused,
        error => Outcome::Failed(error.code().to_owned().into()),
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

    /// Returns its name in the audit log.
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

    /// Returns how long the agent and its engine may take.
    fn deadline(self, timeout_seconds: Option<u32>) -> Duration {
        let stopping = match self {
            Self::Stop | Self::Restart => timeout_seconds.unwrap_or(STOP_SECONDS),
            Self::Start | Self::Pause | Self::Unpause => 0,
        };
        Duration::from_secs(u64::from(stopping) + u64::from(VERB_SECONDS))
    }
}

/// The containers of one server, for a caller whose right was checked.
pub struct Containers<'a> {
    pub registry: &'a RegistryHandle,
    pub server_id: Uuid,
    /// The caller, for the log of the agent's own host.
    pub by: Option<String>,
}

impl Containers<'_> {
    pub async fn ask<Q: ContainerQuestion>(&self, params: Q::Params) -> Result<Q::Answer, CallError> {
        let mut answer = self.call(Q::METHOD, &params, READING).await?;
        Q::clean(&mut answer);
        Ok(answer)
    }

    /// Runs an action. Returns when the engine has completed it.
    pub async fn act(&self, verb: Verb, params: ContainerParams) -> Result<Acted, CallError> {
        let mut acted: Acted = self.call(verb.method(), &params, verb.deadline(params.timeout_seconds)).await?;
        acted.clean();
        Ok(acted)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        within: Duration,
    ) -> Result<T, CallError> {
        let params = serde_json::to_value(params).unwrap_or(Value::Null);
        let question = Question { method, params, deadline: within + WAY, by: self.by.clone() };
        self.registry.ask(self.server_id, question).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_covers_the_time_a_container_may_take_to_stop() {
        assert_eq!(Verb::Stop.deadline(Some(300)), Duration::from_secs(320));
        assert_eq!(Verb::Restart.deadline(None), Duration::from_secs(80));
        assert_eq!(Verb::Start.deadline(Some(300)), Duration::from_secs(20));
    }
}
