//! The service's side of `alert`.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::agent::{Prompted, connect_all};
use crate::alert_feed::{self, ALL_ALERTS, Ended, Seen};
use crate::dashboard::metrics_path;
use crate::fixture::{Enrolled, Fixture};
use crate::stats::Latencies;
use crate::stop::Stop;
use crate::webhook::{Message, Webhook};

/// The tag whose servers have the threshold.
pub const WATCHED: &str = "watched";

const THRESHOLD: f64 = 90.0;
const LOW: f64 = 5.0;
const HIGH: f64 = 97.5;
/// An alert that takes longer than this never comes.
const PATIENCE: Duration = Duration::from_secs(20);
/// After everything was opened, so that no handshake is in a latency.
const SETTLE: Duration = Duration::from_secs(2);
const WAITING_ALERTS: usize = 1000;

/// The tag of a server's own channel.
pub fn channel(number: usize) -> String {
    format!("channel-{number}")
}

/// Which feed an alert came over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feed {
    Server,
    All,
}

/// The service and all clients.
pub struct Site {
    agents: Vec<(Uuid, Prompted)>,
    seen: mpsc::Receiver<(Feed, Seen)>,
    readers: Vec<JoinHandle<Ended>>,
    webhook: Webhook,
    /// Alerts that are over, or of a crossing that is.
    past: HashSet<Uuid>,
}

/// The results of all crossings.
#[derive(Debug, Default)]
pub struct Measured {
    pub server: Latencies,
    pub all: Latencies,
    pub webhook: Latencies,
    pub recovered: Latencies,
    /// Of the three at each crossing, and the two at each recovery.
    pub missing: u64,
    /// Alerts of another server, or of none of the crossings.
    pub unexpected: u64,
}

/// What has arrived so far for one change.
#[derive(Debug, Default)]
struct Came {
    alert_id: Option<Uuid>,
    server: Option<Instant>,
    all: Option<Instant>,
    webhook: Option<Instant>,
}

impl Site {
    /// Makes a threshold and a channel for each server, and opens a feed of each and one of all.
    pub async fn open(fixture: &Fixture, fleet: &[Enrolled], stop: &Stop) -> anyhow::Result<Self> {
        let (address, rest) = (fixture.service.address(), &fixture.rest);
        let webhook = Webhook::start()?;
        for number in 0..fleet.len() {
            rest.create_webhook(&channel(number), &webhook.url(), &channel(number)).await?;
        }
        rest.create_threshold(&json!({
            "tag": WATCHED, "metric_type": "cpu", "threshold_value": THRESHOLD, "comparison": "gt", "enabled": true,
            "duration_seconds": 0,
        }))
        .await?;
        // The others are evaluated, too, and never cross.
        rest.create_threshold(&json!({
            "all": true, "metric_type": "memory", "threshold_value": 99, "comparison": "gt", "enabled": true,
            "duration_seconds": 0,
        }))
        .await?;
        let (sender, seen) = mpsc::channel(WAITING_ALERTS);
        let mut readers = Vec::new();
        for enrolled in fleet {
            let path = metrics_path(enrolled.server_id);
            let reader =
                alert_feed::open(address, &path, rest.token(), Feed::Server, sender.clone(), stop.clone()).await?;
            readers.push(reader);
        }
        readers.push(alert_feed::open(address, ALL_ALERTS, rest.token(), Feed::All, sender, stop.clone()).await?);
        let mut agents = Vec::new();
        for (socket, enrolled) in connect_all(address, fleet).await?.into_iter().zip(fleet) {
            let mut agent = Prompted::start(socket);
            agent.send(LOW).await?;
            agents.push((enrolled.server_id, agent));
        }
        sleep(SETTLE).await;
        Ok(Self { agents, seen, readers, webhook, past: HashSet::new() })
    }

