//! A part of a container's log, as one answer.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;
use signalbox_protocol::container::{ContainerLogs, LogsParams, MAX_LOG_LINES};

use super::engine::{Engine, Tails};
use super::error::EngineError;
use super::frames::{Frames, Framing};
use super::lines::Lines;
use super::model::Inspected;
use super::window::Window;

/// For the whole answer: the engine reads some 100 MB per second.
const READ_WITHIN: Duration = Duration::from_secs(25);
/// For the search of the last lines of a log that is followed: no line is sent until it ends.
const FIND_WITHIN: Duration = Duration::from_secs(5);
/// The most bytes of text and of the envelope of each line, so that the answer fits into a message.
const MAX_BYTES: u64 = 3 << 20;

/// The last lines within the requested time. If it takes too long to find all of them, those that were found.
pub async fn read(engine: &Engine, params: &LogsParams) -> Result<ContainerLogs, EngineError> {
    let mut found = None;
    let outcome = tokio::time::timeout(READ_WITHIN, read_last(engine, params, &mut found)).await;
    outcome.unwrap_or_else(|_| found.ok_or(EngineError::Silent))
}

/// Reads ever more of the log until the last lines are among it. `found` is what was found so far.
async fn read_last(
    engine: &Engine,
    params: &LogsParams,
    found: &mut Option<ContainerLogs>,
) -> Result<ContainerLogs, EngineError> {
    let inspected: Inspected = engine.read(&format!("/containers/{}/json", params.container_id)).await?;
    if inspected.config.tty && !params.stdout {
        // A terminal has no standard error: the whole log would be read for nothing.
        return Ok(ContainerLogs::default());
    }
    let mut window = match engine.tails().await? {
        // An engine counts the tail before it applies `until`.
        Tails::Counted if params.until.is_none() => Window::of_last(as_count(params.tail)),
        Tails::Counted | Tails::Whole => Window::whole_log(),
    };
    loop {
        let mut kept = Kept::new(params);
        let request = path(params, &window);
        let add = |line: LogLine, window: &mut Window| kept.add(line, window);
        read_window(engine, &request, framing(&inspected), &mut window, add).await?;
        if !window.is_cut() || kept.is_enough() {
            return Ok(kept.into_logs());
        }
        *found = Some(kept.into_whole_lines());
        window = window.wider();
    }
}

/// What to request of Docker to follow a log from its last lines on.
#[derive(Debug, PartialEq, Eq)]
pub struct LastRecords {
    /// The number of records.
    pub tail: String,
    /// How many lines they have before the last ones.
    pub earlier: usize,
    /// The time of the newest line.
    pub newest: Option<Timestamp>,
}

/// Finds out how many records have the last `tail` lines of both streams. If that fails or takes too long, the result is for
/// the lines that were found.
pub async fn find_last(engine: &Engine, container_id: &str, framing: Framing, tail: u32) -> LastRecords {
    let mut found = LastRecords { tail: tail.to_string(), earlier: 0, newest: None };
    let search = search_last(engine, container_id, framing, as_count(tail), &mut found);
    let outcome = tokio::time::timeout(FIND_WITHIN, search).await.unwrap_or(Err(EngineError::Silent));
    if let Err(error) = outcome {
        // If the engine still fails, the next request reports it.
        tracing::debug!(%error, "not all of the last lines were found");
    }
    found
}

/// Reads ever more of the log until the last `most` lines are among it. `found` is what was found so far.
async fn search_last(
    engine: &Engine,
    container_id: &str,
    framing: Framing,
    most: usize,
    found: &mut LastRecords,
) -> Result<(), EngineError> {
    let mut window = Window::of_last(most);
    loop {
        let request = format!("/containers/{container_id}/logs?timestamps=1&stdout=1&stderr=1&tail={}", window.tail());
        let (mut lines, mut whole, mut newest) = (0_usize, 0_usize, None::<Timestamp>);
        let add = |line: LogLine, window: &mut Window| {
            lines += 1;
            whole = if window.is_whole(&line) { whole + 1 } else { 0 };
            newest = newest.max(line.timestamp);
        };
        read_window(engine, &request, framing, &mut window, add).await?;
        let is_enough = !window.is_cut() || whole >= most;
        // Until all of them are found, only those that surely have their beginning.
        let last = if is_enough { most } else { whole };
        *found = LastRecords { tail: window.tail(), earlier: lines.saturating_sub(last), newest };
        if is_enough {
            return Ok(());
        }
        window = window.wider();
    }
}

