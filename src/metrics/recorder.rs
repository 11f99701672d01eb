//! Makes samples durable, many in one transaction, and acknowledges them only then.
//!
//! A batch waits until enough samples have gathered or the commit interval has passed, whichever is first. While one
//! transaction runs, the next one gathers; if there are always enough samples, a fraction of the interval passes between
//! two commits. The connection of an agent is written at once, because its handshake waits for it. While the database is
//! unavailable nothing is acknowledged: agents keep their samples, and at most [`MAX_BYTES_WAITING`] gather here. After
//! [`HOLD_UP`] that no longer blocks any socket.

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
pub use super::gathering::{NewSample, Recorded, SessionCheck};
use super::outage::Outage;
use super::tail::{MOVE_FROM_BYTES, Tail};
use crate::disk::DiskGuard;
use crate::store::history::FreshSample;
use crate::store::{Commit, Committed, Connected, Disconnected, Redescribed, Store, StoreError};

/// Bytes of samples that may wait for the database, of all agents together: one or two seconds of writing.
const MAX_BYTES_WAITING: usize = 32 * 1024 * 1024;

/// The most memory of the tail: beyond it, samples are refused because the tail cannot be flushed fast enough.
const MAX_TAIL_BYTES: usize = 4 * MOVE_FROM_BYTES;

/// Connections that may wait to be written, because agents may keep reconnecting while nothing can be written.
const MAX_CONNECTED_WAITING: usize = 4_096;

/// The memory of a sample, and of a message, in addition to their encoded bytes.
const OVERHEAD: usize = 64;

/// Returns the memory that the samples of one message take while they wait.
pub fn weight(samples: &[NewSample]) -> usize {
    let of_one =
        |sample: &NewSample| sample.encoded.len() + sample.fresh.row.values.len() * size_of::<i64>() + OVERHEAD;
    OVERHEAD + samples.iter().map(of_one).sum::<usize>()
}

/// How long sockets of agents are blocked while the database does not accept writes, as it may be a short outage. After
/// that they are read again, so that servers can still be watched and used, and agents send their samples again later. A full
/// disk is no short outage.
const HOLD_UP: Duration = Duration::from_secs(5);

/// The most commits of enough samples within an interval: three round trips to the database's thread and the sync cost as
/// much as some hundred samples.
const COMMITS_AN_INTERVAL: u32 = 16;

/// The pause after a database error.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// The samples of one `metrics` message, and the receiver of the notification that they are durable.
pub struct Batch {
    pub seq: u64,
    /// The session that must hold the server when they are written; nil on a single instance, which knows that.
    pub session_id: Uuid,
    pub samples: Vec<NewSample>,
    pub done: Recipient<Recorded>,
}

/// Passes work to the recorder, which refuses it when full; cheap to clone.
#[derive(Clone)]
pub struct RecorderHandle {
    /// Shared, because each clone of an address would add a slot to the mailbox.
    address: Arc<Addr<Recorder>>,
    disk: DiskGuard,
    tail: Tail,
    shared: Arc<Shared>,
}

/// The state that sessions write and the recorder takes.
#[derive(Default)]
struct Shared {
    gathering: Mutex<Gathering>,
    /// Bytes of samples that are gathered or being written.
    bytes_waiting: AtomicUsize,
    outage: Mutex<Outage>,
}

/// The recorder refused the work: too much is waiting, or it has stopped.
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

    /// Returns whether nothing can be written for an unknown time: the disk is full, or the database has failed for a while.
    pub fn is_stuck(&self) -> bool {
        self.disk.is_full() || self.is_failing()
    }

    /// Returns whether writing has failed for at least [`HOLD_UP`], or because the disk is full.
    pub fn is_failing(&self) -> bool {
        self.shared.outage.lock().lasts(Instant::now())
    }

    /// Accepts a batch, or returns it if too much is waiting already.
    pub fn record(&self, batch: Batch) -> Result<(), Batch> {
        if self.disk.is_full() || self.tail.bytes() >= MAX_TAIL_BYTES {
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

    /// Writes that an agent has connected. Returns when that is durable, or when another session has taken the server first.
    pub async fn connected(&self, connected: Connected) -> Result<SessionCheck, Busy> {
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

    /// Writes the new description of a connected agent with a later commit.
    pub fn redescribe(&self, redescribed: Redescribed) {
        self.gather(|gathering| {
            let waiting = &mut gathering.commit.redescribed;
            // The newest description replaces earlier ones.
            waiting.retain(|other| other.server_id != redescribed.server_id);
            waiting.push(redescribed);
        });
    }

    /// Writes that an agent has disconnected. Returns when that is durable.
    pub async fn disconnected(&self, disconnected: Disconnected) -> Result<(), Busy> {
        self.urgently(|gathering| gathering.commit.disconnected.push(disconnected)).await
    }

    /// Writes when servers were last seen, with a later commit.
    pub fn seen(&self, seen: Vec<(Uuid, Timestamp)>) {
        // The newest list replaces earlier ones.
        self.gather(|gathering| gathering.commit.seen = seen);
    }

    /// Returns when everything that was passed before is durable.
    pub async fn flush(&self) -> Result<(), Busy> {
        self.urgently(|_| {}).await
    }

    /// Adds work that a caller waits for. There is at most one for each handshake and session, which are bounded.
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
            // At most three messages are on their way for one gathering, so this fails only when the process ends.
            tracing::warn!("the recorder has stopped");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Gathering> {
        self.gathering.lock()
    }
}

/// The one writer of a database.
struct Recorder {
    book: Book,
    commit_interval: Duration,
    shared: Arc<Shared>,
    /// When it will commit, unless a more urgent message arrives.
    timer: Option<(Instant, SpawnHandle)>,
    is_committing: bool,
    /// When the last commit began.
    last_began: Option<Instant>,
}

impl Recorder {
    /// Commits now or later, depending on what has gathered.
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

    /// Returns how long a commit of enough samples has to wait after the last one.
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

/// Writes a gathering, and adds its samples to the tail.
#[derive(Clone)]
struct Book {
    store: Store,
    tail: Tail,
    writer: Uuid,
    policy: RetentionPolicy,
    shared: Arc<Shared>,
}

impl Book {
    /// Writes, and retries until it succeeds; nothing is acknowledged until then.
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
                    if self.shared.outage.lock().ended() {
                        tracing::info!("samples can be written again");
                    }
                    break committed;
                }
                Err(error) => {
                    let patience = if error.is_disk_full() { Duration::ZERO } else { HOLD_UP };
                    let attempts = self.shared.outage.lock().failed(error.to_string(), began, patience);
                    metrics::counter!("signalbox_commits_failed_total").increment(1);
                    if let Some(attempts) = attempts {
                        let samples = samples.len();
                        tracing::error!(%error, samples, attempts, "samples could not be written, will try again");
                    }
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

    /// Returns samples as rows of the table. Those of expired hours are left out.
    fn for_the_table(&self, samples: &mut [(Uuid, NewSample)]) -> Vec<FreshSample> {
        let oldest = self.policy.cutoffs().minute;
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
