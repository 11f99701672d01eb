//! Instances joined by a bus in this process; the tests play the homes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signalbox_protocol::agent::{
    AgentMessage, LogLine, LogLines, ServiceMessage, TerminalOutput, TerminalSize, TerminalStart,
};
use tokio::sync::oneshot;

use super::message::{Demand, PeerRequest, StreamFrame};
use super::*;
use crate::bus::Subscription;
use crate::bus::local::LocalBus;
use crate::bus::subject::Subjects;
use crate::registry::{Opening, StreamKind, StreamRequest, StreamSink};

/// A home that the test plays.
struct Played {
    bus_client: BusClient,
    asked: Subscription,
}

impl Played {
    async fn of(bus: &LocalBus, server_id: Uuid) -> Self {
        let bus_client = bus_client(bus).await;
        let asked = bus_client.listen(bus_client.subjects.agent(server_id)).await.unwrap();
        Self { bus_client, asked }
    }

    /// The next request, and the function that answers it.
    async fn next(&mut self) -> (PeerRequest, impl FnOnce(bytes::Bytes) + Send + use<>) {
        let (payload, reply) = self.asked.next().await.unwrap().into_parts();
        (self.bus_client.read(payload).await.unwrap(), reply)
    }

    /// The next request that is no liveness check; answers those itself.
    async fn next_but_looks(&mut self) -> (PeerRequest, impl FnOnce(bytes::Bytes) + Send + use<>) {
        loop {
            match self.next().await {
                (PeerRequest::There, reply) => self.bus_client.answer(reply, &self.bus_client.instance_id),
                other => return other,
            }
        }
    }

    async fn tell(&self, stream_id: Uuid, frame: &StreamFrame) -> Result<Demand, BusError> {
        self.bus_client.ask(self.bus_client.subjects.stream(stream_id), frame, TAKEN_WITHIN).await
    }
}

async fn bus_client(bus: &LocalBus) -> BusClient {
    BusClient::open(Arc::new(bus.clone()), Subjects::new("test"), Uuid::now_v7()).await.unwrap()
}

async fn remote(bus: &LocalBus) -> Remote {
    Remote::new(bus_client(bus).await)
}

fn sent() -> Result<(), CallError> {
    Ok(())
}

/// The order to open a terminal, and the end that reads it.
fn terminal(stream_id: Uuid, credit: u64) -> (Order, crate::registry::StreamSource) {
    let size = TerminalSize { columns: 80, rows: 24 };
    let message = ServiceMessage::TerminalStart(TerminalStart {
        stream_id,
        size,
        credit: Some(credit),
        by: None,
        asker: None,
        signed: None,
    });
    let (sink, read) = StreamSink::new(StreamKind::Terminal, credit);
    (Order::Open(Opening { stream_id, request: StreamRequest::Plain(message), sink }), read)
}

fn output(stream_id: Uuid, data: &str) -> StreamFrame {
    StreamFrame::of(AgentMessage::TerminalOutput(TerminalOutput { stream_id, data: data.to_owned(), offset: None }))
}

/// Opens a terminal at a home that the test plays.
async fn opened(
    remote: &Remote,
    home: &mut Played,
    server_id: Uuid,
    credit: u64,
) -> (Uuid, crate::registry::StreamSource) {
    let stream_id = Uuid::now_v7();
    let (order, read) = terminal(stream_id, credit);
    remote.take(server_id, order);
    let (ask, reply) = home.next_but_looks().await;
    assert!(matches!(ask, PeerRequest::Open(_)), "{ask:?}");
    home.bus_client.answer(reply, &sent());
    (stream_id, read)
}

