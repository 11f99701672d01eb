//! A container's log while somebody watches, across restarts of the container and of the engine.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{LogLine, RequestError};
use signalbox_protocol::container::MAX_LOG_LINES;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::SendError;

use super::engine::{Engine, Tails};
use super::error::EngineError;
use super::frames::{Frames, Framing, Record};
use super::lines::Lines;
use super::model::Inspected;
use super::position::Position;
use super::verb::Verb;
use super::{Docker, checked, logs};

/// The time between two checks of a container that does not run, or an engine that is away. Nothing is lost in between.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// The most bytes of the last lines, which have at most 64 KiB each: as many as an answer may have.
const MAX_HELD_BYTES: u64 = 3 << 20;
/// How often an engine that was away is asked again while it reports errors.
const MAX_COMPLAINTS: u32 = 20;

impl Docker {
    /// Sends the last `tail` lines of a container's log, and then new ones, until nobody receives them any more.
    ///
    /// The channel's bound is the back-pressure: lines that it has no room for wait in the engine's log. Ends with
    /// `container_not_found` when the container is removed.
    pub async fn follow(&self, container_id: &str, tail: u32, lines: Sender<LogLine>) -> Result<(), RequestError> {
        self.permit(Verb::Logs)?;
        checked(container_id)?;
        let began = Position::new(Timestamp::now());
        let inspected = self.inspect(container_id).await?;
        let mut follower = ContainerFollower {
            engine: self.engine.clone(),
            framing: logs::framing(&inspected),
            container_id: inspected.id,
            position: began,
            assembly: Lines::default(),
            held: None,
            earlier: 0,
            newest: None,
            lines,
        };
        let range = match self.engine.tails().await? {
            Tails::Counted => follower.find_last(tail).await,
            Tails::Whole => follower.send_last(tail).await?,
        };
        Ok(follower.run(range, inspected.state.started_at).await?)
    }
}

struct ContainerFollower {
    engine: Engine,
    framing: Framing,
    /// Its whole id, because another container may get the name.
    container_id: String,
    position: Position,
    assembly: Lines,
    /// The last lines, while they are being read.
    held: Option<LastLines>,
    /// How many lines to leave out, because they come before the last ones; none that is newer than `newest`.
    earlier: usize,
    newest: Option<Timestamp>,
    lines: Sender<LogLine>,
}

/// The last lines of those that are pushed.
#[derive(Default)]
struct LastLines {
    lines: VecDeque<LogLine>,
    /// The most lines.
    most: usize,
    cost: u64,
}

impl LastLines {
    fn push(&mut self, line: LogLine) {
        self.cost += line.cost();
        self.lines.push_back(line);
        while self.lines.len() > self.most || self.cost > MAX_HELD_BYTES {
            let Some(oldest) = self.lines.pop_front() else { return };
            self.cost = self.cost.saturating_sub(oldest.cost());
        }
    }
}

enum End {
    /// The engine has no more: the container stopped.
    OfLog,
    /// Nobody receives the lines any more.
    OfWatch,
}

impl ContainerFollower {
    async fn run(&mut self, mut range: String, mut started_at: String) -> Result<(), EngineError> {
        let mut is_first = true;
        let mut complaints = 0;
        loop {
            match self.read_on(&range).await {
                Ok(End::OfWatch) => return Ok(()),
                Ok(End::OfLog) => complaints = 0,
                Err(EngineError::NoSuchContainer) => return Err(EngineError::NoSuchContainer),
                Err(error) if error.is_absence() => {
                    tracing::debug!(%error, "the log is read on when the engine is back")
                }
                Err(error) if is_first || complaints >= MAX_COMPLAINTS => return Err(error),
                Err(error) => {
                    complaints += 1;
                    tracing::debug!(%error, "the engine does not give the log");
                }
            }
            match self.until_there_is_more(&started_at).await? {
                Some(start) => started_at = start,
                None => return Ok(()),
            }
            is_first = false;
            range = self.onwards();
        }
    }

