//! The queue of one subscriber.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use actix::Recipient;
use parking_lot::Mutex;

use super::{Closing, FeedFrame, Text, Wake};

/// Metrics that wait for one reader: more than half a minute at one sample per second.
pub(super) const MAX_METRICS: usize = 40;

/// Events that wait for one reader: more than a fleet of thousands raises alerts within a moment. Unlike metrics they are never
/// dropped: a reader for which there is no room is closed, and reads the present state when it connects again.
pub(super) const MAX_EVENTS: usize = 4_096;

/// Bytes that wait for one reader: a snapshot usually has a kilobyte, but may have megabytes.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// A reader that has taken nothing for this long while its queue was full is evicted.
const PATIENCE: Duration = Duration::from_secs(60);

/// One subscriber's queue.
pub(super) struct Queue {
    pub id: u64,
    wake: Recipient<Wake>,
    woken: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    frames: VecDeque<FeedFrame>,
    /// How many of the frames are metrics.
    metrics: usize,
    bytes: usize,
    closing: Option<Closing>,
    /// Since when the reader has taken nothing although the queue was full.
    full_since: Option<Instant>,
    reader: Reader,
}

/// The reader that is woken for texts. Everything else wakes the actor.
#[derive(Default)]
enum Reader {
    #[default]
    Actor,
    /// The socket, without its actor; holds its task if that has found no text.
    Socket(Option<Waker>),
}

/// When to wake the reader for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Now,
    Later,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offer {
    Taken,
    Evicted,
}

impl Queue {
    pub fn new(id: u64, wake: Recipient<Wake>) -> Self {
        Self { id, wake, woken: AtomicBool::new(false), waiting: Mutex::default() }
    }

    /// Takes all waiting frames, oldest first. Also returns the reason if the socket has to be closed after them.
    pub fn take(&self) -> (VecDeque<FeedFrame>, Option<Closing>) {
        // Cleared before the queue is emptied: a frame in between sends another `Wake`, at worst a needless one.
        self.woken.store(false, Ordering::SeqCst);
        let mut waiting = self.waiting.lock();
        waiting.full_since = None;
        (waiting.clear(), waiting.closing)
    }

    /// From now on texts are for the socket, which takes them with [`Self::poll_text`].
    pub fn pass_the_actor_by(&self) {
        self.waiting.lock().reader = Reader::Socket(None);
    }

