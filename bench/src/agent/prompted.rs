//! An agent that sends a sample on request.

use std::time::Instant;

use anyhow::Context;
use signalbox_protocol::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::AgentSocket;
use crate::template::busy_message;

/// A running agent. It disconnects when this is dropped.
#[derive(Debug)]
pub struct Prompted {
    orders: mpsc::Sender<Order>,
    running: JoinHandle<anyhow::Result<()>>,
}

#[derive(Debug)]
struct Order {
    cpu_percent: f64,
    sent: oneshot::Sender<Instant>,
}

impl Prompted {
    pub fn start(socket: AgentSocket) -> Self {
        let (orders, ordered) = mpsc::channel(1);
        Self { orders, running: tokio::spawn(run(socket, ordered)) }
    }

    /// Sends a sample of now. Answers the moment before it was written to the socket.
    pub async fn send(&mut self, cpu_percent: f64) -> anyhow::Result<Instant> {
        let (sent, answer) = oneshot::channel();
        if self.orders.send(Order { cpu_percent, sent }).await.is_ok()
            && let Ok(at) = answer.await
        {
            return Ok(at);
        }
        (&mut self.running).await?.context("an agent has ended")?;
        anyhow::bail!("an agent has ended")
    }
}

async fn run(mut socket: AgentSocket, mut orders: mpsc::Receiver<Order>) -> anyhow::Result<()> {
    let mut last = Timestamp::default();
    let mut seq = 0;
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(Order { cpu_percent, sent }) = order else { break };
                // A sample is identified by its time, so no two may share a millisecond.
                last = Timestamp::now().max(last.plus_millis(1));
                seq += 1;
                let message = busy_message(seq, last, cpu_percent)?;
                let at = Instant::now();
                socket.send(message).await?;
                // The caller may have given up.
                sent.send(at).ok();
            }
            message = socket.next() => { message?; }
        }
    }
    socket.close().await;
    Ok(())
}
