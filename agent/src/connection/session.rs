//! An authenticated connection: sends unacknowledged samples, answers requests, and detects when the service is gone.
//!
//! One loop waits for whatever comes first. It never waits for the socket to accept a message: messages go through a bounded
//! outbox to a writer, so that a service that does not read can delay neither the deadlines nor the stop.

use std::pin::{Pin, pin};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use signalbox_protocol::agent::{AgentMessage, Response, ServiceMessage};
use signalbox_protocol::{Decoded, Sample};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

use super::ack_watchdog::AckWatchdog;
use super::delivery::Delivery;
use super::dial::{Endpoint, Socket};
use super::ended::Ended;
use super::handshake::decode;
use crate::backlog::Backlog;
use crate::commands::{Commands, Uplink};
use crate::controls::Controls;
use crate::events::Connected;
use crate::exit::Exit;
use crate::live::Live;
use crate::logs::Logs;
use crate::recordings::{Recordings, ReportsUplink};
use crate::requests::{AgentMethods, Requests};
use crate::streams::Streams;
use crate::suspend::{Clocks, SuspendWatch};
use crate::terminal::OpenTerminals;
use crate::wire;

/// How many samples and answers may wait to be written. When it is full, the service does not read.
const OUTBOX: usize = 36;
/// Places that samples leave free: what the service asks for is still answered while a large answer takes its time.
const FOR_ANSWERS: usize = OUTBOX / 2;
/// How long to look for the close frame with the reason after a write failed. Without it a replaced agent would take a reset
/// for a broken line and reconnect.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Streams wait here after everything else: one message is ready while another is written.
const BULK: usize = 1;

struct Session<'a> {
    delivery: Delivery<'a>,
    requests: Requests<AgentMethods>,
    streams: Streams,
    logs: Logs,
    commands: Commands,
    uplink: Uplink,
    terminals: OpenTerminals,
    recordings: Recordings,
    reports: ReportsUplink,
    live: &'a Live,
    outbox: mpsc::Sender<Message>,
    bulk: mpsc::Sender<Message>,
    /// Messages of types that this build does not know.
    unknown: u64,
    /// Messages that could not be read.
    malformed: u64,
}

