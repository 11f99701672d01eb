//! A dashboard that watches one server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use signalbox_protocol::Timestamp;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use crate::sent_times::SentTimes;
use crate::socket::{ATTEMPT_TIMEOUT, Socket};
use crate::stats::Latencies;
use crate::stop::Stop;

/// After the end a dashboard reads on until nothing has come for this long.
const QUIET: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Dashboard {
    socket: Socket,
    sent_times: Arc<SentTimes>,
}

/// The samples of its [`SentTimes`] that a dashboard received.
#[derive(Debug, Default)]
pub struct DashboardReport {
    pub received: u64,
    pub latencies: Latencies,
    /// Messages that the service says it left out.
    pub dropped: u64,
    /// Why it ended before `stop` fired.
    pub failure: Option<String>,
}

/// The part of a message that is read; borrowed, because the generator has little time.
#[derive(Deserialize)]
struct FeedMessage<'a> {
    r#type: &'a str,
    #[serde(borrow, default)]
    data: Data<'a>,
}

#[derive(Deserialize, Default)]
struct Data<'a> {
    #[serde(default)]
    timestamp: Option<&'a str>,
    #[serde(default)]
    count: Option<u64>,
}

impl FeedMessage<'_> {
    /// When the snapshot in the message was taken.
    fn taken(&self) -> anyhow::Result<Option<Timestamp>> {
        match (self.r#type, self.data.timestamp) {
            ("metrics", Some(timestamp)) => Timestamp::parse(timestamp).context("a snapshot without a time").map(Some),
            _ => Ok(None),
        }
    }
}

impl Dashboard {
    /// Connects, and waits for the first `status`: from then on nothing is missed.
    pub async fn open(
        address: SocketAddr,
        server_id: Uuid,
        token: &str,
        sent_times: Arc<SentTimes>,
    ) -> anyhow::Result<Self> {
        let mut socket = Socket::connect(address, &metrics_path(server_id), Some(token)).await?;
        timeout(ATTEMPT_TIMEOUT, subscribed(&mut socket)).await.context("no status message")??;
        Ok(Self { socket, sent_times })
    }

    /// Reads until `stop` fires and nothing comes any more.
    pub async fn run(mut self, mut stop: Stop) -> DashboardReport {
        let mut watched = DashboardReport::default();
        let ended = loop {
            let message = tokio::select! {
                () = stop.requested() => break self.drain(&mut watched).await,
                message = self.socket.next() => message,
            };
            if let Err(error) = message.and_then(|message| self.note(&message, &mut watched)) {
                break Err(error);
            }
        };
        watched.failure = ended.err().map(|error| format!("{error:#}"));
        self.socket.close().await;
        watched
    }

    async fn drain(&mut self, watched: &mut DashboardReport) -> anyhow::Result<()> {
        while let Ok(message) = timeout(QUIET, self.socket.next()).await {
            self.note(&message?, watched)?;
        }
        Ok(())
    }

    fn note(&self, message: &Message, watched: &mut DashboardReport) -> anyhow::Result<()> {
        let message = parse(message)?;
        if let Some(age) = message.taken()?.and_then(|time| self.sent_times.age(time)) {
            watched.received += 1;
            watched.latencies.record(age);
        }
        if message.r#type == "dropped" {
            watched.dropped += message.data.count.unwrap_or_default();
        }
        Ok(())
    }
}

impl DashboardReport {
    pub fn merge(&mut self, other: Self) {
        self.received += other.received;
        self.latencies.merge(other.latencies);
        self.dropped += other.dropped;
        self.failure = self.failure.take().or(other.failure);
    }
}

/// Where a server's metrics are watched.
pub fn metrics_path(server_id: Uuid) -> String {
    format!("/api/v1/ws/metrics/{server_id}")
}

/// When a snapshot was taken; none when the message is no snapshot.
pub fn snapshot_time(message: &Message) -> anyhow::Result<Option<Timestamp>> {
    parse(message)?.taken()
}

async fn subscribed(socket: &mut Socket) -> anyhow::Result<()> {
    loop {
        let message = socket.next().await?;
        if parse(&message)?.r#type == "status" {
            return Ok(());
        }
    }
}

fn parse(message: &Message) -> anyhow::Result<FeedMessage<'_>> {
    let Message::Text(text) = message else { anyhow::bail!("a dashboard got something else than text") };
    serde_json::from_str(text).context("a dashboard got something else than a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_snapshot_is_read() {
        let message = Message::text(
            r#"{"type":"metrics","data":{"server_id":"0","timestamp":"2026-11-20T09:15:30.120Z","cpu_percent":1.5}}"#,
        );

        let parsed = parse(&message).unwrap();

        assert_eq!((parsed.r#type, parsed.data.timestamp), ("metrics", Some("2026-11-20T09:15:30.120Z")));
    }

    #[test]
    fn a_message_without_data_is_read() {
        let message = Message::text(r#"{"type":"token_expiring"}"#);

        assert_eq!(parse(&message).unwrap().r#type, "token_expiring");
    }
}
