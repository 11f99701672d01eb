//! Containers: the questions that an agent answers about them.

mod question;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::agent::Asker;
use crate::agent::LogLine;
use crate::signed::Signed;
use crate::text::clean;
pub use question::*;

/// The most lines of a log in one answer.
pub const MAX_LOG_LINES: u32 = 10_000;

/// How long the service waits for a container to stop when the caller names no time. The container may have a time of its own,
/// which only the engine knows (10 s by default).
pub const STOP_SECONDS: u32 = 60;

/// How long the engine may take for an action, in addition to the time that the container has to stop.
pub const VERB_SECONDS: u32 = 20;

/// The `kind` of the event that carries [`ContainerStates`].
pub const STATES_KIND: &str = "containers";

/// The most containers in one report of states.
pub const MAX_STATES: usize = 1_024;

/// Whether this can name a container. It is the engine's own rule, so that nothing else gets into the addresses of its API.
pub fn is_container_name(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Parameters of `docker.list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListParams {
    /// Includes containers that do not run.
    #[serde(default)]
    pub all: bool,
}

/// Parameters of every method that names a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerParams {
    /// Its id, the beginning of it, or its name.
    pub container_id: String,
    /// How long the container may take to stop on its own before the engine kills it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// The person who asks, for a policy that names people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// What operators signed for it. A server whose policy says `signed` changes no container without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

impl ContainerParams {
    /// Parameters with nothing but the container's name.
    pub fn of(container_id: String) -> Self {
        Self { container_id, timeout_seconds: None, asker: None, signed: None }
    }
}

/// Parameters of `docker.logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsParams {
    /// Its id, the beginning of it, or its name.
    pub container_id: String,
    /// How many of the last lines to return.
    pub tail: u32,
    /// Only lines from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only lines up to this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Includes lines of standard output.
    pub stdout: bool,
    /// Includes lines of standard error.
    pub stderr: bool,
}

/// One of the containers of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Container {
    /// The whole id.
    pub id: String,
    /// The name, without the engine's leading slash.
    pub name: String,
    /// The image that it was created from, as the engine names it.
    pub image: String,
    /// In one word: `created`, `running`, `paused`, `restarting`, `exited`, `dead`; an engine may have others.
    pub state: String,
    /// The engine's text for people, such as `Up 4 seconds (healthy)`.
    pub status: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its ports, with those of the host.
    #[serde(default)]
    pub ports: Vec<Port>,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl Container {
    /// Removes the characters from every text that a name may not have.
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

/// The states of all containers of a machine. The agent sends them when a connection begins, and whenever they differ from what
/// it sent last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerStates {
    /// When the agent asked the engine. An agent sends nothing for an engine that does not answer.
    pub timestamp: Timestamp,
    /// All containers, including stopped ones, ordered by name.
    pub containers: Vec<ContainerState>,
    /// Whether there are more containers than [`MAX_STATES`]; the states of the missing ones are unknown.
    #[serde(default)]
    pub truncated: bool,
}

/// The state of one container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerState {
    /// The whole id.
    pub id: String,
    /// The name, without the engine's leading slash.
    pub name: String,
    /// `created`, `running`, `paused`, `restarting`, `removing`, `exited` or `dead`; an engine may have others.
    pub state: String,
    /// `starting`, `healthy` or `unhealthy`; none without a health check, and for a container that does not run.
    #[serde(default)]
    pub health: Option<String>,
    /// Only of a container that has exited.
    #[serde(default)]
    pub exit_code: Option<i64>,
}

/// A port of a container, and where the host publishes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Port {
    /// The port inside the container.
    pub private_port: u16,
    /// The port of the host; none when the port is not published.
    #[serde(default)]
    pub public_port: Option<u16>,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    /// The host's address that the port is published on.
    #[serde(default)]
    pub host_ip: Option<String>,
}

impl Port {
    fn clean(&mut self) {
        clean(&mut self.protocol);
        self.host_ip.iter_mut().for_each(clean);
    }
}

/// All details of one container, except the values of its environment, because secrets are kept there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerDetail {
    /// The whole id.
    pub id: String,
    /// The name, without the engine's leading slash.
    pub name: String,
    /// The image that it was created from, as the engine names it.
    pub image: String,
    /// The image's id.
    pub image_id: String,
    /// In one word, as [`Container::state`].
    pub state: String,
    /// `starting`, `healthy` or `unhealthy`; none without a health check.
    #[serde(default)]
    pub health: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was started last.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    /// When it ended last.
    #[serde(default)]
    pub finished_at: Option<Timestamp>,
    /// Of the last run; none while the container runs, and when it never ran.
    #[serde(default)]
    pub exit_code: Option<i64>,
    /// Whether the kernel killed it because it used too much memory.
    pub oom_killed: bool,
    /// Why the engine could not start it, in the engine's words.
    #[serde(default)]
    pub error: Option<String>,
    /// How often the engine has restarted it.
    pub restart_count: u64,
    /// `no`, `always`, `unless-stopped` or `on-failure`.
    pub restart_policy: String,
    /// Its main process on the host, while it runs.
    #[serde(default)]
    pub pid: Option<u32>,
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// The names of the environment's variables.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Its ports, with those of the host.
    #[serde(default)]
    pub ports: Vec<Port>,
    /// What it sees of the host's file systems.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// `bridge`, `host`, `none`, or a network's name.
    pub network_mode: String,
    /// The networks that it is connected to.
    #[serde(default)]
    pub networks: Vec<Network>,
    /// Whether it has a terminal.
    pub tty: bool,
    /// Whether it runs with all privileges.
    pub privileged: bool,
    /// What writes its log, such as `json-file` or `journald`.
    pub log_driver: String,
    /// Its memory limit; none without one.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
}

impl ContainerDetail {
    /// Removes the characters from every text that a name may not have.
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

/// A part of the host's file systems that a container sees.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mount {
    /// `bind`, `volume` or `tmpfs`.
    pub kind: String,
    /// The path on the host, or the volume's name.
    pub source: String,
    /// The path in the container.
    pub destination: String,
    /// Whether the container may only read it.
    pub read_only: bool,
}

/// A network that a container is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Network {
    /// The network's name.
    pub name: String,
    /// The container's address in it.
    #[serde(default)]
    pub ip_address: Option<String>,
}

/// The result of an action on a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// The container's whole id.
    pub container_id: String,
    /// The container's state after the action.
    pub state: String,
    /// The container's name; older agents do not send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Acted {
    /// Removes the characters from all texts that a name may not have.
    pub fn clean(&mut self) {
        [&mut self.container_id, &mut self.state].into_iter().chain(&mut self.name).for_each(clean);
    }
}

/// A part of a container's log, oldest line first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerLogs {
    /// The lines.
    pub lines: Vec<LogLine>,
    /// Whether the oldest lines are missing, because one answer cannot hold all of them or it took too long to find them.
    #[serde(default)]
    pub truncated: bool,
}

/// What a container uses at this moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ContainerStats {
    /// The container's whole id.
    pub container_id: String,
    /// When the agent measured.
    pub timestamp: Timestamp,
    /// Percent of one core; a container on four cores may show 400.
    pub cpu_percent: f64,
    /// Memory without the file cache, which the kernel frees on demand.
    pub memory_bytes: u64,
    /// Its memory limit; none without one.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Bytes received since it was started.
    pub network_rx_bytes: u64,
    /// Bytes sent since it was started.
    pub network_tx_bytes: u64,
    /// Bytes read from block devices since it was started.
    pub block_read_bytes: u64,
    /// Bytes written to block devices since it was started.
    pub block_write_bytes: u64,
    /// How many processes run in it.
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
