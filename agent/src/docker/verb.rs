//! The closed list of actions on containers, and what the owner's policy must permit for each.

use signalbox_protocol::container::{ContainerQuestion, Inspect, List, Logs, Stats};

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

/// An action that changes a container.
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
            List::METHOD => Self::List,
            Inspect::METHOD => Self::Inspect,
            Stats::METHOD => Self::Stats,
            Logs::METHOD => Self::Logs,
            "docker.start" => Self::Change(Change::Start),
            "docker.stop" => Self::Change(Change::Stop),
            "docker.restart" => Self::Change(Change::Restart),
            "docker.pause" => Self::Change(Change::Pause),
            "docker.unpause" => Self::Change(Change::Unpause),
            _ => return None,
        })
    }

    /// Whether a signature can permit it.
    pub fn is_signable(self) -> bool {
        matches!(self, Self::Change(_))
    }

    /// What the owner must permit for it.
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

    /// Whether the container gets time to stop.
    pub fn stops(self) -> bool {
        matches!(self, Self::Stop | Self::Restart)
    }

    /// Whether a container in this state already has the result.
    pub fn is_done(self, state: &State) -> bool {
        match self {
            Self::Start => state.running,
            Self::Stop => !state.running,
            Self::Restart => false,
            Self::Pause => state.status == "paused",
            Self::Unpause => state.status == "running",
        }
    }

    /// The engine's request for it. A container that ignores its signal is killed after `timeout` seconds, or after its own
    /// time.
    pub fn path(self, id: &str, timeout: Option<u32>) -> String {
        let path = format!("/containers/{id}/{}", self.name());
        match timeout.filter(|_| self.stops()) {
            // Engines accept a signed number.
            Some(seconds) => format!("{path}?t={}", i32::try_from(seconds).unwrap_or(i32::MAX)),
            None => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stops_a_container_gives_it_time() {
        assert_eq!(Change::Start.path("web", Some(5)), "/containers/web/start");
        assert_eq!(Change::Stop.path("web", Some(5)), "/containers/web/stop?t=5");
        assert_eq!(Change::Stop.path("web", None), "/containers/web/stop");
        assert_eq!(Change::Restart.path("web", Some(u32::MAX)), "/containers/web/restart?t=2147483647");
        assert_eq!(Change::Pause.path("web", None), "/containers/web/pause");
        assert_eq!(Change::Unpause.path("web", Some(5)), "/containers/web/unpause");
    }
}