#[tokio::test(start_paused = true)]
async fn input_waits_until_the_terminal_is_open() {
    let bus = LocalBus::default();
    let (remote, server_id, stream_id) = (remote(&bus).await, Uuid::now_v7(), Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let (order, _read) = terminal(stream_id, 1_000);
    let typed = ServiceMessage::TerminalInput { stream_id, data: "ls\n".to_owned() };
    let (told, is_told) = oneshot::channel();

    remote.take(server_id, order);
    remote.take(server_id, Order::Tell(typed.clone(), Some(told)));
    let (first, opens) = home.next_but_looks().await;
    assert!(matches!(first, PeerRequest::Open(_)), "{first:?}");
    home.bus_client.answer(opens, &sent());
    let (second, takes) = home.next_but_looks().await;
    home.bus_client.answer(takes, &sent());

    assert!(matches!(second, PeerRequest::Tell(message) if message == typed));
    assert_eq!(is_told.await, Ok(Ok(())));
    assert!(remote.openings.is_empty());
}

#[tokio::test(start_paused = true)]
async fn stream_messages_arrive_in_order_and_end_with_the_outcome() {
    let bus = LocalBus::default();
    let (remote, server_id) = (remote(&bus).await, Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let (stream_id, mut read) = opened(&remote, &mut home, server_id, 1_000).await;

    for number in 0..50 {
        assert_eq!(home.tell(stream_id, &output(stream_id, &number.to_string())).await, Ok(Demand::More));
    }
    assert_eq!(home.tell(stream_id, &StreamFrame::Still).await, Ok(Demand::More));
    let outcome = Ok(serde_json::json!({ "exit_code": 7 }));
    assert_eq!(home.tell(stream_id, &StreamFrame::End(outcome.clone())).await, Ok(Demand::Enough));

    for number in 0..50 {
        let expected =
            AgentMessage::TerminalOutput(TerminalOutput { stream_id, data: number.to_string(), offset: None });
        assert_eq!(read.messages.recv().await, Some(expected));
    }
    assert_eq!(read.ended.await, Ok(outcome));
}

#[tokio::test(start_paused = true)]
async fn exceeding_the_credit_ends_the_stream() {
    let bus = LocalBus::default();
    let (remote, server_id) = (remote(&bus).await, Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let (stream_id, read) = opened(&remote, &mut home, server_id, 4).await;

    assert_eq!(home.tell(stream_id, &output(stream_id, "12345")).await, Ok(Demand::More));
    assert_eq!(home.tell(stream_id, &output(stream_id, "6")).await, Ok(Demand::Enough));

    assert_eq!(read.ended.await.unwrap().unwrap_err().code(), "stream_overrun");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_has_gone_is_noticed_on_an_idle_stream() {
    let bus = LocalBus::default();
    let (remote, server_id) = (remote(&bus).await, Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let (stream_id, read) = opened(&remote, &mut home, server_id, 1_000).await;

    drop(read);

    assert_eq!(home.tell(stream_id, &StreamFrame::Still).await, Ok(Demand::Enough));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_its_home_forgot_ends() {
    let bus = LocalBus::default();
    let (remote, server_id) = (remote(&bus).await, Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let (_, read) = opened(&remote, &mut home, server_id, 1_000).await;
    // The home is alive, but never mentions the stream.
    let looks = tokio::spawn(async move { home.next_but_looks().await.0 });

    assert_eq!(read.ended.await, Ok(Err(CallError::Disconnected)));
    looks.abort();
}

#[tokio::test(start_paused = true)]
async fn killing_a_home_ends_what_waits_for_it() {
    let bus = LocalBus::default();
    let (remote, server_id) = (remote(&bus).await, Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let (_, read) = opened(&remote, &mut home, server_id, 1_000).await;

    drop(home);

    assert_eq!(read.ended.await, Ok(Err(CallError::Disconnected)));
    while !remote.looks.is_empty() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_home_is_checked_once_a_second_however_many_callers_wait() {
    let bus = LocalBus::default();
    let (remote, server_id) = (remote(&bus).await, Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let remote = remote.clone();
            tokio::spawn(async move { remote.gone(server_id).await })
        })
        .collect();
    let counted = asked.clone();
    let answering = tokio::spawn(async move {
        loop {
            let (_, reply) = home.next().await;
            counted.fetch_add(1, Ordering::Relaxed);
            home.bus_client.answer(reply, &home.bus_client.instance_id);
        }
    });

    tokio::time::sleep(Duration::from_millis(10_500)).await;
    assert_eq!(asked.load(Ordering::Relaxed), 10);
    assert!(waiting.iter().all(|one| !one.is_finished()));
    answering.abort();

    for one in waiting {
        one.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_moved_ends_what_waits_for_it() {
    let bus = LocalBus::default();
    let (remote, server_id) = (remote(&bus).await, Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let waiting = tokio::spawn(async move { remote.gone(server_id).await });
    let (_, reply) = home.next().await;
    home.bus_client.answer(reply, &home.bus_client.instance_id);
    assert!(!waiting.is_finished());

    let mut next = Played::of(&bus, server_id).await;
    drop(home);
    let answering = tokio::spawn(async move {
        loop {
            let (_, reply) = next.next().await;
            next.bus_client.answer(reply, &next.bus_client.instance_id);
        }
    });

    waiting.await.unwrap();
    answering.abort();
}

#[tokio::test(start_paused = true)]
async fn a_log_is_no_terminal() {
    let bus = LocalBus::default();
    let (remote, server_id) = (remote(&bus).await, Uuid::now_v7());
    let mut home = Played::of(&bus, server_id).await;
    let (stream_id, mut read) = opened(&remote, &mut home, server_id, 1_000).await;
    let line = LogLine { timestamp: None, stream: None, message: "line".to_owned() };
    let lines = AgentMessage::LogLines(LogLines { stream_id, lines: vec![line], dropped: 0 });

    assert_eq!(home.tell(stream_id, &StreamFrame::of(lines)).await, Ok(Demand::More));

    assert!(read.messages.try_recv().is_err());
}
