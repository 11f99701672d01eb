//! Compacts shorter blocks into longer ones: for each tier, the hours of a day become one block, and so do the days of a
//! month. A longer block takes less disk space, and a chart of a day reads one block instead of 24.

use std::collections::HashSet;

use signalbox_history::block::Head;
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

/// Blocks of one tier: the shorter ones, and the longer one into which they are compacted.
struct Pile {
    shorter: Vec<Block>,
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
        Ok(Self { shorter, longer: take(store, server_id, into).await?, into })
    }

    fn replaced(&self, store: &Store) -> impl Iterator<Item = Replaced> {
        self.shorter.iter().chain(&self.longer).map(|block| store.replaced(block.info.key, Some(block)))
    }

    /// Returns all downsampled rows. A shorter block replaces its part of the longer one.
    fn rolled(&self) -> Result<Vec<Row>, ArchiveError> {
        let newer: HashSet<i64> = self.shorter.iter().map(|block| block.info.key.start).collect();
        let mut rows = self.longer.as_ref().map(rows_of).transpose()?.unwrap_or_default();
        if let Some(shorter) = self.shorter.first() {
            let span = shorter.info.key.span;
            rows.retain(|row| !newer.contains(&span.start_of(hour_of(row.at))));
        }
        for block in &self.shorter {
            rows.extend(rows_of(block)?);
        }
        rows.sort_by_key(|row| row.at);
        names::limit_rolled(&mut rows);
        Ok(rows)
    }

    /// Returns all samples, merged; `None` if there are too many for one block. Those of the longer block take precedence.
    fn samples(&self) -> Result<Option<Vec<Row>>, ArchiveError> {
        let mut cells = 0;
        for block in self.longer.iter().chain(&self.shorter) {
            cells += Head::read(block.parts.get(&0).map(Vec::as_slice).unwrap_or_default())?.cells();
        }
        if cells > MAX_GATHERED_CELLS {
            return Ok(None);
        }
        let mut rows = Vec::new();
        for block in self.longer.iter().chain(&self.shorter) {
            rows.extend(rows_of(block)?);
        }
        let mut rows = merged(rows);
        names::limit(&mut rows);
        Ok(Some(rows))
    }

    fn lists(&self) -> Result<Vec<processes::At>, ArchiveError> {
        let mut lists = Vec::new();
        for block in self.longer.iter().chain(&self.shorter) {
            lists.extend(lists_of(block)?);
        }
        Ok(processes::merged(lists))
    }
}

/// Compacts a day, which begins at hour `start`.
pub async fn day(store: &Store, server_id: Uuid, start: i64) -> Result<Sealing, ArchiveError> {
    let into = |tier| key(tier, Span::Day, start);
    let raw = Pile::gather(store, server_id, Tier::Raw, Span::Hour, into(Tier::Raw)).await?;
    let minutes = Pile::gather(store, server_id, Tier::Minute, Span::Hour, into(Tier::Minute)).await?;
    let lists = Pile::gather(store, server_id, Tier::Processes, Span::Hour, into(Tier::Processes)).await?;
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
        let rows = minutes.rolled()?;
        let minutes_are_gone = minutes.longer.is_none();
        sealing.replaced.extend(minutes.replaced(&store));
        sealing.blocks.extend(block_of(minutes.into, Granularity::Rolled, &rows)?);
        for ((tier, width_ms), known) in [(Tier::Quarter, QUARTER_MS), (Tier::Hour, HOUR_MS)].into_iter().zip(coarser) {
            let key = key(tier, Span::Day, start);
            sealing.replaced.push(store.replaced(key, known.iter().find(|block| block.info.key == key)));
            let mut rolled = rollup::roll(&rows, Granularity::Rolled, width_ms, None);
            if minutes_are_gone {
                // The minutes have expired: the late ones are added, once, to the coarser rows that remain.
                let known = known.iter().map(rows_of).collect::<Result<Vec<_>, _>>()?;
                let mut known: Vec<Row> = known.into_iter().next().unwrap_or_default();
                known.retain(|row| Span::Day.start_of(hour_of(row.at)) == start);
                rolled = rollup::combined_once(known, rolled, width_ms);
            }
            sealing.blocks.extend(block_of(key, Granularity::Rolled, &rolled)?);
        }
        sealing.replaced.extend(lists.replaced(&store));
        sealing.blocks.extend(block_of_lists(lists.into, &lists.lists()?)?);
        Ok(sealing)
    });
    made.await.map_err(|_| ArchiveError::Interrupted)?
}

/// Compacts a month, which begins at hour `start`.
pub async fn month(store: &Store, server_id: Uuid, start: i64) -> Result<Sealing, ArchiveError> {
    let mut piles = Vec::new();
    for tier in [Tier::Quarter, Tier::Hour] {
        piles.push(Pile::gather(store, server_id, tier, Span::Day, key(tier, Span::Month, start)).await?);
    }
    let store = store.clone();
    let made = tokio::task::spawn_blocking(move || {
        let mut sealing = Sealing::of(server_id);
        for pile in piles {
            sealing.replaced.extend(pile.replaced(&store));
            sealing.blocks.extend(block_of(pile.into, Granularity::Rolled, &pile.rolled()?)?);
        }
        Ok(sealing)
    });
    made.await.map_err(|_| ArchiveError::Interrupted)?
}
