//! Takes a socket from the HTTP library once the answer to its upgrade is sent.
//!
//! The library keeps two buffers of 8 KiB for each connection and copies all traffic through them. So each connection
//! is lent to it as a [`Loan`]. The body of the answer that opens a socket, a [`Handover`], waits until the head of
//! that answer is sent. Then it recalls the loan, which the library sees as a closed connection, and hands the
//! connection to its own task. That task reads onto the stack, sends what the actor writes, and holds a buffer only
//! while it is not empty.

use std::cell::{Cell, Ref, RefCell};
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::error::PayloadError;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::gate::{GateControl, ends_with_close};
use super::next_head::{Alarm, NEXT_HEAD, NextHead};
use super::unwritten::Unwritten;
use crate::shares::Connection;
use crate::state::{Counted, Counter};

/// How long a peer may take to hang up after the close frame. If the connection were closed at once with unread bytes,
/// the peer would lose what is on its way, including the reason for the end.
pub const LINGER: Duration = Duration::from_secs(1);

/// How long a peer may take to answer the close frame. Firefox (153) forgets all messages of a socket whose connection ends in
/// the same moment in which it opens: a dashboard would never learn how a command ended that had ended before.
const REPLY: Duration = Duration::from_secs(1);

/// How long a peer may take to read the rest once its actor has ended.
const LAST_WORDS: Duration = Duration::from_secs(60);

/// Beyond this much the library keeps reading ahead, and what it has read would be lost. A peer that waits for its
/// answer sends nothing.
const MAX_EARLY: usize = 32 * 1024;

/// Bytes that are read at once: several ordinary messages.
const MAX_READ: usize = 16 * 1024;

/// Bytes that may wait for a slow peer; beyond that its actor waits. The same limit as in the HTTP library.
const MAX_UNWRITTEN: usize = 32 * 1024;

/// A connection as the HTTP library sees it.
pub struct Loan {
    wire: Wire,
    /// Wakes the library when the head of the next request is late.
    alarm: Alarm,
}

/// A connection of a worker's thread, which the library or a socket owns.
#[derive(Clone)]
pub struct Wire(Rc<Ends>);

struct Ends {
    stream: RefCell<TcpStream>,
    turn: Cell<Turn>,
    next_head: Cell<NextHead>,
    _open: Counted,
}

/// Who owns the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Library,
    /// The library, which has not sent everything yet.
    LibraryToWrite,
    /// The library, which has sent everything.
    Written,
    Socket,
}

/// A request that is being answered, until this is dropped at the end of its answer.
#[must_use]
pub struct Answering(Wire);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.0.next_head.set(NextHead::OnceSent);
    }
}

impl Wire {
    /// Notes that the head of a request is complete.
    pub fn answering(&self) -> Answering {
        self.0.next_head.set(NextHead::Unlimited);
        Answering(self.clone())
    }

