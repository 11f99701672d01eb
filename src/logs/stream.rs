//! One log as it comes from its agent, for everybody who watches it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use serde_json::Value;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{AgentMessage, LogLine, LogLines, LogsStart};
use signalbox_protocol::frontend::FeedMessage;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::ring::{Cursor, LastNotice, Piece, Ring};
use super::{Log, Rest};
use crate::cluster::company::Company;
use crate::feeds::{Feeds, Topic};
use crate::fleet::Fleet;
use crate::registry::{AgentStream, CallError, RegistryHandle};

/// The newest lines of a log: what somebody may be behind, and what there is for who comes later.
const RING_BYTES: usize = 2 * 1024 * 1024;

/// What an agent may send before somebody has read it: it must fit the ring.
const WINDOW: u64 = 512 * 1024;

/// Credit is given in portions, so that it costs few messages.
const PORTION: u64 = WINDOW / 8;

/// Agents cut lines before; this is for those that do not.
const MOST_MESSAGE_BYTES: usize = 80 * 1024;
const MOST_STREAM_BYTES: usize = 256;

/// More than an honest agent can lose between two messages.
const MOST_DROPPED: u64 = u32::MAX as u64;

/// How often to look whether an agent that was away is back.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often to ask other instances for it: every so many looks.
const ASK_EVERY: u32 = 4;

/// What watchers are told while the agent is away.
pub const AGENT_OFFLINE: &str = "agent_offline";

/// A stream that has stood for so long, or brought lines, was opened.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// What watchers share.
pub struct Stream {
    pub id: Uuid,
    source: &'static str,
    shared: Mutex<Shared>,
    /// Credit that the agent has not been given back yet.
    due: AtomicU64,
    is_due: Notify,
    /// Changes when there is something to take.
    news: watch::Sender<()>,
}

struct Shared {
    ring: Ring,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Live,
    /// The agent is away; watchers were told.
    Away,
    /// Nothing more will come.
    Over,
}

impl Stream {
    pub fn new(source: &'static str) -> Self {
        let shared = Shared { ring: Ring::new(RING_BYTES), phase: Phase::Live };
        let (due, is_due, news) = (AtomicU64::new(0), Notify::new(), watch::Sender::new(()));
        Self { id: Uuid::now_v7(), source, shared: Mutex::new(shared), due, is_due, news }
    }

    pub fn is_over(&self) -> bool {
        self.shared.lock().phase == Phase::Over
    }

    /// Changes when there is something to take.
    pub fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// A place for somebody who begins to watch.
    pub fn cursor(&self, tail: u32) -> Cursor {
        let shared = self.shared.lock();
        let last_notice = if shared.phase == Phase::Live { LastNotice::Past } else { LastNotice::Stands };
        shared.ring.cursor(tail, last_notice)
    }

    /// The messages behind a place, a bounded piece of them.
    pub fn take(&self, cursor: &mut Cursor, most_bytes: usize) -> (Vec<ByteString>, Rest) {
        let mut shared = self.shared.lock();
        let taken = shared.ring.read(cursor, most_bytes);
        let rest = match (taken.has_more, shared.phase) {
            (true, _) => Rest::More,
            (false, Phase::Over) => Rest::Over,
            (false, Phase::Live | Phase::Away) => Rest::Later,
        };
        drop(shared);
        self.give_back(taken.credit);
        (taken.pieces.into_iter().map(message_of).collect(), rest)
    }

    fn push(&self, lines: LogLines) {
        let LogLines { lines, dropped, stream_id: _ } = lines;
        let lines: Vec<(u64, ByteString)> = lines.into_iter().map(|line| self.written(line)).collect();
        let mut shared = self.shared.lock();
        shared.phase = Phase::Live;
        shared.ring.skip(dropped.min(MOST_DROPPED));
        let unread: u64 = lines.into_iter().map(|(cost, text)| shared.ring.push(text, cost)).sum();
        drop(shared);
        self.give_back(unread);
    }

    /// A line as its message, with what it cost.
    fn written(&self, line: LogLine) -> (u64, ByteString) {
        let cost = line.cost();
        let message = FeedMessage::Log {
            source: self.source.to_owned(),
            timestamp: line.timestamp,
            stream: line.stream.map(|stream| cut(stream, MOST_STREAM_BYTES)),
            message: cut(line.message, MOST_MESSAGE_BYTES),
        };
        (cost, text(&message))
    }

    fn tell(&self, code: &str, detail: &str, phase: Phase) {
        let notice = text(&FeedMessage::Error { code: code.to_owned(), detail: detail.to_owned() });
        let mut shared = self.shared.lock();
        // An outage is told once, however often it is met.
        let unread = if shared.phase == phase { 0 } else { shared.ring.notice(notice) };
        shared.phase = phase;
        drop(shared);
        self.give_back(unread);
    }

    fn settled(&self) {
        self.shared.lock().phase = Phase::Live;
    }

