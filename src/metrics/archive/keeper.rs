//! The actor that moves the history on. One thing at a time, so that it never takes more than one core from those who
//! serve, and each transaction small, so that group commits get their turn.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message, ResponseFuture, WrapFuture};
use signalbox_protocol::Timestamp;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::shelf::ArchiveError;
use super::{Horizons, days, hour_of, hours, pieces, start_ms};
use crate::config::Retention;
use crate::metrics::tail::Tail;
use crate::store::history::{Span, Tier};
use crate::store::{Store, StoreError};

/// The memory that the tail may take before it is moved into pieces.
const MOST_TAIL_BYTES: usize = 32 * 1024 * 1024;

/// Hours or days that are looked up at once.
const LOOK_UP: u64 = 512;

/// Servers whose hours are sealed in one transaction: some 200 KB.
const SEALED_AT_ONCE: usize = 16;

/// When things are done.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// How often to look whether something is to be done.
    pub every: Duration,
    /// How long after its end an hour is sealed, and after the day's end its blocks are put together: clocks differ.
    pub settle: Duration,
    /// How often at most the tail is moved because of samples of hours that are over.
    pub move_every: Duration,
    /// How often longer blocks are made, and what is too old is dropped.
    pub compact_every: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            every: Duration::from_millis(500),
            settle: Duration::from_secs(60),
            move_every: Duration::from_secs(300),
            compact_every: Duration::from_secs(600),
        }
    }
}

/// Reaches the keeper, behind cheap clones.
#[derive(Clone)]
pub struct ArchiveHandle {
    address: Arc<Addr<Keeper>>,
}

/// The keeper has stopped, or has too much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the archive is busy")]
pub struct Busy;

impl ArchiveHandle {
    /// Starts a keeper on the arbiter of the calling thread.
    pub fn start(store: Store, tail: Tail, retention: Retention, schedule: Schedule) -> Self {
        let every = schedule.every;
        let work = Arc::new(Mutex::new(Work::new(store, tail, retention, schedule)));
        let keeper = Keeper { work, every };
        Self { address: Arc::new(keeper.start()) }
    }

    /// Moves everything on as far as it goes, now; for tests and benchmarks. Comes back when it is done.
    pub async fn settle(&self) -> Result<(), Busy> {
        self.address.send(Settle).await.map_err(|_| Busy)
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Settle;

struct Keeper {
    /// Locked while it is being done.
    work: Arc<Mutex<Work>>,
    every: Duration,
}

impl Keeper {
    fn look(&mut self, ctx: &mut Context<Self>) {
        // What takes longer than the interval goes on, and nothing queues behind it.
        let Ok(mut work) = self.work.clone().try_lock_owned() else { return };
        ctx.spawn(async move { work.step(false).await }.into_actor(self));
    }
}

impl Actor for Keeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.every, |keeper, ctx| keeper.look(ctx));
    }
}

impl Handler<Settle> for Keeper {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Settle, _: &mut Self::Context) -> Self::Result {
        let work = self.work.clone();
        Box::pin(async move { work.lock().await.step(true).await })
    }
}

/// What the keeper does, and what it remembers from one time to the next.
struct Work {
    store: Store,
    tail: Tail,
    retention: Retention,
    schedule: Schedule,
    /// What lies in pieces, by server and hour; none until it was looked up.
    cells: Option<HashMap<(Uuid, i64), i64>>,
    moved: Instant,
    compacted: Option<Instant>,
}

impl Work {
    fn new(store: Store, tail: Tail, retention: Retention, schedule: Schedule) -> Self {
        Self { store, tail, retention, schedule, cells: None, moved: Instant::now(), compacted: None }
    }

