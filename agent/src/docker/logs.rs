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

/// For the whole answer: the engine reads some 100 MB per second.
const READ_WITHIN: Duration = Duration::from_secs(25);
/// The most bytes of text and of the envelope of each line, so that the answer fits into a message.
const MAX_BYTES: u64 = 3 << 20;
/// Additional lines to request: engines count the pieces of a long line one by one.
const PIECES_MORE: u32 = 32;

/// The last lines within the requested time.
pub async fn read(engine: &Engine, params: &LogsParams) -> Result<ContainerLogs, EngineError> {
    let reading = async {
        let inspected: Inspected = engine.read(&format!("/containers/{}/json", params.container_id)).await?;
        let mut body = engine.open(&path(params, engine.tails().await?)).await?.into_body();
        let mut frames = Frames::new(framing(&inspected));
        let mut lines = Lines::default();
        let mut kept = Kept::new(params);
        while let Some(chunk) = body.frame().await {
            let Ok(data) = chunk?.into_data() else { continue };
            frames.push(&data);
            while let Some(record) = frames.next().map_err(|error| EngineError::Unexpected(error.to_string()))? {
                lines.add(&record).into_iter().for_each(|line| kept.add(line));
            }
        }
        frames.rest().and_then(|record| lines.add(&record)).into_iter().for_each(|line| kept.add(line));
        lines.rest(inspected.config.tty).for_each(|line| kept.add(line));
        Ok(kept.into_logs())
    };
    tokio::time::timeout(READ_WITHIN, reading).await.unwrap_or(Err(EngineError::Silent))
}

/// The format in which the engine sends this container's log.
pub fn framing(inspected: &Inspected) -> Framing {
    if inspected.config.tty { Framing::Raw } else { Framing::Framed }
}

/// Every engine accepts whole seconds; the lines that this lets through too many are removed here. An engine counts the tail
/// before it applies `until`, so with `until` the whole log is read.
fn path(params: &LogsParams, tails: Tails) -> String {
    let LogsParams { container_id, tail, since, until, stdout, stderr } = params;
    let tail = match (until, tails) {
        (Some(_), _) | (None, Tails::Whole) => "all".to_owned(),
        (None, Tails::Counted) => tail.saturating_add(PIECES_MORE).to_string(),
    };
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
    lines: VecDeque<LogLine>,
    bytes: u64,
    truncated: bool,
}

impl Kept {
    fn new(params: &LogsParams) -> Self {
        Self {
            most: usize::try_from(params.tail.min(MAX_LOG_LINES)).unwrap_or(usize::MAX),
            since: params.since,
            until: params.until,
            lines: VecDeque::new(),
            bytes: 0,
            truncated: false,
        }
    }

    fn add(&mut self, line: LogLine) {
        let is_early = line.timestamp.zip(self.since).is_some_and(|(at, since)| at < since);
        let is_late = line.timestamp.zip(self.until).is_some_and(|(at, until)| at > until);
        if is_early || is_late {
            return;
        }
        self.bytes += line.cost();
        self.lines.push_back(line);
        while self.lines.len() > self.most {
            self.drop_oldest();
        }
        while self.bytes > MAX_BYTES && self.lines.len() > 1 {
            self.drop_oldest();
            self.truncated = true;
        }
    }

    fn drop_oldest(&mut self) {
        let cost = self.lines.pop_front().map_or(0, |line| line.cost());
        self.bytes = self.bytes.saturating_sub(cost);
    }

    fn into_logs(self) -> ContainerLogs {
        ContainerLogs { lines: self.lines.into(), truncated: self.truncated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(tail: u32) -> LogsParams {
        LogsParams { container_id: "web".into(), tail, since: None, until: None, stdout: true, stderr: false }
    }

    fn line(second: i64, message: &str) -> LogLine {
        LogLine { timestamp: Some(Timestamp::from_millis(second * 1000)), stream: None, message: message.into() }
    }

    #[test]
    fn the_newest_lines_are_kept() {
        let mut kept = Kept::new(&params(2));

        (1..=4).for_each(|second| kept.add(line(second, "x")));

        assert_eq!(kept.into_logs(), ContainerLogs { lines: vec![line(3, "x"), line(4, "x")], truncated: false });
    }

    #[test]
    fn more_than_fits_into_an_answer_loses_its_oldest_lines_and_says_so() {
        let mut kept = Kept::new(&params(10_000));
        let long = "x".repeat(64 * 1024);

        (1..=60).for_each(|second| kept.add(line(second, &long)));
        let logs = kept.into_logs();

        assert!(logs.truncated);
        assert_eq!(logs.lines.last(), Some(&line(60, &long)));
        assert!(logs.lines.iter().map(LogLine::cost).sum::<u64>() <= MAX_BYTES);
    }

    #[test]
    fn lines_outside_of_the_asked_time_are_left_out() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        let mut kept = Kept::new(&LogsParams { since: at(2_000), until: at(3_000), ..params(100) });

        for millis in [1_999, 2_000, 3_000, 3_001] {
            kept.add(LogLine { timestamp: at(millis), ..line(0, "x") });
        }

        let times: Vec<_> = kept.into_logs().lines.into_iter().map(|line| line.timestamp).collect();
        assert_eq!(times, [at(2_000), at(3_000)]);
    }

    #[test]
    fn the_engine_is_asked_for_whole_seconds_and_for_all_when_the_end_is_named() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        let ranged = LogsParams { since: at(1_500), until: at(2_500), ..params(10) };

        assert_eq!(
            path(&params(10), Tails::Counted),
            "/containers/web/logs?timestamps=1&tail=42&stdout=true&stderr=false"
        );
        let expected = "/containers/web/logs?timestamps=1&tail=all&stdout=true&stderr=false&since=1&until=3";
        assert_eq!(path(&ranged, Tails::Counted), expected);
        let whole = "/containers/web/logs?timestamps=1&tail=all&stdout=true&stderr=false";
        assert_eq!(path(&params(10), Tails::Whole), whole);
    }
}
