//! Makes samples durable, many in one transaction, and only then says so.
//!
//! A batch waits until enough of them lie here or the commit interval has passed, whichever is first; while one
//! transaction runs the next one gathers, and where there is always enough a part of the interval passes between two. An
//! agent's connecting does not wait: its handshake hangs on it. When the database is away nothing is acknowledged, the
//! agents keep what they have, and here no more than
//! [`MAX_BYTES_WAITING`] gather; after [`HOLD_UP`] that holds up no socket any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Recipient, SpawnHandle, WrapFuture};
use parking_lot::{Mutex, MutexGuard};
use signalbox_history::journal;
use signalbox_protocol::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::archive::{RetentionPolicy, hour_of};
use super::gathering::{Gathered, Gathering, Waiting};
pub use super::gathering::{Held, NewSample, Recorded};
use super::tail::{MOVE_FROM_BYTES, Tail};
use crate::disk::DiskGuard;
use crate::store::history::FreshSample;
use crate::store::{Commit, Committed, Connected, Disconnected, Redescribed, Store, StoreError};

/// Bytes of samples that may wait for the database, of all agents together: a second of writing or two.
const MAX_BYTES_WAITING: usize = 32 * 1024 * 1024;

/// What the tail may take when it cannot be moved into pieces fast enough.
const MOST_TAIL_BYTES: usize = 4 * MOVE_FROM_BYTES;

/// Agents that connect again and again while nothing can be written: their descriptions must not pile up.
const MAX_CONNECTED_WAITING: usize = 4_096;

/// What a sample, and a message, take beside their encoded bytes.
const OVERHEAD: usize = 64;

/// The memory that samples of one message take while they wait.
pub fn weight(samples: &[NewSample]) -> usize {
    let of_one =
        |sample: &NewSample| sample.encoded.len() + sample.fresh.row.values.len() * size_of::<i64>() + OVERHEAD;
    OVERHEAD + samples.iter().map(of_one).sum::<usize>()
}

/// How long agents are held up for a database that takes nothing. It may be a moment; after that they are read on, to be
/// watched and run, and send again what was not taken.
const HOLD_UP: Duration = Duration::from_secs(5);

/// How many commits of enough samples an interval has at most: the way to the database's thread and back, thrice, and the
/// sync cost as much as some hundred samples.
const COMMITS_AN_INTERVAL: u32 = 16;

/// How long to leave a database alone that has just failed.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Samples of one `metrics` message, and who wants to know that they are durable.
pub struct Batch {
    pub seq: u64,
    /// The session that must hold the server when they are written; nil where there is one instance, which knows.
    pub session_id: Uuid,
    pub samples: Vec<NewSample>,
    pub done: Recipient<Recorded>,
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
    /// Since when nothing could be written; none when the last attempt went well.
    failing_since: Mutex<Option<Instant>>,
}

/// The recorder did not take it: too much is waiting, or it has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the recorder is busy")]
pub struct Busy;

impl RecorderHandle {
    /// Starts a recorder on the arbiter of the calling thread. `writer` names this process in the journal.
    pub fn start(
        store: Store,
        tail: Tail,
        disk: DiskGuard,
        writer: Uuid,
        policy: RetentionPolicy,
        commit_interval: Duration,
    ) -> Self {
        let shared = Arc::<Shared>::default();
        let book = Book { store, tail: tail.clone(), writer, policy, shared: shared.clone() };
        let recorder = Recorder {
            book,
            commit_interval,
            shared: shared.clone(),
            timer: None,
            is_committing: false,
            last_began: None,
        };
        Self { address: Arc::new(recorder.start()), disk, tail, shared }
    }

    /// Whether nothing has been written for a while and nobody knows until when: the disk is full, or the database is away.
    pub fn is_stuck(&self) -> bool {
        self.disk.is_full() || self.is_failing()
    }

    /// Whether writing has failed for a while.
    pub fn is_failing(&self) -> bool {
        self.shared.has_failed_for(HOLD_UP)
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
            let Batch { seq, session_id, samples, done } = batch;
            let server_id = samples.first().map(|sample| sample.server_id);
            gathering.samples.extend(samples.into_iter().map(|sample| (session_id, sample)));
            let recorded = Recorded { seq, lost: None, bytes };
            gathering.batches.push(Waiting { server_id, session_id, recorded, done });
        });
        Ok(())
    }

    /// Writes that an agent is connected, and comes back when that is durable, or another session was faster to take
    /// hold of the server.
    pub async fn connected(&self, connected: Connected) -> Result<Held, Busy> {
        if self.shared.lock().commit.connected.len() >= MAX_CONNECTED_WAITING {
            return Err(Busy);
        }
        let (done, held) = oneshot::channel();
        self.gather(|gathering| {
            gathering.handshakes.push((connected.session_id, done));
            gathering.commit.connected.push(connected);
        });
        held.await.map_err(|_| Busy)
    }

    /// Writes what is known of a connected agent by now, some time soon.
    pub fn redescribe(&self, redescribed: Redescribed) {
        self.gather(|gathering| {
            let waiting = &mut gathering.commit.redescribed;
            // The newest says it all.
            waiting.retain(|other| other.server_id != redescribed.server_id);
            waiting.push(redescribed);
        });
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
            // At most three are on their way for one gathering, so this can only be the end of the process.
            tracing::warn!("the recorder has stopped");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Gathering> {
        self.gathering.lock()
    }

    fn has_failed_for(&self, long: Duration) -> bool {
        let since = *self.failing_since.lock();
        since.is_some_and(|since| since.elapsed() >= long)
    }

    /// Notes that an attempt that began then failed; none for one that went well.
    fn failed(&self, began: Option<Instant>) {
        let mut since = self.failing_since.lock();
        *since = began.map(|began| since.unwrap_or(began));
    }
}

