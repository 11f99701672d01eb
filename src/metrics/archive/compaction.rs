//! Compacts shorter blocks into longer ones: for each tier, the hours of a day become one block, and so do the days of a
//! month. A longer block takes less disk space, and a chart of a day reads one block instead of 24. The minutes of the present day
//! become a block that grows with it.

use std::collections::{BTreeMap, HashMap, HashSet};

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
    /// The blocks that could not be read. They stay as they are until they expire.
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
                tracing::error!(%error, server.id = %server_id, ?key, "a block is damaged and cannot be compacted");
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

    /// Reads the longer block; `None` if it is damaged. Then the shorter ones stay as they are, until they expire.
    fn read_longer<T: Default>(&mut self, read: impl Fn(&Block) -> Result<T, BlockError>) -> Option<T> {
        match self.longer.as_ref().map(read).transpose() {
            Ok(one) => Some(one.unwrap_or_default()),
            Err(error) => {
                self.damaged.push((self.into, error));
                None
            }
        }
    }

    /// Returns all downsampled rows; `None` if there is nothing to compact. A shorter block replaces its part of the longer one.
    fn rolled(&mut self) -> Option<Rolled> {
        let shorter = self.read_shorter(rows_of);
        let span = self.shorter.first()?.info.key.span;
        let newer: HashSet<i64> = self.shorter.iter().map(|block| block.info.key.start).collect();
        let before = self.read_longer(rows_of);
        let kept = before.iter().flatten().filter(|row| !newer.contains(&span.start_of(hour_of(row.at))));
        let mut rows: Vec<Row> = kept.cloned().chain(shorter.into_iter().flatten()).collect();
        rows.sort_by_key(|row| row.at);
        names::limit_rolled(&mut rows);
        Some(Rolled { before, rows })
    }

    /// Returns all samples, merged; `None` if there is nothing to compact, or too much for one block. Those of the longer block take
    /// precedence.
    fn samples(&mut self) -> Option<Vec<Row>> {
        let mut cells: usize = self.read_shorter(cells_of).into_iter().sum();
        cells += self.read_longer(cells_of)?;
        if cells > MAX_GATHERED_CELLS {
            return None;
        }
        let shorter = self.read_shorter(rows_of);
        if self.shorter.is_empty() {
            return None;
        }
        let mut rows = self.read_longer(rows_of)?;
        rows.extend(shorter.into_iter().flatten());
        let mut rows = merged(rows);
        names::limit(&mut rows);
        Some(rows)
    }

    /// Returns all lists, merged; `None` if there is nothing to compact.
    fn lists(&mut self) -> Option<Vec<processes::At>> {
        let shorter = self.read_shorter(lists_of);
        if self.shorter.is_empty() {
            return None;
        }
        let mut lists = self.read_longer(lists_of)?;
        lists.extend(shorter.into_iter().flatten());
        Some(processes::merged(lists))
    }
}

/// Downsampled rows of a pile.
struct Rolled {
    /// Those that the longer block had; `None` if it is damaged.
    before: Option<Vec<Row>>,
    /// All; those of the shorter blocks alone if the longer one is damaged.
    rows: Vec<Row>,
}

/// Returns how many integers a block unpacks to.
fn cells_of(block: &Block) -> Result<usize, BlockError> {
    Ok(Head::read(block.parts.get(&0).map(Vec::as_slice).unwrap_or_default())?.cells())
}

/// The minutes of a day, and the coarser rows that are made of them.
struct Minutes {
    pile: Pile,
    coarser: [Coarser; 2],
}

/// The quarters or hours of a day.
struct Coarser {
    into: BlockKey,
    width_ms: i64,
    /// The block of the day, or without one that of the month, which may have rows of the day.
    known: Option<Block>,
}

impl Coarser {
    async fn gather(store: &Store, server_id: Uuid, tier: Tier, start: i64, width_ms: i64) -> Result<Self, StoreError> {
        let into = key(tier, Span::Day, start);
        let known = match take(store, server_id, into).await? {
            Some(of_day) => Some(of_day),
            None => take(store, server_id, key(tier, Span::Month, start)).await?,
        };
        Ok(Self { into, width_ms, known })
    }
}

impl Minutes {
    async fn gather(store: &Store, server_id: Uuid, start: i64) -> Result<Self, StoreError> {
        let into = key(Tier::Minute, Span::Day, start);
        Ok(Self {
            pile: Pile::gather(store, server_id, Tier::Minute, Span::Hour, into).await?,
            coarser: [
                Coarser::gather(store, server_id, Tier::Quarter, start, QUARTER_MS).await?,
                Coarser::gather(store, server_id, Tier::Hour, start, HOUR_MS).await?,
            ],
        })
    }

