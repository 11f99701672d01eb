//! The stream between a socket and its actor.
//!
//! actix-web-actors drains the socket before it decodes one frame, and its codec waits for the whole of a frame of any
//! declared length: one peer could fill the memory before it authenticates. So this stream reads each frame's header
//! itself, refuses a declared length over the limit at once, bounds the sum of a message's fragments, and hands over
//! one whole frame at a time. While the actor pauses it, the stream reads little, and TCP slows the peer.
//!
//! The codec finds everything else that may be wrong with a frame (reserved bits, a missing mask, an unknown opcode).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use actix_web::error::PayloadError;
use actix_web::web::Payload;
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use futures_util::task::AtomicWaker;

use crate::registry::Heartbeat;

/// The most fragments of one message. Honest peers send a few large ones; thousands of tiny ones only cost work.
const MAX_FRAGMENTS: usize = 256;

/// Bytes that are read while the actor pauses: enough to notice that a peer has gone.
const MAX_AHEAD: usize = 32 * 1024;

/// RFC 6455, 5.5.
const MAX_CONTROL_PAYLOAD: u8 = 125;

/// The first byte of a close frame, which is one frame.
const CLOSE: u8 = 0x88;

/// How a peer broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    TooLarge,
    Malformed,
}

/// The actor's side of a gate.
#[derive(Clone)]
pub struct GateControl(Arc<Shared>);

struct Shared {
    max_message: AtomicUsize,
    is_paused: AtomicBool,
    has_said_close: AtomicBool,
    violation: AtomicU8,
    reader: AtomicWaker,
    heartbeat: Arc<Heartbeat>,
}

impl GateControl {
    /// A gate for messages of at most `max_message` bytes. Whatever arrives beats `pulse`.
    pub fn new(max_message: usize, heartbeat: Arc<Heartbeat>) -> Self {
        Self(Arc::new(Shared {
            max_message: AtomicUsize::new(max_message),
            is_paused: AtomicBool::new(false),
            has_said_close: AtomicBool::new(false),
            violation: AtomicU8::new(0),
            reader: AtomicWaker::new(),
            heartbeat,
        }))
    }

    /// Sets the limit of messages from now on.
    pub fn allow(&self, max_message: usize) {
        self.0.max_message.store(max_message, Ordering::Relaxed);
    }

    /// Hands over nothing until [`Self::resume`].
    pub fn pause(&self) {
        self.0.is_paused.store(true, Ordering::SeqCst);
    }

    pub fn resume(&self) {
        if self.0.is_paused.swap(false, Ordering::SeqCst) {
            self.0.reader.wake();
        }
    }

    pub fn is_paused(&self) -> bool {
        self.0.is_paused.load(Ordering::SeqCst)
    }

    /// Whether the peer's close frame has arrived.
    pub fn has_said_close(&self) -> bool {
        self.0.has_said_close.load(Ordering::Relaxed)
    }

    /// Why the gate closed, if it closed because of a violation.
    pub fn violation(&self) -> Option<Violation> {
        match self.0.violation.load(Ordering::Relaxed) {
            1 => Some(Violation::TooLarge),
            2 => Some(Violation::Malformed),
            _ => None,
        }
    }
}

/// A payload that yields one whole frame at a time.
pub struct Gate<S = Payload> {
    inner: S,
    control: GateControl,
    buffer: BytesMut,
    /// Fragments of the message that is arriving.
    fragments: usize,
    message_bytes: u64,
    /// A frame was handed over and has not been decoded yet.
    is_handed_over: bool,
    /// The peer has closed its side; earlier bytes may still wait.
    is_over: bool,
    is_closed: bool,
}

/// The fields of a frame's header that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    is_final: bool,
    opcode: u8,
    /// Bytes before the payload.
    length: usize,
    payload: u64,
}

impl<S> Gate<S> {
    pub fn new(inner: S, control: GateControl) -> Self {
        Self {
            inner,
            control,
            buffer: BytesMut::new(),
            fragments: 0,
            message_bytes: 0,
            is_handed_over: false,
            is_over: false,
            is_closed: false,
        }
    }

    /// Returns the next frame if all of it has arrived.
    fn next_frame(&mut self) -> Result<Option<Bytes>, Violation> {
        let Some(header) = parse_header(&self.buffer) else { return Ok(None) };
        self.check(header)?;
        // It was just checked against the limit, so it fits.
        let whole = header.length.saturating_add(usize::try_from(header.payload).unwrap_or(usize::MAX));
        if self.buffer.len() < whole {
            return Ok(None);
        }
        self.count(header);
        let frame = self.buffer.split_to(whole).freeze();
        if self.buffer.is_empty() {
            // An idle connection keeps no buffer.
            self.buffer = BytesMut::new();
        }
        Ok(Some(frame))
    }