/// The one writer of a database.
struct Recorder {
    book: Book,
    commit_interval: Duration,
    shared: Arc<Shared>,
    /// When it commits what lies there, unless something makes it commit sooner.
    timer: Option<(Instant, SpawnHandle)>,
    is_committing: bool,
    /// When the last commit began.
    last_began: Option<Instant>,
}

impl Recorder {
    /// Commits now or later, by what lies there.
    fn look(&mut self, ctx: &mut Context<Self>) {
        let state = self.shared.lock().state();
        let Some(state) = state.filter(|_| !self.is_committing) else { return };
        let wait = match state {
            Gathered::Some => self.commit_interval,
            Gathered::Enough => self.pause(),
            Gathered::Awaited => Duration::ZERO,
        };
        if wait.is_zero() {
            return self.commit(ctx);
        }
        let due = Instant::now() + wait;
        if self.timer.is_some_and(|(sooner, _)| sooner <= due) {
            return;
        }
        self.stop_timer(ctx);
        let timer = ctx.run_later(wait, |recorder, ctx| {
            recorder.timer = None;
            recorder.commit(ctx);
        });
        self.timer = Some((due, timer));
    }

    /// How long enough samples wait for more.
    fn pause(&self) -> Duration {
        let least = self.commit_interval / COMMITS_AN_INTERVAL;
        self.last_began.map_or(Duration::ZERO, |began| least.saturating_sub(began.elapsed()))
    }

    fn stop_timer(&mut self, ctx: &mut Context<Self>) {
        if let Some((_, timer)) = self.timer.take() {
            ctx.cancel_future(timer);
        }
    }

    fn commit(&mut self, ctx: &mut Context<Self>) {
        if self.is_committing {
            return;
        }
        self.stop_timer(ctx);
        let gathered = std::mem::take(&mut *self.shared.lock());
        if gathered.is_empty() {
            return;
        }
        self.is_committing = true;
        self.last_began = Some(Instant::now());
        let book = self.book.clone();
        let written = async move { book.write(gathered).await };
        ctx.spawn(written.into_actor(self).map(|(gathered, committed), recorder, ctx| {
            recorder.is_committing = false;
            let bytes = gathered.batches.iter().map(|waiting| waiting.recorded.bytes).sum();
            recorder.shared.bytes_waiting.fetch_sub(bytes, Ordering::Relaxed);
            gathered.announce(&committed);
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
    policy: RetentionPolicy,
    shared: Arc<Shared>,
}

impl Book {
    /// Writes until it is written: a database that is away comes back, and until then nothing is acknowledged.
    async fn write(&self, mut batch: Gathering) -> (Gathering, Committed) {
        let mut samples = std::mem::take(&mut batch.samples);
        if self.store.has_sample_table() {
            batch.commit.samples = self.for_the_table(&mut samples);
        } else {
            let mut row = journal::Writer::default();
            for (_, NewSample { server_id, fresh, encoded }) in &samples {
                row.add_shaped(*server_id, &fresh.row.shape, encoded);
            }
            batch.commit.journal = row.finish();
        }
        let committed = loop {
            let began = Instant::now();
            match self.attempt(&batch.commit).await {
                Ok(committed) => {
                    self.shared.failed(None);
                    break committed;
                }
                Err(error) => {
                    self.shared.failed(Some(began));
                    metrics::counter!("signalbox_commits_failed_total").increment(1);
                    tracing::error!(%error, samples = samples.len(), "samples could not be written, will try again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        };
        metrics::counter!("signalbox_samples_recorded_total").increment(samples.len() as u64);
        if let Some(journal_id) = committed.journal {
            self.tail.append(journal_id, samples.into_iter().map(|(_, sample)| (sample.server_id, sample.fresh)));
        }
        (batch, committed)
    }

    /// Samples as rows of the table. Those of hours that are not kept any more are left out.
    fn for_the_table(&self, samples: &mut [(Uuid, NewSample)]) -> Vec<FreshSample> {
        let oldest = self.policy.horizons().minute;
        let kept = samples.iter_mut().filter(|(_, sample)| hour_of(sample.fresh.row.at) >= oldest);
        let rows: Vec<FreshSample> = kept
            .map(|(session_id, sample)| FreshSample {
                server_id: sample.server_id,
                session_id: *session_id,
                at: sample.fresh.row.at,
                data: std::mem::take(&mut sample.encoded),
            })
            .collect();
        let left_out = samples.len() - rows.len();
        metrics::counter!("signalbox_history_samples_left_out_total").increment(left_out as u64);
        rows
    }

    async fn attempt(&self, commit: &Commit) -> Result<Committed, StoreError> {
        if commit.is_empty() {
            return Ok(Committed::default());
        }
        let started = Instant::now();
        let committed = self.store.commit(self.writer, commit).await?;
        metrics::histogram!("signalbox_commit_seconds").record(started.elapsed().as_secs_f64());
        Ok(committed)
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
