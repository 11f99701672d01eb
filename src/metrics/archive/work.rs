//! What the keeper does: the tail into pieces, hours sealed, days and months put together, what is too old dropped.
//!
//! Before each step that may take a while it looks whether the tail must be moved: sealing ten thousand servers takes
//! minutes, and the samples of minutes do not fit into memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use uuid::Uuid;

use super::hours::{CELLS_AT_ONCE, Prepared};
use super::keeper::Schedule;
use super::mover::Mover;
use super::orphans::Orphanage;
use super::outcomes::Outcomes;
use super::shelf::ArchiveError;
use super::{RetentionPolicy, days, hour_of, hours};
use crate::shards::Shards;
use crate::store::history::{Outcome, PieceInfo, Sealing, Span, Tier};
use crate::store::{Store, StoreError};

/// Hours or days that are looked up at once.
const LOOK_UP: u64 = 512;

/// What is done, and what is remembered from one time to the next.
pub struct Work {
    store: Store,
    mover: Mover,
    shards: Shards,
    policy: RetentionPolicy,
    schedule: Schedule,
    compacted: Option<Instant>,
    /// The hour that was open when everything before it was last sealed.
    sealed_before: Option<i64>,
    /// Days that are over and have hours that are not put together: where they begin.
    open_days: BTreeSet<(i64, Uuid)>,
    /// Hours that are over and lie in the table of samples, as far as was seen.
    waiting: usize,
    /// Hours that grow were left out, and a later move may have forgotten them.
    is_owing: bool,
    orphanage: Orphanage,
}

impl Work {
    pub fn new(store: Store, mover: Mover, shards: Shards, policy: RetentionPolicy, schedule: Schedule) -> Self {
        let (compacted, sealed_before, open_days, waiting) = (None, None, BTreeSet::new(), 0);
        let orphanage = Orphanage::new(store.clone(), shards.clone());
        let is_owing = false;
        Self {
            store,
            mover,
            shards,
            policy,
            schedule,
            compacted,
            sealed_before,
            open_days,
            waiting,
            is_owing,
            orphanage,
        }
    }

    /// Does what is due; everything that can be, if `now`.
    pub async fn step(&mut self, now: bool) {
        let started = Instant::now();
        self.show(now);
        if let Err(error) = self.try_step(now).await {
            metrics::counter!("signalbox_history_failures_total").increment(1);
            tracing::error!(%error, "the history could not be moved on, will try again");
            // In a table it is looked for again in a minute anyway, and each look may be long.
            self.sealed_before = self.store.has_sample_table().then(|| self.open_hour(now));
        }
        self.show(now);
        metrics::histogram!("signalbox_history_step_seconds").record(started.elapsed().as_secs_f64());
    }

    async fn try_step(&mut self, now: bool) -> Result<(), ArchiveError> {
        let open = self.open_hour(now);
        let is_turned = self.sealed_before != Some(open);
        // What another instance was handed is seen in the table alone.
        let has_some = self.store.has_sample_table() || self.mover.has_before(open);
        let has_waited = self.mover.rested() >= self.schedule.move_every;
        let is_moved = now || (has_waited && has_some) || self.mover.is_urgent();
        let is_left = has_waited && (self.is_owing || !self.mover.growing().is_empty());
        if is_moved {
            self.mover.move_tail().await?;
            self.show(now);
        }
        if now || is_turned || has_waited {
            self.mover.forget_growing();
        }
        if is_moved || is_turned || is_left {
            self.is_owing = false;
            self.seal_hours(open).await?;
            self.sealed_before = Some(open);
        }
        if now || self.compacted.is_none_or(|last| last.elapsed() >= self.schedule.compact_every) {
            self.remove_orphans(now).await?;
            self.compact(open).await?;
            self.drop_old().await?;
            self.compacted = Some(Instant::now());
        }
        Ok(())
    }

    /// The first hour that is not over yet, by the clock of a while ago.
    fn open_hour(&self, now: bool) -> i64 {
        let settle = if now { 0 } else { self.schedule.settle.as_millis() as i64 };
        hour_of(self.policy.now().as_millis() - settle)
    }

    /// Says how much is left to do.
    fn show(&self, now: bool) {
        let open = self.open_hour(now);
        let unsealed = self.mover.hours_in_pieces(open) + usize::from(self.mover.has_before(open)) + self.waiting;
        metrics::gauge!("signalbox_history_unsealed_hours").set(unsealed as f64);
        metrics::gauge!("signalbox_history_uncompacted_days").set(self.open_days.len() as f64);
    }

    async fn make_room(&mut self) -> Result<(), ArchiveError> {
        if !self.mover.is_urgent() {
            return Ok(());
        }
        // The hours that this move adds to take the place of those that grew before.
        self.is_owing |= !self.mover.growing().is_empty();
        self.mover.move_tail().await
    }

