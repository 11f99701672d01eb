//! Makes samples durable, many in one transaction, and only then says so.
//!
//! A batch waits until [`COMMIT_SAMPLES`] lie here or the commit interval has passed, whichever is first; while one
//! transaction runs the next one gathers. An agent's connecting does not wait: its handshake hangs on it. When the
//! database is away nothing is acknowledged, the agents keep what they have, and here no more than
//! [`MAX_BYTES_WAITING`] gather.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, Recipient, SpawnHandle, WrapFuture};
use signalbox_protocol::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::archive::MOVE_FROM_BYTES;
use super::journal;
use super::tail::{Fresh, Tail};
use crate::disk::DiskGuard;
use crate::store::{Commit, Connected, Disconnected, Store, StoreError};

/// Enough to make the cost of a transaction small against the cost of its rows.
const COMMIT_SAMPLES: usize = 512;

/// Bytes of samples that may wait for the database, of all agents together: a second of writing or two.
const MAX_BYTES_WAITING: usize = 32 * 1024 * 1024;

/// What the tail may take when it cannot be moved into pieces fast enough.
const MOST_TAIL_BYTES: usize = 4 * MOVE_FROM_BYTES;

/// Agents that connect again and again while nothing can be written: their descriptions must not pile up.
const MAX_CONNECTED_WAITING: usize = 4_096;

/// What a sample, and a message, take beside their encoded bytes.
const OVERHEAD: usize = 64;

/// A sample that is to become durable.
#[derive(Debug, Clone)]
pub struct NewSample {
    pub server_id: Uuid,
    pub fresh: Fresh,
    /// `metrics::codec`'s.
    pub encoded: Vec<u8>,
}

/// The memory that samples of one message take while they wait.
pub fn weight(samples: &[NewSample]) -> usize {
    let of_one =
        |sample: &NewSample| sample.encoded.len() + sample.fresh.row.values.len() * size_of::<i64>() + OVERHEAD;
    OVERHEAD + samples.iter().map(of_one).sum::<usize>()
}

/// How long to leave a database alone that has just failed.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Samples of one `metrics` message, and who wants to know that they are durable.
pub struct Batch {
    pub seq: u64,
    pub samples: Vec<NewSample>,
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

/// Something lies in the gathering. Sent once for a whole gathering, not for each batch: waking the recorder's thread
/// two thousand times a second cost more than writing the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Message)]
#[rtype(result = "()")]
enum Gathered {
    /// The first of a gathering: commit when the interval has passed.
    Some,
    /// Enough, or somebody's handshake hangs on it: commit now.
    Enough,
}

/// Hands work to the recorder, behind cheap clones. A full recorder refuses.
#[derive(Clone)]
pub struct RecorderHandle {
    /// One address for all: each clone of it would add a place to the mailbox.
    address: Arc<Addr<Recorder>>,
    disk: DiskGuard,
    tail: Tail,
    shared: Arc<Shared>,
}

/// What sessions write and the recorder takes.
#[derive(Default)]
struct Shared {
    gathering: Mutex<Gathering>,
    /// Of samples that are gathered or being written.
    bytes_waiting: AtomicUsize,
}

/// The recorder did not take it: too much is waiting, or it has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the recorder is busy")]
pub struct Busy;

impl RecorderHandle {
    /// Starts a recorder on the arbiter of the calling thread. `writer` names this process in the journal.
    pub fn start(store: Store, tail: Tail, disk: DiskGuard, writer: Uuid, commit_interval: Duration) -> Self {
        let shared = Arc::<Shared>::default();
        let book = Book { store, tail: tail.clone(), writer };
        let recorder = Recorder { book, commit_interval, shared: shared.clone(), timer: None, is_committing: false };
        Self { address: Arc::new(recorder.start()), disk, tail, shared }
    }

    /// Takes a batch, or gives it back when too much is waiting already.
    pub fn record(&self, batch: Batch) -> Result<(), Batch> {
        if self.disk.is_full() || self.tail.bytes() >= MOST_TAIL_BYTES {
            return Err(batch);
        }
        let bytes = weight(&batch.samples);
        if self.shared.bytes_waiting.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_BYTES_WAITING {
            self.shared.bytes_waiting.fetch_sub(bytes, Ordering::Relaxed);
            return Err(batch);
        }
        self.gather(|gathering| {
            gathering.samples.extend(batch.samples);
            gathering.batches.push((Recorded { seq: batch.seq, bytes }, batch.done));
        });
        Ok(())
    }

    /// Writes that an agent is connected, and comes back when that is durable.
    pub async fn connected(&self, connected: Connected) -> Result<(), Busy> {
        if self.shared.lock().commit.connected.len() >= MAX_CONNECTED_WAITING {
            return Err(Busy);
        }
        self.urgently(|gathering| gathering.commit.connected.push(connected)).await
    }

    /// Writes that an agent has gone, and comes back when that is durable.
    pub async fn disconnected(&self, disconnected: Disconnected) -> Result<(), Busy> {
        self.urgently(|gathering| gathering.commit.disconnected.push(disconnected)).await
    }

    /// Writes when servers were last seen, some time soon.
    pub fn seen(&self, seen: Vec<(Uuid, Timestamp)>) {
        // The newest says it all.
        self.gather(|gathering| gathering.commit.seen = seen);
    }

