//! An agent that has much to catch up on: full batches, as fast as the acks allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use signalbox_protocol::Timestamp;
use tokio::time::timeout;

use super::window::Window;
use super::{AgentSocket, Outcome};
use crate::stop::Stop;
use crate::template::Template;

/// An ack that takes longer than this never comes.
const ACK_TIMEOUT: Duration = Duration::from_secs(30);

/// What every agent of a run does.
#[derive(Debug, Clone)]
pub struct BurstPlan {
    pub template: Template,
    /// Samples in a message of the template.
    pub batch: u64,
    /// Messages that may be unacknowledged.
    pub window: usize,
    /// When the first sample was taken, and the distance of the next ones.
    pub first: Timestamp,
    pub step_ms: i64,
    /// Counts acknowledged samples as they come.
    pub acknowledged: Arc<AtomicU64>,
}

/// One agent, before it runs.
#[derive(Debug)]
pub struct Burst {
    pub plan: BurstPlan,
    pub socket: AgentSocket,
}

impl Burst {
    /// Sends until `stop` fires, then waits for the outstanding acks.
    pub async fn run(mut self, stop: Stop) -> Outcome {
        let mut outcome = Outcome::default();
        let ended = self.send_batches(&stop, &mut outcome).await;
        outcome.failure = ended.err().map(|error| format!("{error:#}"));
        self.socket.close().await;
        outcome
    }

    async fn send_batches(&mut self, stop: &Stop, outcome: &mut Outcome) -> anyhow::Result<()> {
        let Self { plan, socket } = self;
        let mut window = Window::default();
        let mut time = plan.first;
        let mut seq = 0;
        loop {
            while window.len() < plan.window && !stop.is_requested() {
                seq += 1;
                let message = plan.template.message(seq, time, plan.step_ms);
                time = time.plus_millis(plan.step_ms * plan.batch as i64);
                window.sent(seq);
                outcome.samples_sent += plan.batch;
                socket.send(message).await?;
            }
            if window.is_empty() {
                return Ok(());
            }
            let ack = timeout(ACK_TIMEOUT, socket.next_ack()).await??;
            for latency in window.acknowledged(ack) {
                outcome.ack_latencies.record(latency);
                outcome.samples_acknowledged += plan.batch;
                plan.acknowledged.fetch_add(plan.batch, Ordering::Relaxed);
            }
        }
    }
}
