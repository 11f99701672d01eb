//! Lines as they are written: one socket a log, through restarts of agents and of the service.

use std::sync::Arc;

use signalbox_protocol::frontend::FeedMessage;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::merge::Merge;
use super::print::Printer;
use super::recent::{Fresh, Recent};
use super::source::Source;
use crate::api::Api;
use crate::api::backoff::Backoff;
use crate::api::socket::{End, Socket};
use crate::api::types::{LogLine, Reason};
use crate::commands::Call;
use crate::error::Failure;
use crate::output::writer::Writer;
use crate::output::{self, Out};

/// Lines on their way to the [`Writer`]. While that is full, sockets are not read, and the service drops lines and says how many.
const QUEUE: usize = 1024;
const MAY_BE_MISSING: &str = "lines may be missing here";

/// Of one of the logs.
enum Item {
    Line(usize, LogLine),
    Note(String),
}

/// What is printed.
enum Piece {
    Line(String),
    Note(String),
}

pub async fn run(call: &Call, sources: Vec<Source>, tail: u32, printer: Printer) -> Result<(), Failure> {
    let (sender, mut items) = mpsc::channel(QUEUE);
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for (index, source) in sources.iter().cloned().enumerate() {
        let follower = Follower {
            api: Arc::clone(&call.api),
            source,
            index,
            sender: sender.clone(),
            begin,
            recent: Recent::default(),
            was_connected: false,
            is_alone: sources.len() == 1,
        };
        tasks.spawn(follower.run(tail));
    }
    drop(sender);
    let mut merge = Merge::of(sources.len());
    let writer = writer_to(call.out);
    loop {
        let due = merge.due().map(|due| begin + due);
        tokio::select! {
            item = items.recv() => match item {
                Some(Item::Line(index, line)) => {
                    if printer.matches(&line) {
                        merge.push(index, line.timestamp, begin.elapsed(), (index, line));
                    }
                }
                Some(Item::Note(note)) => {
                    let bytes = note.len();
                    writer.write(Piece::Note(note), bytes).await?;
                }
                None => break,
            },
            () = until(due) => {}
            failure = writer.failed() => return Err(failure),
        }
        for (index, line) in merge.take(begin.elapsed()) {
            write(&writer, printer.text(&sources, index, &line)).await?;
        }
    }
    for (index, line) in merge.rest() {
        write(&writer, printer.text(&sources, index, &line)).await?;
    }
    writer.finish().await?;
    ended(tasks, sources.len()).await
}

fn writer_to(out: Out) -> Writer<Piece> {
    Writer::start(move |piece: Piece| match piece {
        Piece::Line(text) => out.line(&text),
        Piece::Note(text) => {
            output::complain(&text);
            Ok(())
        }
    })
}

async fn write(writer: &Writer<Piece>, text: Option<String>) -> Result<(), Failure> {
    let Some(text) = text else { return Ok(()) };
    let bytes = text.len();
    writer.write(Piece::Line(text), bytes).await
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// All logs have ended. The failure of one that is alone is the program's; those of several were notes.
async fn ended(mut tasks: JoinSet<Result<(), Failure>>, logs: usize) -> Result<(), Failure> {
    let mut failures = Vec::new();
    while let Some(task) = tasks.join_next().await {
        if let Ok(Err(failure)) = task {
            failures.push(failure);
        }
    }
    match failures.pop() {
        Some(failure) if logs == 1 => Err(failure),
        Some(_) => Err(Failure::failed(format!("{} of {logs} logs failed", failures.len() + 1))),
        None => Ok(()),
    }
}

/// Follows one log.
struct Follower {
    api: Arc<Api>,
    source: Source,
    index: usize,
    sender: mpsc::Sender<Item>,
    /// What the times of [`Recent`] are counted from.
    begin: Instant,
    recent: Recent,
    /// Once it worked, faults of the way to the service pass.
    was_connected: bool,
    /// No other log is followed.
    is_alone: bool,
}

impl Follower {
    async fn run(mut self, tail: u32) -> Result<(), Failure> {
        let mut backoff = Backoff::default();
        loop {
            match self.follow(tail, &mut backoff).await {
                Ok(()) => return Ok(()),
                Err(failure) if self.was_connected && failure.is_passing_for_reads() => {
                    self.note(&format!("{failure}; reconnecting")).await;
                    tokio::time::sleep(backoff.pause_after(&failure)).await;
                }
                Err(failure) => {
                    let failure = self.source.explained(failure, &self.api.service());
                    // The program ends with it, unless others continue.
                    if !self.is_alone {
                        self.note(&failure.to_string()).await;
                    }
                    return Err(failure);
                }
            }
        }
    }

    /// Until the connection ends, which is a failure that passes, or the log does.
    async fn follow(&mut self, wanted: u32, backoff: &mut Backoff) -> Result<(), Failure> {
        let tail = self.recent.tail(wanted);
        let mut query = self.source.query();
        query.push(("tail", tail.to_string()));
        let mut socket = Socket::open(&self.api, &format!("/ws/logs/{}", self.source.server.id), &query).await?;
        // What was written in between does not come.
        if self.was_connected && tail == 0 {
            self.note(MAY_BE_MISSING).await;
        }
        self.was_connected = true;
        self.recent.begin_again();
        let mut refused = None;
        loop {
            let due = self.recent.due().map(|due| self.begin + due);
            let message = tokio::select! {
                message = socket.next() => message,
                () = until(due) => {
                    let fresh = self.recent.release();
                    self.show(fresh).await;
                    continue;
                }
            };
            match message {
                Ok(FeedMessage::Log { timestamp, stream, message, .. }) => {
                    backoff.reset();
                    let line = LogLine { timestamp, stream, message };
                    let fresh = self.recent.take(line, self.begin.elapsed());
                    self.show(fresh).await;
                }
                Ok(FeedMessage::Dropped { count }) => self.interrupt(&format!("{count} lines are missing here")).await,
                Ok(FeedMessage::Error { code, .. }) if code == "agent_offline" => {
                    self.interrupt("the agent is offline; the log continues when it is back").await;
                }
                // The socket closes after it.
                Ok(FeedMessage::Error { code, detail, reason }) => {
                    refused = Some(Failure::from(Reason { code, detail, reason }))
                }
                Ok(_) => {}
                Err(End::Over) => {
                    let fresh = self.recent.release();
                    self.show(fresh).await;
                    return refused.map_or(Ok(()), Err);
                }
                Err(end) => return Err(refused.unwrap_or_else(|| end.into())),
            }
        }
    }

    /// Lines are missing after those that came.
    async fn interrupt(&mut self, text: &str) {
        let fresh = self.recent.interrupt();
        self.show(fresh).await;
        self.note(text).await;
    }

    async fn show(&self, fresh: Fresh) {
        if fresh.follows_gap {
            self.note(MAY_BE_MISSING).await;
        }
        for line in fresh.lines {
            // If nobody takes it, the program ends.
            let _ = self.sender.send(Item::Line(self.index, line)).await;
        }
    }

    async fn note(&self, text: &str) {
        // If nobody reads it, the program ends.
        let _ = self.sender.send(Item::Note(format!("{}: {text}", self.source.label()))).await;
    }
}