    fn poll_read(&self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let mut space = [const { MaybeUninit::<u8>::uninit() }; MAX_READ];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut *self.0.stream.borrow_mut()).poll_read(cx, &mut read))?;
        Poll::Ready(Ok(Bytes::copy_from_slice(read.filled())))
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_write(cx, bytes)
    }

    /// Sends what waits. An idle connection keeps no buffer.
    fn poll_write_all(&self, cx: &mut Context<'_>, unwritten: &mut Unwritten) -> Poll<io::Result<()>> {
        while !unwritten.is_empty() {
            match ready!(self.poll_write(cx, unwritten.unsent()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => unwritten.advance(written),
            }
        }
        *unwritten = Unwritten::default();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_shutdown(cx)
    }

    /// Resolves when the peer has sent a close frame or hung up.
    fn poll_answered(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match ready!(self.poll_read(cx)) {
                Ok(unread) if !unread.is_empty() && !ends_with_close(&unread) => {}
                Ok(_) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Resolves when the peer has hung up.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match ready!(self.poll_read(cx)) {
                Ok(unread) if !unread.is_empty() => {}
                Ok(_) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    fn is_called_in(&self) -> bool {
        self.0.turn.get() == Turn::Socket
    }
}

impl Loan {
    /// `open` is dropped with the last owner of the connection.
    pub fn new(stream: TcpStream, open: Counted) -> Self {
        let (stream, turn, next_head) =
            (RefCell::new(stream), Cell::new(Turn::Library), Cell::new(NextHead::Unlimited));
        Self { wire: Wire(Rc::new(Ends { stream, turn, next_head, _open: open })), alarm: Alarm::default() }
    }

    pub fn stream(&self) -> Ref<'_, TcpStream> {
        self.wire.0.stream.borrow()
    }

    /// The connection for a request, which stores it in its connection data.
    pub fn wire(&self) -> Wire {
        self.wire.clone()
    }
}

impl AsyncRead for Loan {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.wire.is_called_in() {
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut *self.wire.0.stream.borrow_mut()).poll_read(cx, buffer);
        // The library reads until nothing is left, so a client that sends a byte now and then is noticed, too.
        let next_head = self.wire.0.next_head.get();
        if read.is_pending() && self.alarm.poll(next_head, cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Loan {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.wire.is_called_in() {
            return Poll::Ready(Ok(bytes.len()));
        }
        self.wire.poll_write(cx, bytes)
    }

    /// The library flushes once it has handed over everything that it had to send.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Ends { turn, next_head, .. } = &*self.wire.0;
        if turn.get() == Turn::LibraryToWrite {
            turn.set(Turn::Written);
            // The library polled the answer's body before it sent the head, and must poll it again.
            cx.waker().wake_by_ref();
        }
        if next_head.get() == NextHead::OnceSent {
            next_head.set(NextHead::Until(Instant::now() + NEXT_HEAD));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.wire.is_called_in() {
            return Poll::Ready(Ok(()));
        }
        self.wire.poll_shutdown(cx)
    }
}

/// The incoming bytes of a socket. Its actor reads them, but only once it owns the connection.
pub struct Incoming {
    /// Bytes that the library has read already; a peer should not have sent any.
    early: Option<Payload>,
    early_bytes: usize,
    /// `None` if a library keeps the connection.
    wire: Option<Wire>,
}

impl Incoming {
    pub fn of(request: &HttpRequest, payload: Payload) -> Self {
        Self { early: Some(payload), early_bytes: 0, wire: request.conn_data::<Wire>().cloned() }
    }
}

impl Stream for Incoming {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let incoming = &mut *self;
        if let Some(early) = &mut incoming.early {
            match Pin::new(early).poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    incoming.early_bytes = incoming.early_bytes.saturating_add(bytes.len());
                    let is_torn = incoming.wire.is_some() && incoming.early_bytes >= MAX_EARLY;
                    return Poll::Ready(Some(if is_torn { Err(PayloadError::Overflow) } else { Ok(bytes) }));
                }
                over if incoming.wire.is_none() => return over,
                // The library sees a closed connection.
                Poll::Ready(Some(Err(_)) | None) | Poll::Pending => incoming.early = None,
            }
        }
        let Some(wire) = &incoming.wire else { return Poll::Ready(None) };
        Poll::Ready(Some(match ready!(wire.poll_read(cx)) {
            Ok(bytes) if bytes.is_empty() => Err(PayloadError::Incomplete(None)),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(PayloadError::Incomplete(Some(error))),
        }))
    }
}

/// Hands a socket its connection once the answer that opens it is sent. The socket counts in `sockets` for as long as
/// it lasts.
pub fn hand_over(sockets: &Counter, gate: GateControl, request: &HttpRequest, answer: HttpResponse) -> HttpResponse {
    let Some(wire) = request.conn_data::<Wire>().cloned() else { return answer };
    let (open, connection) = (sockets.opened(), request.conn_data::<Connection>().cloned());
    answer.map_body(|_, actor| {
        let socket = Socket { wire: wire.clone(), gate, actor: Some(actor), _open: open, _connection: connection };
        BoxBody::new(Handover { wire, socket: Some(socket) })
    })
}

/// The body of the answer that opens a socket.
struct Handover {
    wire: Wire,
    socket: Option<Socket>,
}

