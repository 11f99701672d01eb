//! Searches a log on its own host, from its newest line back, for a bounded time.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::RequestError;
use signalbox_protocol::container::{LogsParams, MAX_LOG_LINES};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::backwards::{Backwards, Step};
use super::error::LogError;
use super::follow::on_a_thread;
use super::journal::Journal;
use super::lines::file_line;
use super::location::Location;
use super::search::{LineFilter, Pattern, Search, SearchResult, compile};
use super::{Item, MAX_TAIL, TAIL};
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

    fn search(&self) -> Result<Search, LogError> {
        let kind = if self.regex { Pattern::Regex } else { Pattern::Text };
        let q = self.q.as_deref().filter(|q| !q.is_empty());
        let pattern = q.map(|q| compile(q, kind)).transpose()?;
        let most = usize::try_from(self.tail.unwrap_or(TAIL).min(MAX_TAIL)).unwrap_or_default();
        Ok(Search::new(LineFilter { since: self.since, until: self.until, pattern, most }))
    }
}

/// Searches the journal.
pub async fn in_journal(journal: &Journal, query: &Query) -> Result<SearchResult, LogError> {
    let mut search = query.search()?;
    let mut entries = journal.backwards(query.since, query.until)?;
    let deadline = Instant::now() + LONGEST;
    loop {
        let Ok(next) = tokio::time::timeout_at(deadline, entries.next()).await else {
            search.stop();
            break;
        };
        let goes_on = match next? {
            Some(Item::Line(line)) => search.look(line),
            Some(Item::Dropped(_)) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        };
        if goes_on.is_break() {
            break;
        }
    }
    Ok(search.finish())
}

/// Searches the newest of a container's output: an engine cannot return lines from the end back.
pub async fn in_container(docker: &Docker, container_id: String, query: &Query) -> Result<SearchResult, RequestError> {
    let mut search = query.search()?;
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
    let has_enough = newest.lines.into_iter().rev().any(|line| search.look(line).is_break());
    if is_cut && !has_enough {
        search.stop();
    }
    Ok(search.finish())
}

/// Searches a file, on a thread of its own.
pub async fn in_file(place: Location, query: Query, threads: Arc<Semaphore>) -> Result<SearchResult, LogError> {
    let permit = threads.try_acquire_owned().map_err(|_| LogError::Busy)?;
    let search = query.search()?;
    let deadline = std::time::Instant::now() + LONGEST;
    on_a_thread(permit, move || search_file(&place, search, deadline)).await
}

fn search_file(place: &Location, mut search: Search, deadline: std::time::Instant) -> Result<SearchResult, LogError> {
    let file = place.open()?;
    let mut lines = Backwards::new(&file, file.metadata()?.len());
    loop {
        if std::time::Instant::now() >= deadline {
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
        let search = || Query::parse(json!({"source": "file"})).unwrap().search().unwrap();
        let now = std::time::Instant::now();

        let cut_short = search_file(&Location::Named(path.clone()), search(), now).unwrap();
        let whole = search_file(&Location::Named(path), search(), now + LONGEST).unwrap();

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
