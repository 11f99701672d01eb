//! Users who watch dashboards, query and run commands, and return after an outage.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use uuid::Uuid;

use crate::dashboard::metrics_path;
use crate::fixture::{Enrolled, Fixture};
use crate::report::Report;
use crate::rest::Rest;
use crate::scenario::join_all;
use crate::socket::Socket;
use crate::stats::Latencies;
use crate::stop::Stop;

const EVERY: Duration = Duration::from_secs(2);
/// Tokens last for half an hour.
const RENEW_EVERY: Duration = Duration::from_secs(600);
const FLEET: &str = "/api/v1/ws/fleet";
/// After a start agents return with their backoff, and requests to them fail until then.
const SETTLING: Duration = Duration::from_secs(65);

/// When the service was away.
#[derive(Debug, Clone, Default)]
pub struct Outages(Arc<Mutex<Vec<Span>>>);

/// From when, and until when if it is over.
type Span = (Instant, Option<Instant>);

/// One in progress.
pub struct Outage(Outages);

impl Outages {
    pub fn begin(&self) -> Outage {
        self.0.lock().push((Instant::now(), None));
        Outage(self.clone())
    }

    pub fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether an outage excuses a failed request of this time.
    fn excuse(&self, asked: Instant, answered: Instant) -> bool {
        let outages = self.0.lock();
        outages.iter().any(|(from, until)| answered >= *from && until.is_none_or(|until| asked <= until + SETTLING))
    }
}

impl Outage {
    pub fn end(self) {
        let mut outages = self.0.0.lock();
        if let Some((_, until)) = outages.last_mut() {
            *until = Some(Instant::now());
        }
    }
}

/// The requests of users, and their results.
#[derive(Debug, Default)]
pub struct Asked {
    latencies: Latencies,
    answered: u64,
    failed: u64,
    last_failure: Option<String>,
    messages: u64,
}

pub struct People {
    asking: JoinHandle<Asked>,
    watching: JoinSet<u64>,
}

impl People {
    pub fn start(
        fixture: &Fixture,
        sending: &[Enrolled],
        real: &[Enrolled],
        dashboards: usize,
        outages: &Outages,
        stop: &Stop,
    ) -> Self {
        let address = fixture.service.address();
        let mut watching = JoinSet::new();
        for number in 0..dashboards {
            let watched = sending.get(number % sending.len().max(1)).map(|enrolled| metrics_path(enrolled.server_id));
            // Every tenth request is for all servers.
            let path = watched.filter(|_| number % 10 != 0).unwrap_or_else(|| FLEET.to_owned());
            watching.spawn(watch(fixture.rest.clone(), address, path, stop.clone()));
        }
        let servers: Vec<Uuid> = sending.iter().map(|enrolled| enrolled.server_id).collect();
        let machines: Vec<Uuid> = real.iter().map(|enrolled| enrolled.server_id).collect();
        let asking = ask(fixture.rest.clone(), servers, machines, outages.clone(), stop.clone());
        Self { asking: tokio::spawn(asking), watching }
    }

    pub async fn end(self) -> anyhow::Result<Asked> {
        let mut asked = self.asking.await?;
        asked.messages = join_all(self.watching).await?.into_iter().sum();
        Ok(asked)
    }
}

impl Asked {
    pub fn note(self, report: &mut Report) {
        report.note("messages that dashboards have read", self.messages);
        report.note("questions and commands answered", self.answered);
        if let Some(summary) = self.latencies.summary() {
            report.note("their answers", summary);
        }
        report.must_be_zero("of them failed, outages and the minute after them aside", self.failed);
        if let Some(failure) = self.last_failure {
            report.note("the last failure", failure);
        }
    }
}

/// Reads a socket, and opens it again when it was closed.
async fn watch(mut rest: Rest, address: SocketAddr, path: String, mut stop: Stop) -> u64 {
    let mut messages = 0;
    while !stop.is_requested() {
        if let Ok(mut socket) = Socket::connect(address, &path, Some(rest.token())).await {
            loop {
                tokio::select! {
                    () = stop.requested() => break,
                    message = socket.next() => match message {
                        Ok(_) => messages += 1,
                        Err(_) => break,
                    },
                }
            }
        }
        // Closed because the token has ended, or the service has.
        _ = rest.renew().await;
        sleep(Duration::from_secs(1)).await;
    }
    messages
}

/// Sends one request after the other.
async fn ask(mut rest: Rest, servers: Vec<Uuid>, machines: Vec<Uuid>, outages: Outages, mut stop: Stop) -> Asked {
    let mut asked = Asked::default();
    let mut renewed = Instant::now();
    let mut turn = 0_usize;
    while !stop.is_requested() {
        if renewed.elapsed() >= RENEW_EVERY && rest.renew().await.is_ok() {
            renewed = Instant::now();
        }
        let begin = Instant::now();
        let mut outcome = question(&rest, turn, &servers, &machines).await;
        // When the service's clock jumps ahead, a token expires early. Its user gets another, as pages do.
        if outcome.as_ref().is_err_and(has_expired) && rest.renew().await.is_ok() {
            renewed = Instant::now();
            outcome = question(&rest, turn, &servers, &machines).await;
        }
        turn += 1;
        match outcome {
            Ok(()) => {
                asked.answered += 1;
                asked.latencies.record(begin.elapsed());
            }
            Err(_) if outages.excuse(begin, Instant::now()) => {}
            Err(error) => {
                asked.failed += 1;
                asked.last_failure = Some(format!("{error:#}"));
            }
        }
        tokio::select! {
            () = stop.requested() => {}
            () = sleep(EVERY) => {}
        }
    }
    asked
}

fn has_expired(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("token_expired")
}

async fn question(rest: &Rest, turn: usize, servers: &[Uuid], machines: &[Uuid]) -> anyhow::Result<()> {
    let server = servers.get(turn % servers.len().max(1)).copied().unwrap_or_default();
    let machine = machines.get(turn % machines.len().max(1)).copied();
    match (turn % 4, machine) {
        (0, Some(machine)) => {
            let end = rest.run_command(machine, "echo $((6 * 7))").await?;
            anyhow::ensure!(end.output.trim() == "42", "a command answered {:?}", end.output);
        }
        (1, _) => _ = rest.servers().await?,
        (2, _) => _ = rest.latest(server).await?,
        _ => {
            let now = signalbox_protocol::Timestamp::now();
            rest.series(server, now.plus_millis(-3_600_000), now, "1m", "cpu_percent").await?;
        }
    }
    Ok(())
}
