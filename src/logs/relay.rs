//! Sends a log that this instance streams to another instance: the lines as the agent sent them, within the credit that
//! the other instance grants.

use std::collections::VecDeque;
use std::time::Duration;

use bytestring::ByteString;
use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, LogLine, LogLines, LogsStart, RequestError};
use signalbox_protocol::frontend::FeedMessage;
use tokio::time::timeout;
use uuid::Uuid;

use super::stream::AGENT_OFFLINE;
use super::{Log, LogSource, Logs, Rest, Watcher};
use crate::fleet::Fleet;
use crate::registry::CallError;

/// Bytes that are taken from the ring at once.
const TAKEN_AT_ONCE: i64 = 64 * 1024;

/// How often to check whether the agent is still connected to this instance.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A watcher of a log for another instance.
pub struct Relay {
    watcher: Watcher,
    fleet: Fleet,
    lines: Lines,
    /// Bytes of lines that may be sent; negative if the last lines exceeded what was left.
    credit: i64,
}

/// Lines that were taken and are not sent yet. Pure.
#[derive(Debug)]
struct Lines {
    stream_id: Uuid,
    ready: VecDeque<LogLines>,
    /// How the log ended.
    end: Option<CallError>,
}

impl Logs {
    /// Watches a log of one of this instance's agents for another instance.
    pub fn relay(&self, server_id: Uuid, start: LogsStart) -> Result<Relay, CallError> {
        let LogsStart { stream_id, source, container_id, path, tail, credit, by } = start;
        let unknown = || CallError::Agent(RequestError::new("agent_error", "no such kind of log"));
        let source = LogSource::of(&source, container_id, path).ok_or_else(unknown)?;
        let watcher = self.watch(Log { server_id, source }, tail.unwrap_or_default(), by.unwrap_or_default());
        let lines = Lines { stream_id, ready: VecDeque::new(), end: None };
        let credit = credit.map_or(i64::MAX, bytes);
        Ok(Relay { watcher, fleet: self.fleet.clone(), lines, credit })
    }
}

impl Relay {
    /// Allows `granted` more bytes to be sent.
    pub fn grant(&mut self, granted: u64) {
        self.credit = self.credit.saturating_add(bytes(granted));
    }

    /// Returns the next lines; `None` when there will be no more. The future may be dropped at any time without loss.
    pub async fn next(&mut self) -> Option<AgentMessage> {
        loop {
            // Lines that arrive from here on wake it again. The watcher may have moved to another stream.
            let mut news = self.watcher.stream.news();
            if self.lines.ready.is_empty() {
                if self.lines.end.is_some() {
                    return None;
                }
                if self.take() == Rest::More && self.lines.ready.is_empty() {
                    continue;
                }
            }
            // Without credit nothing is sent, not even a message without lines.
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
            if timeout(LOOK_EVERY, news.changed()).await.is_err() && !self.fleet.is_here(self.watcher.log.server_id) {
                // The watcher then asks the instance that has the agent now.
                self.lines.end = Some(CallError::Disconnected);
            }
        }
    }

    /// Takes the next lines, as far as the credit allows.
    fn take(&mut self) -> Rest {
        let most = usize::try_from(self.credit.min(TAKEN_AT_ONCE)).unwrap_or_default();
        if most == 0 {
            return Rest::Later;
        }
        let (messages, rest) = self.watcher.take_at_most(most);
        self.lines.add(messages, rest);
        rest
    }

    /// Returns how the log ended.
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
                Ok(FeedMessage::Error { code, detail, .. }) => {
                    self.end = Some(CallError::Agent(RequestError::new(&code, &detail)));
                    return;
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "a log line could not be forwarded"),
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
        text(&FeedMessage::Error { code: code.to_owned(), detail: "why".to_owned(), reason: None })
    }

    fn told(lines: &Lines) -> Vec<(u64, Vec<&str>)> {
        let texts = lines.ready.iter().map(|some| some.lines.iter().map(|line| line.message.as_str()).collect());
        lines.ready.iter().map(|some| some.dropped).zip(texts).collect()
    }

    #[test]
    fn missing_lines_are_reported_where_they_were() {
        let mut lines = lines();
        let dropped = |count| text(&FeedMessage::Dropped { count });

        lines.add(vec![line("one"), line("two"), dropped(3), line("six"), dropped(2)], Rest::Later);

        assert_eq!(told(&lines), [(0, vec!["one", "two"]), (3, vec!["six"]), (2, vec![])]);
        assert_eq!(lines.ready[0].lines[0].stream.as_deref(), Some("cron"));
        assert_eq!(lines.end, None);
    }

    #[test]
    fn the_reason_for_the_end_follows_the_lines() {
        let mut lines = lines();

        lines.add(vec![line("last"), error("path_not_allowed")], Rest::Over);

        assert_eq!(told(&lines), [(0, vec!["last"])]);
        assert_eq!(lines.end, Some(CallError::Agent(RequestError::new("path_not_allowed", "why"))));
    }

    #[test]
    fn an_agent_that_has_left_ends_the_relay_as_disconnected() {
        let mut lines = lines();

        lines.add(vec![line("last"), error(AGENT_OFFLINE), line("of the next time")], Rest::Later);

        assert_eq!(told(&lines), [(0, vec!["last"])]);
        assert_eq!(lines.end, Some(CallError::Disconnected));
    }
}
