//! One log, streamed from its agent for all its watchers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytestring::ByteString;
use futures_util::FutureExt;
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

/// The size of a log's ring: how far a watcher may fall behind, and how much a later watcher can see of the past.
const RING_BYTES: usize = 2 * 1024 * 1024;

/// Bytes that an agent may send before a watcher reads them: they must fit into the ring.
const WINDOW: u64 = 512 * 1024;

/// Credit is returned in portions, so that it takes few messages.
const PORTION: u64 = WINDOW / 8;

/// Our agents cut lines shorter; this bounds the lines of others.
const MAX_MESSAGE_BYTES: usize = 80 * 1024;
const MAX_STREAM_BYTES: usize = 256;

/// More than an honest agent can lose between two messages.
const MAX_DROPPED: u64 = u32::MAX as u64;

/// How often to check whether a disconnected agent has reconnected.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Every how many checks to ask other instances for it.
const ASK_EVERY: u32 = 4;

/// The code of the notice that watchers get while the agent is disconnected.
pub const AGENT_OFFLINE: &str = "agent_offline";

/// A stream that has been open for this long, or has delivered lines, counts as established.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// The part of a watched log that its watchers share.
pub struct Stream {
    pub id: Uuid,
    source: &'static str,
    shared: Mutex<Shared>,
    /// Credit that has not been returned to the agent yet.
    due: AtomicU64,
    is_due: Notify,
    /// Changes when there is something to take.
    news: watch::Sender<()>,
}

struct Shared {
    ring: Ring,
    phase: Phase,
    opening: Opening,
}

/// What the agent was last asked for. It does not say where the existing lines end and the new ones begin.
struct Opening {
    /// How many of the existing lines come first.
    tail: u32,
    /// The number of the first of them.
    first: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Live,
    /// The agent is disconnected, and watchers have the notice.
    Away,
    /// Nothing more will come.
    Over,
    /// Nothing came and nothing will: the agent has too many open streams.
    Busy,
}

impl Phase {
    fn is_over(self) -> bool {
        matches!(self, Self::Over | Self::Busy)
    }
}

impl Shared {
    /// Returns how many lines have arrived since the agent was last asked.
    fn arrived(&self) -> u64 {
        self.ring.next_number().saturating_sub(self.opening.first)
    }

    /// Returns how many of those it still holds.
    fn held(&self) -> u64 {
        self.ring.lines_from(self.opening.first)
    }

    /// Returns whether all existing lines have arrived. Until as many as were asked for have, the next ones may be existing ones.
    fn is_complete(&self) -> bool {
        self.arrived() >= u64::from(self.opening.tail)
    }
}

impl Stream {
    pub fn new(source: &'static str, tail: u32) -> Self {
        let opening = Opening { tail, first: 0 };
        let shared = Shared { ring: Ring::new(RING_BYTES), phase: Phase::Live, opening };
        let (due, is_due, news) = (AtomicU64::new(0), Notify::new(), watch::Sender::new(()));
        Self { id: Uuid::now_v7(), source, shared: Mutex::new(shared), due, is_due, news }
    }

    pub fn is_over(&self) -> bool {
        self.shared.lock().phase.is_over()
    }

    /// Returns whether it is over without a line, because the agent has too many open streams.
    pub fn is_busy(&self) -> bool {
        self.shared.lock().phase == Phase::Busy
    }

    /// Changes when there is something to take.
    pub fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Returns whether a new watcher would get the last `tail` lines of the log, and no more, before the new ones.
    pub fn can_give(&self, tail: u32) -> bool {
        let shared = self.shared.lock();
        if shared.phase.is_over() {
            return false;
        }
        if shared.is_complete() {
            return shared.held() >= u64::from(tail);
        }
        tail == shared.opening.tail && shared.held() == shared.arrived()
    }

    /// Returns how well it serves a watcher where no stream can give all that it asks for, the greater the better: whether all
    /// existing lines have arrived, so that it gives no more than that, then how many it holds. `None` if it is over.
    pub fn supply(&self) -> Option<(bool, u64)> {
        let shared = self.shared.lock();
        (!shared.phase.is_over()).then(|| (shared.is_complete(), shared.held()))
    }

    /// Returns the position of a new watcher.
    pub fn cursor(&self, tail: u32) -> Cursor {
        let shared = self.shared.lock();
        let last_notice = if shared.phase == Phase::Live { LastNotice::Past } else { LastNotice::Stands };
        shared.ring.cursor(tail, last_notice)
    }