    fn check(&self, header: Header) -> Result<(), Violation> {
        let is_control = header.opcode & 0x08 != 0;
        if is_control {
            let sound = header.is_final && header.payload <= u64::from(MAX_CONTROL_PAYLOAD);
            return if sound { Ok(()) } else { Err(Violation::Malformed) };
        }
        let limit = self.control.0.max_message.load(Ordering::Relaxed) as u64;
        let is_too_large = self.message_bytes.saturating_add(header.payload) > limit;
        if is_too_large || self.fragments >= MAX_FRAGMENTS { Err(Violation::TooLarge) } else { Ok(()) }
    }

    /// Adds a data frame to its message.
    fn count(&mut self, header: Header) {
        if header.opcode & 0x08 != 0 {
            return;
        }
        if header.is_final {
            (self.fragments, self.message_bytes) = (0, 0);
        } else {
            self.fragments += 1;
            self.message_bytes = self.message_bytes.saturating_add(header.payload);
        }
    }

    fn fail(&mut self, violation: Violation) -> Poll<Option<Result<Bytes, PayloadError>>> {
        self.is_closed = true;
        self.buffer = BytesMut::new();
        let code = match violation {
            Violation::TooLarge => 1,
            Violation::Malformed => 2,
        };
        self.control.0.violation.store(code, Ordering::Relaxed);
        Poll::Ready(Some(Err(PayloadError::Overflow)))
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for Gate<S> {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let gate = &mut *self;
        if gate.is_closed {
            return Poll::Ready(None);
        }
        if std::mem::take(&mut gate.is_handed_over) {
            // Ends the reader's loop, so that it decodes what it has; after that it polls again.
            return Poll::Pending;
        }
        gate.control.0.reader.register(cx.waker());
        if gate.control.0.is_paused.load(Ordering::SeqCst) {
            return gate.poll_ahead(cx);
        }
        loop {
            match gate.next_frame() {
                Err(violation) => return gate.fail(violation),
                Ok(Some(frame)) => {
                    gate.is_handed_over = true;
                    return Poll::Ready(Some(Ok(frame)));
                }
                Ok(None) => {}
            }
            if let Err(error) = ready!(gate.poll_inner(cx)) {
                gate.is_closed = true;
                return Poll::Ready(Some(Err(error)));
            }
            if gate.is_over {
                gate.is_closed = true;
                return Poll::Ready(None);
            }
        }
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Gate<S> {
    /// Reads more into the buffer, unless the stream has ended.
    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), PayloadError>> {
        if self.is_over {
            return Poll::Ready(Ok(()));
        }
        match ready!(Pin::new(&mut self.inner).poll_next(cx)) {
            Some(chunk) => {
                let chunk = chunk?;
                self.control.0.heartbeat.beat();
                // Data may look like a close frame by chance. What follows it shows that it was none.
                self.control.0.has_said_close.store(ends_with_close(&chunk), Ordering::Relaxed);
                self.buffer.extend_from_slice(&chunk);
            }
            None => self.is_over = true,
        }
        Poll::Ready(Ok(()))
    }

    /// While the actor pauses: resolves when the peer has gone.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        while !self.is_over && self.buffer.len() < MAX_AHEAD {
            if let Err(error) = ready!(self.poll_inner(cx)) {
                self.is_closed = true;
                return Poll::Ready(Some(Err(error)));
            }
        }
        Poll::Pending
    }
}

/// Whether what a peer sent ends with a close frame, after which it sends nothing more. One that arrives in pieces is not seen, and
/// one piece of data in 500 looks like one.
pub fn ends_with_close(bytes: &[u8]) -> bool {
    (0..=MAX_CONTROL_PAYLOAD).any(|payload| {
        // A header of two bytes and a mask of four come before the payload.
        let begins = bytes.len().checked_sub(6 + usize::from(payload));
        begins.is_some_and(|at| bytes.get(at..at + 2) == Some(&[CLOSE, 0x80 | payload][..]))
    })
}

