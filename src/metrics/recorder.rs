//! Makes samples durable, many in one transaction, and only then says so.
//!
//! A batch waits until [`COMMIT_SAMPLES`] lie here or the commit interval has passed, whichever is first; while one
//! transaction runs the next one gathers. An agent's connecting does not wait: its handshake hangs on it. When the
//! database is away nothing is acknowledged, the agents keep what they have, and here no more than
//! [`MAX_BYTES_WAITING`] gather.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, Recipient, SpawnHandle, WrapFuture};
use tokio::sync::oneshot;

use crate::store::{Commit, Connected, Disconnected, Store, StoreError, StoredSample};

/// Enough to make the cost of a transaction small against the cost of its rows.
const COMMIT_SAMPLES: usize = 512;

/// Bytes of samples that may wait for the database, of all agents together: a second of writing or two.
const MAX_BYTES_WAITING: usize = 32 * 1024 * 1024;

/// What a sample, and a message, take beside their encoded bytes.
const OVERHEAD: usize = 64;

/// The memory that samples of one message take while they wait.
pub fn weight(samples: &[StoredSample]) -> usize {
    OVERHEAD + samples.iter().map(|sample| sample.data.len() + OVERHEAD).sum::<usize>()
}

/// Messages that may wait for the actor. Samples are bounded by their own number; this bounds the rest.
const MAILBOX: usize = 16_384;

/// How long to leave a database alone that has just failed.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Samples of one `metrics` message, and who wants to know that they are durable.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Batch {
    pub seq: u64,
    pub samples: Vec<StoredSample>,
    pub done: Recipient<Recorded>,
}

/// The samples of this message are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct Recorded {
    pub seq: u64,
    /// What the message weighed while it waited.
    pub bytes: usize,
}

/// An agent authenticated: `done` is told when the server's record says so.
#[derive(Message)]
#[rtype(result = "()")]
struct RecordConnected {
    connected: Connected,
    done: oneshot::Sender<()>,
}

/// An agent's session ended: `done` is told when the server's record says so.
#[derive(Message)]
#[rtype(result = "()")]
struct RecordDisconnected {
    disconnected: Disconnected,
    done: oneshot::Sender<()>,
}

/// When servers were last seen.
#[derive(Message)]
#[rtype(result = "()")]
struct RecordSeen(Vec<(uuid::Uuid, signalbox_protocol::Timestamp)>);

/// Everything that came before this is written: `done` is told.
#[derive(Message)]
#[rtype(result = "()")]
struct Flush {
    done: oneshot::Sender<()>,
}

/// Hands work to the recorder, behind cheap clones. A full recorder refuses.
#[derive(Clone)]
pub struct RecorderHandle {
    /// One address for all: each clone of it would add a place to the mailbox.
    address: Arc<Addr<Recorder>>,
    bytes_waiting: Arc<AtomicUsize>,
}

/// The recorder did not take it: too much is waiting, or it has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the recorder is busy")]
pub struct Busy;

impl RecorderHandle {
    /// Starts a recorder on the arbiter of the calling thread.
    pub fn start(store: Store, commit_interval: Duration) -> Self {
        let bytes_waiting = Arc::<AtomicUsize>::default();
        let recorder = Recorder {
            store,
            commit_interval,
            bytes_waiting: bytes_waiting.clone(),
            gathering: Gathering::default(),
            timer: None,
            committing: false,
        };
        Self { address: Arc::new(recorder.start()), bytes_waiting }
    }

    /// Takes a batch, or gives it back when too much is waiting already.
    pub fn record(&self, batch: Batch) -> Result<(), Batch> {
        let bytes = weight(&batch.samples);
        if self.bytes_waiting.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_BYTES_WAITING {
            self.bytes_waiting.fetch_sub(bytes, Ordering::Relaxed);
            return Err(batch);
        }
        self.address.try_send(batch).map_err(|refused| {
            self.bytes_waiting.fetch_sub(bytes, Ordering::Relaxed);
            refused.into_inner()
        })
    }

    /// Writes that an agent is connected, and comes back when that is durable.
    pub async fn connected(&self, connected: Connected) -> Result<(), Busy> {
        let (done, durable) = oneshot::channel();
        self.address.try_send(RecordConnected { connected, done }).map_err(|_| Busy)?;
        durable.await.map_err(|_| Busy)
    }

    /// Writes that an agent has gone, and comes back when that is durable.
    pub async fn disconnected(&self, disconnected: Disconnected) -> Result<(), Busy> {
        let (done, durable) = oneshot::channel();
        self.address.try_send(RecordDisconnected { disconnected, done }).map_err(|_| Busy)?;
        durable.await.map_err(|_| Busy)
    }

    pub fn seen(&self, seen: Vec<(uuid::Uuid, signalbox_protocol::Timestamp)>) -> Result<(), Busy> {
        self.address.try_send(RecordSeen(seen)).map_err(|_| Busy)
    }