    /// Hours before `open` that are to be sealed, by server and in order. Those that grow are left for later.
    async fn due(&mut self, open: i64, but: &[Uuid]) -> Result<Due, StoreError> {
        let share = self.shards.share();
        // Those that are left must not hide others.
        let limit = LOOK_UP + self.mover.growing().len() as u64;
        let mut due = self.store.unsealed(open, but, &share, limit).await?;
        let is_all = (due.len() as u64) < limit;
        self.mover.growing().leave_out(&mut due);
        if self.store.has_sample_table() {
            let fresh = self.store.due_samples(open, but, &share).await?;
            self.waiting = fresh.len();
            self.show(false);
            due.extend(fresh);
        }
        let mut by_server: BTreeMap<Uuid, Vec<PieceInfo>> = BTreeMap::new();
        for info in due {
            by_server.entry(info.server_id).or_default().push(info);
        }
        for infos in by_server.values_mut() {
            infos.sort_by_key(|info| info.hour);
            infos.dedup_by_key(|info| info.hour);
        }
        Ok(Due { by_server, is_all })
    }

    /// Seals every hour before `open` that has samples or pieces, and does not grow.
    async fn seal_hours(&mut self, open: i64) -> Result<(), ArchiveError> {
        let mut done = Outcomes::default();
        loop {
            let Due { by_server, is_all } = self.due(open, &done.left).await?;
            if by_server.is_empty() {
                return done.result();
            }
            let mut batch = Batch::default();
            for (server_id, infos) in by_server {
                let mut infos = with_followers(infos, open);
                // A follower that grows is sealed later, and its first rate is told then.
                self.mover.growing().leave_out(&mut infos);
                let mut portions = VecDeque::from(portions(&infos));
                while let Some(hours) = portions.pop_front() {
                    self.make_room().await?;
                    // The hours before these must be there: the first rates are told against their last samples.
                    if batch.hours.iter().any(|(other, _)| *other == server_id) {
                        self.write_hours(std::mem::take(&mut batch), &mut done).await?;
                    }
                    match hours::prepare(&self.store, server_id, hours).await {
                        Ok(prepared) => {
                            let (these, rest) = hours.split_at_checked(prepared.hours).unwrap_or((hours, &[]));
                            batch.add(prepared, these);
                            if !rest.is_empty() {
                                portions.push_front(rest);
                            }
                        }
                        Err(error) => {
                            self.seal_one_by_one(server_id, hours).await;
                            done.failed(server_id, error)?;
                        }
                    }
                    if batch.cells >= CELLS_AT_ONCE {
                        self.write_hours(std::mem::take(&mut batch), &mut done).await?;
                    }
                }
                self.write_hours(std::mem::take(&mut batch), &mut done).await?;
            }
            // What has come into the table meanwhile waits for the next look: there may always be more, and each hour that
            // gets some is sealed as a whole.
            if is_all && self.store.has_sample_table() {
                return done.result();
            }
        }
    }

