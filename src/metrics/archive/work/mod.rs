//! The work of the archiver: flushes the tail, seals hours, compacts days and months, and drops expired blocks.
//!
//! Before each part that may take a while it checks whether the tail must be flushed: sealing ten thousand servers takes
//! minutes, and the samples of that time do not fit into memory.

mod compact;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use uuid::Uuid;

use super::archiver::Schedule;
use super::block_io::ArchiveError;
use super::compaction::Reported;
use super::flusher::Flusher;
use super::orphans::Orphanage;
use super::outcomes::Outcomes;
use super::sealing::{CELLS_AT_ONCE, Prepared};
use super::{RetentionPolicy, hour_of, sealing};
use crate::shards::Shards;
use crate::store::history::{Outcome, PieceInfo, Sealing, Span, Tier};
use crate::store::{Store, StoreError};

/// Hours or days that one query looks up.
const LOOK_UP: u64 = 512;

/// The steps, with their state between two runs.
pub struct Work {
    store: Store,
    flusher: Flusher,
    shards: Shards,
    policy: RetentionPolicy,
    schedule: Schedule,
    compacted: Option<Instant>,
    /// Hours of the present day may have been sealed since its minutes were last compacted.
    has_new_hours: bool,
    /// The hour that was open when all hours before it were last sealed.
    sealed_before: Option<i64>,
    /// Past days with hours that are not compacted, by their first hours.
    open_days: BTreeSet<(i64, Uuid)>,
    /// Past hours with samples in the table, as last seen.
    waiting: usize,
    /// Growing hours were left out, and a later flush has replaced the record of them.
    is_owing: bool,
    orphanage: Orphanage,
    reported: Reported,
}

impl Work {
    pub fn new(store: Store, flusher: Flusher, shards: Shards, policy: RetentionPolicy, schedule: Schedule) -> Self {
        let (compacted, sealed_before, open_days, waiting) = (None, None, BTreeSet::new(), 0);
        let orphanage = Orphanage::new(store.clone(), shards.clone());
        let is_owing = false;
        Self {
            store,
            flusher,
            shards,
            policy,
            schedule,
            compacted,
            has_new_hours: true,
            sealed_before,
            open_days,
            waiting,
            is_owing,
            orphanage,
            reported: Reported::default(),
        }
    }

    /// Does what is due; if `now`, everything that is possible.
    pub async fn step(&mut self, now: bool) {
        let started = Instant::now();
        self.show(now);
        if let Err(error) = self.try_step(now).await {
            metrics::counter!("signalbox_history_failures_total").increment(1);
            tracing::error!(%error, "the history could not be compacted, will try again");
            // With a table, the next look follows within a minute anyway, and a look may take long.
            self.sealed_before = self.store.has_sample_table().then(|| self.open_hour(now));
        }
        self.show(now);
        metrics::histogram!("signalbox_history_step_seconds").record(started.elapsed().as_secs_f64());
    }

    async fn try_step(&mut self, now: bool) -> Result<(), ArchiveError> {
        let open = self.open_hour(now);
        let is_turned = self.sealed_before != Some(open);
        // Samples that another instance received can only be seen in the table.
        let has_some = self.store.has_sample_table() || self.flusher.has_before(open);
        let has_waited = self.flusher.rested() >= self.schedule.move_every;
        let is_moved = now || (has_waited && has_some) || self.flusher.is_urgent();
        let is_left = has_waited && (self.is_owing || !self.flusher.growing().is_empty());
        if is_moved {
            self.flusher.move_tail().await?;
            self.show(now);
        }
        if now || is_turned || has_waited {
            self.flusher.forget_growing();
        }
        if is_moved || is_turned || is_left {
            self.is_owing = false;
            self.seal_hours(open).await?;
            self.sealed_before = Some(open);
        }
        if now || self.compacted.is_none_or(|last| last.elapsed() >= self.schedule.compact_every) {
            self.remove_orphans(now).await?;
            self.compact_past(open).await?;
            self.drop_old().await?;
            self.compact_present_day(open).await?;
            self.compacted = Some(Instant::now());
        }
        Ok(())
    }

    /// Returns the first hour that is still open: the present one, or the one before until the settling time has passed.
    fn open_hour(&self, now: bool) -> i64 {
        let settle = if now { 0 } else { self.schedule.settle.as_millis() as i64 };
        hour_of(self.policy.now().as_millis() - settle)
    }

    /// Updates the gauges of the remaining work.
    fn show(&self, now: bool) {
        let open = self.open_hour(now);
        let unsealed = self.flusher.hours_in_pieces(open) + usize::from(self.flusher.has_before(open)) + self.waiting;
        metrics::gauge!("signalbox_history_unsealed_hours").set(unsealed as f64);
        metrics::gauge!("signalbox_history_uncompacted_days").set(self.open_days.len() as f64);
    }

    async fn make_room(&mut self) -> Result<(), ArchiveError> {
        if !self.flusher.is_urgent() {
            return Ok(());
        }
        // This flush replaces the record of growing hours.
        self.is_owing |= !self.flusher.growing().is_empty();
        self.flusher.move_tail().await
    }

