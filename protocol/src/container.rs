//! Containers: what an agent is asked of them, and what it tells.

mod question;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::agent::LogLine;
use crate::text::clean;
pub use question::*;

/// The most lines of a log that one answer holds.
pub const MAX_LOG_LINES: u32 = 10_000;

/// How long is waited for a container that is to stop when nobody says how long it may take: it may have a time of its
/// own, which the engine knows (10 s without one).
pub const STOP_SECONDS: u32 = 60;

/// How long the engine may take for a verb, beside the time that the container has to stop.
pub const VERB_SECONDS: u32 = 20;

/// The `kind` of the event that says how all containers are: [`ContainerStates`].
pub const STATES_KIND: &str = "containers";

/// The most containers whose states are told.
pub const MAX_STATES: usize = 1_024;

/// Whether this can name a container: the engine's own rule, so that nothing else gets into its addresses.
pub fn is_container_name(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// What `docker.list` is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListParams {
    /// Also those that do not run.
    #[serde(default)]
    pub all: bool,
}

/// What every method that names a container is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerParams {
    /// Its id, the beginning of it, or its name.
    pub container_id: String,
    /// How long it may take to stop by itself before it is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

impl ContainerParams {
    /// Without more than its name.
    pub fn of(container_id: String) -> Self {
        Self { container_id, timeout_seconds: None }
    }
}

/// What `docker.logs` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsParams {
    pub container_id: String,
    /// The last so many lines.
    pub tail: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    pub stdout: bool,
    pub stderr: bool,
}

/// One of the containers of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Container {
    pub id: String,
    pub name: String,
    pub image: String,
    /// In one word: `created`, `running`, `paused`, `restarting`, `exited`, `dead`; an engine may have others.
    pub state: String,
    /// For a person: `Up 4 seconds (healthy)`.
    pub status: String,
    pub created_at: Timestamp,
    #[serde(default)]
    pub ports: Vec<Port>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl Container {
    /// Takes out of every text what does not belong in a name.
    pub fn clean(&mut self) {
        [&mut self.id, &mut self.name, &mut self.image, &mut self.state, &mut self.status].into_iter().for_each(clean);
        self.ports.iter_mut().for_each(Port::clean);
        clean_labels(&mut self.labels);
    }
}

fn clean_labels(labels: &mut BTreeMap<String, String>) {
    let cleaned = std::mem::take(labels).into_iter().map(|(mut name, mut value)| {
        clean(&mut name);
        clean(&mut value);
        (name, value)
    });
    *labels = cleaned.collect();
}

/// How all containers of a machine are. Told when a connection begins, and when it is different from what was told last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerStates {
    /// The agent's time of asking. Nothing was told of an engine that did not answer.
    pub timestamp: Timestamp,
    /// Stopped ones too, by name.
    pub containers: Vec<ContainerState>,
    /// There are more of them: nothing is known of those that are missing here.
    #[serde(default)]
    pub truncated: bool,
}

/// How one container is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerState {
    pub id: String,
    pub name: String,
    /// `created`, `running`, `paused`, `restarting`, `removing`, `exited` or `dead`; an engine may have others.
    pub state: String,
    /// `starting`, `healthy` or `unhealthy`; None without a health check, and of one that does not run.
    #[serde(default)]
    pub health: Option<String>,
    /// Of one that has exited.
    #[serde(default)]
    pub exit_code: Option<i64>,
}

/// A port of a container, and where the host shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Port {
    pub private_port: u16,
    /// None when it is not shown outside.
    #[serde(default)]
    pub public_port: Option<u16>,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    #[serde(default)]
    pub host_ip: Option<String>,
}

impl Port {
    fn clean(&mut self) {
        clean(&mut self.protocol);
        self.host_ip.iter_mut().for_each(clean);
    }
}

/// All there is to say of one container. The values of its environment are not: they are where secrets are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerDetail {
    pub id: String,
    pub name: String,
    pub image: String,
    pub image_id: String,
    pub state: String,
    /// `starting`, `healthy` or `unhealthy`; None without a health check.
    #[serde(default)]
    pub health: Option<String>,
    pub created_at: Timestamp,
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    #[serde(default)]
    pub finished_at: Option<Timestamp>,
    /// Of the last run; None while it runs or never did.
    #[serde(default)]
    pub exit_code: Option<i64>,
    pub oom_killed: bool,
    /// Why the engine could not start it.
    #[serde(default)]
    pub error: Option<String>,
    pub restart_count: u64,
    /// `no`, `always`, `unless-stopped` or `on-failure`.
    pub restart_policy: String,
    #[serde(default)]
    pub pid: Option<u32>,
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// The names of the environment's variables.
    #[serde(default)]
    pub environment: Vec<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub ports: Vec<Port>,
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// `bridge`, `host`, `none`, or a network's name.
    pub network_mode: String,
    #[serde(default)]
    pub networks: Vec<Network>,
    pub tty: bool,
    pub privileged: bool,
    pub log_driver: String,
    /// None without a limit.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
}

impl ContainerDetail {
    /// Takes out of every text what does not belong in a name.
    pub fn clean(&mut self) {
        let Self { id, name, image, image_id, state, restart_policy, network_mode, log_driver, .. } = self;
        [id, name, image, image_id, state, restart_policy, network_mode, log_driver].into_iter().for_each(clean);
        self.health.iter_mut().chain(&mut self.error).for_each(clean);
        self.command.iter_mut().chain(&mut self.environment).for_each(clean);
        clean_labels(&mut self.labels);
        self.ports.iter_mut().for_each(Port::clean);
        for Mount { kind, source, destination, read_only: _ } in &mut self.mounts {
            [kind, source, destination].into_iter().for_each(clean);
        }
        for Network { name, ip_address } in &mut self.networks {
            clean(name);
            ip_address.iter_mut().for_each(clean);
        }
    }
}

/// Something of the host that a container sees.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mount {
    /// `bind`, `volume` or `tmpfs`.
    pub kind: String,
    pub source: String,
    pub destination: String,
    pub read_only: bool,
}

/// A network that a container is in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Network {
    pub name: String,
    #[serde(default)]
    pub ip_address: Option<String>,
}

/// What became of a container that was told to do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// Its whole id.
    pub container_id: String,
    /// After it.
    pub state: String,
}

impl Acted {
    /// Takes out of every text what does not belong in a name.
    pub fn clean(&mut self) {
        [&mut self.container_id, &mut self.state].into_iter().for_each(clean);
    }
}

/// A part of a container's log, oldest line first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerLogs {
    pub lines: Vec<LogLine>,
    /// There was more than fits into one answer: the oldest lines are missing.
    #[serde(default)]
    pub truncated: bool,
}

/// What a container uses at this moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ContainerStats {
    pub container_id: String,
    pub timestamp: Timestamp,
    /// Percent of one core; a container on four cores may show 400.
    pub cpu_percent: f64,
    /// Without the file cache that the kernel gives back when asked.
    pub memory_bytes: u64,
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    pub network_rx_bytes: u64,
    pub network_tx_bytes: u64,
    pub block_read_bytes: u64,
    pub block_write_bytes: u64,
    #[serde(default)]
    pub process_count: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_engine_would_take_names_a_container() {
        for name in ["7503721b446d", "web-1", "a_b.c", "9", &"x".repeat(128)] {
            assert!(is_container_name(name), "{name}");
        }
        for text in ["", ".", "..", "../images", "a/b", "a?b", "a%2fb", "-a", "_a", "a b", "é", "a\0", &"x".repeat(129)]
        {
            assert!(!is_container_name(text), "{text:?}");
        }
    }
}
