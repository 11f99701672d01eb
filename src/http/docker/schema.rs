//! The containers of responses.

use std::collections::BTreeMap;

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;
use signalbox_protocol::container::{
    Acted, Container, ContainerDetail, ContainerLogs, ContainerStats, Mount, Network, Port,
};

use crate::docker::Verb;
use crate::http::extract::field::described;
use crate::http::field_out::{Bytes, TimeOut};

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ListedContainerOut {
    id: String,
    name: String,
    image: String,
    /// The state in one word: `created`, `running`, `paused`, `restarting`, `exited`, `dead`; an engine may have
    /// others.
    state: String,
    /// The state for people, such as `Up 4 seconds (healthy)`.
    status: String,
    created_at: TimeOut,
    ports: Vec<PortOut>,
    labels: Labels,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

described!(Labels, json!({ "type": "object", "additionalProperties": { "type": "string" } }));

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct PortOut {
    private_port: PortNumber,
    /// Null if the port is not published on the host.
    public_port: Option<PortNumber>,
    /// `tcp`, `udp` or `sctp`.
    protocol: String,
    host_ip: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct PortNumber(u16);

described!(PortNumber, json!({ "type": "integer", "minimum": 0, "maximum": 65_535, "example": 8080 }));

/// An unbounded integer.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Number(i64);

described!(Number, json!({ "type": "integer", "format": "int64" }));

/// Percent of one core: a container on four cores may show 400.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct CorePercent(f64);

described!(CorePercent, json!({ "type": "number", "format": "double", "minimum": 0, "example": 12.34 }));

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ContainerDetailOut {
    id: String,
    name: String,
    image: String,
    image_id: String,
    state: String,
    /// `starting`, `healthy` or `unhealthy`; null without a health check.
    health: Option<String>,
    created_at: TimeOut,
    started_at: Option<TimeOut>,
    finished_at: Option<TimeOut>,
    /// The exit code of the last run; null while it runs.
    exit_code: Option<Number>,
    oom_killed: bool,
    /// Why the engine could not start it.
    error: Option<String>,
    restart_count: Bytes,
    restart_policy: String,
    pid: Option<Number>,
    /// The program and its arguments, which may contain passwords. Empty if the server's policy does not allow
    /// `control`.
    command: Vec<String>,
    /// The names of the environment variables. Their values are never sent.
    environment: Vec<String>,
    labels: Labels,
    ports: Vec<PortOut>,
    mounts: Vec<MountOut>,
    network_mode: String,
    networks: Vec<ContainerNetworkOut>,
    tty: bool,
    privileged: bool,
    log_driver: String,
    /// Null if there is no limit.
    memory_limit_bytes: Option<Bytes>,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct MountOut {
    /// `bind`, `volume` or `tmpfs`.
    kind: String,
    source: String,
    destination: String,
    read_only: bool,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ContainerNetworkOut {
    name: String,
    ip_address: Option<String>,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ActedOut {
    /// The full id of the container.
    container_id: String,
    /// The requested action.
    action: ActionOut,
    /// The state of the container after the action.
    state: String,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ActionOut(&'static str);

described!(ActionOut, json!({ "type": "string", "enum": ["start", "stop", "restart", "pause", "unpause"] }));

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ContainerLogsOut {
    container_id: String,
    lines: Vec<ContainerLogLineOut>,
    /// The messages, one per line.
    logs: String,
    /// Whether the log exceeded the size of one response, so that the oldest lines are missing.
    truncated: bool,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ContainerLogLineOut {
    timestamp: Option<TimeOut>,
    /// `stdout` or `stderr`.
    stream: Option<String>,
    message: String,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct StatsOut {
    container_id: String,
    timestamp: TimeOut,
    cpu_percent: CorePercent,
    /// Memory in use, without the file cache that the kernel can reclaim.
    memory_bytes: Bytes,
    /// Null if there is no limit.
    memory_limit_bytes: Option<Bytes>,
    network_rx_bytes: Bytes,
    network_tx_bytes: Bytes,
    block_read_bytes: Bytes,
    block_write_bytes: Bytes,
    process_count: Option<Bytes>,
}

/// How lines are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    Messages,
    /// Each message after its timestamp.
    WithTimestamps,
}

impl From<Container> for ListedContainerOut {
    fn from(it: Container) -> Self {
        Self {
            id: it.id,
            name: it.name,
            image: it.image,
            state: it.state,
            status: it.status,
            created_at: TimeOut(it.created_at),
            ports: it.ports.into_iter().map(PortOut::from).collect(),
            labels: Labels(it.labels),
        }
    }
}

impl From<Port> for PortOut {
    fn from(it: Port) -> Self {
        Self {
            private_port: PortNumber(it.private_port),
            public_port: it.public_port.map(PortNumber),
            protocol: it.protocol,
            host_ip: it.host_ip,
        }
    }
}

impl From<ContainerDetail> for ContainerDetailOut {
    fn from(it: ContainerDetail) -> Self {
        let moment = |at: Option<Timestamp>| at.map(TimeOut);
        Self {
            id: it.id,
            name: it.name,
            image: it.image,
            image_id: it.image_id,
            state: it.state,
            health: it.health,
            created_at: TimeOut(it.created_at),
            started_at: moment(it.started_at),
            finished_at: moment(it.finished_at),
            exit_code: it.exit_code.map(Number),
            oom_killed: it.oom_killed,
            error: it.error,
            restart_count: Bytes(it.restart_count),
            restart_policy: it.restart_policy,
            pid: it.pid.map(|pid| Number(pid.into())),
            command: it.command,
            environment: it.environment,
            labels: Labels(it.labels),
            ports: it.ports.into_iter().map(PortOut::from).collect(),
            mounts: it.mounts.into_iter().map(MountOut::from).collect(),
            network_mode: it.network_mode,
            networks: it.networks.into_iter().map(ContainerNetworkOut::from).collect(),
            tty: it.tty,
            privileged: it.privileged,
            log_driver: it.log_driver,
            memory_limit_bytes: it.memory_limit_bytes.map(Bytes),
        }
    }
}

impl From<Mount> for MountOut {
    fn from(it: Mount) -> Self {
        Self { kind: it.kind, source: it.source, destination: it.destination, read_only: it.read_only }
    }
}

impl From<Network> for ContainerNetworkOut {
    fn from(it: Network) -> Self {
        Self { name: it.name, ip_address: it.ip_address }
    }
}

impl From<ContainerStats> for StatsOut {
    fn from(it: ContainerStats) -> Self {
        Self {
            container_id: it.container_id,
            timestamp: TimeOut(it.timestamp),
            cpu_percent: CorePercent(it.cpu_percent.max(0.0)),
            memory_bytes: Bytes(it.memory_bytes),
            memory_limit_bytes: it.memory_limit_bytes.map(Bytes),
            network_rx_bytes: Bytes(it.network_rx_bytes),
            network_tx_bytes: Bytes(it.network_tx_bytes),
            block_read_bytes: Bytes(it.block_read_bytes),
            block_write_bytes: Bytes(it.block_write_bytes),
            process_count: it.process_count.map(Bytes),
        }
    }
}

impl ActedOut {
    pub fn new(verb: Verb, acted: Acted) -> Self {
        Self { container_id: acted.container_id, action: ActionOut(verb.name()), state: acted.state }
    }
}

impl ContainerLogsOut {
    pub fn new(container_id: String, logs: ContainerLogs, joined: Joined) -> Self {
        let mut text = String::new();
        for line in &logs.lines {
            if let (Joined::WithTimestamps, Some(timestamp)) = (joined, line.timestamp) {
                text.push_str(&format!("{timestamp} "));
            }
            text.push_str(&line.message);
            text.push('\n');
        }
        let lines = logs.lines.into_iter().map(ContainerLogLineOut::from).collect();
        Self { container_id, lines, logs: text, truncated: logs.truncated }
    }
}

impl From<LogLine> for ContainerLogLineOut {
    fn from(it: LogLine) -> Self {
        Self { timestamp: it.timestamp.map(TimeOut), stream: it.stream, message: it.message }
    }
}
