//! Compacts shorter blocks into longer ones: for each tier, the hours of a day become one block, and so do the days of a
//! month. A longer block takes less disk space, and a chart of a day reads one block instead of 24.

use std::collections::{HashMap, HashSet};

use signalbox_history::block::{BlockError, Head};
use signalbox_history::frame::{Granularity, Row, merged};
use signalbox_history::{processes, rollup};
use uuid::Uuid;

use super::block_io::{ArchiveError, block_of, block_of_lists, key, lists_of, rows_of, take};
use super::{HOUR_MS, QUARTER_MS, hour_of};
use crate::metrics::names;
use crate::store::history::{Block, BlockKey, Replaced, Sealing, Span, Tier};
use crate::store::{Store, StoreError};

/// Integers of samples that one block may have: many times those of a day of an ordinary server. If a day has more, its
/// hours are not compacted.
const MAX_GATHERED_CELLS: usize = 8_000_000;

/// What a compaction changes.
pub struct Compacted {
    pub sealing: Sealing,
    /// The shorter blocks that could not be read. They stay as they are until they expire.
    pub damaged: Vec<(BlockKey, BlockError)>,
}

/// The damaged blocks that were reported: each look finds them again.
#[derive(Default)]
pub struct Reported(HashSet<(Uuid, BlockKey)>);

impl Reported {
    /// Reports damaged blocks, each once.
    pub fn report(&mut self, server_id: Uuid, damaged: Vec<(BlockKey, BlockError)>) {
        for (key, error) in damaged {
            if self.0.insert((server_id, key)) {
                metrics::counter!("signalbox_history_damaged_total").increment(1);
                tracing::error!(%error, server.id = %server_id, ?key, "a block was left out of the compaction");
            }
        }
    }

    /// Forgets the blocks of a tier that have expired.
    pub fn forget_before(&mut self, tier: Tier, first_kept: i64) {
        self.0.retain(|(_, key)| key.tier != tier || key.start + key.span.hours() > first_kept);
    }
}

/// Blocks of one tier: the shorter ones, and the longer one into which they are compacted.
struct Pile {
    /// Without those that turned out to be damaged.
    shorter: Vec<Block>,
    damaged: Vec<(BlockKey, BlockError)>,
    longer: Option<Block>,
    into: BlockKey,
}

impl Pile {
    async fn gather(
        store: &Store,
        server_id: Uuid,
        tier: Tier,
        from: Span,
        into: BlockKey,
    ) -> Result<Self, StoreError> {
        let last = into.start + into.span.hours() - 1;
        let shorter = store.blocks(server_id, (tier, from), (into.start, last), None).await?;
        Ok(Self { shorter, damaged: Vec::new(), longer: take(store, server_id, into).await?, into })
    }

    /// Reads every shorter block, and sets the damaged ones aside: they must not keep the others from being compacted before those
    /// expire.
    fn read_shorter<T>(&mut self, read: impl Fn(&Block) -> Result<T, BlockError>) -> Vec<T> {
        let Self { shorter, damaged, .. } = self;
        let mut all = Vec::with_capacity(shorter.len());
        shorter.retain(|block| match read(block) {
            Ok(one) => {
                all.push(one);
                true
            }
            Err(error) => {
                damaged.push((block.info.key, error));
                false
            }
        });
        all
    }

    fn replaced(&self, store: &Store) -> impl Iterator<Item = Replaced> {
        self.shorter.iter().chain(&self.longer).map(|block| store.replaced(block.info.key, Some(block)))
    }

    /// Returns all downsampled rows; `None` if there is nothing to compact. A shorter block replaces its part of the longer one.
    fn rolled(&mut self) -> Result<Option<Vec<Row>>, ArchiveError> {
        let shorter = self.read_shorter(rows_of);
        let Some(span) = self.shorter.first().map(|block| block.info.key.span) else { return Ok(None) };
        let newer: HashSet<i64> = self.shorter.iter().map(|block| block.info.key.start).collect();
        let mut rows = self.longer.as_ref().map(rows_of).transpose()?.unwrap_or_default();
        rows.retain(|row| !newer.contains(&span.start_of(hour_of(row.at))));
        rows.extend(shorter.into_iter().flatten());
        rows.sort_by_key(|row| row.at);
        names::limit_rolled(&mut rows);
        Ok(Some(rows))
    }