    /// Comes back when everything that was handed over before is durable.
    pub async fn flush(&self) -> Result<(), Busy> {
        let (done, durable) = oneshot::channel();
        self.address.try_send(Flush { done }).map_err(|_| Busy)?;
        durable.await.map_err(|_| Busy)
    }
}

/// The one writer of a database.
struct Recorder {
    store: Store,
    commit_interval: Duration,
    bytes_waiting: Arc<AtomicUsize>,
    gathering: Gathering,
    timer: Option<SpawnHandle>,
    committing: bool,
}

/// What the next transaction will write, and who waits for it.
#[derive(Default)]
struct Gathering {
    commit: Commit,
    batches: Vec<(Recorded, Recipient<Recorded>)>,
    waiting: Vec<oneshot::Sender<()>>,
    /// Somebody's handshake hangs on it.
    urgent: bool,
}

impl Gathering {
    fn is_full(&self) -> bool {
        self.urgent || self.commit.samples.len() >= COMMIT_SAMPLES
    }

    fn is_empty(&self) -> bool {
        self.commit.is_empty() && self.batches.is_empty() && self.waiting.is_empty()
    }

    /// Tells everybody who waits that it is durable.
    fn announce(self) {
        for (recorded, done) in self.batches {
            // An agent that has gone will send the batch again and find it stored.
            _ = done.try_send(recorded);
        }
        for done in self.waiting {
            _ = done.send(());
        }
    }
}

impl Recorder {
    /// Commits now if there is enough, later if there is something.
    fn gathered(&mut self, ctx: &mut Context<Self>) {
        if self.committing || self.gathering.is_empty() {
            return;
        }
        if self.gathering.is_full() {
            self.commit(ctx);
        } else if self.timer.is_none() {
            self.timer = Some(ctx.run_later(self.commit_interval, |recorder, ctx| {
                recorder.timer = None;
                recorder.commit(ctx);
            }));
        }
    }

    fn commit(&mut self, ctx: &mut Context<Self>) {
        if self.committing || self.gathering.is_empty() {
            return;
        }
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        self.committing = true;
        let batch = std::mem::take(&mut self.gathering);
        let store = self.store.clone();
        let written = async move { write(&store, batch).await };
        ctx.spawn(written.into_actor(self).map(|batch, recorder, ctx| {
            recorder.committing = false;
            let written = batch.batches.iter().map(|(recorded, _)| recorded.bytes).sum();
            recorder.bytes_waiting.fetch_sub(written, Ordering::Relaxed);
            batch.announce();
            recorder.gathered(ctx);
        }));
    }
}

/// Writes until it is written: a database that is away comes back, and until then nothing is acknowledged.
async fn write(store: &Store, batch: Gathering) -> Gathering {
    while let Err(error) = attempt(store, &batch).await {
        metrics::counter!("signalbox_commits_failed_total").increment(1);
        tracing::error!(%error, samples = batch.commit.samples.len(), "samples could not be written, will try again");
        tokio::time::sleep(RETRY_AFTER).await;
    }
    metrics::counter!("signalbox_samples_recorded_total").increment(batch.commit.samples.len() as u64);
    batch
}

async fn attempt(store: &Store, batch: &Gathering) -> Result<(), StoreError> {
    if batch.commit.is_empty() {
        return Ok(());
    }
    let started = std::time::Instant::now();
    store.commit(&batch.commit).await?;
    metrics::histogram!("signalbox_commit_seconds").record(started.elapsed().as_secs_f64());
    Ok(())
}

impl Actor for Recorder {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Batch> for Recorder {
    type Result = ();

    fn handle(&mut self, batch: Batch, ctx: &mut Self::Context) {
        let recorded = Recorded { seq: batch.seq, bytes: weight(&batch.samples) };
        self.gathering.commit.samples.extend(batch.samples);
        self.gathering.batches.push((recorded, batch.done));
        self.gathered(ctx);
    }
}

impl Handler<RecordConnected> for Recorder {
    type Result = ();

    fn handle(&mut self, message: RecordConnected, ctx: &mut Self::Context) {
        self.gathering.commit.connected.push(message.connected);
        self.gathering.waiting.push(message.done);
        self.gathering.urgent = true;
        self.gathered(ctx);
    }
}

impl Handler<RecordDisconnected> for Recorder {
    type Result = ();

    fn handle(&mut self, message: RecordDisconnected, ctx: &mut Self::Context) {
        self.gathering.commit.disconnected.push(message.disconnected);
        self.gathering.waiting.push(message.done);
        self.gathering.urgent = true;
        self.gathered(ctx);
    }
}

impl Handler<RecordSeen> for Recorder {
    type Result = ();

    fn handle(&mut self, message: RecordSeen, ctx: &mut Self::Context) {
        self.gathering.commit.seen.extend(message.0);
        self.gathered(ctx);
    }
}

impl Handler<Flush> for Recorder {
    type Result = ();

    fn handle(&mut self, message: Flush, ctx: &mut Self::Context) {
        self.gathering.waiting.push(message.done);
        self.gathering.urgent = true;
        self.gathered(ctx);
    }
}
