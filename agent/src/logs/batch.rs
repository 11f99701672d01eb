//! Batches lines for the service: few messages, none late, as far as there is credit.

use std::time::Duration;

use signalbox_protocol::agent::{AgentMessage, LogLine, LogLines, RequestError};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::Item;
use crate::streams::StreamPort;

/// A message is sent with this many lines or bytes, or when this time has passed since its first line.
const MAX_LINES: usize = 500;
const MAX_BYTES: u64 = 64 * 1024;
const LONGEST_WAIT: Duration = Duration::from_millis(20);

/// Sends lines until the source ends. An error means that the connection has ended.
pub async fn send(mut items: mpsc::Receiver<Item>, port: &StreamPort, credit: Option<u64>) -> Result<(), RequestError> {
    // A message never costs more than the whole credit, unless a single line does.
    let most = credit.unwrap_or(u64::MAX).min(MAX_BYTES);
    let mut held = None;
    loop {
        let first = match held.take() {
            Some(item) => Some(item),
            None => items.recv().await,
        };
        let Some(first) = first else { return Ok(()) };
        let mut batch = Batch::new(port.stream_id, most);
        held = batch.add(first);
        if held.is_none() {
            held = batch.fill(&mut items).await;
        }
        // Losses at the very end have a message of their own. It costs a little, too: nothing is sent without credit.
        port.send(batch.cost.max(1), AgentMessage::LogLines(batch.lines)).await?;
    }
}

struct Batch {
    lines: LogLines,
    cost: u64,
    most: u64,
}

impl Batch {
    fn new(stream_id: uuid::Uuid, most: u64) -> Self {
        Self { lines: LogLines { stream_id, lines: Vec::new(), dropped: 0 }, cost: 0, most }
    }

    /// Adds lines until the message is full, its time has come, or the source ends. Returns the line that did not fit.
    async fn fill(&mut self, items: &mut mpsc::Receiver<Item>) -> Option<Item> {
        let mut deadline = None;
        loop {
            if !self.lines.lines.is_empty() {
                deadline.get_or_insert_with(|| Instant::now() + LONGEST_WAIT);
            }
            let next = match deadline {
                Some(deadline) => timeout_at(deadline, items.recv()).await.ok().flatten(),
                // Lost lines are reported with those that follow.
                None => items.recv().await,
            };
            let refused = self.add(next?);
            if refused.is_some() {
                return refused;
            }
        }
    }

    /// Adds an item, or returns it when it belongs to the next message.
    fn add(&mut self, item: Item) -> Option<Item> {
        let is_empty = self.lines.lines.is_empty();
        match item {
            Item::Dropped(count) if is_empty => {
                self.lines.dropped = self.lines.dropped.saturating_add(count);
                None
            }
            Item::Line(line) if is_empty || self.has_room_for(&line) => {
                self.cost += line.cost();
                self.lines.lines.push(line);
                None
            }
            refused => Some(refused),
        }
    }

    fn has_room_for(&self, line: &LogLine) -> bool {
        self.lines.lines.len() < MAX_LINES && self.cost.saturating_add(line.cost()) <= self.most
    }
}