    /// Returns all samples, merged; `None` if there is nothing to compact, or too much for one block. Those of the longer block take
    /// precedence.
    fn samples(&mut self) -> Result<Option<Vec<Row>>, ArchiveError> {
        let mut cells: usize = self.read_shorter(cells_of).into_iter().sum();
        cells += self.longer.as_ref().map(cells_of).transpose()?.unwrap_or_default();
        if cells > MAX_GATHERED_CELLS {
            return Ok(None);
        }
        let shorter = self.read_shorter(rows_of);
        if self.shorter.is_empty() {
            return Ok(None);
        }
        let mut rows = self.longer.as_ref().map(rows_of).transpose()?.unwrap_or_default();
        rows.extend(shorter.into_iter().flatten());
        let mut rows = merged(rows);
        names::limit(&mut rows);
        Ok(Some(rows))
    }

    /// Returns all lists, merged; `None` if there is nothing to compact.
    fn lists(&mut self) -> Result<Option<Vec<processes::At>>, ArchiveError> {
        let shorter = self.read_shorter(lists_of);
        if self.shorter.is_empty() {
            return Ok(None);
        }
        let mut lists = self.longer.as_ref().map(lists_of).transpose()?.unwrap_or_default();
        lists.extend(shorter.into_iter().flatten());
        Ok(Some(processes::merged(lists)))
    }
}

/// Returns how many integers a block unpacks to.
fn cells_of(block: &Block) -> Result<usize, BlockError> {
    Ok(Head::read(block.parts.get(&0).map(Vec::as_slice).unwrap_or_default())?.cells())
}

/// Compacts a day, which begins at hour `start`.
pub async fn day(store: &Store, server_id: Uuid, start: i64) -> Result<Compacted, ArchiveError> {
    let into = |tier| key(tier, Span::Day, start);
    let mut raw = Pile::gather(store, server_id, Tier::Raw, Span::Hour, into(Tier::Raw)).await?;
    let mut minutes = Pile::gather(store, server_id, Tier::Minute, Span::Hour, into(Tier::Minute)).await?;
    let mut lists = Pile::gather(store, server_id, Tier::Processes, Span::Hour, into(Tier::Processes)).await?;
    let mut coarser = [Vec::new(), Vec::new()];
    for (tier, known) in [Tier::Quarter, Tier::Hour].into_iter().zip(&mut coarser) {
        // The day's block is newer than the month's, so it comes first.
        for span in [Span::Day, Span::Month] {
            known.extend(take(store, server_id, key(tier, span, start)).await?);
        }
    }
    let store = store.clone();
    let made = tokio::task::spawn_blocking(move || {
        let mut sealing = Sealing::of(server_id);
        if let Some(samples) = raw.samples()? {
            sealing.replaced.extend(raw.replaced(&store));
            sealing.blocks.extend(block_of(raw.into, Granularity::Raw, &samples)?);
        }
        if let Some(rows) = minutes.rolled()? {
            let before = minutes.longer.as_ref().map(rows_of).transpose()?.unwrap_or_default();
            sealing.replaced.extend(minutes.replaced(&store));
            sealing.blocks.extend(block_of(minutes.into, Granularity::Rolled, &rows)?);
            let tiers = [(Tier::Quarter, QUARTER_MS), (Tier::Hour, HOUR_MS)];
            for ((tier, width_ms), known) in tiers.into_iter().zip(coarser) {
                let key = key(tier, Span::Day, start);
                sealing.replaced.push(store.replaced(key, known.iter().find(|block| block.info.key == key)));
                let known = match known.first().map(rows_of).transpose() {
                    Ok(known) => known.unwrap_or_default(),
                    // The minutes replace a damaged block.
                    Err(_) if !before.is_empty() => Vec::new(),
                    Err(error) => return Err(ArchiveError::from(error)),
                };
                let rolled = coarser_rows(in_day(known, start), &before, &rows, width_ms);
                sealing.blocks.extend(block_of(key, Granularity::Rolled, &rolled)?);
            }
        }
        if let Some(all) = lists.lists()? {
            sealing.replaced.extend(lists.replaced(&store));
            sealing.blocks.extend(block_of_lists(lists.into, &all)?);
        }
        let damaged = [raw, minutes, lists].into_iter().flat_map(|pile| pile.damaged).collect();
        Ok(Compacted { sealing, damaged })
    });
    made.await.map_err(|_| ArchiveError::Interrupted)?
}

fn in_day(mut rows: Vec<Row>, start: i64) -> Vec<Row> {
    rows.retain(|row| Span::Day.start_of(hour_of(row.at)) == start);
    rows
}