    /// Adds what changes in the minutes and the coarser rows.
    fn compact(&mut self, store: &Store, sealing: &mut Sealing) -> Result<(), ArchiveError> {
        let Self { pile, coarser } = self;
        let Some(Rolled { before, rows }) = pile.rolled() else { return Ok(()) };
        let mut made = Vec::with_capacity(coarser.len());
        for Coarser { into, width_ms, known } in coarser {
            let known_rows = match known.as_ref().map(rows_of).transpose() {
                Ok(known) => in_day(known.unwrap_or_default(), into.start),
                // The minutes replace a damaged block.
                Err(_) if before.as_ref().is_some_and(|before| !before.is_empty()) => Vec::new(),
                Err(error) => {
                    pile.damaged.push((known.as_ref().map_or(*into, |block| block.info.key), error));
                    if before.is_none() {
                        continue;
                    }
                    return Ok(());
                }
            };
            let rolled = match &before {
                Some(before) => coarser_rows(known_rows, before, &rows, *width_ms),
                None => {
                    let rolled = with_hours(&known_rows, &rows, *width_ms);
                    if rolled == known_rows {
                        continue;
                    }
                    rolled
                }
            };
            made.push((known.as_ref().filter(|block| block.info.key == *into), *into, rolled));
        }
        if before.is_some() {
            sealing.replaced.extend(pile.replaced(store));
            sealing.blocks.extend(block_of(pile.into, Granularity::Rolled, &rows)?);
        }
        for (known, into, rolled) in made {
            sealing.replaced.push(store.replaced(into, known));
            sealing.blocks.extend(block_of(into, Granularity::Rolled, &rolled)?);
        }
        Ok(())
    }
}

/// Compacts a day that is over, which begins at hour `start`.
pub async fn day(store: &Store, server_id: Uuid, start: i64) -> Result<Compacted, ArchiveError> {
    let into = |tier| key(tier, Span::Day, start);
    let mut raw = Pile::gather(store, server_id, Tier::Raw, Span::Hour, into(Tier::Raw)).await?;
    let mut minutes = Minutes::gather(store, server_id, start).await?;
    let mut lists = Pile::gather(store, server_id, Tier::Processes, Span::Hour, into(Tier::Processes)).await?;
    let store = store.clone();
    let made = tokio::task::spawn_blocking(move || {
        let mut sealing = Sealing::of(server_id);
        if let Some(samples) = raw.samples() {
            sealing.replaced.extend(raw.replaced(&store));
            sealing.blocks.extend(block_of(raw.into, Granularity::Raw, &samples)?);
        }
        minutes.compact(&store, &mut sealing)?;
        if let Some(all) = lists.lists() {
            sealing.replaced.extend(lists.replaced(&store));
            sealing.blocks.extend(block_of_lists(lists.into, &all)?);
        }
        let damaged = [raw, minutes.pile, lists].into_iter().flat_map(|pile| pile.damaged).collect();
        Ok(Compacted { sealing, damaged })
    });
    made.await.map_err(|_| ArchiveError::Interrupted)?
}

/// Compacts the minutes of the present day, which begins at hour `start`, except those of its newest hour: by that hour the day is
/// found when it is over. Samples and processes wait until then, because they are most of the bytes.
pub async fn present_day(store: &Store, server_id: Uuid, start: i64) -> Result<Compacted, ArchiveError> {
    let mut minutes = Minutes::gather(store, server_id, start).await?;
    // The newest: they are in the order of their hours.
    minutes.pile.shorter.pop();
    let store = store.clone();
    let made = tokio::task::spawn_blocking(move || {
        let mut sealing = Sealing::of(server_id);
        minutes.compact(&store, &mut sealing)?;
        Ok(Compacted { sealing, damaged: minutes.pile.damaged })
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

/// Returns the coarser rows of a day whose block of minutes is damaged: known ones, and those of the hours that have minutes of their
/// own.
fn with_hours(known: &[Row], minutes: &[Row], width_ms: i64) -> Vec<Row> {
    let mut rows: BTreeMap<i64, Row> = known.iter().map(|row| (row.at, row.clone())).collect();
    for row in rollup::roll(minutes, Granularity::Rolled, width_ms, None) {
        // One with more samples includes some whose minutes are gone, one with as many was made of these.
        if rows.get(&row.at).is_none_or(|known| known.count < row.count) {
            rows.insert(row.at, row);
        }
    }
    rows.into_values().collect()
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
            if let Some(Rolled { before: Some(_), rows }) = pile.rolled() {
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