    /// Does what is due; everything that can be, if `now`.
    async fn step(&mut self, now: bool) {
        let started = Instant::now();
        if let Err(error) = self.try_step(now).await {
            metrics::counter!("signalbox_history_failures_total").increment(1);
            tracing::error!(%error, "the history could not be moved on, will try again");
        }
        metrics::histogram!("signalbox_history_step_seconds").record(started.elapsed().as_secs_f64());
    }

    async fn try_step(&mut self, now: bool) -> Result<(), ArchiveError> {
        let is_moved = now || self.is_move_due();
        if is_moved {
            self.move_tail().await?;
            self.moved = Instant::now();
        }
        let is_first = self.compacted.is_none();
        if is_moved || is_first {
            self.seal_hours(now).await?;
        }
        if now || self.compacted.is_none_or(|last| last.elapsed() >= self.schedule.compact_every) {
            self.compact(now).await?;
            self.drop_old().await?;
            self.compacted = Some(Instant::now());
        }
        Ok(())
    }

    /// The first hour that is not over yet, by the clock of a while ago.
    fn open_hour(&self, now: bool) -> i64 {
        let settle = if now { 0 } else { self.schedule.settle.as_millis() as i64 };
        hour_of(Timestamp::now().as_millis() - settle)
    }

    fn is_move_due(&self) -> bool {
        if self.tail.bytes() >= MOST_TAIL_BYTES {
            return true;
        }
        let waited = self.moved.elapsed() >= self.schedule.move_every;
        waited && self.tail.has_before(start_ms(self.open_hour(false)))
    }

    /// Makes pieces of everything in the tail.
    async fn move_tail(&mut self) -> Result<(), ArchiveError> {
        let mut cells = match self.cells.take() {
            Some(cells) => cells,
            None => self.look_up_cells().await?,
        };
        let Some(generation) = self.tail.leave() else {
            self.cells = Some(cells);
            return Ok(());
        };
        let (journal_id, oldest) = (generation.journal_id, Horizons::new(&self.retention, Timestamp::now()).minute);
        let made = tokio::task::spawn_blocking(move || {
            let made = pieces::make(&generation, &mut cells, oldest);
            (made, cells)
        });
        let outcome = async {
            let (made, cells) = made.await.map_err(|_| ArchiveError::Interrupted)?;
            let leaving = made?;
            self.store.move_to_pieces(journal_id, leaving.pieces).await?;
            Ok::<_, ArchiveError>((cells, leaving.left_out))
        };
        match outcome.await {
            Ok((cells, left_out)) => {
                self.tail.left();
                self.cells = Some(cells);
                if left_out > 0 {
                    metrics::counter!("signalbox_history_samples_left_out_total").increment(left_out);
                    tracing::warn!(
                        left_out,
                        "samples were left out: older than what is kept, or too many for one hour"
                    );
                }
                Ok(())
            }
            Err(error) => {
                self.tail.stays();
                Err(error)
            }
        }
    }

    async fn look_up_cells(&self) -> Result<HashMap<(Uuid, i64), i64>, StoreError> {
        let infos = self.store.unsealed(i64::MAX, &[], u64::from(u32::MAX)).await?;
        Ok(infos.into_iter().map(|info| ((info.server_id, info.hour), info.cells)).collect())
    }

    /// Seals every hour that is over and has pieces.
    async fn seal_hours(&mut self, now: bool) -> Result<(), ArchiveError> {
        let before = self.open_hour(now);
        let mut failed: Vec<Uuid> = Vec::new();
        loop {
            let due = self.store.unsealed(before, &failed, LOOK_UP).await?;
            metrics::gauge!("signalbox_history_unsealed_hours").set(due.len() as f64);
            if due.is_empty() {
                return Ok(());
            }
            let mut by_server: BTreeMap<Uuid, Vec<i64>> = BTreeMap::new();
            for info in &due {
                let hours = by_server.entry(info.server_id).or_default();
                if hours.len() < hours::MOST_HOURS {
                    hours.push(info.hour);
                }
            }
            let by_server: Vec<(Uuid, Vec<i64>)> = by_server.into_iter().collect();
            for some in by_server.chunks(SEALED_AT_ONCE) {
                self.seal_some(some, &mut failed).await?;
            }
        }
    }

