//! A dashboard that watches a log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context;
use reqwest::Url;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::tally::Tally;
use crate::fixture::{Enrolled, Fixture};
use crate::socket::{ATTEMPT_TIMEOUT, Socket};

/// A dashboard that has seen the first line.
#[derive(Debug)]
pub struct Watcher {
    socket: Socket,
    tally: Tally,
    /// The last line that it has seen, for the writer.
    seen: Arc<AtomicU64>,
}

/// The result.
#[derive(Debug)]
pub struct WatchReport {
    pub tally: Tally,
    /// When the last line came that it waited for; none when it never did.
    pub ended: Option<Instant>,
    pub failure: Option<String>,
}

impl Watcher {
    /// Watches a file of the server, and waits for its first line: from then on nothing is missed unsaid.
    pub async fn open(fixture: &Fixture, enrolled: &Enrolled, path: &str) -> anyhow::Result<Self> {
        let mut url = Url::parse("http://localhost/api/v1/ws/logs/")?.join(&enrolled.server_id.to_string())?;
        url.query_pairs_mut().append_pair("source", "file").append_pair("path", path);
        let address = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let socket = Socket::connect(fixture.service.address(), &address, Some(fixture.rest.token())).await?;
        let mut watcher = Self { socket, tally: Tally::default(), seen: Arc::default() };
        let first = async {
            while watcher.tally.received == 0 {
                watcher.next().await?;
            }
            anyhow::Ok(())
        };
        timeout(ATTEMPT_TIMEOUT, first).await.context("the first line did not come")??;
        Ok(watcher)
    }

    pub fn seen(&self) -> Arc<AtomicU64> {
        self.seen.clone()
    }

    /// Reads until the line `last` has come. The caller limits the time; the lines received so far are in `tally`.
    pub async fn run(mut self, last: u64, deadline: Instant) -> WatchReport {
        let reading = async {
            while self.tally.last < last {
                self.next().await?;
            }
            anyhow::Ok(Instant::now())
        };
        let outcome = timeout(deadline.saturating_duration_since(Instant::now()), reading).await;
        let (ended, failure) = match outcome {
            Ok(Ok(ended)) => (Some(ended), None),
            Ok(Err(error)) => (None, Some(format!("{error:#}"))),
            Err(_) => (None, Some(format!("line {last} did not come in time"))),
        };
        let tally = self.tally;
        self.socket.close().await;
        WatchReport { tally, ended, failure }
    }

    async fn next(&mut self) -> anyhow::Result<()> {
        let Message::Text(text) = self.socket.next().await? else {
            anyhow::bail!("a dashboard got something else than text");
        };
        self.tally.note(&text)?;
        self.seen.store(self.tally.last, Ordering::Relaxed);
        Ok(())
    }
}