impl MessageBody for Handover {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let turn = &self.wire.0.turn;
        match turn.get() {
            Turn::Library => turn.set(Turn::LibraryToWrite),
            Turn::Written => turn.set(Turn::Socket),
            Turn::LibraryToWrite => {}
            // The socket of an earlier request has the connection.
            Turn::Socket => return Poll::Ready(None),
        }
        if !self.wire.is_called_in() {
            return Poll::Pending;
        }
        if let Some(socket) = self.socket.take() {
            // The library polls once more, and finds the connection closed.
            cx.waker().wake_by_ref();
            actix_web::rt::spawn(socket.run());
        }
        Poll::Ready(None)
    }
}

/// A connection, and the actor at our end of it.
struct Socket {
    wire: Wire,
    gate: GateControl,
    /// The actor's output, whose polling runs the actor; `None` once the actor has ended.
    actor: Option<BoxBody>,
    _open: Counted,
    /// Its slot among the connections.
    _connection: Option<Connection>,
}

impl Socket {
    async fn run(mut self) {
        let mut unwritten = Unwritten::default();
        if let Err(error) = poll_fn(|cx| self.poll(&mut unwritten, cx)).await {
            return tracing::debug!(%error, "a socket's connection broke");
        }
        let rest = poll_fn(|cx| self.wire.poll_write_all(cx, &mut unwritten));
        if !matches!(tokio::time::timeout(LAST_WORDS, rest).await, Ok(Ok(()))) {
            return tracing::debug!("a socket's peer did not read the last messages");
        }
        if !self.gate.has_said_close() {
            _ = tokio::time::timeout(REPLY, poll_fn(|cx| self.wire.poll_answered(cx))).await;
        }
        // The shutdown comes before the peer's, which waits for ours once both have sent a close frame (RFC 6455, 7.1.1).
        _ = poll_fn(|cx| self.wire.poll_shutdown(cx)).await;
        _ = tokio::time::timeout(LINGER, poll_fn(|cx| self.wire.poll_gone(cx))).await;
    }

