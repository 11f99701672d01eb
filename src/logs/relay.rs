//! A log that is streamed here, for watchers on another instance: the lines as the agent wrote them, within their credit.

use std::collections::VecDeque;
use std::time::Duration;

use bytestring::ByteString;
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, LogLine, LogLines, LogsStart, RequestError};
use signalbox_protocol::frontend::FeedMessage;
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use super::stream::AGENT_OFFLINE;
use super::{Log, LogSource, Logs, Rest, Watcher};
use crate::fleet::Fleet;
use crate::registry::CallError;

/// Bytes that are taken of the ring at a time.
const TAKEN_AT_ONCE: i64 = 64 * 1024;

/// How often it is looked whether the agent is here.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One more watcher of a log, who is elsewhere.
pub struct Relay {
    watcher: Watcher,
    news: watch::Receiver<()>,
    fleet: Fleet,
    lines: Lines,
    /// Bytes of lines that may be sent; below nothing when the last ones were more than was left.
    credit: i64,
}

/// What was taken and not sent yet. Pure.
#[derive(Debug)]
struct Lines {
    stream_id: Uuid,
    ready: VecDeque<LogLines>,
    /// How it ended.
    end: Option<CallError>,
}

impl Logs {
    /// Watches a log of an agent here for another instance.
    pub fn relay(&self, server_id: Uuid, start: LogsStart) -> Result<Relay, CallError> {
        let LogsStart { stream_id, source, container_id, path, tail, credit, by } = start;
        let unknown = || CallError::Agent(RequestError::new("agent_error", "no such kind of log"));
        let source = LogSource::of(&source, container_id, path).ok_or_else(unknown)?;
        let watcher = self.watch(Log { server_id, source }, tail.unwrap_or_default(), by.unwrap_or_default());
        let news = watcher.stream.news();
        let lines = Lines { stream_id, ready: VecDeque::new(), end: None };
        let credit = credit.map_or(i64::MAX, bytes);
        Ok(Relay { watcher, news, fleet: self.fleet.clone(), lines, credit })
    }
}

impl Relay {
    /// Lets so many bytes more be sent.
    pub fn grant(&mut self, granted: u64) {
        self.credit = self.credit.saturating_add(bytes(granted));
    }

    /// The next lines; none when there will be no more. May be dropped half-way: nothing is lost.
    pub async fn next(&mut self) -> Option<AgentMessage> {
        loop {
            // What comes from here on wakes it again.
            self.news.mark_unchanged();
            if self.lines.ready.is_empty() {
                if self.lines.end.is_some() {
                    return None;
                }
                if self.take() == Rest::More && self.lines.ready.is_empty() {
                    continue;
                }
            }
            // Without credit not even a message that costs nothing may be sent.
            if self.credit > 0
                && let Some(lines) = self.lines.ready.pop_front()
            {
                let cost: u64 = lines.lines.iter().map(LogLine::cost).sum();
                self.credit = self.credit.saturating_sub(bytes(cost));
                return Some(AgentMessage::LogLines(lines));
            }
            if self.lines.ready.is_empty() && self.lines.end.is_some() {
                continue;
            }
            if timeout(LOOK_EVERY, self.news.changed()).await.is_err()
                && !self.fleet.is_here(self.watcher.log.server_id)
            {
                // Whoever watches asks the instance that has it now.
                self.lines.end = Some(CallError::Disconnected);
            }
        }
    }

    /// Takes what comes next, as much as there is credit for.
    fn take(&mut self) -> Rest {
        let most = usize::try_from(self.credit.min(TAKEN_AT_ONCE)).unwrap_or_default();
        if most == 0 {
            return Rest::Later;
        }
        let (messages, rest) = self.watcher.take_at_most(most);
        self.lines.add(messages, rest);
        rest
    }

    /// How it ended.
    pub fn outcome(&mut self) -> Result<Value, CallError> {
        Err(self.lines.end.take().unwrap_or(CallError::Disconnected))
    }
}

impl Lines {
    fn add(&mut self, messages: Vec<ByteString>, rest: Rest) {
        for message in messages {
            match serde_json::from_str(&message) {
                Ok(FeedMessage::Log { timestamp, stream, message, .. }) => {
                    self.push(LogLine { timestamp, stream, message });
                }
                Ok(FeedMessage::Dropped { count }) => {
                    let dropped = LogLines { stream_id: self.stream_id, lines: Vec::new(), dropped: count };
                    self.ready.push_back(dropped);
                }
                Ok(FeedMessage::Error { code, .. }) if code == AGENT_OFFLINE => {
                    self.end = Some(CallError::Disconnected);
                    return;
                }
                Ok(FeedMessage::Error { code, detail }) => {
                    self.end = Some(CallError::Agent(RequestError::new(&code, &detail)));
                    return;
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "a line could not be handed on"),
            }
        }
        if rest == Rest::Over {
            self.end = Some(CallError::Disconnected);
        }
    }

    fn push(&mut self, line: LogLine) {
        match self.ready.back_mut() {
            Some(last) => last.lines.push(line),
            None => self.ready.push_back(LogLines { stream_id: self.stream_id, lines: vec![line], dropped: 0 }),
        }
    }
}

fn bytes(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Encoding;

    use super::*;

    fn lines() -> Lines {
        Lines { stream_id: Uuid::nil(), ready: VecDeque::new(), end: None }
    }

    fn text(message: &FeedMessage) -> ByteString {
        ByteString::try_from(Encoding::Json.encode(message).unwrap()).unwrap()
    }

    fn line(message: &str) -> ByteString {
        let (source, message) = ("system".to_owned(), message.to_owned());
        text(&FeedMessage::Log { source, timestamp: None, stream: Some("cron".to_owned()), message })
    }

    fn error(code: &str) -> ByteString {
        text(&FeedMessage::Error { code: code.to_owned(), detail: "why".to_owned() })
    }

    fn told(lines: &Lines) -> Vec<(u64, Vec<&str>)> {
        let texts = lines.ready.iter().map(|some| some.lines.iter().map(|line| line.message.as_str()).collect());
        lines.ready.iter().map(|some| some.dropped).zip(texts).collect()
    }

    #[test]
    fn lines_that_are_missing_are_told_where_they_were() {
        let mut lines = lines();
        let dropped = |count| text(&FeedMessage::Dropped { count });

        lines.add(vec![line("one"), line("two"), dropped(3), line("six"), dropped(2)], Rest::Later);

        assert_eq!(told(&lines), [(0, vec!["one", "two"]), (3, vec!["six"]), (2, vec![])]);
        assert_eq!(lines.ready[0].lines[0].stream.as_deref(), Some("cron"));
        assert_eq!(lines.end, None);
    }

    #[test]
    fn why_a_log_ended_is_told_behind_its_lines() {
        let mut lines = lines();

        lines.add(vec![line("last"), error("path_not_allowed")], Rest::Over);

        assert_eq!(told(&lines), [(0, vec!["last"])]);
        assert_eq!(lines.end, Some(CallError::Agent(RequestError::new("path_not_allowed", "why"))));
    }

    #[test]
    fn an_agent_that_has_gone_is_looked_for_elsewhere() {
        let mut lines = lines();

        lines.add(vec![line("last"), error(AGENT_OFFLINE), line("of the next time")], Rest::Later);

        assert_eq!(told(&lines), [(0, vec!["last"])]);
        assert_eq!(lines.end, Some(CallError::Disconnected));
    }
}
