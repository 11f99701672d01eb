//! Decides line by line, newest first, which lines an answer contains, without reading anything.

use std::ops::ControlFlow;
use std::time::Instant;

use regex::{Regex, RegexBuilder};
use serde::Serialize;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;

use super::error::LogError;

/// The most bytes of lines in an answer, which must fit a message.
const MAX_BYTES: u64 = 3 * 1024 * 1024;
/// Memory that a compiled pattern may take, and its cache.
const PATTERN_BYTES: usize = 1024 * 1024;
/// The most lines without a time of their own that wait for the line that they belong to.
const MAX_UNDATED: usize = 1_000;

/// What a line must match.
pub struct LineFilter {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub pattern: Option<Regex>,
    pub most: usize,
}

/// The meaning of `q`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Letters match in either case, unless one is a capital.
    Text,
    Regex,
}

/// Compiles what is searched for.
pub fn compile(q: &str, kind: Pattern) -> Result<Regex, LogError> {
    let (pattern, ignores_case) = match kind {
        Pattern::Text => (regex::escape(q), !q.chars().any(char::is_uppercase)),
        Pattern::Regex => (q.to_owned(), false),
    };
    RegexBuilder::new(&pattern)
        .case_insensitive(ignores_case)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build()
        .map_err(|error| LogError::Pattern(error.to_string()))
}

/// An answer, oldest line first.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct SearchResult {
    pub lines: Vec<LogLine>,
    /// Not everything was searched: it took too long, or the answer became too large.
    pub truncated: bool,
    /// The time of the oldest line that was searched, where that is known and not everything was.
    pub stopped_at: Option<Timestamp>,
}

/// A growing answer, newest line first.
pub struct Search {
    wanted: LineFilter,
    deadline: Instant,
    found: SearchResult,
    bytes: u64,
    undated: Vec<LogLine>,
    oldest: Option<Timestamp>,
}

impl Search {
    /// A search that stops at `deadline`: a pattern may take long for a single line.
    pub fn new(wanted: LineFilter, deadline: Instant) -> Self {
        Self { wanted, deadline, found: SearchResult::default(), bytes: 0, undated: Vec::new(), oldest: None }
    }

    /// Adds the next older line. A line without a time, as in a stack trace, has that of the dated line before it.
    pub fn look(&mut self, line: LogLine) -> ControlFlow<()> {
        let has_range = self.wanted.since.is_some() || self.wanted.until.is_some();
        let Some(time) = line.timestamp else {
            if has_range && self.undated.len() < MAX_UNDATED {
                self.undated.push(line);
                return ControlFlow::Continue(());
            }
            return self.judge(line, None);
        };
        self.oldest = Some(time);
        for undated in std::mem::take(&mut self.undated) {
            self.judge(undated, Some(time))?;
        }
        self.judge(line, Some(time))
    }

