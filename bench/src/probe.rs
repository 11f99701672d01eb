//! A client that uses the REST API during a scenario.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::rest::Rest;
use crate::stats::{Latencies, Summary};
use crate::stop::Stop;

/// The repeated request.
#[derive(Debug, Clone, Copy)]
pub enum Question {
    Servers,
    Login,
}

/// One request: when it was made, and its result.
#[derive(Debug)]
pub struct Probe {
    pub at: Instant,
    pub took: Duration,
    pub failure: Option<String>,
}

/// Sends a request every `period`, one at a time, until `stop` fires.
pub fn spawn(rest: Rest, question: Question, period: Duration, mut stop: Stop) -> JoinHandle<Vec<Probe>> {
    tokio::spawn(async move {
        let mut probes = Vec::new();
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.requested() => return probes,
                _ = ticks.tick() => probes.push(ask(&rest, question).await),
            }
        }
    })
}

async fn ask(rest: &Rest, question: Question) -> Probe {
    let at = Instant::now();
    let answer = match question {
        Question::Servers => rest.servers().await.map(|_| ()),
        Question::Login => rest.login().await,
    };
    Probe { at, took: at.elapsed(), failure: answer.err().map(|error| format!("{error:#}")) }
}

/// The latencies of the requests that were answered, and how many were not.
pub fn summarize<'a>(probes: impl Iterator<Item = &'a Probe>) -> (Option<Summary>, u64) {
    let mut latencies = Latencies::default();
    let mut failures = 0;
    for probe in probes {
        match probe.failure {
            None => latencies.record(probe.took),
            Some(_) => failures += 1,
        }
    }
    (latencies.summary(), failures)
}
