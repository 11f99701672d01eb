//! Many servers cross a threshold within a second: how soon all clients know, and in how many messages.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};
use uuid::Uuid;

use super::seconds;
use crate::agent::{Prompted, connect_all};
use crate::alert_feed::{self, ALL_ALERTS, Seen};
use crate::figures::Row;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::report::{Report, megabytes, progress};
use crate::rest::TAG;
use crate::service::ServiceOptions;
use crate::stats::{Latencies, median};
use crate::stop::StopSource;
use crate::usage::Stretch;
use crate::webhook::{Message, Webhook};

const LOW: f64 = 5.0;
const HIGH: f64 = 97.5;
const WAITING_ALERTS: usize = 10_000;
const SETTLE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct AlertBurstArgs {
    #[arg(long, default_value_t = 1000)]
    pub servers: usize,
    /// Seconds within which all of them cross.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub within: Duration,
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds between two rounds: longer than a channel gathers.
    #[arg(long, default_value = "15", value_parser = seconds)]
    pub rest: Duration,
    /// Seconds that a round may take.
    #[arg(long, default_value = "180", value_parser = seconds)]
    pub patience: Duration,
}

/// How one round went.
#[derive(Default)]
struct Round {
    /// From each sample to its alert.
    to_socket: Latencies,
    to_webhook: Latencies,
    /// From the first sample until the last alert was there.
    on_socket: Duration,
    at_webhook: Duration,
    messages: Vec<usize>,
    cpu: Duration,
    missing_on_socket: u64,
    missing_at_webhook: u64,
    repeated: u64,
}

/// The service and all clients.
struct Site {
    fixture: Fixture,
    agents: Vec<(Uuid, Prompted)>,
    seen: mpsc::Receiver<((), Seen)>,
    webhook: Webhook,
}

pub async fn run(options: &ServiceOptions, args: &AlertBurstArgs) -> anyhow::Result<()> {
    check_connections(args.servers)?;
    let fixture = Fixture::start(&options.with_webhooks(), args.servers).await?;
    let (source, stop) = StopSource::new();
    let (address, rest) = (fixture.service.address(), &fixture.rest);
    let webhook = Webhook::start()?;
    rest.create_webhook("bench", &webhook.url(), TAG).await?;
    rest.create_threshold(&json!({
        "all": true, "metric_type": "cpu", "threshold_value": 90, "comparison": "gt", "enabled": true,
        "duration_seconds": 0,
    }))
    .await?;
    let (sender, seen) = mpsc::channel(WAITING_ALERTS);
    let reader = alert_feed::open(address, ALL_ALERTS, rest.token(), (), sender, stop).await?;
    let mut agents = Vec::new();
    for (socket, enrolled) in connect_all(address, &fixture.fleet).await?.into_iter().zip(&fixture.fleet) {
        agents.push((enrolled.server_id, Prompted::start(socket)));
    }
    let mut site = Site { fixture, agents, seen, webhook };
    let mut rounds = Vec::new();
    for number in 1..=args.rounds.max(1) {
        progress(format_args!("round {number} of {}", args.rounds));
        rounds.push(site.round(args).await?);
        sleep(args.rest).await;
    }
    source.stop();
    let ended = reader.await?;
    let mut report = report(args, &rounds)?;
    report.note("peak RSS of the service, MB", format!("{:.1}", megabytes(site.fixture.service.peak_rss()?)));
    report.must_be_zero("messages that the feed left out", ended.dropped);
    if let Some(failure) = ended.failure {
        report.note("the feed failed", failure);
    }
    report.finish()
}

