//! An agent that sends one sample at a fixed interval, as real ones do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use signalbox_protocol::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::AgentSocket;
use super::source::Source;
use super::window::Window;
use crate::sent_times::SentTimes;
use crate::stats::Latencies;
use crate::stop::Stop;

/// How long the last acks are waited for after the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);

/// What every agent of a run does.
#[derive(Debug, Clone)]
pub struct RegularPlan {
    pub interval: Duration,
    /// Counts acknowledged samples as they come.
    pub acknowledged: Arc<AtomicU64>,
}

/// One agent, before it runs.
#[derive(Debug)]
pub struct Regular {
    pub plan: RegularPlan,
    pub source: Source,
    pub socket: AgentSocket,
    /// Where the times of sending are recorded, if a dashboard watches this agent's server.
    pub sent_times: Option<Arc<SentTimes>>,
}

/// What an agent saw.
#[derive(Debug, Default)]
pub struct Outcome {
    pub samples_sent: u64,
    pub samples_acknowledged: u64,
    pub ack_latencies: Latencies,
    /// Why it ended before `stop` fired.
    pub failure: Option<String>,
}

impl Regular {
    /// Sends from a random phase of the interval on until `stop` fires, then waits for the outstanding acks.
    pub async fn run(mut self, mut stop: Stop) -> Outcome {
        let mut outcome = Outcome::default();
        let mut window = Window::default();
        let ran = self.send_samples(&mut stop, &mut window, &mut outcome).await;
        let ended = match ran {
            Ok(()) => self.drain(&mut window, &mut outcome).await,
            Err(error) => Err(error),
        };
        outcome.failure = ended.err().map(|error| format!("{error:#}"));
        self.socket.close().await;
        outcome
    }

    async fn send_samples(
        &mut self,
        stop: &mut Stop,
        window: &mut Window,
        outcome: &mut Outcome,
    ) -> anyhow::Result<()> {
        let phase = self.plan.interval.mul_f64(fastrand::f64());
        let mut ticks = interval_at(Instant::now() + phase, self.plan.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Timestamp::default();
        loop {
            tokio::select! {
                () = stop.requested() => return Ok(()),
                ack = self.socket.next_ack() => self.note_ack(ack?, window, outcome),
                _ = ticks.tick() => {
                    // A sample is identified by its time, so no two may share a millisecond.
                    last = Timestamp::now().max(last.plus_millis(1));
                    outcome.samples_sent += 1;
                    let message = self.source.message(outcome.samples_sent, last)?;
                    window.sent(outcome.samples_sent);
                    if let Some(sent_times) = &self.sent_times {
                        sent_times.note(last);
                    }
                    self.socket.send(message).await?;
                }
            }
        }
    }

    async fn drain(&mut self, window: &mut Window, outcome: &mut Outcome) -> anyhow::Result<()> {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while !window.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let ack = timeout(left, self.socket.next_ack()).await??;
            self.note_ack(ack, window, outcome);
        }
        Ok(())
    }

    fn note_ack(&self, seq: u64, window: &mut Window, outcome: &mut Outcome) {
        for latency in window.acknowledged(seq) {
            outcome.samples_acknowledged += 1;
            outcome.ack_latencies.record(latency);
            self.plan.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Outcome {
    pub fn merge(&mut self, other: Self) {
        self.samples_sent += other.samples_sent;
        self.samples_acknowledged += other.samples_acknowledged;
        self.ack_latencies.merge(other.ack_latencies);
        self.failure = self.failure.take().or(other.failure);
    }
}