    async fn seal_some(&mut self, some: &[(Uuid, Vec<i64>)], failed: &mut Vec<Uuid>) -> Result<(), ArchiveError> {
        let horizons = Horizons::new(&self.retention, Timestamp::now());
        let mut sealings = Vec::new();
        for (server_id, hours) in some {
            match hours::prepare(&self.store, *server_id, hours, horizons).await {
                Ok(sealing) => sealings.push(sealing),
                Err(ArchiveError::Store(error)) => return Err(error.into()),
                Err(error) => {
                    // What is damaged stays as it is, for somebody to look at; the others go on.
                    metrics::counter!("signalbox_history_damaged_total").increment(1);
                    tracing::error!(%error, server.id = %server_id, ?hours, "hours could not be sealed");
                    failed.push(*server_id);
                }
            }
        }
        let count: usize = sealings.iter().map(|sealing| sealing.pieces.len()).sum();
        let sealed: Vec<(Uuid, i64)> = sealings
            .iter()
            .flat_map(|sealing| sealing.pieces.iter().map(|(hour, _)| (sealing.server_id, *hour)))
            .collect();
        self.store.seal(sealings).await?;
        for hour in sealed {
            self.cells.iter_mut().for_each(|cells| _ = cells.remove(&hour));
        }
        metrics::counter!("signalbox_history_hours_sealed_total").increment(count as u64);
        Ok(())
    }

    /// Puts the hours of days that are over together, and the days of months.
    async fn compact(&mut self, now: bool) -> Result<(), ArchiveError> {
        let open = self.open_hour(now);
        for (tier, from, into) in [(Tier::Minute, Span::Hour, Span::Day), (Tier::Quarter, Span::Day, Span::Month)] {
            let mut failed: Vec<Uuid> = Vec::new();
            loop {
                let due = self.store.blocks_before((tier, from), into.start_of(open), &failed, LOOK_UP).await?;
                let mut spans: Vec<(Uuid, i64)> =
                    due.into_iter().map(|due| (due.server_id, into.start_of(due.start))).collect();
                spans.sort_unstable();
                spans.dedup();
                if into == Span::Day {
                    metrics::gauge!("signalbox_history_uncompacted_days").set(spans.len() as f64);
                }
                if spans.is_empty() {
                    break;
                }
                for (server_id, start) in spans {
                    if failed.contains(&server_id) {
                        continue;
                    }
                    let made = match into {
                        Span::Month => days::month(&self.store, server_id, start).await,
                        Span::Day | Span::Hour => days::day(&self.store, server_id, start).await,
                    };
                    match made {
                        Ok(sealing) => self.store.seal(vec![sealing]).await?,
                        Err(ArchiveError::Store(error)) => return Err(error.into()),
                        Err(error) => {
                            metrics::counter!("signalbox_history_damaged_total").increment(1);
                            tracing::error!(%error, server.id = %server_id, start, ?into, "blocks could not be put together");
                            failed.push(server_id);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Drops what is older than it is to be kept.
    async fn drop_old(&self) -> Result<(), ArchiveError> {
        let horizons = Horizons::new(&self.retention, Timestamp::now());
        let tiers = [
            (Tier::Raw, horizons.raw),
            (Tier::Minute, horizons.minute),
            (Tier::Processes, horizons.minute),
            (Tier::Quarter, horizons.quarter),
            (Tier::Hour, horizons.hour),
        ];
        for (tier, first_kept) in tiers {
            for span in Span::ALL {
                // Whole blocks: one goes when all of it is too old.
                let before = first_kept - span.hours() + 1;
                while self.store.drop_blocks((tier, span), before).await? > 0 {}
            }
        }
        Ok(())
    }
}
