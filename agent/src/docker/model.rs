//! The useful parts of the engine's answers, and their form for the service.
//!
//! There are no enumerations and no required fields that an engine might omit, so that Docker and Podman of any age are
//! readable. Go writes `null` for an empty list.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use signalbox_protocol::Timestamp;
use signalbox_protocol::container::{Container, ContainerDetail, Mount, Network, Port};

/// Reads `null` as empty.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// An entry of `/containers/json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Listed {
    pub id: String,
    #[serde(deserialize_with = "or_empty")]
    names: Vec<String>,
    image: String,
    pub state: String,
    pub status: String,
    /// Seconds since 1970.
    pub created: i64,
    #[serde(deserialize_with = "or_empty")]
    ports: Vec<ListedPort>,
    #[serde(deserialize_with = "or_empty")]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedPort {
    #[serde(rename = "IP")]
    ip: Option<String>,
    #[serde(rename = "PrivatePort")]
    private: u16,
    #[serde(rename = "PublicPort")]
    public: Option<u16>,
    #[serde(rename = "Type")]
    kind: String,
}

impl Listed {
    /// Names begin with a slash; those with a second one are links to the container.
    pub fn name(&self) -> String {
        let names = self.names.iter().map(|name| name.trim_start_matches('/'));
        names.min_by_key(|name| name.contains('/')).unwrap_or_default().to_owned()
    }

    /// Whether it has processes, or soon will again.
    pub fn runs(&self) -> bool {
        matches!(self.state.as_str(), "running" | "paused" | "restarting") || self.status.starts_with("Up")
    }
}

impl From<Listed> for Container {
    fn from(listed: Listed) -> Self {
        Self {
            name: listed.name(),
            id: listed.id,
            image: listed.image,
            state: listed.state,
            status: listed.status,
            created_at: Timestamp::from_millis(listed.created.saturating_mul(1000)),
            ports: listed.ports.into_iter().map(Port::from).collect(),
            labels: listed.labels,
        }
    }
}

impl From<ListedPort> for Port {
    fn from(port: ListedPort) -> Self {
        Self {
            private_port: port.private,
            public_port: port.public.filter(|port| *port != 0),
            protocol: port.kind,
            host_ip: port.ip.filter(|ip| !ip.is_empty()),
        }
    }
}

/// `/containers/{id}/json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Inspected {
    pub id: String,
    pub name: String,
    created: String,
    path: String,
    #[serde(deserialize_with = "or_empty")]
    args: Vec<String>,
    image: String,
    pub state: State,
    pub restart_count: u64,
    #[serde(deserialize_with = "or_empty")]
    mounts: Vec<InspectedMount>,
    #[serde(deserialize_with = "or_empty")]
    pub config: Config,
    #[serde(deserialize_with = "or_empty")]
    pub host_config: HostConfig,
    #[serde(deserialize_with = "or_empty")]
    network_settings: NetworkSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct State {
    pub status: String,
    pub running: bool,
    #[serde(rename = "OOMKilled")]
    oom_killed: bool,
    pub pid: u32,
    exit_code: i64,
    #[serde(deserialize_with = "or_empty")]
    error: String,
    #[serde(deserialize_with = "or_empty")]
    pub started_at: String,
    #[serde(deserialize_with = "or_empty")]
    finished_at: String,
    health: Option<Health>,
}

impl State {
    /// None without a health check.
    pub fn health(&self) -> Option<&str> {
        let status = self.health.as_ref()?.status.as_str();
        Some(status).filter(|status| !matches!(*status, "" | "none"))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Health {
    status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Config {
    image: String,
    pub tty: bool,
    #[serde(deserialize_with = "or_empty")]
    env: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostConfig {
    pub network_mode: String,
    #[serde(deserialize_with = "or_empty")]
    log_config: Typed,
    #[serde(deserialize_with = "or_empty")]
    restart_policy: Named,
    privileged: bool,
    memory: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Typed {
    r#type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Named {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct InspectedMount {
    r#type: String,
    source: String,
    destination: String,
    #[serde(rename = "RW")]
    read_write: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct NetworkSettings {
    #[serde(deserialize_with = "or_empty")]
    ports: BTreeMap<String, Option<Vec<Binding>>>,
    #[serde(deserialize_with = "or_empty")]
    networks: BTreeMap<String, Option<Endpoint>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Binding {
    #[serde(rename = "HostIp")]
    ip: String,
    #[serde(rename = "HostPort")]
    port: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    #[serde(rename = "IPAddress")]
    ip: String,
}

impl From<Inspected> for ContainerDetail {
    fn from(it: Inspected) -> Self {
        let has_ended = !it.state.running && moment(&it.state.finished_at).is_some();
        Self {
            name: it.name.trim_start_matches('/').to_owned(),
            image: it.config.image,
            image_id: it.image,
            health: it.state.health().map(str::to_owned),
            created_at: moment(&it.created).unwrap_or_default(),
            started_at: moment(&it.state.started_at),
            finished_at: moment(&it.state.finished_at),
            exit_code: has_ended.then_some(it.state.exit_code),
            oom_killed: it.state.oom_killed,
            error: filled(it.state.error),
            restart_count: it.restart_count,
            restart_policy: filled(it.host_config.restart_policy.name).unwrap_or_else(|| "no".to_owned()),
            pid: Some(it.state.pid).filter(|pid| *pid != 0),
            command: filled(it.path).into_iter().chain(it.args).collect(),
            environment: it.config.env.iter().map(|variable| name_of(variable)).collect(),
            labels: it.config.labels,
            ports: it.network_settings.ports.iter().flat_map(|(port, bindings)| shown(port, bindings)).collect(),
            mounts: it.mounts.into_iter().map(Mount::from).collect(),
            network_mode: it.host_config.network_mode,
            networks: it.network_settings.networks.into_iter().map(network).collect(),
            tty: it.config.tty,
            privileged: it.host_config.privileged,
            log_driver: it.host_config.log_config.r#type,
            memory_limit_bytes: Some(it.host_config.memory).filter(|limit| *limit != 0),
            id: it.id,
            state: it.state.status,
        }
    }
}

impl From<InspectedMount> for Mount {
    fn from(mount: InspectedMount) -> Self {
        Self { kind: mount.r#type, source: mount.source, destination: mount.destination, read_only: !mount.read_write }
    }
}

/// Only the name of `NAME=value`: the value may be a secret.
fn name_of(variable: &str) -> String {
    variable.split('=').next().unwrap_or_default().to_owned()
}

fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Go's zero time, the year 1, means never.
fn moment(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text).filter(|moment| moment.as_millis() > 0)
}

/// `80/tcp` with the host's ports that publish it, if any.
fn shown(port: &str, bindings: &Option<Vec<Binding>>) -> Vec<Port> {
    let (number, protocol) = port.split_once('/').unwrap_or((port, "tcp"));
    let Ok(private_port) = number.parse() else { return Vec::new() };
    let inside = Port { private_port, public_port: None, protocol: protocol.to_owned(), host_ip: None };
    let bindings = bindings.as_deref().unwrap_or_default();
    if bindings.is_empty() {
        return vec![inside];
    }
    let outside = |binding: &Binding| Port {
        public_port: binding.port.parse().ok(),
        host_ip: filled(binding.ip.clone()),
        ..inside.clone()
    };
    bindings.iter().map(outside).collect()
}

fn network((name, endpoint): (String, Option<Endpoint>)) -> Network {
    Network { name, ip_address: endpoint.map(|endpoint| endpoint.ip).and_then(filled) }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
