//! An agent that stores what was not acknowledged, reconnects with backoff, and sends it again.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context;
use signalbox_protocol::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{self, MissedTickBehavior, sleep, timeout};

use super::AgentSocket;
use super::schedule::Schedule;
use crate::backoff::Backoff;
use crate::fixture::Enrolled;
use crate::stop::Stop;
use crate::template::Template;

/// How long after the end an agent still tries to deliver its samples.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

/// What every agent of a run does.
#[derive(Debug, Clone)]
pub struct ResilientPlan {
    pub template: Template,
    /// Samples in a message of the template.
    pub batch: i64,
    pub interval: Duration,
    /// When each batch begins, and how far its samples are apart.
    pub schedule: Schedule,
    pub step_ms: i64,
    /// Batches that are kept; while there are as many, no new one is made.
    pub kept: usize,
}

/// One agent, before it runs.
#[derive(Debug)]
pub struct Resilient {
    pub plan: ResilientPlan,
    /// Its number among the others, which its events carry.
    pub number: usize,
    /// Where its first connection leads, and where each further attempt goes in turns.
    pub addresses: Vec<SocketAddr>,
    pub enrolled: Enrolled,
    pub events: mpsc::Sender<Event>,
}

/// What happened to an agent's connection.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    Authenticated {
        agent: usize,
        at: Instant,
    },
    /// The first ack of a connection.
    Acknowledged {
        agent: usize,
        at: Instant,
    },
}

/// The state of an agent's batches, each by the time of its first sample.
#[derive(Debug, Default)]
pub struct DeliveryReport {
    pub acknowledged: Vec<Timestamp>,
    /// Given up at the end.
    pub unacknowledged: Vec<Timestamp>,
    pub failed_attempts: u64,
    pub last_failure: Option<String>,
}

/// A running agent.
struct Run {
    agent: Resilient,
    stop: Stop,
    seq: u64,
    attempts: usize,
    /// Sent or not, oldest first.
    pending: VecDeque<(u64, Timestamp)>,
    backoff: Backoff,
    ledger: DeliveryReport,
}

impl Resilient {
    /// Runs on `socket` and its successors until `stop` fires and everything is acknowledged.
    pub async fn run(self, socket: AgentSocket, stop: Stop) -> DeliveryReport {
        let mut run = Run {
            agent: self,
            stop: stop.clone(),
            seq: 0,
            attempts: 0,
            pending: VecDeque::new(),
            backoff: Backoff::default(),
            ledger: DeliveryReport::default(),
        };
        let deadline = async {
            let mut stop = stop;
            stop.requested().await;
            sleep(DRAIN_TIMEOUT).await;
        };
        tokio::select! {
            () = run.live(socket) => {}
            () = deadline => {}
        }
        run.ledger.unacknowledged = run.pending.into_iter().map(|(_, first)| first).collect();
        run.ledger
    }
}

impl Run {
    async fn live(&mut self, socket: AgentSocket) {
        let mut connection = Ok(socket);
        loop {
            let ended = match connection {
                Ok(socket) => self.use_connection(socket).await,
                Err(error) => {
                    self.ledger.failed_attempts += 1;
                    Err(error)
                }
            };
            if let Err(error) = ended {
                self.backoff.note(&error);
                self.ledger.last_failure = Some(format!("{error:#}"));
            }
            if self.is_done() {
                return;
            }
            sleep(self.backoff.next_delay()).await;
            connection = self.connect().await;
        }
    }

    async fn connect(&mut self) -> anyhow::Result<AgentSocket> {
        self.attempts += 1;
        let address =
            self.agent.addresses.iter().copied().cycle().nth(self.attempts % self.agent.addresses.len().max(1));
        AgentSocket::connect(address.context("there is no address")?, &self.agent.enrolled).await
    }

    fn is_done(&self) -> bool {
        self.stop.is_requested() && self.pending.is_empty()
    }

    /// Sends again what is pending, then new batches. Ends without an error when there is nothing left to do.
    async fn use_connection(&mut self, mut socket: AgentSocket) -> anyhow::Result<()> {
        self.tell(|agent, at| Event::Authenticated { agent, at }).await;
        for (seq, first) in &self.pending {
            socket.send(self.agent.plan.template.message(*seq, *first, self.agent.plan.step_ms)).await?;
        }
        let mut is_first_ack = true;
        let mut ticks = self.ticks();
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_done() {
            let is_stopping = self.stop.is_requested();
            tokio::select! {
                // Stopped with nothing pending: the condition of the loop ends it.
                () = self.stop.requested(), if !is_stopping => {}
                _ = ticks.tick(), if !is_stopping => self.send_new(&mut socket).await?,
                ack = socket.next_ack() => {
                    self.note_ack(ack?);
                    if std::mem::take(&mut is_first_ack) {
                        self.backoff = Backoff::default();
                        self.tell(|agent, at| Event::Acknowledged { agent, at }).await;
                    }
                }
            }
        }
        socket.close().await;
        Ok(())
    }

    /// A random phase on the first connection, at once on every later one, because there is something to send.
    fn ticks(&self) -> time::Interval {
        let interval = self.agent.plan.interval;
        let delay = if self.seq == 0 { interval.mul_f64(fastrand::f64()) } else { Duration::ZERO };
        time::interval_at(time::Instant::now() + delay, interval)
    }

    async fn send_new(&mut self, socket: &mut AgentSocket) -> anyhow::Result<()> {
        /// A service that accepts nothing for this long counts as gone.
        const SEND_TIMEOUT: Duration = Duration::from_secs(30);

        let plan = &self.agent.plan;
        if self.pending.len() >= plan.kept {
            return Ok(());
        }
        let first = plan.schedule.batch(self.seq, plan.step_ms * plan.batch);
        self.seq += 1;
        self.pending.push_back((self.seq, first));
        let message = plan.template.message(self.seq, first, plan.step_ms);
        timeout(SEND_TIMEOUT, socket.send(message)).await?
    }

    fn note_ack(&mut self, seq: u64) {
        let covered = self.pending.partition_point(|(pending, _)| *pending <= seq);
        self.ledger.acknowledged.extend(self.pending.drain(..covered).map(|(_, first)| first));
    }

    async fn tell(&self, event: impl FnOnce(usize, Instant) -> Event) {
        // A receiver that is gone does not matter.
        self.agent.events.send(event(self.agent.number, Instant::now())).await.ok();
    }
}
