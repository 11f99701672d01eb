//! An agent that has a key and means harm.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use signalbox_protocol::agent::{AgentMessage, Metrics};
use signalbox_protocol::sample::ContainerUsage;
use signalbox_protocol::{Encoding, Sample, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::agent::AgentSocket;
use crate::fixture::Enrolled;
use crate::stop::Stop;

/// Between two attacks.
const PAUSE: Duration = Duration::from_millis(500);
/// Containers of a sample, each with a name that was never there.
const CONTAINERS: u64 = 256;

/// Attacks in turns until `stop` fires. Returns how many attacks there were.
pub fn start(address: SocketAddr, enrolled: Enrolled, stop: &Stop) -> JoinHandle<u64> {
    let mut stop = stop.clone();
    tokio::spawn(async move {
        let mut attacks = 0;
        while !stop.is_requested() {
            attacks += 1;
            // Each is refused, closed or ignored, and all of that is right.
            _ = attack(address, &enrolled, attacks).await;
            tokio::select! {
                () = stop.requested() => {}
                () = sleep(PAUSE) => {}
            }
        }
        attacks
    })
}

async fn attack(address: SocketAddr, enrolled: &Enrolled, number: u64) -> anyhow::Result<()> {
    let mut socket = AgentSocket::connect(address, enrolled).await?;
    match number % 4 {
        // Names that are new.
        0 => {
            for seq in 1..=10 {
                socket.send(many_names(number * 100 + seq, seq)?).await?;
                socket.next_ack().await?;
            }
        }
        // Bytes that are no message.
        1 => socket.send(Bytes::from_static(&[0xc1; 1000])).await?,
        // More than a message may be.
        2 => socket.send(Bytes::from(vec![0x80; 5 * 1024 * 1024])).await?,
        // Unsolicited messages, and an end without a close frame.
        _ => {
            let event = json!({ "type": "event", "data": { "kind": "container", "id": "x", "action": "die" } });
            let event: AgentMessage = serde_json::from_value(event)?;
            for _ in 0..500 {
                socket.send(Encoding::MessagePack.encode(&event)?).await?;
            }
        }
    }
    Ok(())
}

fn many_names(seed: u64, seq: u64) -> anyhow::Result<Bytes> {
    let container = |number| ContainerUsage {
        id: format!("{seed:x}-{number:x}"),
        name: format!("container-{seed}-{number}"),
        ..ContainerUsage::default()
    };
    let containers = (0..CONTAINERS).map(container).collect();
    let sample = Sample { timestamp: Timestamp::now(), containers, ..Sample::default() };
    Ok(Encoding::MessagePack.encode(&AgentMessage::Metrics(Metrics { seq, samples: vec![sample], sent_at: None }))?)
}
