//! How late the samples of a real agent are on a dashboard.

use std::net::SocketAddr;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::dashboard::{metrics_path, snapshot_time};
use crate::socket::Socket;
use crate::stats::Latencies;
use crate::stop::Stop;

/// A dashboard of one server that only looks at the time of its samples: both sides have the same clock.
#[derive(Debug)]
pub struct DelayWatch(Socket);

/// What it saw.
#[derive(Debug, Default)]
pub struct Delays {
    pub latencies: Latencies,
    /// Why it ended before it was told to.
    pub failure: Option<String>,
}

impl DelayWatch {
    pub async fn open(address: SocketAddr, server_id: Uuid, token: &str) -> anyhow::Result<Self> {
        Ok(Self(Socket::connect(address, &metrics_path(server_id), Some(token)).await?))
    }

    /// Looks until told to stop. A sample that was taken before counts for nothing.
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
