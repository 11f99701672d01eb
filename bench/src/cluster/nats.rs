//! The NATS server between the instances, and the traffic that it counts.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use tokio::process::Command;

use crate::peer::{Daemon, free_address, fresh_folder};
use crate::process::Cpu;

/// A running server. Dropping it kills the process.
#[derive(Debug)]
pub struct Nats {
    /// Identified by the address of its monitoring.
    daemon: Daemon,
    clients: SocketAddr,
}

/// Messages and bytes of their contents so far: those that instances have published, and those that were delivered to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct Traffic {
    #[serde(rename = "in_msgs")]
    pub published: u64,
    #[serde(rename = "in_bytes")]
    pub published_bytes: u64,
    #[serde(rename = "out_msgs")]
    pub delivered: u64,
    #[serde(rename = "out_bytes")]
    pub delivered_bytes: u64,
}

/// The part of a list of connections that is read.
#[derive(Deserialize)]
struct Connections {
    connections: Vec<Connection>,
}

/// The purpose of one connection.
#[derive(Debug, Clone, Deserialize)]
pub struct Connection {
    #[serde(rename = "in_bytes")]
    pub published_bytes: u64,
    #[serde(rename = "out_bytes")]
    pub delivered_bytes: u64,
    pub subscriptions: u64,
}

fn command(_: &Path, monitor: SocketAddr) -> Command {
    let mut command = Command::new(program());
    command.args(["-a", "127.0.0.1", "-m", &monitor.port().to_string()]);
    command
}

/// Debian installs it where only root's PATH leads.
fn program() -> &'static str {
    const PLACE: &str = "/usr/sbin/nats-server";

    if Path::new(PLACE).exists() { PLACE } else { "nats-server" }
}

impl Nats {
    pub async fn start(work_dir: &Path) -> anyhow::Result<Self> {
        let clients = free_address()?;
        let port = vec!["-p".to_owned(), clients.port().to_string()];
        let daemon = Daemon::start(command, port, "/healthz", fresh_folder(work_dir, "nats")?)
            .await
            .context("nats-server; it is in the package of the same name")?;
        Ok(Self { daemon, clients })
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.clients)
    }

    pub fn cpu(&self) -> anyhow::Result<Cpu> {
        self.daemon.cpu()
    }

    pub async fn traffic(&self) -> anyhow::Result<Traffic> {
        Ok(self.daemon.client().get(self.daemon.url("/varz")).send().await?.error_for_status()?.json().await?)
    }

    /// The connected clients.
    pub async fn connections(&self) -> anyhow::Result<Vec<Connection>> {
        let answer = self.daemon.client().get(self.daemon.url("/connz")).send().await?.error_for_status()?;
        Ok(answer.json::<Connections>().await?.connections)
    }
}

impl Traffic {
    pub fn since(self, earlier: Self) -> Self {
        Self {
            published: self.published.saturating_sub(earlier.published),
            published_bytes: self.published_bytes.saturating_sub(earlier.published_bytes),
            delivered: self.delivered.saturating_sub(earlier.delivered),
            delivered_bytes: self.delivered_bytes.saturating_sub(earlier.delivered_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_read_from_what_the_server_tells() {
        let text = r#"{"server_id":"NA","in_msgs":7,"out_msgs":14,"in_bytes":700,"out_bytes":1400,"slow_consumers":0}"#;

        let traffic: Traffic = serde_json::from_str(text).unwrap();
        let earlier = Traffic { published: 2, published_bytes: 200, delivered: 4, delivered_bytes: 400 };

        let expected = Traffic { published: 5, published_bytes: 500, delivered: 10, delivered_bytes: 1000 };
        assert_eq!(traffic.since(earlier), expected);
    }
}
