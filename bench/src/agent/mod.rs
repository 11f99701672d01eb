//! Simulated agents: their common parts, and one file for each behaviour.

mod backfill;
mod burst;
mod connect;
#[cfg(test)]
mod fake;
mod obedient;
mod prompted;
mod regular;
mod resilient;
mod schedule;
mod source;
#[cfg(test)]
mod tests;
mod window;

use std::net::SocketAddr;

use anyhow::Context;
use bytes::Bytes;
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Auth, ServiceMessage};
use signalbox_protocol::{Decoded, Encoding, PROTOCOL_VERSION};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

pub use self::backfill::{Backfill, BackfillPlan};
pub use self::burst::{Burst, BurstPlan};
pub use self::connect::{connect_all, connect_spread};
pub use self::obedient::{CONTAINERS, CommandTimes, OUTPUT, Obedient, Obeyed};
pub use self::prompted::Prompted;
pub use self::regular::{Outcome, Regular, RegularPlan};
pub use self::resilient::{DeliveryReport, Event, Resilient, ResilientPlan};
pub use self::schedule::Schedule;
pub use self::source::Source;
use crate::fixture::Enrolled;
use crate::socket::{ATTEMPT_TIMEOUT, Socket};

/// An authenticated agent connection, in MessagePack.
#[derive(Debug)]
pub struct AgentSocket(Socket);

impl AgentSocket {
    /// Connects and authenticates.
    pub async fn connect(address: SocketAddr, enrolled: &Enrolled) -> anyhow::Result<Self> {
        let socket = Socket::connect(address, "/api/v1/agents/ws", None).await?;
        let mut agent = Self(socket);
        timeout(ATTEMPT_TIMEOUT, agent.authenticate(enrolled)).await.context("no answer to auth")??;
        Ok(agent)
    }

    async fn authenticate(&mut self, enrolled: &Enrolled) -> anyhow::Result<()> {
        let auth = AgentMessage::Auth(Auth {
            api_key: enrolled.key.to_string(),
            protocol: PROTOCOL_VERSION,
            agent: agent_info(),
            sent_at: None,
            sample_interval_seconds: None,
            live_interval_seconds: None,
            commands: None,
        });
        self.send(Encoding::MessagePack.encode(&auth)?).await?;
        loop {
            match self.next().await? {
                ServiceMessage::AuthResponse(answer) if answer.success => {
                    anyhow::ensure!(answer.server_id == Some(enrolled.server_id), "authenticated as another server");
                    return Ok(());
                }
                // The close frame says what follows from it.
                ServiceMessage::AuthResponse(answer) => {
                    let refused = format!("refused: {:?} {:?}", answer.code, answer.detail);
                    return Err(match self.next().await {
                        Err(closed) => closed.context(refused),
                        Ok(_) => anyhow::anyhow!(refused),
                    });
                }
                _ => {}
            }
        }
    }

    /// Sends an encoded message.
    pub async fn send(&mut self, message: Bytes) -> anyhow::Result<()> {
        self.0.send(Message::Binary(message)).await
    }

    /// The next message that this build knows. Cancel safe.
    pub async fn next(&mut self) -> anyhow::Result<ServiceMessage> {
        loop {
            let Message::Binary(bytes) = self.0.next().await? else {
                anyhow::bail!("answered in JSON to an agent that speaks MessagePack");
            };
            if let Decoded::Known(message) = Encoding::MessagePack.decode(&bytes)? {
                return Ok(message);
            }
        }
    }

    /// The next acknowledged batch. Cancel safe.
    pub async fn next_ack(&mut self) -> anyhow::Result<u64> {
        loop {
            if let ServiceMessage::Ack { seq } = self.next().await? {
                return Ok(seq);
            }
        }
    }

    pub async fn close(self) {
        self.0.close().await;
    }
}

fn agent_info() -> AgentInfo {
    AgentInfo {
        version: "bench".to_owned(),
        hostname: "bench.example.com".to_owned(),
        os: "Debian GNU/Linux 12".to_owned(),
        kernel: "6.1.0".to_owned(),
        arch: "x86_64".to_owned(),
        cpu_count: 8,
        boot_id: "5eed5eed-0000-4000-8000-000000000000".to_owned(),
        machine_id: String::new(),
        // Only capabilities for which this generator answers the service's requests. Commands are only sent to obedient agents.
        capabilities: vec!["metrics".to_owned(), "commands".to_owned()],
        signing: None,
        failed_update: None,
    }
}