/// Serves the connection until it ends.
pub async fn serve(
    socket: Socket,
    backlog: &Backlog,
    methods: AgentMethods,
    events: Connected,
    controls: &Controls,
    endpoint: Endpoint<'_>,
    mut shutdown: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Ended {
    let (sink, mut stream) = socket.split();
    let (outbox, queue) = mpsc::channel(OUTBOX);
    let (bulk, bulk_queue) = mpsc::channel(BULK);
    let mut writer = pin!(write(sink, queue, bulk_queue));
    let logs = methods.logs.clone();
    let mut session = Session {
        delivery: Delivery::new(backlog),
        requests: Requests::new(methods),
        streams: Streams::new(),
        logs,
        commands: controls.commands.clone(),
        uplink: Uplink::new(controls.commands.clone()),
        terminals: OpenTerminals::new(controls.terminals.clone()),
        recordings: controls.recordings.clone(),
        reports: controls.recordings.uplink(),
        live: &controls.live,
        outbox,
        bulk,
        unknown: 0,
        malformed: 0,
    };
    let mut suspend = SuspendWatch::new(Clocks::now());
    let timing = endpoint.timing;
    let mut watchdog = AckWatchdog::new(endpoint);
    let mut watch = interval(timing.watch);
    watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    loop {
        session.send_batches();
        let step = tokio::select! {
            () = shutdown.as_mut() => {
                drop(session);
                let _ = timeout(timing.closing, close(writer, &mut stream, &controls.commands)).await;
                return Ended::ForGood(Exit::Stopped);
            }
            frame = stream.next() => {
                heard = Instant::now();
                session.receive(frame)
            }
            written = &mut writer => Err(last_words(written, &mut stream).await),
            () = session.delivery.news() => Ok(()),
            sample = controls.live.taken() => session.show(sample),
            answered = answer(&session.outbox, &mut session.requests) => answered,
            flowed = flow(
                &session.bulk, &mut session.streams, &mut session.uplink, &mut session.reports, &events
            ) => flowed,
            () = watchdog.is_well_founded(session.delivery.waiting_since()) => {
                Err(Ended::Unacknowledged(timing.unacknowledged))
            }
            () = sleep_until(heard + timing.silence) => Err(Ended::Silent(timing.silence)),
            _ = watch.tick() => Ok(()),
        };
        if let Err(ended) = step {
            return ended;
        }
        // Whatever woke the loop is a good moment to check: mostly a sample or its ack. No frame says that the machine slept.
        if let Some(slept) = suspend.observe(Clocks::now()) {
            return Ended::Suspended(slept);
        }
    }
}

impl Session<'_> {
    fn send_batches(&mut self) {
        while self.outbox.capacity() > FOR_ANSWERS
            && let Ok(place) = self.outbox.try_reserve()
            && let Some(message) = self.delivery.next_message()
        {
            place.send(Message::Binary(message));
        }
    }

    fn receive(&mut self, frame: Option<Result<Message, WsError>>) -> Result<(), Ended> {
        let frame = match frame {
            Some(Ok(Message::Close(frame))) => return Err(Ended::by_close(frame)),
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Err(Ended::Broken(error.to_string())),
            None => return Err(Ended::Broken("closed by the service".to_owned())),
        };
        match decode(&frame) {
            Some(Ok(Decoded::Known(message))) => self.handle(message),
            Some(Ok(Decoded::Unknown)) => {
                self.unknown += 1;
                tracing::debug!(unknown = self.unknown, "ignored a message of an unknown type");
                Ok(())
            }
            Some(Err(error)) => {
                self.malformed += 1;
                tracing::debug!(%error, malformed = self.malformed, "ignored a malformed message");
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn handle(&mut self, message: ServiceMessage) -> Result<(), Ended> {
        match message {
            ServiceMessage::Ack { seq } => {
                self.delivery.ack(seq);
                Ok(())
            }
            ServiceMessage::Watched { interval_seconds, for_seconds } => {
                self.live.ask(interval_seconds, for_seconds);
                Ok(())
            }
            ServiceMessage::Request(request) => {
                let refusal = self.requests.start(request);
                self.answer_refusal(refusal)
            }
            ServiceMessage::RequestCancel { request_id } => {
                self.requests.cancel(request_id);
                Ok(())
            }
            ServiceMessage::Execute(execute) => self.answer_refusal(self.commands.execute(execute)),
            ServiceMessage::Cancel { command_id } => {
                self.commands.cancel(command_id);
                Ok(())
            }
            ServiceMessage::ResultAck { command_id } => {
                self.commands.acknowledge(command_id);
                Ok(())
            }
            ServiceMessage::LogsStart(logs) => {
                let reader = self.logs.clone();
                let (stream_id, credit) = (logs.stream_id, logs.credit);
                match self.streams.start(stream_id, credit, |port| reader.stream(logs, port)) {
                    Some(refusal) => self.send(&AgentMessage::Response(refusal)),
                    None => Ok(()),
                }
            }
            ServiceMessage::TerminalStart(start) => {
                let refusal = self.terminals.start(start, &mut self.streams);
                self.answer_refusal(refusal)
            }
            ServiceMessage::TerminalInput { stream_id, data } => {
                self.terminals.type_in(stream_id, &data);
                Ok(())
            }
            ServiceMessage::TerminalResize { stream_id, size } => {
                self.terminals.resize(stream_id, size);
                Ok(())
            }
            ServiceMessage::RecordedAck { stream_id } => {
                self.recordings.noted(stream_id);
                Ok(())
            }
            ServiceMessage::Credit { stream_id, bytes } => {
                self.streams.credit(stream_id, bytes);
                Ok(())
            }
            ServiceMessage::LogsStop { stream_id } | ServiceMessage::TerminalStop { stream_id } => {
                self.streams.stop(stream_id);
                Ok(())
            }
            ServiceMessage::AuthResponse(_) => Ok(()),
        }
    }

    /// Sends a live sample, unless the service does not keep up: then it wants the next one.
    fn show(&self, mut sample: Sample) -> Result<(), Ended> {
        if self.outbox.capacity() <= FOR_ANSWERS {
            return Ok(());
        }
        self.delivery.keep_described(&mut sample);
        self.send(&AgentMessage::Live { sample: Box::new(sample) })
    }

    fn answer_refusal(&self, refusal: Option<Response>) -> Result<(), Ended> {
        refusal.map_or(Ok(()), |refusal| self.send(&AgentMessage::Response(refusal)))
    }

    fn send(&self, message: &AgentMessage) -> Result<(), Ended> {
        let message = wire::ENCODING.encode(message).map_err(|error| Ended::Broken(error.to_string()))?;
        self.outbox.try_send(Message::Binary(message)).map_err(|_| Ended::Unread)
    }
}

/// Moves one answer to the writer, when that has room.
async fn answer(outbox: &mpsc::Sender<Message>, requests: &mut Requests<AgentMethods>) -> Result<(), Ended> {
    let Ok(place) = outbox.reserve().await else { return Err(Ended::Unread) };
    let response = AgentMessage::Response(requests.answer().await);
    let message = wire::ENCODING.encode(&response).map_err(|error| Ended::Broken(error.to_string()))?;
    place.send(Message::Binary(message));
    Ok(())
}

/// Moves one message of a stream, a report or an event to the writer, when that has room.
async fn flow(
    bulk: &mpsc::Sender<Message>,
    streams: &mut Streams,
    uplink: &mut Uplink,
    reports: &mut ReportsUplink,
    events: &Connected,
) -> Result<(), Ended> {
    let Ok(place) = bulk.reserve().await else { return Err(Ended::Unread) };
    let message = tokio::select! {
        event = events.next() => AgentMessage::Event(event),
        message = streams.next() => message,
        message = uplink.next() => message,
        message = reports.next() => message,
    };
    let message = wire::ENCODING.encode(&message).map_err(|error| Ended::Broken(error.to_string()))?;
    place.send(Message::Binary(message));
    Ok(())
}

/// Writes what is queued, and streams when nothing else waits. Once the queue is closed, it says goodbye.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::Receiver<Message>,
    mut bulk: mpsc::Receiver<Message>,
) -> Result<(), WsError> {
    loop {
        let message = tokio::select! {
            biased;
            message = queue.recv() => match message {
                Some(message) => message,
                None => break,
            },
            Some(message) = bulk.recv() => message,
        };
        sink.send(message).await?;
    }
    let frame = CloseFrame { code: CloseCode::Normal, reason: "stopped".into() };
    sink.send(Message::Close(Some(frame))).await
}

/// Closes cleanly: the writer sends what is queued and the close frame, the service answers with its own. Commands that it sends
/// before it has read that frame are declined.
async fn close(
    writer: Pin<&mut impl Future<Output = Result<(), WsError>>>,
    stream: &mut SplitStream<Socket>,
    commands: &Commands,
) {
    let read = async {
        while let Some(Ok(frame)) = stream.next().await {
            if let Some(Ok(Decoded::Known(ServiceMessage::Execute(execute)))) = decode(&frame) {
                commands.decline(&execute);
            }
        }
    };
    _ = tokio::join!(writer, read);
}

/// Why the service closed the connection, if it said so before.
async fn last_words(written: Result<(), WsError>, stream: &mut SplitStream<Socket>) -> Ended {
    let said = timeout(LAST_WORDS, async {
        while let Some(Ok(frame)) = stream.next().await {
            if let Message::Close(frame) = frame {
                return Some(Ended::by_close(frame));
            }
        }
        None
    });
    let unsaid = || Ended::Broken(written.err().map_or_else(|| "closed".to_owned(), |error| error.to_string()));
    said.await.ok().flatten().unwrap_or_else(unsaid)
}
