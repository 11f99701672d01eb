//! Logs of servers: followed, with streams from the agent that watchers share, and searched.
//!
//! A watched log has a [`stream`]: a task that reads the agent's lines into a [`ring`] of the newest ones, each encoded
//! once as the message that watchers get. A [`Watcher`] is a position in that ring. A slow watcher loses lines and learns
//! how many, and delays nobody. The agent gets credit as the fastest watcher takes lines, so a log is read no faster than
//! somebody reads it. The stream starts with the first watcher and ends with the last. A watcher that asks for more of the
//! existing lines than the ring holds, or for fewer than are still to come, gets another stream of the log, unless there are
//! enough or the agent has no place for it.
//!
//! On the instance that owns the server, a watcher on another instance is a [`Relay`]: one more position in the ring. The
//! other instance has its own ring for all its watchers.
//!
//! While the agent is disconnected, watchers get a notice. Afterwards they see new lines only; a search finds those
//! written during that time.

mod query;
mod relay;
mod ring;
mod stream;

use std::sync::Arc;

use bytestring::ByteString;
use dashmap::DashMap;
use tokio::task::AbortHandle;
use uuid::Uuid;

pub use query::{FoundLine, Search, SearchResult};
pub use relay::Relay;

use crate::cluster::company::Company;
use crate::feeds::{Feeds, Topic};
use crate::fleet::Fleet;
use crate::registry::RegistryHandle;
use ring::Cursor;
use stream::Stream;

/// Bytes written to one socket before the others get their turn.
const PIECE_BYTES: usize = 256 * 1024;

/// Streams of one log. Further watchers share them, with the lines that they have, so that a few logs do not take all the 32
/// streams that an agent may have: terminals need some.
const MAX_STREAMS: usize = 3;

/// A kind of log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogSource {
    /// The journal, or syslog.
    System,
    Container(String),
    File(String),
}

impl LogSource {
    /// Returns the log that a request names; `None` for an unknown kind or a missing field.
    fn of(name: &str, container_id: Option<String>, path: Option<String>) -> Option<Self> {
        match name {
            "system" => Some(Self::System),
            "container" => container_id.map(Self::Container),
            "file" => path.map(Self::File),
            _ => None,
        }
    }

    /// Returns its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Container(_) => "container",
            Self::File(_) => "file",
        }
    }

    pub fn container_id(&self) -> Option<&str> {
        match self {
            Self::Container(id) => Some(id),
            Self::System | Self::File(_) => None,
        }
    }

    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File(path) => Some(path),
            Self::System | Self::Container(_) => None,
        }
    }
}

/// One log of one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Log {
    pub server_id: Uuid,
    pub source: LogSource,
}

/// Watches and searches logs; cheap to clone.
#[derive(Clone)]
pub struct Logs {
    registry: RegistryHandle,
    feeds: Feeds,
    fleet: Fleet,
    company: Arc<dyn Company>,
    /// The streams of each log that is being watched, oldest first.
    watched: Arc<DashMap<Log, Vec<WatchedStream>>>,
}

/// A stream that somebody watches.
struct WatchedStream {
    stream: Arc<Stream>,
    watchers: usize,
    task: AbortHandle,
}

impl Logs {
    pub fn new(registry: RegistryHandle, feeds: Feeds, fleet: Fleet, company: Arc<dyn Company>) -> Self {
        Self { registry, feeds, fleet, company, watched: Arc::default() }
    }

    /// Watches a log: its last `tail` lines, then each new one. `by` names the person in the log of the agent's own host.
    pub fn watch(&self, log: Log, tail: u32, by: String) -> Watcher {
        let mut streams = self.watched.entry(log.clone()).or_default();
        let shared = shared_by(&streams, tail);
        let stream = match shared.and_then(|place| streams.get_mut(place)) {
            Some(watched) => watched.join(),
            None => {
                let watched = self.start(log.clone(), tail, by);
                let stream = watched.stream.clone();
                streams.push(watched);
                stream
            }
        };
        drop(streams);
        let cursor = stream.cursor(tail);
        Watcher { logs: self.clone(), log, tail, stream, cursor }
    }