/// Reads an answer to its end and passes on its lines.
async fn read_window(
    engine: &Engine,
    path: &str,
    framing: Framing,
    window: &mut Window,
    mut add: impl FnMut(LogLine, &mut Window),
) -> Result<(), EngineError> {
    let mut body = engine.open(path).await?.into_body();
    let mut frames = Frames::new(framing);
    let mut lines = Lines::default();
    while let Some(chunk) = body.frame().await {
        let Ok(data) = chunk?.into_data() else { continue };
        frames.push(&data);
        while let Some(record) = frames.next().map_err(|error| EngineError::Unexpected(error.to_string()))? {
            window.count(&record);
            if let Some(line) = lines.add(&record) {
                add(line, window);
            }
        }
    }
    if let Some(record) = frames.rest() {
        window.count(&record);
        if let Some(line) = lines.add(&record) {
            add(line, window);
        }
    }
    for line in lines.rest(framing == Framing::Raw) {
        add(line, window);
    }
    Ok(())
}

/// The format in which the engine sends this container's log.
pub fn framing(inspected: &Inspected) -> Framing {
    if inspected.config.tty { Framing::Raw } else { Framing::Framed }
}

fn as_count(tail: u32) -> usize {
    usize::try_from(tail).unwrap_or(usize::MAX)
}

/// Every engine accepts whole seconds; the lines that this lets through too many are removed here.
fn path(params: &LogsParams, window: &Window) -> String {
    let LogsParams { container_id, tail: _, since, until, stdout, stderr } = params;
    // Docker counts the records of both streams: only if both come, their number says whether the log has more.
    let (stdout, stderr) = if window.is_counted() { (true, true) } else { (*stdout, *stderr) };
    let tail = window.tail();
    let mut path = format!("/containers/{container_id}/logs?timestamps=1&tail={tail}&stdout={stdout}&stderr={stderr}");
    if let Some(since) = since {
        path.push_str(&format!("&since={}", since.as_seconds().max(0)));
    }
    if let Some(until) = until {
        path.push_str(&format!("&until={}", until.as_seconds().saturating_add(1).max(1)));
    }
    path
}

/// The last lines of those that are added.
struct Kept {
    most: usize,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    stdout: bool,
    stderr: bool,
    lines: VecDeque<LogLine>,
    /// How many of the newest lines surely have their beginning.
    whole: usize,
    bytes: u64,
    /// Whether lines were left out because of their bytes.
    is_over: bool,
}

impl Kept {
    fn new(params: &LogsParams) -> Self {
        Self {
            most: as_count(params.tail.min(MAX_LOG_LINES)),
            since: params.since,
            until: params.until,
            stdout: params.stdout,
            stderr: params.stderr,
            lines: VecDeque::new(),
            whole: 0,
            bytes: 0,
            is_over: false,
        }
    }

    fn add(&mut self, line: LogLine, window: &mut Window) {
        let is_whole = window.is_whole(&line);
        let is_early = line.timestamp.zip(self.since).is_some_and(|(at, since)| at < since);
        let is_late = line.timestamp.zip(self.until).is_some_and(|(at, until)| at > until);
        let is_wanted = if line.stream.as_deref() == Some("stderr") { self.stderr } else { self.stdout };
        if is_early || is_late || !is_wanted {
            return;
        }
        self.whole = if is_whole { self.whole + 1 } else { 0 };
        self.bytes += line.cost();
        self.lines.push_back(line);
        while self.lines.len() > self.most {
            self.drop_oldest();
        }
        while self.bytes > MAX_BYTES && self.lines.len() > 1 {
            self.drop_oldest();
            self.is_over = true;
        }
    }

    fn drop_oldest(&mut self) {
        let cost = self.lines.pop_front().map_or(0, |line| line.cost());
        self.bytes = self.bytes.saturating_sub(cost);
    }

    /// Whether earlier records would add nothing.
    fn is_enough(&self) -> bool {
        let is_full = self.is_over || self.lines.len() >= self.most;
        is_full && self.lines.len() <= self.whole
    }

    fn into_logs(self) -> ContainerLogs {
        let truncated = self.is_over && self.lines.len() < self.most;
        ContainerLogs { lines: self.lines.into(), truncated }
    }

    /// Of a part of the log that lacks some of the last lines: those without any that may lack its beginning.
    fn into_whole_lines(mut self) -> ContainerLogs {
        self.lines.drain(..self.lines.len().saturating_sub(self.whole));
        ContainerLogs { lines: self.lines.into(), truncated: true }
    }
}

#[cfg(test)]
#[path = "logs_tests.rs"]
mod tests;
