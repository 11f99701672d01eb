//! The delay of a real agent's samples on a dashboard.

use std::net::SocketAddr;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::dashboard::{metrics_path, snapshot_time};
use crate::socket::Socket;
use crate::stats::Latencies;
use crate::stop::Stop;

/// A dashboard of one server that only reads the times of its samples: both sides have the same clock.
#[derive(Debug)]
pub struct DelayWatch(Socket);

/// The measured delays.
#[derive(Debug, Default)]
pub struct Delays {
    pub latencies: Latencies,
    /// Why it ended before `stop` fired.
    pub failure: Option<String>,
}

impl DelayWatch {
    pub async fn open(address: SocketAddr, server_id: Uuid, token: &str) -> anyhow::Result<Self> {
        Ok(Self(Socket::connect(address, &metrics_path(server_id), Some(token)).await?))
    }

    /// Reads until `stop` fires. Ignores samples that were taken before the start.
    pub async fn run(mut self, mut stop: Stop) -> Delays {
        let start = Timestamp::now();
        let mut delays = Delays::default();
        loop {
            let message = tokio::select! {
                () = stop.requested() => break,
                message = self.0.next() => message,
            };
            match message.and_then(|message| snapshot_time(&message)) {
                Ok(Some(taken)) if taken >= start => delays.latencies.record(age(taken)),
                Ok(_) => {}
                Err(error) => {
                    delays.failure = Some(format!("{error:#}"));
                    break;
                }
            }
        }
        self.0.close().await;
        delays
    }
}

fn age(taken: Timestamp) -> std::time::Duration {
    let millis = Timestamp::now().as_millis().saturating_sub(taken.as_millis());
    std::time::Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}