    fn judge(&mut self, line: LogLine, time: Option<Timestamp>) -> ControlFlow<()> {
        if self.found.lines.len() >= self.wanted.most {
            return ControlFlow::Break(());
        }
        if time.is_some_and(|time| self.wanted.since.is_some_and(|since| time < since)) {
            return ControlFlow::Break(());
        }
        if Instant::now() >= self.deadline {
            self.stop();
            return ControlFlow::Break(());
        }
        let is_late = time.is_some_and(|time| self.wanted.until.is_some_and(|until| time > until));
        let is_match = self.wanted.pattern.as_ref().is_none_or(|pattern| pattern.is_match(&line.message));
        if is_late || !is_match {
            return ControlFlow::Continue(());
        }
        self.bytes += line.cost();
        if self.bytes > MAX_BYTES {
            self.stop();
            return ControlFlow::Break(());
        }
        self.found.lines.push(line);
        if self.found.lines.len() >= self.wanted.most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Records that not everything was searched.
    pub fn stop(&mut self) {
        self.found.truncated = true;
        self.found.stopped_at = self.oldest;
    }

    /// Returns the answer. It includes lines whose time is unknown.
    pub fn finish(mut self) -> SearchResult {
        if !self.found.truncated {
            let undated = std::mem::take(&mut self.undated);
            _ = undated.into_iter().try_for_each(|line| self.judge(line, None));
        }
        self.found.lines.reverse();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::lines::file_line;
    use super::*;

    fn wanted() -> LineFilter {
        LineFilter { since: None, until: None, pattern: None, most: 100 }
    }

    fn search(wanted: LineFilter, oldest_first: &[&str]) -> SearchResult {
        search_until(Instant::now() + Duration::from_secs(600), wanted, oldest_first)
    }

    fn search_until(deadline: Instant, wanted: LineFilter, oldest_first: &[&str]) -> SearchResult {
        let mut search = Search::new(wanted, deadline);
        for line in oldest_first.iter().rev() {
            if search.look(file_line((*line).to_owned())).is_break() {
                break;
            }
        }
        search.finish()
    }

    fn messages(found: &SearchResult) -> Vec<&str> {
        found.lines.iter().map(|line| line.message.as_str()).collect()
    }

    #[test]
    fn the_newest_lines_win_and_the_oldest_comes_first() {
        let found = search(LineFilter { most: 2, ..wanted() }, &["a", "b", "c"]);

        assert_eq!(messages(&found), ["b", "c"]);
        assert!(!found.truncated);
    }

    #[test]
    fn a_text_matches_either_case_unless_it_has_a_capital() {
        let lines = ["Error: a.b", "error: axb", "fine"];
        let find = |q, kind| {
            let pattern = Some(compile(q, kind).unwrap());
            search(LineFilter { pattern, ..wanted() }, &lines).lines.len()
        };

        assert_eq!(find("error", Pattern::Text), 2);
        assert_eq!(find("Error", Pattern::Text), 1);
        assert_eq!(find("a.b", Pattern::Text), 1);
        assert_eq!(find("^error: a.b$", Pattern::Regex), 1);
        assert_eq!(find("(?i)^error: a.b$", Pattern::Regex), 2);
    }

    #[test]
    fn a_pattern_that_is_none_or_too_large_is_refused() {
        for pattern in ["(", "a{1000}{1000}{1000}", "\\w{5000}"] {
            assert!(matches!(compile(pattern, Pattern::Regex), Err(LogError::Pattern(_))), "{pattern}");
        }
    }

    #[test]
    fn lines_without_a_time_go_with_the_line_before_them() {
        let lines = [
            "lost beginning",
            "2026-11-20T09:00:00Z early",
            "  trace of early",
            "2026-11-20T10:00:00Z panic",
            "  at main",
            "  at start",
            "2026-11-20T11:00:00Z late",
            "  trace of late",
        ];
        let since = Timestamp::parse("2026-11-20T09:30:00Z");
        let until = Timestamp::parse("2026-11-20T10:30:00Z");

        let found = search(LineFilter { since, until, ..wanted() }, &lines);

        assert_eq!(messages(&found), ["2026-11-20T10:00:00Z panic", "  at main", "  at start"]);
        assert_eq!(search(LineFilter { until, ..wanted() }, &lines).lines.len(), 6);
    }

    #[test]
    fn a_search_whose_time_is_up_looks_at_no_line_any_more() {
        let until = Timestamp::parse("2026-11-20T10:00:00Z");
        let lines = ["2026-11-20T09:00:00Z early", "  trace of early"];

        let found = search_until(Instant::now(), wanted(), &lines);
        // Lines without a time are checked last where a range is asked for.
        let undated = search_until(Instant::now(), LineFilter { until, ..wanted() }, &lines[1..]);

        assert!(found.lines.is_empty() && found.truncated);
        assert!(undated.lines.is_empty() && undated.truncated);
    }

    #[test]
    fn an_answer_that_would_be_too_large_says_where_it_stopped() {
        let line = format!("2026-11-20T09:00:00Z {}", "x".repeat(60_000));
        let lines = vec![line.as_str(); 100];

        let found = search(wanted(), &lines);

        assert!(found.truncated && found.lines.len() > 40, "{}", found.lines.len());
        assert_eq!(found.stopped_at, Timestamp::parse("2026-11-20T09:00:00Z"));
    }
}
