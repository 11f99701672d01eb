//! The closed list of what can be asked of containers, and what each needs of the owner's policy.

use bollard::query_parameters::{RestartContainerOptionsBuilder, StopContainerOptionsBuilder};

use super::model::State;
use crate::policy::DockerAccess;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    List,
    Inspect,
    Stats,
    Logs,
    Change(Change),
}

/// What changes a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Start,
    Stop,
    Restart,
    Pause,
    Unpause,
}

impl Verb {
    /// The verb of a method such as `docker.list`.
    pub fn of(method: &str) -> Option<Self> {
        Some(match method {
            "docker.list" => Self::List,
            "docker.inspect" => Self::Inspect,
            "docker.stats" => Self::Stats,
            "docker.logs" => Self::Logs,
            "docker.start" => Self::Change(Change::Start),
            "docker.stop" => Self::Change(Change::Stop),
            "docker.restart" => Self::Change(Change::Restart),
            "docker.pause" => Self::Change(Change::Pause),
            "docker.unpause" => Self::Change(Change::Unpause),
            _ => return None,
        })
    }

    /// How far the owner must let the service go for it.
    pub fn needs(self) -> DockerAccess {
        match self {
            Self::List | Self::Inspect | Self::Stats | Self::Logs => DockerAccess::Read,
            Self::Change(_) => DockerAccess::Control,
        }
    }
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Unpause => "unpause",
        }
    }

    /// Whether the container is given time to stop.
    pub fn stops(self) -> bool {
        matches!(self, Self::Stop | Self::Restart)
    }

    /// Whether a container in this state needs no more of it.
    pub fn is_done(self, state: &State) -> bool {
        match self {
            Self::Start => state.running,
            Self::Stop => !state.running,
            Self::Restart => false,
            Self::Pause => state.status == "paused",
            Self::Unpause => state.status == "running",
        }
    }

    /// Asks the engine for it. A container that ignores its signal is killed after `timeout` seconds, or after the time
    /// that it has by itself.
    pub async fn ask(
        self,
        engine: bollard::Docker,
        id: String,
        timeout: Option<u32>,
    ) -> Result<(), bollard::errors::Error> {
        let seconds = timeout.map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX));
        match self {
            Self::Start => engine.start_container(&id, None).await,
            Self::Stop => {
                let options = seconds.map(|seconds| StopContainerOptionsBuilder::new().t(seconds).build());
                engine.stop_container(&id, options).await
            }
            Self::Restart => {
                let options = seconds.map(|seconds| RestartContainerOptionsBuilder::new().t(seconds).build());
                engine.restart_container(&id, options).await
            }
            Self::Pause => engine.pause_container(&id).await,
            Self::Unpause => engine.unpause_container(&id).await,
        }
    }
}