/// Returns the coarser rows of a day: those of its minutes, and those of samples whose minutes have expired.
///
/// A known row with more samples than its minutes had `before` includes some whose minutes are gone: it stays, and the minutes
/// that are new since then are added to it, once.
fn coarser_rows(mut known: Vec<Row>, before: &[Row], minutes: &[Row], width_ms: i64) -> Vec<Row> {
    let roll = |rows: &[Row]| rollup::roll(rows, Granularity::Rolled, width_ms, None);
    let counts: HashMap<i64, i64> = roll(before).iter().map(|row| (row.at, row.count)).collect();
    known.retain(|row| row.count > counts.get(&row.at).copied().unwrap_or_default());
    if known.is_empty() {
        return roll(minutes);
    }
    let partial: HashSet<i64> = known.iter().map(|row| row.at).collect();
    let counted: HashMap<i64, i64> = before.iter().map(|row| (row.at, row.count)).collect();
    let is_new = |row: &&Row| {
        // A minute with more samples than before counts as a whole: its extremes matter more than its weight.
        let is_known = counted.get(&row.at).is_some_and(|count| *count >= row.count);
        !(is_known && partial.contains(&rollup::bucket_start(row.at, width_ms)))
    };
    let new: Vec<Row> = minutes.iter().filter(is_new).cloned().collect();
    rollup::combined_once(known, roll(&new), width_ms)
}

/// Compacts a month, which begins at hour `start`.
pub async fn month(store: &Store, server_id: Uuid, start: i64) -> Result<Compacted, ArchiveError> {
    let mut piles = Vec::new();
    for tier in [Tier::Quarter, Tier::Hour] {
        piles.push(Pile::gather(store, server_id, tier, Span::Day, key(tier, Span::Month, start)).await?);
    }
    let store = store.clone();
    let made = tokio::task::spawn_blocking(move || {
        let mut made = Compacted { sealing: Sealing::of(server_id), damaged: Vec::new() };
        for mut pile in piles {
            if let Some(rows) = pile.rolled()? {
                made.sealing.replaced.extend(pile.replaced(&store));
                made.sealing.blocks.extend(block_of(pile.into, Granularity::Rolled, &rows)?);
            }
            made.damaged.extend(pile.damaged);
        }
        Ok(made)
    });
    made.await.map_err(|_| ArchiveError::Interrupted)?
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signalbox_history::shape::Shape;
    use signalbox_protocol::{Sample, Timestamp};

    use super::*;
    use crate::metrics::archive::MINUTE_MS;

    /// The minutes of samples that were taken in these seconds, each in a minute of its own.
    fn minutes(seconds: &[i64]) -> Vec<Row> {
        let row = |second: &i64| {
            let timestamp = Timestamp::from_millis(second * 1_000);
            let sample = Sample { timestamp, cpu_percent: (second % 100) as f64, ..Sample::default() };
            Row::of(&sample, Arc::new(Shape::of(&sample)))
        };
        seconds.iter().flat_map(|second| rollup::roll(&[row(second)], Granularity::Raw, MINUTE_MS, None)).collect()
    }

    /// When each row begins, in seconds, and its count.
    fn counts(rows: &[Row]) -> Vec<(i64, i64)> {
        rows.iter().map(|row| (row.at / 1_000, row.count)).collect()
    }

    #[test]
    fn late_samples_of_a_day_without_minutes_leave_its_coarser_rows_however_often_they_come() {
        let whole = coarser_rows(Vec::new(), &[], &minutes(&[10, 80, 3_610, 7_220]), HOUR_MS);

        let first = minutes(&[3_690]);
        let after_first = coarser_rows(whole, &[], &first, HOUR_MS);
        let second = minutes(&[199, 3_690, 10_830]);
        let after_second = coarser_rows(after_first.clone(), &first, &second, HOUR_MS);
        let after_repetition = coarser_rows(after_second.clone(), &second, &second, HOUR_MS);

        assert_eq!(counts(&after_first), [(0, 2), (3_600, 2), (7_200, 1)]);
        assert_eq!(counts(&after_second), [(0, 3), (3_600, 2), (7_200, 1), (10_800, 1)]);
        assert_eq!(after_repetition, after_second);
    }

    #[test]
    fn coarser_rows_of_a_day_with_all_minutes_are_made_of_these_alone() {
        let before = minutes(&[10, 80, 3_610]);
        let known = coarser_rows(Vec::new(), &[], &before, HOUR_MS);
        let after = minutes(&[10, 80, 150, 3_610]);

        let rolled = coarser_rows(known, &before, &after, HOUR_MS);

        assert_eq!(rolled, coarser_rows(Vec::new(), &[], &after, HOUR_MS));
        assert_eq!(counts(&rolled), [(0, 3), (3_600, 1)]);
    }
}