    /// Sends what the actor writes, until the actor has ended.
    fn poll(&mut self, unwritten: &mut Unwritten, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut is_silent = false;
            while let Some(actor) = self.actor.as_mut().filter(|_| unwritten.len() < MAX_UNWRITTEN && !is_silent) {
                match Pin::new(actor).poll_next(cx) {
                    Poll::Ready(Some(Ok(said))) => unwritten.add(said),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(io::Error::other(error.to_string()))),
                    Poll::Ready(None) => self.actor = None,
                    Poll::Pending => is_silent = true,
                }
            }
            if self.actor.is_none() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.wire.poll_write_all(cx, unwritten))?;
            if is_silent {
                return Poll::Pending;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use actix_web::FromRequest;
    use actix_web::test::TestRequest;
    use futures_util::StreamExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    /// A connection, and the peer at its other end.
    async fn connected() -> (Loan, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (accepted, peer) = tokio::join!(listener.accept(), TcpStream::connect(listener.local_addr().unwrap()));
        (Loan::new(accepted.unwrap().0, Counter::default().opened()), peer.unwrap())
    }

    fn gate() -> GateControl {
        GateControl::new(0, Arc::default())
    }

    #[actix_web::test]
    async fn a_next_request_has_to_come_in_time() {
        let (mut loan, mut peer) = connected().await;
        drop(loan.wire().answering());
        loan.flush().await.unwrap();
        peer.write_all(b"GET /").await.unwrap();
        loan.read_exact(&mut [0; 5]).await.unwrap();

        tokio::time::pause();
        let late = timeout(2 * NEXT_HEAD, loan.read(&mut [0; 1])).await.expect("the end of the connection");

        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[actix_web::test]
    async fn a_request_may_take_its_time_and_its_answer_may_be_read_slowly() {
        let (mut loan, _peer) = connected().await;
        let answering = loan.wire().answering();
        tokio::time::pause();

        let before_its_end = timeout(2 * NEXT_HEAD, loan.read(&mut [0; 1])).await;
        drop(answering);
        let before_it_is_sent = timeout(2 * NEXT_HEAD, loan.read(&mut [0; 1])).await;

        assert!(before_its_end.is_err() && before_it_is_sent.is_err(), "{before_its_end:?}, {before_it_is_sent:?}");
    }

    #[actix_web::test]
    async fn the_head_of_each_request_has_all_its_time() {
        let (mut loan, _peer) = connected().await;
        tokio::time::pause();
        drop(loan.wire().answering());
        loan.flush().await.unwrap();
        let first = timeout(NEXT_HEAD / 2, loan.read(&mut [0; 1])).await;

        drop(loan.wire().answering());
        loan.flush().await.unwrap();
        let began = Instant::now();
        let late = loan.read(&mut [0; 1]).await;

        assert!(first.is_err() && late.is_err(), "{first:?}, {late:?}");
        assert!(began.elapsed() >= NEXT_HEAD, "cut after {:?}", began.elapsed());
    }

    #[actix_web::test]
    async fn the_actor_takes_over_once_the_answer_is_sent() {
        let (mut loan, mut peer) = connected().await;
        let (wire, sockets) = (loan.wire(), Counter::default());
        let actor = Some(BoxBody::new("the actor"));
        let socket = Socket { wire: wire.clone(), gate: gate(), actor, _open: sockets.opened(), _connection: None };
        let mut handover = Handover { wire, socket: Some(socket) };

        let waits = poll_fn(|cx| Poll::Ready(Pin::new(&mut handover).poll_next(cx).is_pending())).await;
        loan.write_all(b"the answer, ").await.unwrap();
        loan.flush().await.unwrap();
        let ended = poll_fn(|cx| Pin::new(&mut handover).poll_next(cx)).await.is_none();
        loan.write_all(b"nobody, ").await.unwrap();
        let read_by_library = loan.read(&mut [0; 8]).await.unwrap();
        peer.shutdown().await.unwrap();
        let mut heard = String::new();
        peer.read_to_string(&mut heard).await.unwrap();

        assert!(waits && ended);
        assert_eq!((heard.as_str(), read_by_library), ("the answer, the actor", 0));
    }

    #[actix_web::test]
    async fn a_connection_ends_once_the_peer_has_answered_the_last_words() {
        let (loan, mut peer) = connected().await;
        let actor = Some(BoxBody::new("the end"));
        let socket =
            Socket { wire: loan.wire(), gate: gate(), actor, _open: Counter::default().opened(), _connection: None };
        let mut run = std::pin::pin!(socket.run());

        let waits = poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx).is_pending())).await;
        let mut last_words = [0; 7];
        peer.read_exact(&mut last_words).await.unwrap();
        let is_open = peer.try_read(&mut [0; 1]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        peer.write_all(b"what was on its way").await.unwrap();
        let waits_on = poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx).is_pending())).await;
        peer.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.unwrap();
        let hears_the_end = async move { peer.read(&mut [0; 1]).await.unwrap() };

        assert!(waits && is_open && waits_on);
        assert_eq!(tokio::join!(run, hears_the_end).1, 0);
    }

    #[actix_web::test]
    async fn a_connection_is_handed_over_once() {
        let (loan, _peer) = connected().await;
        let (wire, sockets) = (loan.wire(), Counter::default());
        wire.0.turn.set(Turn::Socket);
        let actor = Some(BoxBody::new("another actor"));
        let socket = Socket { wire: wire.clone(), gate: gate(), actor, _open: sockets.opened(), _connection: None };
        let mut handover = Handover { wire, socket: Some(socket) };

        let ended = poll_fn(|cx| Pin::new(&mut handover).poll_next(cx)).await.is_none();

        assert!(ended && handover.socket.is_some());
    }

    #[actix_web::test]
    async fn bytes_read_by_the_library_come_first_and_a_hangup_is_an_error() {
        let (loan, mut peer) = connected().await;
        let (request, mut payload) = TestRequest::default().set_payload("early").to_http_parts();
        let payload = Payload::from_request(&request, &mut payload).await.unwrap();
        let wire = loan.wire();
        wire.0.turn.set(Turn::Socket);
        let mut incoming = Incoming { early: Some(payload), early_bytes: 0, wire: Some(wire) };

        peer.write_all(b"late").await.unwrap();
        let (first, second) = (incoming.next().await, incoming.next().await);
        peer.shutdown().await.unwrap();
        let third = incoming.next().await;

        assert_eq!((first.unwrap().unwrap(), second.unwrap().unwrap()), (Bytes::from("early"), Bytes::from("late")));
        assert!(matches!(third, Some(Err(PayloadError::Incomplete(None)))));
    }
}
