//! Searches a log on its own host, from its newest line back, for a bounded time.
//!
//! Lines are matched on a thread of the search: some patterns take long, and the agent has one thread for all else.

use std::iter;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{LogLine, RequestError};
use signalbox_protocol::container::{LogsParams, MAX_LOG_LINES};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout_at;

use super::backwards::{Backwards, Step};
use super::error::LogError;
use super::follow::on_a_thread;
use super::journal::{Entries, Journal};
use super::lines::file_line;
use super::location::Location;
use super::search::{LineFilter, Pattern, Search, SearchResult, compile};
use super::{Item, MAX_TAIL, TAIL, WAITING};
use crate::docker::Docker;

/// A search ends after this time, with what it has found.
const LONGEST: Duration = Duration::from_secs(5);
/// Longer patterns are refused.
const MAX_PATTERN_BYTES: usize = 1_024;

/// What to search for, and in which log.
#[derive(Debug, Deserialize)]
pub struct Query {
    pub source: String,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub container_id: Option<String>,
    #[serde(default)]
    since: Option<Timestamp>,
    #[serde(default)]
    until: Option<Timestamp>,
    #[serde(default)]
    tail: Option<u32>,
    #[serde(default)]
    q: Option<String>,
    /// Whether `q` is a regular expression.
    #[serde(default)]
    regex: bool,
}

impl Query {
    pub fn parse(params: Value) -> Result<Self, LogError> {
        let query: Self = serde_json::from_value(params).map_err(|error| LogError::Question(error.to_string()))?;
        match &query.q {
            Some(q) if q.len() > MAX_PATTERN_BYTES => Err(LogError::Pattern("it is too long".to_owned())),
            _ => Ok(query),
        }
    }

    fn filter(&self) -> Result<LineFilter, LogError> {
        let kind = if self.regex { Pattern::Regex } else { Pattern::Text };
        let q = self.q.as_deref().filter(|q| !q.is_empty());
        let pattern = q.map(|q| compile(q, kind)).transpose()?;
        let most = usize::try_from(self.tail.unwrap_or(TAIL).min(MAX_TAIL)).unwrap_or_default();
        Ok(LineFilter { since: self.since, until: self.until, pattern, most })
    }
}

/// Searches the journal.
pub async fn in_journal(journal: &Journal, query: &Query, threads: Arc<Semaphore>) -> Result<SearchResult, LogError> {
    let permit = threads.try_acquire_owned().map_err(|_| LogError::Busy)?;
    let deadline = Instant::now() + LONGEST;
    let mut search = Search::new(query.filter()?, deadline);
    let entries = journal.backwards(query.since, query.until)?;
    let (lines, mut waiting) = mpsc::channel(WAITING);
    // When the time is up, the search has the lines that were read until then.
    let read = async { timeout_at(deadline.into(), pass_on(entries, lines)).await.unwrap_or(Ok(())) };
    let searched = on_a_thread(permit, move || {
        let has_enough = iter::from_fn(|| waiting.blocking_recv()).any(|line| search.look(line).is_break());
        if !has_enough && Instant::now() >= deadline {
            search.stop();
        }
        Ok(search.finish())
    });
    tokio::try_join!(read, searched).map(|((), found)| found)
}

/// Passes the journal's lines on until there are no more, or nobody receives them.
async fn pass_on(mut entries: Entries, lines: mpsc::Sender<LogLine>) -> Result<(), LogError> {
    loop {
        let item = tokio::select! {
            item = entries.next() => item?,
            () = lines.closed() => return Ok(()),
        };
        match item {
            Some(Item::Line(line)) => {
                // The next turn notices when nobody receives.
                _ = lines.send(line).await;
            }
            Some(Item::Dropped(_)) => {}
            None => return Ok(()),
        }
    }
}

/// Searches the newest of a container's output: an engine cannot return lines from the end back.
pub async fn in_container(
    docker: &Docker,
    container_id: String,
    query: &Query,
    threads: Arc<Semaphore>,
) -> Result<SearchResult, RequestError> {
    let permit = threads.try_acquire_owned().map_err(|_| LogError::Busy)?;
    let filter = query.filter()?;
    let params = LogsParams {
        container_id,
        tail: MAX_LOG_LINES,
        since: query.since,
        until: query.until,
        stdout: true,
        stderr: true,
    };
    let newest = docker.newest_logs(params).await?;
    let is_cut = newest.truncated || newest.lines.len() >= usize::try_from(MAX_LOG_LINES).unwrap_or(usize::MAX);
    let searched = on_a_thread(permit, move || {
        let mut search = Search::new(filter, Instant::now() + LONGEST);
        let has_enough = newest.lines.into_iter().rev().any(|line| search.look(line).is_break());
        if is_cut && !has_enough {
            search.stop();
        }
        Ok(search.finish())
    });
    Ok(searched.await?)
}

/// Searches a file, on a thread of its own.
pub async fn in_file(place: Location, query: Query, threads: Arc<Semaphore>) -> Result<SearchResult, LogError> {
    let permit = threads.try_acquire_owned().map_err(|_| LogError::Busy)?;
    let deadline = Instant::now() + LONGEST;
    let search = Search::new(query.filter()?, deadline);
    on_a_thread(permit, move || search_file(&place, search, deadline)).await
}

fn search_file(place: &Location, mut search: Search, deadline: Instant) -> Result<SearchResult, LogError> {
    let file = place.open()?;
    let mut lines = Backwards::new(&file, file.metadata()?.len());
    loop {
        // A part of a long line is not looked at, and takes time as well.
        if Instant::now() >= deadline {
            search.stop();
            break;
        }
        let goes_on = match lines.step()? {
            Step::Line(line) => search.look(file_line(line)),
            Step::Nothing => ControlFlow::Continue(()),
            Step::Start => ControlFlow::Break(()),
        };
        if goes_on.is_break() {
            break;
        }
    }
    Ok(search.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_search_whose_time_is_up_says_that_it_is_not_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.log");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let filter = || Query::parse(json!({"source": "file"})).unwrap().filter().unwrap();
        let search =
            |deadline| search_file(&Location::Named(path.clone()), Search::new(filter(), deadline), deadline).unwrap();

        let cut_short = search(Instant::now());
        let whole = search(Instant::now() + Duration::from_secs(600));

        assert_eq!((cut_short.lines.len(), cut_short.truncated), (0, true));
        assert_eq!((whole.lines.len(), whole.truncated), (2, false));
    }

    #[test]
    fn a_question_is_bounded() {
        let long = json!({"source": "system", "q": "x".repeat(MAX_PATTERN_BYTES + 1)});
        assert!(matches!(Query::parse(long), Err(LogError::Pattern(_))));
        assert!(matches!(Query::parse(json!({"source": 5})), Err(LogError::Question(_))));
    }
}