    fn give_back(&self, credit: u64) {
        if self.due.fetch_add(credit, Ordering::Relaxed).saturating_add(credit) >= PORTION {
            self.is_due.notify_one();
        }
    }
}

fn message_of(piece: Piece) -> ByteString {
    match piece {
        Piece::Text(text) => text,
        Piece::Dropped(count) => text(&FeedMessage::Dropped { count }),
    }
}

fn text(message: &FeedMessage) -> ByteString {
    match Encoding::Json.encode(message) {
        Ok(bytes) => ByteString::try_from(bytes).unwrap_or_default(),
        Err(error) => {
            tracing::error!(%error, "a line could not be written");
            ByteString::new()
        }
    }
}

fn cut(mut text: String, most_bytes: usize) -> String {
    if text.len() > most_bytes {
        text.truncate(text.floor_char_boundary(most_bytes));
    }
    text
}

/// Reads a log from its agent, again and again when the agent was away, until the log ends or nobody watches it.
pub struct Reader {
    pub registry: RegistryHandle,
    pub feeds: Feeds,
    pub fleet: Fleet,
    pub company: Arc<dyn Company>,
    pub stream: Arc<Stream>,
    pub log: Log,
    pub by: String,
}

/// How a stream of the agent ended.
enum Ending {
    /// The agent is away.
    Away,
    /// For good, and why.
    Over(String, String),
}

impl Reader {
    /// `tail` lines come first.
    pub async fn run(self, mut tail: u32) {
        loop {
            let ending = match self.open(tail) {
                Ok(mut agent) => self.read(&mut agent, &mut tail).await,
                Err(error) => ending(Err(error)),
            };
            match ending {
                Ending::Away => {
                    let detail = "the agent is offline: what is written until it is back is not shown here";
                    self.tell(AGENT_OFFLINE, detail, Phase::Away);
                    self.until_back().await;
                }
                Ending::Over(code, detail) => return self.tell(&code, &detail, Phase::Over),
            }
        }
    }

    fn open(&self, tail: u32) -> Result<AgentStream, CallError> {
        // What was due to a stream that has ended is nothing to the next.
        self.stream.due.store(0, Ordering::Relaxed);
        let source = &self.log.source;
        let start = LogsStart {
            stream_id: Uuid::now_v7(),
            source: source.name().to_owned(),
            container_id: source.container_id().map(str::to_owned),
            path: source.path().map(str::to_owned),
            tail: Some(tail),
            credit: Some(WINDOW),
            by: Some(self.by.clone()),
        };
        self.registry.open_log(self.log.server_id, start)
    }

    /// Takes what comes and gives credit for what was read. Once lines came, no tail is asked for again.
    async fn read(&self, agent: &mut AgentStream, tail: &mut u32) -> Ending {
        let settles_at = Instant::now() + SETTLED_AFTER;
        let mut is_settled = false;
        loop {
            tokio::select! {
                message = agent.next() => match message {
                    Some(AgentMessage::LogLines(lines)) => {
                        (*tail, is_settled) = (0, true);
                        self.stream.push(lines);
                        self.nudge();
                    }
                    // Not of a log. It has used up credit that it will not get back.
                    Some(_) => {}
                    None => return ending(agent.outcome().await),
                },
                () = self.stream.is_due.notified() => {
                    let bytes = self.stream.due.swap(0, Ordering::Relaxed);
                    // An agent that has gone ends the stream by itself.
                    _ = agent.grant(bytes).await;
                }
                () = sleep_until(settles_at), if !is_settled => {
                    is_settled = true;
                    self.stream.settled();
                }
            }
        }
    }

    fn tell(&self, code: &str, detail: &str, phase: Phase) {
        self.stream.tell(code, detail, phase);
        self.nudge();
    }

    fn nudge(&self) {
        self.feeds.nudge(Topic::Log(self.stream.id));
        self.stream.news.send_replace(());
    }

    /// Waits until the agent is there, on whichever instance.
    async fn until_back(&self) {
        let mut looks = 0_u32;
        loop {
            sleep(LOOK_EVERY).await;
            looks = looks.wrapping_add(1);
            let server_id = self.log.server_id;
            if self.fleet.is_here(server_id) || (looks.is_multiple_of(ASK_EVERY) && self.company.holds(server_id).await)
            {
                return;
            }
        }
    }
}

fn ending(outcome: Result<Value, CallError>) -> Ending {
    let over = |code: &str, detail: &str| Ending::Over(code.to_owned(), detail.to_owned());
    match outcome {
        Err(CallError::Offline | CallError::Disconnected | CallError::Unreachable) => Ending::Away,
        Err(CallError::Agent(error)) => Ending::Over(cut(error.code, 64), cut(error.detail, 1_000)),
        Err(CallError::Busy) => over("busy", "too many streams of this agent are open, try again soon"),
        Err(CallError::Timeout) => over("agent_timeout", "the agent gave no answer in time"),
        Ok(_) => over("log_ended", "the log has ended"),
    }
}