    /// Returns the hours before `open` that have to be sealed, by server and in order, without the growing ones.
    async fn due(&mut self, open: i64, but: &[Uuid]) -> Result<Due, StoreError> {
        let share = self.shards.share();
        // The growing hours must not use up the limit.
        let limit = LOOK_UP + self.flusher.growing().len() as u64;
        let mut due = self.store.unsealed(open, but, &share, limit).await?;
        let is_all = (due.len() as u64) < limit;
        self.flusher.growing().leave_out(&mut due);
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

    /// Seals every hour before `open` that has samples or pieces, except growing ones.
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
                // A growing follower is sealed later, and gets its first rate then.
                self.flusher.growing().leave_out(&mut infos);
                let mut portions = VecDeque::from(portions(&infos));
                while let Some(hours) = portions.pop_front() {
                    self.make_room().await?;
                    // The hours before these must be written first: their last samples are needed for the first rates.
                    if batch.hours.iter().any(|(other, _)| *other == server_id) {
                        self.write_hours(std::mem::take(&mut batch), &mut done).await?;
                    }
                    match sealing::prepare(&self.store, server_id, hours).await {
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
            // Samples that have arrived in the table since then wait for the next look: there may always be more, and
            // each hour that gets some is sealed as a whole.
            if is_all && self.store.has_sample_table() {
                return done.result();
            }
        }
    }

    /// Seals each of these hours separately, because one is damaged. That one stays unchanged, so that it can be examined.
    async fn seal_one_by_one(&mut self, server_id: Uuid, infos: &[PieceInfo]) {
        for info in infos {
            let hour = std::slice::from_ref(info);
            let sealed = match sealing::prepare(&self.store, server_id, hour).await {
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

    /// Writes a batch. If another instance changed the same rows first, writes each server separately, and leaves out those
    /// that still conflict.
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
            self.flusher.sealed(*server_id, *hour);
            let day = Span::Day.start_of(*hour);
            if day < today {
                self.open_days.insert((day, *server_id));
            } else {
                self.has_new_hours = true;
            }
        }
        self.waiting = self.waiting.saturating_sub(hours.len());
        metrics::counter!("signalbox_history_hours_sealed_total").increment(hours.len() as u64);
        Ok(())
    }

    /// Removes a part of the history of deleted servers; all of it, if `now`.
    async fn remove_orphans(&mut self, now: bool) -> Result<(), ArchiveError> {
        self.orphanage.look(now).await;
        while self.orphanage.remove_some().await {
            self.make_room().await?;
        }
        Ok(())
    }

    /// Drops what has expired.
    async fn drop_old(&mut self) -> Result<(), ArchiveError> {
        let cutoffs = self.policy.cutoffs();
        let tiers = [
            (Tier::Raw, cutoffs.raw),
            (Tier::Minute, cutoffs.minute),
            (Tier::Processes, cutoffs.minute),
            (Tier::Quarter, cutoffs.quarter),
            (Tier::Hour, cutoffs.hour),
        ];
        for (tier, first_kept) in tiers {
            self.reported.forget_before(tier, first_kept);
            self.store.drop_old_partitions(tier, first_kept).await?;
            for span in Span::ALL {
                // A block is dropped as a whole, when all of it has expired.
                let before = first_kept - span.hours() + 1;
                while self.store.drop_blocks((tier, span), before, &self.shards.share()).await? > 0 {
                    self.make_room().await?;
                }
            }
        }
        // Only pieces and samples that could not be sealed get this old.
        self.store.drop_pieces(cutoffs.minute).await?;
        self.store.drop_samples(cutoffs.minute).await?;
        self.flusher.forget_before(cutoffs.minute);
        self.open_days = self.open_days.split_off(&(cutoffs.minute - Span::Day.hours(), Uuid::nil()));
        self.store.shrink().await?;
        Ok(())
    }
}

/// Returns these hours and those that follow one of them, because the last sample of an hour changes the first rates of
/// the next.
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

/// Divides the hours of a server into portions to seal at once, each of about [`CELLS_AT_ONCE`] integers.
fn portions(infos: &[PieceInfo]) -> Vec<&[PieceInfo]> {
    let mut portions = Vec::new();
    let (mut start, mut cells) = (0, 0);
    for (index, info) in infos.iter().enumerate() {
        let is_full = cells > 0 && cells + info.cells > CELLS_AT_ONCE || index - start >= sealing::MAX_HOURS;
        if is_full {
            portions.extend(infos.get(start..index));
            (start, cells) = (index, 0);
        }
        cells += info.cells;
    }
    portions.extend(infos.get(start..).filter(|rest| !rest.is_empty()));
    portions
}

/// Hours that have to be sealed.
struct Due {
    by_server: BTreeMap<Uuid, Vec<PieceInfo>>,
    /// Whether these are all hours with pieces. Hours with samples in the table are always complete.
    is_all: bool,
}

/// The changes of one transaction.
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
