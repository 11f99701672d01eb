//! The logs that the service follows. The lines follow from the time, so a stream keeps nothing but where it is.

use signalbox_protocol::agent::{LogLines, LogsStart, RequestError, Response};
use uuid::Uuid;

use super::super::containers::find;
use super::super::journal::{Log, lines, newest};
use super::Site;

/// The most streams; more are refused.
const MAX_STREAMS: usize = 32;

/// The most lines of one message, and of the end of a log.
const MAX_LINES: usize = 500;

/// Lines that come before the new ones, where the service names no number.
const TAIL: u32 = 100;

#[derive(Default)]
pub struct Streams(Vec<FollowedLog>);

struct FollowedLog {
    stream_id: Uuid,
    log: Log<'static>,
    /// From when on lines are to be sent.
    next_ms: i64,
    /// None where any number of bytes may be sent.
    credit: Option<u64>,
}

/// The log that a question is about.
pub fn log_of(site: &Site, source: &str, container_id: Option<&str>) -> Result<Log<'static>, RequestError> {
    match source {
        "system" => Ok(Log::System),
        "container" => {
            let found = find(&site.machine, container_id.unwrap_or_default());
            found.map(Log::Container).ok_or_else(|| RequestError::new("container_not_found", "no such container"))
        }
        "file" => Err(RequestError::new("path_not_allowed", "a simulated server has no files to read")),
        _ => Err(RequestError::new("unsupported_source", "this agent cannot read the source")),
    }
}

impl Streams {
    /// Starts a stream, or returns the refusal.
    pub fn start(&mut self, site: &Site, start: LogsStart, at_ms: i64) -> Option<Response> {
        let LogsStart { stream_id, source, container_id, tail, credit, .. } = start;
        let refused = |error| Some(Response::new(stream_id, Err(error)));
        if self.0.len() >= MAX_STREAMS {
            return refused(RequestError::new("agent_busy", "the agent has too many streams already"));
        }
        let log = match log_of(site, &source, container_id.as_deref()) {
            Ok(log) => log,
            Err(error) => return refused(error),
        };
        let most = usize::try_from(tail.unwrap_or(TAIL)).unwrap_or(MAX_LINES).min(MAX_LINES);
        let last = newest(site.course, &site.machine, log, (None, at_ms), most, |_| true);
        let first = last.first().and_then(|line| line.timestamp);
        let next_ms = first.map_or(at_ms, |first| first.as_millis());
        self.0.push(FollowedLog { stream_id, log, next_ms, credit });
        None
    }

    pub fn stop(&mut self, stream_id: Uuid) {
        self.0.retain(|stream| stream.stream_id != stream_id);
    }

    pub fn credit(&mut self, stream_id: Uuid, bytes: u64) {
        let credits = self.0.iter_mut().filter(|stream| stream.stream_id == stream_id);
        credits.filter_map(|stream| stream.credit.as_mut()).for_each(|credit| *credit = credit.saturating_add(bytes));
    }

    /// The lines of all streams that are due and for which there is credit.
    pub fn flow(&mut self, site: &Site, at_ms: i64) -> Vec<LogLines> {
        self.0.iter_mut().filter_map(|stream| stream.flow(site, at_ms)).collect()
    }
}

impl FollowedLog {
    fn flow(&mut self, site: &Site, at_ms: i64) -> Option<LogLines> {
        if let Log::Container(service) = self.log
            && site.stopped.contains(service.name)
        {
            self.next_ms = at_ms;
            return None;
        }
        let found = lines(site.course, &site.machine, self.log, (self.next_ms, at_ms), MAX_LINES);
        let (is_all, count) = (found.len() < MAX_LINES, found.len());
        let mut sent = Vec::new();
        for line in found {
            let (cost, line_ms) = (line.cost(), line.timestamp.map_or(at_ms, |time| time.as_millis()));
            match &mut self.credit {
                Some(credit) if *credit < cost => break,
                Some(credit) => *credit -= cost,
                None => {}
            }
            self.next_ms = line_ms + 1;
            sent.push(line);
        }
        if is_all && sent.len() == count {
            self.next_ms = at_ms;
        }
        (!sent.is_empty()).then_some(LogLines { stream_id: self.stream_id, lines: sent, dropped: 0 })
    }
}