    /// Comes back when everything that was handed over before is durable.
    pub async fn flush(&self) -> Result<(), Busy> {
        self.urgently(|_| {}).await
    }

    /// Adds what somebody waits for. There are as many of these as handshakes and sessions, which are bounded.
    async fn urgently(&self, add: impl FnOnce(&mut Gathering)) -> Result<(), Busy> {
        let (done, durable) = oneshot::channel();
        self.gather(|gathering| {
            add(gathering);
            gathering.waiting.push(done);
        });
        durable.await.map_err(|_| Busy)
    }

    fn gather(&self, add: impl FnOnce(&mut Gathering)) {
        let news = {
            let mut gathering = self.shared.lock();
            add(&mut gathering);
            gathering.news()
        };
        if let Some(news) = news
            && self.address.try_send(news).is_err()
        {
            // At most two are on their way for one gathering, so this can only be the end of the process.
            tracing::warn!("the recorder has stopped");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Gathering> {
        // Nothing in here can panic half-way, so a poisoned lock still guards sound data.
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the next transaction will write, and who waits for it.
#[derive(Default)]
struct Gathering {
    samples: Vec<NewSample>,
    commit: Commit,
    batches: Vec<(Recorded, Recipient<Recorded>)>,
    waiting: Vec<oneshot::Sender<()>>,
    /// The last that the recorder was told of this gathering.
    told: Option<Gathered>,
}

impl Gathering {
    fn is_enough(&self) -> bool {
        !self.waiting.is_empty() || self.samples.len() >= COMMIT_SAMPLES
    }

    fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.commit.is_empty() && self.batches.is_empty() && self.waiting.is_empty()
    }

    /// What the recorder has to be told, if it has not been yet.
    fn news(&mut self) -> Option<Gathered> {
        let state = if self.is_enough() { Gathered::Enough } else { Gathered::Some };
        if self.told == Some(state) || self.told == Some(Gathered::Enough) {
            return None;
        }
        self.told = Some(state);
        Some(state)
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

/// The one writer of a database.
struct Recorder {
    book: Book,
    commit_interval: Duration,
    shared: Arc<Shared>,
    timer: Option<SpawnHandle>,
    is_committing: bool,
}

impl Recorder {
    /// Commits now if there is enough, later if there is something.
    fn look(&mut self, ctx: &mut Context<Self>) {
        let (is_empty, is_enough) = {
            let gathering = self.shared.lock();
            (gathering.is_empty(), gathering.is_enough())
        };
        if self.is_committing || is_empty {
            return;
        }
        if is_enough {
            self.commit(ctx);
        } else if self.timer.is_none() {
            self.timer = Some(ctx.run_later(self.commit_interval, |recorder, ctx| {
                recorder.timer = None;
                recorder.commit(ctx);
            }));
        }
    }

    fn commit(&mut self, ctx: &mut Context<Self>) {
        if self.is_committing {
            return;
        }
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let gathered = std::mem::take(&mut *self.shared.lock());
        if gathered.is_empty() {
            return;
        }
        self.is_committing = true;
        let book = self.book.clone();
        let written = async move { book.write(gathered).await };
        ctx.spawn(written.into_actor(self).map(|gathered, recorder, ctx| {
            recorder.is_committing = false;
            let bytes = gathered.batches.iter().map(|(recorded, _)| recorded.bytes).sum();
            recorder.shared.bytes_waiting.fetch_sub(bytes, Ordering::Relaxed);
            gathered.announce();
            recorder.look(ctx);
        }));
    }
}

/// What is written, and where it is found again.
#[derive(Clone)]
struct Book {
    store: Store,
    tail: Tail,
    writer: Uuid,
}

impl Book {
    /// Writes until it is written: a database that is away comes back, and until then nothing is acknowledged.
    async fn write(&self, mut batch: Gathering) -> Gathering {
        let samples = std::mem::take(&mut batch.samples);
        let mut row = journal::Writer::default();
        samples.iter().for_each(|sample| row.add(sample.server_id, &sample.encoded));
        batch.commit.journal = row.finish();
        let journal_id = loop {
            match self.attempt(&batch.commit).await {
                Ok(journal_id) => break journal_id,
                Err(error) => {
                    metrics::counter!("signalbox_commits_failed_total").increment(1);
                    tracing::error!(%error, samples = samples.len(), "samples could not be written, will try again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        };
        metrics::counter!("signalbox_samples_recorded_total").increment(samples.len() as u64);
        if let Some(journal_id) = journal_id {
            self.tail.append(journal_id, samples.into_iter().map(|sample| (sample.server_id, sample.fresh)));
        }
        batch
    }

    async fn attempt(&self, commit: &Commit) -> Result<Option<i64>, StoreError> {
        if commit.is_empty() {
            return Ok(None);
        }
        let started = std::time::Instant::now();
        let journal_id = self.store.commit(self.writer, commit).await?;
        metrics::histogram!("signalbox_commit_seconds").record(started.elapsed().as_secs_f64());
        Ok(journal_id)
    }
}

impl Actor for Recorder {
    type Context = Context<Self>;
}

impl Handler<Gathered> for Recorder {
    type Result = ();

    fn handle(&mut self, _: Gathered, ctx: &mut Self::Context) {
        self.look(ctx);
    }
}