    /// Returns the oldest text. If there is none, the task is woken when one arrives.
    pub fn poll_text(&self, cx: &Context<'_>) -> Poll<Text> {
        let mut waiting = self.waiting.lock();
        match waiting.next_text() {
            Some(text) => {
                waiting.full_since = None;
                Poll::Ready(text)
            }
            None => {
                waiting.reader = Reader::Socket(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }

    /// Adds a frame, and wakes the reader unless a later [`Self::call`] will.
    pub fn offer(&self, frame: FeedFrame, call: Call) -> Offer {
        let reader = {
            let mut waiting = self.waiting.lock();
            if waiting.closing.is_some() || waiting.has_same_notice(&frame) {
                return Offer::Taken;
            }
            while waiting.is_too_full_for(&frame) {
                let full_since = *waiting.full_since.get_or_insert_with(Instant::now);
                let is_patient = full_since.elapsed() <= PATIENCE;
                if is_patient && waiting.drop_oldest_metrics() {
                    continue;
                }
                if is_patient && matches!(frame, FeedFrame::Metrics(_)) {
                    count_dropped();
                    return Offer::Taken;
                }
                waiting.clear();
                waiting.closing = Some(Closing::TooSlow);
                drop(waiting);
                // The actor was not woken for texts, which are for its socket.
                self.wake();
                return Offer::Evicted;
            }
            // Once the queue is half full the reader is woken at once: otherwise further frames would push out frames for
            // which it was never woken.
            let is_called = call == Call::Now || waiting.frames.len() >= MAX_METRICS / 2;
            let reader = is_called.then(|| waiting.reader.of(&frame));
            waiting.push(frame);
            reader
        };
        if let Some(reader) = reader {
            self.wake_reader(reader);
        }
        Offer::Taken
    }

    /// Wakes the reader for the waiting frames.
    pub fn call(&self) {
        let reader = {
            let mut waiting = self.waiting.lock();
            let Waiting { frames, reader, .. } = &mut *waiting;
            frames.back().map(|frame| reader.of(frame))
        };
        if let Some(reader) = reader {
            self.wake_reader(reader);
        }
    }

    fn wake_reader(&self, reader: Reader) {
        match reader {
            Reader::Actor => self.wake(),
            Reader::Socket(Some(task)) => task.wake(),
            // It has not found the queue empty yet, and will poll again.
            Reader::Socket(None) => {}
        }
    }

    pub fn close(&self, closing: Closing) {
        {
            let mut waiting = self.waiting.lock();
            waiting.closing.get_or_insert(closing);
            if matches!(closing, Closing::Unauthorized | Closing::ServerDeleted) {
                // The reader may not see them any more.
                waiting.clear();
            }
        }
        self.wake();
    }

    pub fn wake(&self) {
        // At most one `Wake` is on its way, so the mailbox never fills. If it is refused nevertheless, the next frame
        // tries again.
        if !self.woken.swap(true, Ordering::SeqCst) && self.wake.try_send(Wake).is_err() {
            self.woken.store(false, Ordering::SeqCst);
        }
    }
}

impl Reader {
    /// Returns the reader to wake for a frame.
    fn of(&mut self, frame: &FeedFrame) -> Self {
        match (self, frame) {
            (Self::Socket(task), FeedFrame::Metrics(_) | FeedFrame::Event(_)) => Self::Socket(task.take()),
            (Self::Actor, _) | (Self::Socket(_), FeedFrame::Notice | FeedFrame::Rights) => Self::Actor,
        }
    }
}

impl FeedFrame {
    fn is_text(&self) -> bool {
        match self {
            Self::Metrics(_) | Self::Event(_) => true,
            Self::Notice | Self::Rights => false,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Metrics(text) | Self::Event(text) => text.bytes(),
            Self::Notice | Self::Rights => 0,
        }
    }
}

impl Waiting {
    /// Returns whether this is a frame without a text, and the same is waiting already.
    fn has_same_notice(&self, frame: &FeedFrame) -> bool {
        let kind = std::mem::discriminant(frame);
        !frame.is_text() && self.frames.iter().any(|waiting| std::mem::discriminant(waiting) == kind)
    }

    fn next_text(&mut self) -> Option<Text> {
        let place = self.frames.iter().position(FeedFrame::is_text)?;
        match self.remove(place)? {
            FeedFrame::Metrics(text) | FeedFrame::Event(text) => Some(text),
            FeedFrame::Notice | FeedFrame::Rights => None,
        }
    }

    /// Returns whether a frame does not fit. An empty queue accepts any frame.
    fn is_too_full_for(&self, frame: &FeedFrame) -> bool {
        let is_crowded = match frame {
            FeedFrame::Metrics(_) => self.metrics >= MAX_METRICS,
            FeedFrame::Event(_) => self.frames.len() - self.metrics >= MAX_EVENTS,
            // Each waits at most once.
            FeedFrame::Notice | FeedFrame::Rights => return false,
        };
        !self.frames.is_empty() && (is_crowded || self.bytes + frame.bytes() > MAX_BYTES)
    }

    /// Returns false if there are no metrics to drop.
    fn drop_oldest_metrics(&mut self) -> bool {
        let oldest = self.frames.iter().position(|frame| matches!(frame, FeedFrame::Metrics(_)));
        let is_dropped = oldest.and_then(|place| self.remove(place)).is_some();
        if is_dropped {
            count_dropped();
        }
        is_dropped
    }

    fn push(&mut self, frame: FeedFrame) {
        self.metrics += usize::from(matches!(frame, FeedFrame::Metrics(_)));
        self.bytes += frame.bytes();
        self.frames.push_back(frame);
    }

    fn remove(&mut self, place: usize) -> Option<FeedFrame> {
        let frame = self.frames.remove(place)?;
        self.metrics -= usize::from(matches!(frame, FeedFrame::Metrics(_)));
        self.bytes -= frame.bytes();
        Some(frame)
    }

    /// Takes all frames out.
    fn clear(&mut self) -> VecDeque<FeedFrame> {
        (self.metrics, self.bytes) = (0, 0);
        std::mem::take(&mut self.frames)
    }
}

fn count_dropped() {
    metrics::counter!("signalbox_feed_frames_dropped_total").increment(1);
}
