//! Bringing many agents up.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::sleep;

use super::AgentSocket;
use crate::backoff::Backoff;
use crate::fixture::Enrolled;

/// Handshakes at a time: a fleet that comes up in order, not a storm.
const CONCURRENT_HANDSHAKES: usize = 64;
/// How long one agent tries; a service that admits few at a time may say "later" some times.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects every agent of the fleet, in its order.
pub async fn connect_all(address: SocketAddr, fleet: &[Enrolled]) -> anyhow::Result<Vec<AgentSocket>> {
    connect_spread(&[address], fleet).await
}

/// The same, to several addresses in turns.
pub async fn connect_spread(addresses: &[SocketAddr], fleet: &[Enrolled]) -> anyhow::Result<Vec<AgentSocket>> {
    stream::iter(addresses.iter().copied().cycle().zip(fleet.iter().cloned()))
        .map(|(address, enrolled)| connect_patiently(address, enrolled))
        .buffered(CONCURRENT_HANDSHAKES)
        .try_collect()
        .await
}

async fn connect_patiently(address: SocketAddr, enrolled: Enrolled) -> anyhow::Result<AgentSocket> {
    let start = Instant::now();
    let mut backoff = Backoff::default();
    loop {
        match AgentSocket::connect(address, &enrolled).await {
            Ok(agent) => return Ok(agent),
            Err(error) if start.elapsed() > PATIENCE => return Err(error).context("an agent cannot connect"),
            Err(error) => {
                backoff.note(&error);
                sleep(backoff.next_delay()).await;
            }
        }
    }
}