    fn onwards(&mut self) -> String {
        // From here on every line is new: none is left out.
        self.earlier = 0;
        format!("tail=all&since={}&follow=1", self.position.resume())
    }

    /// Finds the last lines, and where the lines before them end. Returns what to read next.
    async fn find_last(&mut self, tail: u32) -> String {
        let last = tokio::select! {
            last = logs::find_last(&self.engine, &self.container_id, self.framing, tail) => last,
            () = self.lines.closed() => return self.onwards(),
        };
        (self.earlier, self.newest) = (last.earlier, last.newest);
        format!("tail={}&follow=1", last.tail)
    }

    /// Reads all existing lines and sends the last ones. Returns what to read next.
    async fn send_last(&mut self, tail: u32) -> Result<String, EngineError> {
        let most = usize::try_from(tail.min(MAX_LOG_LINES)).unwrap_or(usize::MAX);
        self.held = Some(LastLines { most, ..LastLines::default() });
        self.read_on("tail=all").await?;
        for line in self.held.take().unwrap_or_default().lines {
            if self.send(line).await.is_err() {
                break;
            }
        }
        Ok(self.onwards())
    }

    async fn send(&mut self, line: LogLine) -> Result<(), SendError<LogLine>> {
        // A newer line was written after the last ones were counted. Times are in milliseconds: a new line of the same
        // millisecond as the newest counted one can be taken for one of the earlier lines.
        let was_counted = line.timestamp.zip(self.newest).is_none_or(|(at, newest)| at <= newest);
        if self.earlier > 0 && was_counted {
            self.earlier -= 1;
            return Ok(());
        }
        let Some(held) = &mut self.held else { return self.lines.send(line).await };
        held.push(line);
        Ok(())
    }

    /// Reads until the engine has no more.
    async fn read_on(&mut self, range: &str) -> Result<End, EngineError> {
        let id = &self.container_id;
        let path = format!("/containers/{id}/logs?timestamps=1&stdout=1&stderr=1&{range}");
        let mut body = self.engine.open(&path).await?.into_body();
        let mut frames = Frames::new(self.framing);
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.lines.closed() => return Ok(End::OfWatch),
            };
            let Some(frame) = frame else { break };
            let Ok(data) = frame?.into_data() else { continue };
            frames.push(&data);
            while let Some(record) = frames.next().map_err(|error| EngineError::Unexpected(error.to_string()))? {
                if self.take(&record).await.is_err() {
                    return Ok(End::OfWatch);
                }
            }
        }
        if self.held.is_some() {
            // An unfinished line continues with what is read next.
            return Ok(End::OfLog);
        }
        // The log has ended, and so has its last line.
        if let Some(record) = frames.rest()
            && self.take(&record).await.is_err()
        {
            return Ok(End::OfWatch);
        }
        for line in self.assembly.rest(self.framing == Framing::Raw).collect::<Vec<_>>() {
            if self.send(line).await.is_err() {
                return Ok(End::OfWatch);
            }
        }
        Ok(End::OfLog)
    }

    async fn take(&mut self, record: &Record) -> Result<(), SendError<LogLine>> {
        if !self.position.is_new(record.timestamp) {
            return Ok(());
        }
        match self.assembly.add(record) {
            Some(line) => self.send(line).await,
            None => Ok(()),
        }
    }

    /// Waits until the container runs, or has run since its start at `started_at`. Returns when it was started; none when
    /// nobody receives the lines any more.
    async fn until_there_is_more(&self, started_at: &str) -> Result<Option<String>, EngineError> {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN_AFTER) => {}
                () = self.lines.closed() => return Ok(None),
            }
            match self.engine.read::<Inspected>(&format!("/containers/{}/json", self.container_id)).await {
                Ok(it) if it.state.running || it.state.started_at != started_at => {
                    return Ok(Some(it.state.started_at));
                }
                Ok(_) => {}
                Err(EngineError::NoSuchContainer) => return Err(EngineError::NoSuchContainer),
                Err(error) => tracing::debug!(%error, "the container cannot be inspected"),
            }
        }
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
