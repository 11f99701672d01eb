//! Lines as they are written: one socket a log, through restarts of agents and of the service.

use std::collections::VecDeque;
use std::sync::Arc;

use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::FeedMessage;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::merge::Merge;
use super::print::Printer;
use super::source::Source;
use crate::api::Api;
use crate::api::backoff::Backoff;
use crate::api::socket::{End, Socket};
use crate::api::types::{LogLine, Reason};
use crate::commands::Call;
use crate::error::Failure;
use crate::output;

/// Lines on their way to the terminal. While it is slow, sockets are not read, and the service drops lines and says how many.
const QUEUE: usize = 1024;
/// After a lost connection as many lines are asked for again, and those that were shown are left out.
const AGAIN: u32 = 1000;

/// Of one of the logs.
enum Item {
    Line(usize, LogLine),
    Note(String),
}

pub async fn run(call: &Call, sources: Vec<Source>, tail: u32, printer: Printer) -> Result<(), Failure> {
    let (sender, mut items) = mpsc::channel(QUEUE);
    let mut tasks = JoinSet::new();
    for (index, source) in sources.iter().cloned().enumerate() {
        let follower = Follower {
            api: Arc::clone(&call.api),
            source,
            index,
            sender: sender.clone(),
            recent: Recent::default(),
            was_connected: false,
        };
        tasks.spawn(follower.run(tail));
    }
    drop(sender);
    let begin = Instant::now();
    let mut merge = Merge::of(sources.len());
    loop {
        let due = merge.due().map(|due| begin + due);
        tokio::select! {
            item = items.recv() => match item {
                Some(Item::Line(index, line)) => {
                    if printer.matches(&line) {
                        merge.push(index, line.timestamp, begin.elapsed(), (index, line));
                    }
                }
                Some(Item::Note(note)) => output::complain(&note),
                None => break,
            },
            () = until(due) => {}
        }
        for (index, line) in merge.take(begin.elapsed()) {
            printer.print(&sources, index, &line)?;
        }
    }
    for (index, line) in merge.rest() {
        printer.print(&sources, index, &line)?;
    }
    ended(tasks).await
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// All logs have ended. The last failure is the program's; the others were notes.
async fn ended(mut tasks: JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    let mut last = Ok(());
    while let Some(task) = tasks.join_next().await {
        if let Ok(Err(failure)) = task {
            last = Err(failure);
        }
    }
    last
}

/// Follows one log.
struct Follower {
    api: Arc<Api>,
    source: Source,
    index: usize,
    sender: mpsc::Sender<Item>,
    recent: Recent,
    /// Once it worked, faults of the way to the service pass.
    was_connected: bool,
}

impl Follower {
    async fn run(mut self, mut tail: u32) -> Result<(), Failure> {
        let mut backoff = Backoff::default();
        loop {
            match self.follow(tail, &mut backoff).await {
                Ok(()) => return Ok(()),
                Err(failure) if self.was_connected && failure.is_passing() => {
                    self.note(&format!("{failure}; reconnecting")).await;
                }
                Err(failure) => {
                    let failure = self.source.explained(failure, &self.api.service());
                    self.note(&failure.to_string()).await;
                    return Err(failure);
                }
            }
            tail = AGAIN;
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// Until the connection ends, which is a failure that passes, or the log does.
    async fn follow(&mut self, tail: u32, backoff: &mut Backoff) -> Result<(), Failure> {
        let mut query = self.source.query();
        query.push(("tail", tail.to_string()));
        let mut socket = Socket::open(&self.api, &format!("/ws/logs/{}", self.source.server.id), &query).await?;
        self.was_connected = true;
        self.recent.begin_again();
        let mut refused = None;
        loop {
            match socket.next().await {
                Ok(FeedMessage::Log { timestamp, stream, message, .. }) => {
                    backoff.reset();
                    let line = LogLine { timestamp, stream, message };
                    if self.recent.is_new(&line) && self.sender.send(Item::Line(self.index, line)).await.is_err() {
                        return Ok(());
                    }
                }
                Ok(FeedMessage::Dropped { count }) => self.note(&format!("{count} lines are missing here")).await,
                Ok(FeedMessage::Error { code, .. }) if code == "agent_offline" => {
                    self.note("the agent is offline; the log continues when it is back").await;
                }
                // The socket closes after it.
                Ok(FeedMessage::Error { code, detail }) => {
                    refused = Some(Failure::from(Reason { code, detail, reason: None }))
                }
                Ok(_) => {}
                Err(End::Over) => return refused.map_or(Ok(()), Err),
                Err(end) => return Err(refused.unwrap_or_else(|| end.into())),
            }
        }
    }

    async fn note(&self, text: &str) {
        // If nobody reads it, the program ends.
        let _ = self.sender.send(Item::Note(format!("{}: {text}", self.source.label()))).await;
    }
}

/// The newest lines that were shown, to leave them out when a new connection brings them again.
#[derive(Debug, Default)]
struct Recent {
    shown: VecDeque<(Option<Timestamp>, String)>,
    /// Those of the connection before, which come again in their order.
    expected: VecDeque<(Option<Timestamp>, String)>,
}

impl Recent {
    fn begin_again(&mut self) {
        self.expected = self.shown.clone();
    }

    fn is_new(&mut self, line: &LogLine) -> bool {
        let key = (line.timestamp, line.message.clone());
        if let Some(place) = self.expected.iter().position(|known| *known == key) {
            self.expected.drain(..=place);
            return false;
        }
        let is_older = |known: &(Option<Timestamp>, String)| known.0.is_some() && line.timestamp < known.0;
        if line.timestamp.is_some() && self.expected.back().is_some_and(is_older) {
            return false;
        }
        if self.shown.len() >= AGAIN as usize {
            self.shown.pop_front();
        }
        self.shown.push_back(key);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seconds: i64, message: &str) -> LogLine {
        LogLine { timestamp: Some(Timestamp::from_millis(seconds * 1000)), stream: None, message: message.to_owned() }
    }

    #[test]
    fn lines_that_come_again_are_shown_once() {
        let mut recent = Recent::default();
        for (seconds, message) in [(1, "a"), (2, "b"), (2, "b"), (3, "c")] {
            assert!(recent.is_new(&line(seconds, message)));
        }

        recent.begin_again();
        let again = [(0, "older"), (1, "a"), (2, "b"), (2, "b"), (3, "c"), (3, "d"), (4, "a")];
        let new: Vec<bool> = again.iter().map(|(seconds, message)| recent.is_new(&line(*seconds, message))).collect();

        assert_eq!(new, [false, false, false, false, false, true, true]);
    }
}