/// Reads a frame's header (RFC 6455, 5.2), or returns `None` while it is incomplete.
fn parse_header(bytes: &[u8]) -> Option<Header> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (extended, payload) = match second & 0x7f {
        126 => (2, u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => (8, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)),
        short => (0, u64::from(short)),
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    Some(Header { is_final: first & 0x80 != 0, opcode: first & 0x0f, length: 2 + extended + mask, payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_every_length_are_read() {
        let short = parse_header(&[0x81, 0x85, 0, 0, 0, 0]).unwrap();
        let medium = parse_header(&[0x02, 0xfe, 0x01, 0x00]).unwrap();
        let long = parse_header(&[0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0]).unwrap();

        assert_eq!(short, Header { is_final: true, opcode: 1, length: 6, payload: 5 });
        assert_eq!(medium, Header { is_final: false, opcode: 2, length: 8, payload: 256 });
        assert_eq!(long, Header { is_final: true, opcode: 2, length: 14, payload: 1 << 32 });
    }

    #[test]
    fn a_pause_holds_frames_back_and_notices_a_peer_that_has_gone() {
        let frame = || Bytes::from_static(&[0x82, 0x80, 0, 0, 0, 0]);
        let control = GateControl::new(100, Arc::default());
        let (mut incoming, is_gone) = (vec![frame(), frame()], AtomicBool::new(false));
        let inner = futures_util::stream::poll_fn(|_| match incoming.pop() {
            Some(chunk) => Poll::Ready(Some(Ok(chunk))),
            None if is_gone.load(Ordering::SeqCst) => Poll::Ready(Some(Err(PayloadError::Incomplete(None)))),
            None => Poll::Pending,
        });
        let mut gate = Gate::new(inner, control.clone());
        let mut next = || Pin::new(&mut gate).poll_next(&mut Context::from_waker(std::task::Waker::noop()));

        control.pause();
        assert!(next().is_pending());
        control.resume();
        assert!(matches!(next(), Poll::Ready(Some(Ok(one))) if one == frame()));
        control.pause();
        assert!(next().is_pending() && next().is_pending());
        is_gone.store(true, Ordering::SeqCst);
        assert!(matches!(next(), Poll::Ready(Some(Err(PayloadError::Incomplete(None))))));
    }

    #[test]
    fn a_close_frame_is_noted_before_its_turn() {
        let control = GateControl::new(100, Arc::default());
        let frame = |first: u8| Ok(Bytes::copy_from_slice(&[first, 0x80, 0, 0, 0, 0]));
        let mut gate = Gate::new(futures_util::stream::iter([frame(0x89), frame(CLOSE)]), control.clone());
        let mut next = || Pin::new(&mut gate).poll_next(&mut Context::from_waker(std::task::Waker::noop()));

        assert!(next().is_ready() && next().is_pending());
        assert!(!control.has_said_close());
        control.pause();
        assert!(next().is_pending());
        assert!(control.has_said_close());
    }

    #[test]
    fn data_that_looks_like_a_close_frame_is_forgotten_when_more_arrives() {
        let control = GateControl::new(100, Arc::default());
        let data = Ok(Bytes::from_static(&[0x82, 0x86, 0, 0, 0, 0, CLOSE, 0x80, 7, 7, 7, 7]));
        let more = Ok(Bytes::from_static(&[0x82, 0x80, 0, 0, 0, 0]));
        let mut gate = Gate::new(futures_util::stream::iter([data, more]), control.clone());
        let mut next = || Pin::new(&mut gate).poll_next(&mut Context::from_waker(std::task::Waker::noop()));

        assert!(next().is_ready() && control.has_said_close());
        assert!(next().is_pending() && next().is_ready());
        assert!(!control.has_said_close());
    }

    #[test]
    fn a_close_frame_is_found_at_the_end_alone() {
        let close = |payload: u8| [&[CLOSE, 0x80 | payload][..], &[7; 4], &vec![1; usize::from(payload)]].concat();

        for payload in [0, 2, 125] {
            assert!(ends_with_close(&close(payload)));
            assert!(ends_with_close(&[&[0x8a, 0x80, 0, 0, 0, 0][..], &close(payload)].concat()));
            assert!(!ends_with_close(&[&close(payload)[..], &[0]].concat()));
        }
        assert!(!ends_with_close(&[]) && !ends_with_close(&[0x81, 0x80, 0, 0, 0, 0]));
    }

    #[test]
    fn half_a_header_yields_nothing() {
        for bytes in [&[][..], &[0x81], &[0x81, 0xfe, 0x01], &[0x81, 0xff, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(parse_header(bytes), None);
        }
    }
}