    /// Returns how many streams of logs there are.
    pub fn streams(&self) -> usize {
        self.watched.iter().map(|streams| streams.value().len()).sum()
    }

    fn start(&self, log: Log, tail: u32, by: String) -> WatchedStream {
        let stream = Arc::new(Stream::new(log.source.name(), tail));
        let reader = stream::Reader {
            registry: self.registry.clone(),
            feeds: self.feeds.clone(),
            fleet: self.fleet.clone(),
            company: self.company.clone(),
            stream: stream.clone(),
            log,
            by,
        };
        let task = tokio::spawn(reader.run(tail)).abort_handle();
        WatchedStream { stream, watchers: 1, task }
    }

    /// Moves a watcher to another stream of its log, if there is one.
    fn move_on(&self, log: &Log, stream: &Arc<Stream>) -> Option<Arc<Stream>> {
        let mut streams = self.watched.get_mut(log)?;
        let other = fittest(&streams).and_then(|place| streams.get_mut(place))?.join();
        drop(streams);
        self.leave(log, stream);
        Some(other)
    }

    /// Takes in that a watcher has gone. The last one ends the stream.
    fn leave(&self, log: &Log, stream: &Arc<Stream>) {
        self.watched.remove_if_mut(log, |_, streams| {
            let place = streams.iter().position(|watched| Arc::ptr_eq(&watched.stream, stream));
            if let Some(watched) = place.and_then(|place| streams.get_mut(place)) {
                watched.watchers = watched.watchers.saturating_sub(1);
            }
            for ended in streams.extract_if(.., |watched| watched.watchers == 0) {
                ended.task.abort();
            }
            streams.is_empty()
        });
    }
}

impl WatchedStream {
    /// Takes in that there is one more watcher.
    fn join(&mut self) -> Arc<Stream> {
        self.watchers += 1;
        self.stream.clone()
    }
}

/// Returns the place of the stream that a further watcher shares. `None` if it gets a stream of its own.
fn shared_by(streams: &[WatchedStream], tail: u32) -> Option<usize> {
    let fitting = streams.iter().position(|watched| watched.stream.can_give(tail));
    let live = streams.iter().filter(|watched| !watched.stream.is_over()).count();
    if live < MAX_STREAMS { fitting } else { fitting.or_else(|| fittest(streams)) }
}

/// Returns the place of the stream that serves a watcher best where none can give all that it asks for; of equal ones the newest.
fn fittest(streams: &[WatchedStream]) -> Option<usize> {
    let live = streams.iter().enumerate().filter_map(|(place, watched)| Some((watched.stream.supply()?, place)));
    live.max().map(|(_, place)| place)
}

/// A watcher's position in a log. It stops watching when dropped.
pub struct Watcher {
    logs: Logs,
    log: Log,
    tail: u32,
    stream: Arc<Stream>,
    cursor: Cursor,
}

/// What follows the messages that a watcher took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Nothing yet: the feeds wake the watcher.
    Later,
    /// More messages, which can be taken at once.
    More,
    /// Nothing: the log has ended.
    Over,
}

impl Watcher {
    /// Returns the topic that wakes the watcher when there is something to take. It may be another one after each
    /// [`take`](Self::take).
    pub fn topic(&self) -> Topic {
        Topic::Log(self.stream.id)
    }

    /// Returns the next messages, a bounded amount.
    pub fn take(&mut self) -> (Vec<ByteString>, Rest) {
        self.take_at_most(PIECE_BYTES)
    }

    fn take_at_most(&mut self, bytes: usize) -> (Vec<ByteString>, Rest) {
        let taken = self.stream.take(&mut self.cursor, bytes);
        if taken.1 == Rest::Over
            && self.stream.is_busy()
            && let Some(other) = self.logs.move_on(&self.log, &self.stream)
        {
            // What was taken is the agent's refusal, which does not concern the watcher any more.
            self.cursor = other.cursor(self.tail);
            self.stream = other;
            return (Vec::new(), Rest::More);
        }
        taken
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.logs.leave(&self.log, &self.stream);
    }
}
