//! Logs of servers: followed, with one stream from the agent for all watchers, and searched.
//!
//! A watched log has a [`stream`]: a task that reads the agent's lines into a [`ring`] of the newest ones, each encoded
//! once as the message that watchers get. A [`Watcher`] is a position in that ring. A slow watcher loses lines and learns
//! how many, and delays nobody. The agent gets credit as the fastest watcher takes lines, so a log is read no faster than
//! somebody reads it. The stream starts with the first watcher and ends with the last.
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
use dashmap::mapref::entry::Entry;
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
    watched: Arc<DashMap<Log, WatchedLog>>,
}

/// A log that is being watched.
struct WatchedLog {
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
        let stream = match self.watched.entry(log.clone()) {
            Entry::Occupied(mut entry) if !entry.get().stream.is_over() => {
                let watched = entry.get_mut();
                watched.watchers += 1;
                watched.stream.clone()
            }
            Entry::Occupied(mut entry) => {
                // The stream has ended, and its watchers are learning that; a new watcher gets a new one.
                let watched = self.start(log.clone(), tail, by);
                let stream = watched.stream.clone();
                entry.insert(watched);
                stream
            }
            Entry::Vacant(entry) => entry.insert(self.start(log.clone(), tail, by)).stream.clone(),
        };
        let cursor = stream.cursor(tail);
        Watcher { logs: self.clone(), log, stream, cursor }
    }

    /// Returns how many logs are being streamed.
    pub fn streams(&self) -> usize {
        self.watched.len()
    }

    fn start(&self, log: Log, tail: u32, by: String) -> WatchedLog {
        let stream = Arc::new(Stream::new(log.source.name()));
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
        WatchedLog { stream, watchers: 1, task }
    }

    /// Takes in that a watcher has gone. The last one ends the stream.
    fn leave(&self, log: &Log, stream: &Arc<Stream>) {
        let ended = self.watched.remove_if_mut(log, |_, watched| {
            if !Arc::ptr_eq(&watched.stream, stream) {
                return false;
            }
            watched.watchers = watched.watchers.saturating_sub(1);
            watched.watchers == 0
        });
        if let Some((_, watched)) = ended {
            watched.task.abort();
        }
    }
}

/// A watcher's position in a log. It stops watching when dropped.
pub struct Watcher {
    logs: Logs,
    log: Log,
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
    /// Returns the topic that wakes the watcher when there is something to take.
    pub fn topic(&self) -> Topic {
        Topic::Log(self.stream.id)
    }

    /// Returns the next messages, a bounded amount.
    pub fn take(&mut self) -> (Vec<ByteString>, Rest) {
        self.take_at_most(PIECE_BYTES)
    }

    fn take_at_most(&mut self, bytes: usize) -> (Vec<ByteString>, Rest) {
        self.stream.take(&mut self.cursor, bytes)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.logs.leave(&self.log, &self.stream);
    }
}