    /// Returns the messages that follow the cursor, a bounded amount.
    pub fn take(&self, cursor: &mut Cursor, most_bytes: usize) -> (Vec<ByteString>, Rest) {
        let mut shared = self.shared.lock();
        let taken = shared.ring.read(cursor, most_bytes);
        let rest = match (taken.has_more, shared.phase) {
            (true, _) => Rest::More,
            (false, Phase::Over | Phase::Busy) => Rest::Over,
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
        shared.ring.skip(dropped.min(MAX_DROPPED));
        let unread: u64 = lines.into_iter().map(|(cost, text)| shared.ring.push(text, cost)).sum();
        drop(shared);
        self.give_back(unread);
    }

    /// Returns the cost of a line, and its message.
    fn written(&self, line: LogLine) -> (u64, ByteString) {
        let cost = line.cost();
        let message = FeedMessage::Log {
            source: self.source.to_owned(),
            timestamp: line.timestamp,
            stream: line.stream.map(|stream| cut(stream, MAX_STREAM_BYTES)),
            message: cut(line.message, MAX_MESSAGE_BYTES),
        };
        (cost, text(&message))
    }

    fn tell(&self, code: &str, detail: &str, phase: Phase) {
        let notice = text(&FeedMessage::Error { code: code.to_owned(), detail: detail.to_owned(), reason: None });
        let mut shared = self.shared.lock();
        // Watchers get one notice of an outage, however many attempts fail.
        let unread = if shared.phase == phase { 0 } else { shared.ring.notice(notice) };
        shared.phase = phase;
        drop(shared);
        self.give_back(unread);
    }

    fn opens(&self, tail: u32) {
        let mut shared = self.shared.lock();
        shared.opening = Opening { tail, first: shared.ring.next_number() };
    }

    /// Returns the phase after an end with this code.
    fn phase_after(&self, code: &str) -> Phase {
        let is_empty = self.shared.lock().ring.next_number() == 0;
        if is_empty && matches!(code, "busy" | "agent_busy") { Phase::Busy } else { Phase::Over }
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
            tracing::error!(%error, "a log line could not be encoded");
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

/// Reads a log from its agent until the log ends or nobody watches it. After a disconnection it reads on when the agent is
/// back.
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
    /// The agent is disconnected.
    Away,
    /// The log has ended for good: the code and the detail of the reason.
    Over(String, String),
}

impl Reader {
    /// Starts with the last `tail` lines.
    pub async fn run(self, mut tail: u32) {
        loop {
            let ending = match self.open(tail) {
                Ok(mut agent) => self.read(&mut agent, &mut tail).await,
                Err(error) => ending(Err(error)),
            };
            match ending {
                Ending::Away => {
                    let detail = "the agent is offline; lines written until it reconnects are not shown here";
                    self.tell(AGENT_OFFLINE, detail, Phase::Away);
                    self.until_back().await;
                }
                Ending::Over(code, detail) => return self.tell(&code, &detail, self.stream.phase_after(&code)),
            }
        }
    }

    fn open(&self, tail: u32) -> Result<AgentStream, CallError> {
        // Credit due to the stream that has ended does not count for the next.
        self.stream.due.store(0, Ordering::Relaxed);
        self.stream.opens(tail);
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

    /// Takes lines, and returns credit for those that were read. After the first lines the tail is not requested again.
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
                    // Not a message of a log. It has used up credit that is not returned.
                    Some(_) => {}
                    None => return ending(agent.outcome().await),
                },
                () = self.stream.is_due.notified() => {
                    let bytes = self.stream.due.swap(0, Ordering::Relaxed);
                    if agent.grant(bytes).await.is_err() {
                        while let Some(Some(AgentMessage::LogLines(lines))) = agent.next().now_or_never() {
                            self.stream.push(lines);
                        }
                        return Ending::Away;
                    }
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

    /// Waits until the agent is connected to any instance.
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
        Err(CallError::Busy) => over("busy", "this agent has too many open streams, try again soon"),
        Err(CallError::Timeout) => over("agent_timeout", "the agent did not answer in time"),
        Ok(_) => over("log_ended", "the log has ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::{WatchedStream, shared_by};

    /// A stream that was asked for `tail` lines, of which these many have arrived.
    fn asked_for(tail: u32, arrived: usize) -> WatchedStream {
        let stream = Arc::new(Stream::new("system", tail));
        let line = LogLine { timestamp: None, stream: None, message: "line".to_owned() };
        stream.push(LogLines { stream_id: stream.id, lines: vec![line; arrived], dropped: 0 });
        WatchedStream { stream, watchers: 1, task: tokio::spawn(async {}).abort_handle() }
    }

    fn end(watched: &WatchedStream, code: &str) {
        watched.stream.tell(code, "why", watched.stream.phase_after(code));
    }

    #[actix_web::test]
    async fn at_the_limit_a_watcher_shares_the_stream_that_holds_the_most_and_gives_no_more_than_it_asks_for() {
        let streams = [asked_for(1, 1), asked_for(3, 3), asked_for(2, 2), asked_for(9, 4)];

        assert_eq!(shared_by(&streams, 5), Some(1));
        assert_eq!(shared_by(&streams, 9), Some(3), "it can give exactly this");
        assert_eq!(shared_by(&streams[..2], 5), None, "there may be another stream");
    }

    #[actix_web::test]
    async fn while_all_streams_have_lines_to_come_a_watcher_shares_the_one_that_holds_the_most() {
        let streams = [asked_for(7, 1), asked_for(8, 3), asked_for(9, 2)];

        assert_eq!(shared_by(&streams, 5), Some(1));
    }

    #[actix_web::test]
    async fn streams_that_are_over_count_for_nothing() {
        let streams = [asked_for(1, 1), asked_for(2, 2), asked_for(3, 0), asked_for(4, 4)];
        end(&streams[2], "agent_busy");
        end(&streams[3], "log_ended");

        assert_eq!(shared_by(&streams, 5), None);
        assert_eq!(shared_by(&streams, 4), None);
    }

    #[actix_web::test]
    async fn only_a_stream_that_brought_nothing_ends_as_busy() {
        let streams = [asked_for(2, 0), asked_for(2, 0), asked_for(2, 1), asked_for(2, 0)];
        for (watched, code) in streams.iter().zip(["busy", "agent_busy", "agent_busy", "agent_refused"]) {
            end(watched, code);
        }

        assert_eq!(streams.each_ref().map(|watched| watched.stream.is_busy()), [true, true, false, false]);
        assert!(streams.iter().all(|watched| watched.stream.is_over()));
    }
}