impl Site {
    async fn round(&mut self, args: &AlertBurstArgs) -> anyhow::Result<Round> {
        // Whatever was wrong is over.
        self.send_all(LOW, Duration::ZERO).await?;
        sleep(SETTLE).await;
        while self.seen.try_recv().is_ok() {}
        let stretch = Stretch::begin(&self.fixture.service)?;
        let start = Instant::now();
        let sent = self.send_all(HIGH, args.within).await?;
        let mut round = Round::default();
        let deadline = Instant::now() + args.patience;
        let mut on_socket: HashMap<Uuid, Instant> = HashMap::new();
        let mut at_webhook: HashMap<Uuid, Instant> = HashMap::new();
        while on_socket.len() < sent.len() || at_webhook.len() < sent.len() {
            let next = async {
                tokio::select! {
                    seen = self.seen.recv() => {
                        let (_, seen) = seen.context("the feed has ended")?;
                        if !seen.is_resolved {
                            on_socket.entry(seen.server_id).or_insert(seen.at);
                        }
                    }
                    call = self.webhook.next() => {
                        let call = call?;
                        let message: Message =
                            serde_json::from_slice(&call.body).context("the webhook got another shape")?;
                        round.messages.push(message.alerts.len());
                        for item in message.alerts.iter().filter(|item| item.event == "triggered") {
                            let known = at_webhook.insert(item.alert.server_id, call.at);
                            round.repeated += u64::from(known.is_some());
                        }
                    }
                }
                anyhow::Ok(())
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(came) = timeout(left, next).await else { break };
            came?;
        }
        round.cpu = stretch.end(&self.fixture.service)?.cpu.total();
        round.missing_on_socket = sent.keys().filter(|id| !on_socket.contains_key(*id)).count() as u64;
        round.missing_at_webhook = sent.keys().filter(|id| !at_webhook.contains_key(*id)).count() as u64;
        (round.to_socket, round.on_socket) = waits(&sent, &on_socket, start);
        (round.to_webhook, round.at_webhook) = waits(&sent, &at_webhook, start);
        Ok(round)
    }

    /// Every agent sends one sample at a random moment of a stretch. Answers when each did.
    async fn send_all(&mut self, cpu_percent: f64, within: Duration) -> anyhow::Result<HashMap<Uuid, Instant>> {
        let start = tokio::time::Instant::now();
        let mut sending = JoinSet::new();
        for (server_id, mut agent) in self.agents.drain(..) {
            let at = start + within.mul_f64(fastrand::f64());
            sending.spawn(async move {
                sleep_until(at).await;
                let sent = agent.send(cpu_percent).await;
                sent.map(|sent| (server_id, agent, sent))
            });
        }
        let mut times = HashMap::new();
        for sent in super::join_all(sending).await? {
            let (server_id, agent, at) = sent?;
            times.insert(server_id, at);
            self.agents.push((server_id, agent));
        }
        Ok(times)
    }
}

/// How long each server's alert took, and when the last was there.
fn waits(sent: &HashMap<Uuid, Instant>, came: &HashMap<Uuid, Instant>, start: Instant) -> (Latencies, Duration) {
    let mut latencies = Latencies::default();
    let mut last = start;
    for (server_id, sent_at) in sent {
        if let Some(at) = came.get(server_id) {
            latencies.record(at.saturating_duration_since(*sent_at));
            last = last.max(*at);
        }
    }
    (latencies, last.saturating_duration_since(start))
}

fn report(args: &AlertBurstArgs, rounds: &[Round]) -> anyhow::Result<Report> {
    let AlertBurstArgs { servers, within, .. } = args;
    let mut report = Report::new(format!("alert-burst: {servers} servers cross within {} s", within.as_secs_f64()));
    let middle = |of: &dyn Fn(&Round) -> f64| -> anyhow::Result<f64> {
        median(&rounds.iter().map(of).collect::<Vec<_>>()).context("there was no round")
    };
    let on_socket = middle(&|round| round.on_socket.as_secs_f64())?;
    report.key_figure("first sample to all alerts on /ws/alerts, s (median)", Row::AlertBurstSocket, on_socket);
    let at_webhook = middle(&|round| round.at_webhook.as_secs_f64())?;
    report.key_figure("first sample to the last webhook message, s (median)", Row::AlertBurstWebhook, at_webhook);
    let messages = middle(&|round| round.messages.len() as f64)?;
    report.key_figure("webhook messages (median)", Row::AlertBurstMessages, messages);
    let cpu = middle(&|round| round.cpu.as_secs_f64() * 1e3)? / (*servers).max(1) as f64;
    report.note("service CPU an alert, its notification included, ms (median)", format!("{cpu:.2}"));
    for (number, round) in (1..).zip(rounds) {
        for (name, latencies) in [("/ws/alerts", &round.to_socket), ("webhook", &round.to_webhook)] {
            if let Some(summary) = latencies.clone().summary() {
                report.note(format!("round {number}: sample to {name}"), summary);
            }
        }
        let sizes: Vec<String> = round.messages.iter().map(usize::to_string).collect();
        report.note(format!("round {number}: alerts in each message"), sizes.join(", "));
    }
    let sum = |of: fn(&Round) -> u64| rounds.iter().map(of).sum::<u64>();
    report.must_be_zero("alerts missing on /ws/alerts", sum(|round| round.missing_on_socket));
    report.must_be_zero("alerts missing at the webhook", sum(|round| round.missing_at_webhook));
    report.must_be_zero("alerts twice at the webhook", sum(|round| round.repeated));
    Ok(report)
}
