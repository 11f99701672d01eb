//! An agent that sends prepared messages, in order, as fast as the acks allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use signalbox_protocol::agent::MAX_SAMPLES;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::window::Window;
use super::{AgentSocket, Outcome};
use crate::data::{Batches, Machine, produce};
use crate::stop::Stop;

/// An ack that takes longer than this never comes.
const ACK_TIMEOUT: Duration = Duration::from_secs(120);

/// What every agent of a run does.
#[derive(Debug, Clone)]
pub struct BackfillPlan {
    /// Samples in a message, [`MAX_SAMPLES`] at most.
    pub batch: u64,
    /// Messages that may be unacknowledged.
    pub window: usize,
    /// The most samples per second; none for as fast as possible.
    pub samples_a_second: Option<f64>,
    /// Counts acknowledged samples as they come.
    pub acknowledged: Arc<AtomicU64>,
}

/// One agent, before it runs.
#[derive(Debug)]
pub struct Backfill {
    pub plan: BackfillPlan,
    pub machine: Machine,
    /// How many samples it has.
    pub samples: u64,
    pub socket: AgentSocket,
}

/// A message, and how many samples are in it.
struct Prepared {
    seq: u64,
    samples: u64,
    bytes: Bytes,
}

impl Backfill {
    /// Sends until there is no more or `stop` fires, then waits for the outstanding acks.
    pub async fn run(mut self, stop: Stop) -> Outcome {
        let mut outcome = Outcome::default();
        let ended = self.send_all(&stop, &mut outcome).await;
        outcome.failure = ended.err().map(|error| format!("{error:#}"));
        self.socket.close().await;
        outcome
    }

    async fn send_all(&mut self, stop: &Stop, outcome: &mut Outcome) -> anyhow::Result<()> {
        let mut messages = self.messages();
        let Self { plan, socket, .. } = self;
        let mut window = Window::default();
        let mut sizes = std::collections::VecDeque::new();
        let mut has_more = true;
        let start = Instant::now();
        loop {
            while has_more && window.len() < plan.window && !stop.is_requested() {
                let Some(message) = messages.recv().await else {
                    has_more = false;
                    break;
                };
                let Prepared { seq, samples, bytes } = message?;
                if let Some(rate) = plan.samples_a_second {
                    sleep_until(start + Duration::from_secs_f64(outcome.samples_sent as f64 / rate)).await;
                }
                window.sent(seq);
                sizes.push_back(samples);
                outcome.samples_sent += samples;
                socket.send(bytes).await?;
            }
            if window.is_empty() {
                return Ok(());
            }
            let ack = timeout(ACK_TIMEOUT, socket.next_ack()).await??;
            for latency in window.acknowledged(ack) {
                let samples = sizes.pop_front().unwrap_or_default();
                outcome.ack_latencies.record(latency);
                outcome.samples_acknowledged += samples;
                plan.acknowledged.fetch_add(samples, Ordering::Relaxed);
            }
        }
    }

    /// Encodes on a thread of its own.
    fn messages(&self) -> mpsc::Receiver<anyhow::Result<Prepared>> {
        let mut batches = Batches::new(self.machine.clone());
        let (mut left, mut seq) = (self.samples, 0);
        let batch = self.plan.batch.min(MAX_SAMPLES as u64);
        produce(move || {
            let samples = left.min(batch);
            if samples == 0 {
                return Ok(None);
            }
            left -= samples;
            seq += 1;
            let bytes = batches.message(seq, usize::try_from(samples)?)?;
            Ok(Some(Prepared { seq, samples, bytes }))
        })
    }
}