    /// Makes this many samples cross, server after server, each followed by one that recovers.
    pub async fn cross(&mut self, crossings: usize, spacing: Duration) -> anyhow::Result<Measured> {
        let mut measured = Measured::default();
        let start = Instant::now();
        for number in 0..crossings {
            // Not in step with the service's timers.
            let due = spacing.mul_f64(number as f64 + fastrand::f64() / 2.0);
            sleep(due.saturating_sub(start.elapsed())).await;
            let place = number % self.agents.len().max(1);
            let (server_id, agent) = self.agents.get_mut(place).context("there is no server")?;
            let server_id = *server_id;
            let sent = agent.send(HIGH).await?;
            let raised = self.wait(server_id, None, &mut measured).await?;
            measured.note_raised(sent, &raised);
            if let Some(alert_id) = raised.alert_id {
                let (_, agent) = self.agents.get_mut(place).context("there is no server")?;
                let sent = agent.send(LOW).await?;
                let recovered = self.wait(server_id, Some(alert_id), &mut measured).await?;
                measured.note_recovered(sent, &recovered);
                self.past.insert(alert_id);
            }
        }
        Ok(measured)
    }

    /// Waits until all clients have an alert of this server, or its recovery.
    async fn wait(&mut self, server_id: Uuid, recovers: Option<Uuid>, measured: &mut Measured) -> anyhow::Result<Came> {
        let mut came = Came { alert_id: recovers, ..Came::default() };
        let deadline = Instant::now() + PATIENCE;
        while !came.is_complete(recovers.is_some()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(next) = timeout(left, self.next()).await else { break };
            for (feed, seen) in next? {
                let is_mine = seen.server_id == server_id && came.alert_id.is_none_or(|id| id == seen.alert_id);
                let is_news = seen.is_resolved == recovers.is_some();
                if is_mine && is_news && !self.past.contains(&seen.alert_id) {
                    came.alert_id = Some(seen.alert_id);
                    came.place(feed).get_or_insert(seen.at);
                } else if !is_mine && !self.past.contains(&seen.alert_id) {
                    measured.unexpected += 1;
                }
            }
        }
        Ok(came)
    }

    /// The next message, with its feed; none: the webhook.
    async fn next(&mut self) -> anyhow::Result<Vec<(Option<Feed>, Seen)>> {
        tokio::select! {
            seen = self.seen.recv() => {
                let (feed, seen) = seen.context("every feed has ended")?;
                Ok(vec![(Some(feed), seen)])
            }
            call = self.webhook.next() => {
                let call = call?;
                let message: Message = serde_json::from_slice(&call.body).context("the webhook got another shape")?;
                let of_alert = |item: crate::webhook::Item| Seen {
                    server_id: item.alert.server_id,
                    alert_id: item.alert.id,
                    is_resolved: item.event == "resolved",
                    at: call.at,
                };
                Ok(message.alerts.into_iter().map(|item| (None, of_alert(item))).collect())
            }
        }
    }

    /// Waits for the stopped feeds. Returns why one of them ended before.
    pub async fn close(self) -> anyhow::Result<Option<String>> {
        let mut failure = None;
        for reader in self.readers {
            let ended = reader.await?;
            let dropped = (ended.dropped > 0).then(|| format!("a feed left out {} messages", ended.dropped));
            failure = failure.or(ended.failure).or(dropped);
        }
        Ok(failure)
    }
}

impl Came {
    fn place(&mut self, feed: Option<Feed>) -> &mut Option<Instant> {
        match feed {
            Some(Feed::Server) => &mut self.server,
            Some(Feed::All) => &mut self.all,
            None => &mut self.webhook,
        }
    }

    /// Webhooks do not receive recoveries.
    fn is_complete(&self, is_recovery: bool) -> bool {
        self.server.is_some() && self.all.is_some() && (is_recovery || self.webhook.is_some())
    }
}

impl Measured {
    fn note_raised(&mut self, sent: Instant, came: &Came) {
        for (latencies, at) in
            [(&mut self.server, came.server), (&mut self.all, came.all), (&mut self.webhook, came.webhook)]
        {
            match at {
                Some(at) => latencies.record(at.saturating_duration_since(sent)),
                None => self.missing += 1,
            }
        }
    }

    fn note_recovered(&mut self, sent: Instant, came: &Came) {
        match (came.server, came.all) {
            (Some(server), Some(all)) => self.recovered.record(server.max(all).saturating_duration_since(sent)),
            _ => self.missing += 1,
        }
    }
}