    /// One of these hours is damaged: the others are sealed all the same, and it stays as it is for somebody to look at.
    async fn seal_one_by_one(&mut self, server_id: Uuid, infos: &[PieceInfo]) {
        for info in infos {
            let hour = std::slice::from_ref(info);
            let sealed = match hours::prepare(&self.store, server_id, hour).await {
                Ok(prepared) => {
                    let mut batch = Batch::default();
                    batch.add(prepared, hour);
                    self.write_hours(batch, &mut Outcomes::default()).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = sealed {
                metrics::counter!("signalbox_history_damaged_total").increment(1);
                tracing::error!(%error, server.id = %server_id, info.hour, "an hour could not be sealed");
            }
        }
    }

    /// Writes a batch. Where another instance was faster, each server by itself; what is taken from us is left out.
    async fn write_hours(&mut self, batch: Batch, done: &mut Outcomes) -> Result<(), ArchiveError> {
        if batch.sealings.is_empty() {
            return Ok(());
        }
        let Batch { sealings, mut hours, .. } = batch;
        if self.store.seal(&sealings).await? == Outcome::Contested {
            for sealing in sealings {
                if self.store.seal(std::slice::from_ref(&sealing)).await? == Outcome::Contested {
                    hours.retain(|(server_id, _)| *server_id != sealing.server_id);
                    done.left.push(sealing.server_id);
                }
            }
        }
        let today = Span::Day.start_of(self.open_hour(false));
        for (server_id, hour) in &hours {
            self.mover.sealed(*server_id, *hour);
            let day = Span::Day.start_of(*hour);
            if day < today {
                self.open_days.insert((day, *server_id));
            }
        }
        self.waiting = self.waiting.saturating_sub(hours.len());
        metrics::counter!("signalbox_history_hours_sealed_total").increment(hours.len() as u64);
        Ok(())
    }

    /// Puts the hours of days before `open` together, and the days of months.
    async fn compact(&mut self, open: i64) -> Result<(), ArchiveError> {
        for (tier, from, into) in [(Tier::Minute, Span::Hour, Span::Day), (Tier::Quarter, Span::Day, Span::Month)] {
            let mut done = Outcomes::default();
            loop {
                let (before, share) = (into.start_of(open), self.shards.share());
                let due = self.store.blocks_before((tier, from), before, &done.left, &share, LOOK_UP).await?;
                let due: BTreeSet<(Uuid, i64)> =
                    due.into_iter().map(|due| (due.server_id, into.start_of(due.start))).collect();
                if due.is_empty() {
                    break;
                }
                if into == Span::Day {
                    self.open_days.extend(due.iter().map(|(server_id, start)| (*start, *server_id)));
                    self.show(false);
                }
                for (server_id, start) in due {
                    self.make_room().await?;
                    let made = match into {
                        Span::Month => days::month(&self.store, server_id, start).await,
                        Span::Day | Span::Hour => days::day(&self.store, server_id, start).await,
                    };
                    let written = match made {
                        Ok(sealing) => self.store.seal(&[sealing]).await.map_err(ArchiveError::from),
                        Err(error) => Err(error),
                    };
                    match written {
                        Ok(Outcome::Contested) => done.left.push(server_id),
                        Ok(Outcome::Written) if into == Span::Day => _ = self.open_days.remove(&(start, server_id)),
                        Ok(Outcome::Written) => {}
                        Err(error) => {
                            metrics::counter!("signalbox_history_damaged_total").increment(1);
                            tracing::error!(%error, server.id = %server_id, start, ?into, "blocks could not be put together");
                            done.failed(server_id, error)?;
                        }
                    }
                }
            }
            done.result()?;
        }
        Ok(())
    }

    /// Removes some of the history of servers that are gone; all of it, if `now`.
    async fn remove_orphans(&mut self, now: bool) -> Result<(), ArchiveError> {
        self.orphanage.look(now).await;
        while self.orphanage.remove_some().await {
            self.make_room().await?;
        }
        Ok(())
    }

    /// Drops what is older than it is to be kept.
    async fn drop_old(&mut self) -> Result<(), ArchiveError> {
        let horizons = self.policy.horizons();
        let tiers = [
            (Tier::Raw, horizons.raw),
            (Tier::Minute, horizons.minute),
            (Tier::Processes, horizons.minute),
            (Tier::Quarter, horizons.quarter),
            (Tier::Hour, horizons.hour),
        ];
        for (tier, first_kept) in tiers {
            self.store.drop_old_partitions(tier, first_kept).await?;
            for span in Span::ALL {
                // Whole blocks: one goes when all of it is too old.
                let before = first_kept - span.hours() + 1;
                while self.store.drop_blocks((tier, span), before, &self.shards.share()).await? > 0 {
                    self.make_room().await?;
                }
            }
        }
        // Only what could not be sealed gets so old.
        self.store.drop_pieces(horizons.minute).await?;
        self.store.drop_samples(horizons.minute).await?;
        self.mover.forget_before(horizons.minute);
        self.open_days = self.open_days.split_off(&(horizons.minute - Span::Day.hours(), Uuid::nil()));
        self.store.shrink().await?;
        Ok(())
    }
}

/// These hours, and those that follow one of them: their first rates are told against its last sample.
fn with_followers(infos: Vec<PieceInfo>, open: i64) -> Vec<PieceInfo> {
    let mut all: Vec<PieceInfo> = Vec::with_capacity(infos.len() + 1);
    for info in infos {
        if let Some(last) = all.last().filter(|last| last.hour + 1 < info.hour) {
            all.push(PieceInfo { hour: last.hour + 1, samples: 0, cells: 0, ..info });
        }
        all.push(info);
    }
    if let Some(last) = all.last().copied().filter(|last| last.hour + 1 < open) {
        all.push(PieceInfo { hour: last.hour + 1, samples: 0, cells: 0, ..last });
    }
    all
}

/// Hours of a server that are sealed in one go: as many as have some [`CELLS_AT_ONCE`] together.
fn portions(infos: &[PieceInfo]) -> Vec<&[PieceInfo]> {
    let mut portions = Vec::new();
    let (mut start, mut cells) = (0, 0);
    for (index, info) in infos.iter().enumerate() {
        let is_full = cells > 0 && cells + info.cells > CELLS_AT_ONCE || index - start >= hours::MOST_HOURS;
        if is_full {
            portions.extend(infos.get(start..index));
            (start, cells) = (index, 0);
        }
        cells += info.cells;
    }
    portions.extend(infos.get(start..).filter(|rest| !rest.is_empty()));
    portions
}

/// Hours that are to be sealed.
struct Due {
    by_server: BTreeMap<Uuid, Vec<PieceInfo>>,
    /// Whether there were no more in pieces. Those in the table are always all.
    is_all: bool,
}

/// What goes into one transaction.
#[derive(Default)]
struct Batch {
    sealings: Vec<Sealing>,
    hours: Vec<(Uuid, i64)>,
    cells: i64,
}

impl Batch {
    fn add(&mut self, prepared: Prepared, infos: &[PieceInfo]) {
        self.hours.extend(infos.iter().map(|info| (info.server_id, info.hour)));
        self.cells += prepared.cells;
        self.sealings.push(prepared.sealing);
    }
}
