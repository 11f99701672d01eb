//! Seals hours: the samples of a past hour become one block of samples and one of its minutes.
//!
//! Samples may arrive late. Then the hour is sealed again, together with its earlier blocks. Samples that are already in
//! the day's block stay there, and the hour's block holds the others.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use signalbox_history::block::BlockError;
use signalbox_history::frame::{Granularity, Row, merged};
use signalbox_history::{processes, rollup};
use uuid::Uuid;

use super::block_io::{ArchiveError, block_of, block_of_lists, key, last_row_of, lists_of, rows_of, take};
use super::{HOUR_MS, MINUTE_MS, hour_of, pieces, start_ms};
use crate::metrics::names;
use crate::metrics::recent::{self, SampleBatch};
use crate::store::Store;
use crate::store::history::{
    Block, BlockInfo, BlockKey, Hours, Piece, PieceInfo, PiecesTaken, SamplesTaken, Sealing, Span, Tier,
};

/// Hours that are sealed at once: a backlog of a day.
pub const MAX_HOURS: usize = 24;

/// Integers that are sealed in one transaction: sixteen hours of an ordinary server, about 200 KB.
pub const CELLS_AT_ONCE: i64 = 500_000;

/// Everything that sealing some hours of a server needs from the store.
#[derive(Default)]
struct Material {
    hours: BTreeMap<i64, Coming>,
    /// Every block that overlaps the hours or the one before them.
    blocks: Vec<Block>,
}

/// The new samples for an hour's blocks.
struct Coming {
    pieces: Vec<Piece>,
    /// The samples from the table of samples.
    taken: SampleBatch,
}

impl Coming {
    /// Returns the samples, merged. Those of pieces take precedence, because they arrived first.
    fn rows(&self) -> Result<Vec<Row>, BlockError> {
        let mut rows = pieces::rows(&self.pieces)?;
        rows.extend(self.taken.fresh.iter().map(|fresh| fresh.row.clone()));
        Ok(merged(rows))
    }

    fn lists(&self) -> Result<Vec<processes::At>, BlockError> {
        let mut lists = pieces::lists(&self.pieces)?;
        let fresh = self.taken.fresh.iter();
        lists.extend(fresh.filter_map(|fresh| Some((fresh.row.at, fresh.processes.as_deref()?.clone()))));
        Ok(lists)
    }

    fn cells(&self) -> i64 {
        self.taken.cells + self.pieces.iter().map(|piece| piece.cells).sum::<i64>()
    }
}

impl Material {
    fn block(&self, key: BlockKey) -> Option<&Block> {
        self.blocks.iter().find(|block| block.info.key == key)
    }

    fn cells(&self) -> i64 {
        self.hours.values().map(Coming::cells).sum()
    }
}

/// Reads what sealing these hours needs. Stops after the first hours that are enough for one transaction.
async fn gather(store: &Store, server_id: Uuid, hours: &[PieceInfo]) -> Result<Material, ArchiveError> {
    let mut material = Material::default();
    for PieceInfo { hour, .. } in hours {
        if material.cells() >= CELLS_AT_ONCE {
            break;
        }
        let mut taken = SampleBatch::default();
        if store.has_sample_table() {
            taken = recent::take(store, server_id, (start_ms(*hour), start_ms(hour + 1) - 1)).await?;
        }
        if let Some(error) = taken.unknown.take() {
            return Err(error.into());
        }
        let only = Hours { server_id, from: *hour, until: hour + 1 };
        let pieces = store.pieces(only).await?;
        material.hours.insert(*hour, Coming { pieces, taken });
    }
    // Each block is read before the longer one into which another instance may be compacting it.
    let hours: Vec<i64> = material.hours.keys().copied().collect();
    let mut wanted = BTreeSet::new();
    for hour in &hours {
        wanted.extend([key(Tier::Raw, Span::Hour, hour - 1), key(Tier::Raw, Span::Hour, *hour)]);
        // If the samples have expired, the minutes remain.
        wanted.extend([key(Tier::Minute, Span::Hour, *hour), key(Tier::Processes, Span::Hour, *hour)]);
    }
    for key in wanted {
        material.blocks.extend(take(store, server_id, key).await?);
    }
    let (Some(first), Some(last)) = (hours.first(), hours.last()) else { return Ok(material) };
    let around = Hours { server_id, from: first - 1, until: last + 1 };
    for info in store.block_infos(around, &[Tier::Raw, Tier::Minute]).await? {
        let is_wanted = |hour: &i64| match info.key.tier {
            Tier::Raw => [*hour - 1, *hour].iter().any(|hour| info.key == key(Tier::Raw, Span::Day, *hour)),
            // Those of the present day do not reach to the hours that are sealed in their turn.
            _ => info.key.span == Span::Day && info.hours().contains(hour),
        };
        if hours.iter().any(is_wanted) {
            material.blocks.extend(take(store, server_id, info.key).await?);
        }
    }
    Ok(material)
}

/// Computes the changes of sealing. This is the expensive part.
fn seal(store: &Store, server_id: Uuid, material: &Material) -> Result<Sealing, ArchiveError> {
    let mut sealing = Sealing::of(server_id);
    let unpacked = Unpacked::open(material)?;
    let mut before: Option<Row> = None;
    for (hour, coming) in &material.hours {
        take_away(&mut sealing, *hour, coming);
        let new = coming.rows()?;
        let hours_before = before.take().filter(|row| hour_of(row.at) == hour - 1);
        let in_the_day = unpacked.rows(Tier::Raw, Span::Day, *hour);
        let mut in_the_hour = unpacked.rows(Tier::Raw, Span::Hour, *hour);
        let known_minutes = unpacked.minutes(*hour);
        if new.is_empty() && in_the_day.is_empty() && in_the_hour.is_empty() {
            continue;
        }
        let samples_are_gone = in_the_day.is_empty() && in_the_hour.is_empty() && !known_minutes.is_empty();
        let mut minutes = if samples_are_gone {
            // The samples have expired: the late ones are added, once, to the minutes that remain.
            let rolled = rollup::roll(&new, Granularity::Raw, MINUTE_MS, hours_before);
            rollup::combined_once(known_minutes, rolled, MINUTE_MS)
        } else {
            let known: HashSet<i64> = in_the_day.iter().map(|row| row.at).collect();
            let there: usize = in_the_hour.iter().chain(&in_the_day).map(|row| row.values.len()).sum();
            add_within(&mut in_the_hour, new, there);
            let mut in_the_hour = merged(in_the_hour);
            in_the_hour.retain(|row| !known.contains(&row.at));
            names::limit(&mut in_the_hour);
            let raw = key(Tier::Raw, Span::Hour, *hour);
            sealing.replaced.push(store.replaced(raw, material.block(raw)));
            sealing.blocks.extend(block_of(raw, Granularity::Raw, &in_the_hour)?);
            let all = merged(in_the_day.into_iter().chain(in_the_hour).collect());
            let hours_before = hours_before.or_else(|| unpacked.last_before(*hour));
            before = all.last().cloned();
            rollup::roll(&all, Granularity::Raw, MINUTE_MS, hours_before)
        };
        names::limit_rolled(&mut minutes);
        let rolled = key(Tier::Minute, Span::Hour, *hour);
        sealing.replaced.push(store.replaced(rolled, material.block(rolled)));
        sealing.blocks.extend(block_of(rolled, Granularity::Rolled, &minutes)?);
        let listed = key(Tier::Processes, Span::Hour, *hour);
        let mut lists = unpacked.lists.get(hour).cloned().unwrap_or_default();
        lists.extend(coming.lists()?);
        sealing.replaced.push(store.replaced(listed, material.block(listed)));
        sealing.blocks.extend(block_of_lists(listed, &processes::merged(lists))?);
    }
    Ok(sealing)
}

/// Adds late samples up to the limit of an hour.
fn add_within(rows: &mut Vec<Row>, new: Vec<Row>, mut cells: usize) {
    let before = rows.len() + new.len();
    rows.extend(new.into_iter().take_while(|row| {
        cells += row.values.len();
        cells <= pieces::MAX_CELLS as usize
    }));
    metrics::counter!("signalbox_history_samples_left_out_total").increment((before - rows.len()) as u64);
}

/// Adds the pieces and table rows that are removed because they are sealed.
fn take_away(sealing: &mut Sealing, hour: i64, coming: &Coming) {
    let Coming { pieces, taken } = coming;
    if let Some(up_to) = pieces.iter().map(|piece| piece.number).max() {
        sealing.pieces.push(PiecesTaken { hour, up_to, count: pieces.len() });
    }
    if !taken.at.is_empty() {
        let (at, left_out_after) = (taken.at.clone(), taken.left_out_after);
        sealing.samples.push(SamplesTaken { hour, at, left_out_after });
    }
}

/// Unpacked blocks.
struct Unpacked {
    rows: BTreeMap<(Tier, Span, i64), Arc<Vec<Row>>>,
    lists: BTreeMap<i64, Vec<processes::At>>,
}

impl Unpacked {
    fn open(material: &Material) -> Result<Self, BlockError> {
        let mut unpacked = Self { rows: BTreeMap::new(), lists: BTreeMap::new() };
        let mut damaged_days: Vec<(BlockInfo, BlockError)> = Vec::new();
        for block in &material.blocks {
            let key = block.info.key;
            if key.tier == Tier::Processes {
                unpacked.lists.insert(key.start, lists_of(block)?);
                continue;
            }
            let is_needed = (key.start..key.start + key.span.hours()).any(|hour| material.hours.contains_key(&hour));
            // Of the hour before, only the last sample is needed, for one rate.
            let rows = if is_needed { rows_of(block) } else { last_row_of(block).map(Vec::from_iter) };
            match rows {
                Ok(rows) => _ = unpacked.rows.insert((key.tier, key.span, key.start), Arc::new(rows)),
                Err(error) if key.tier == Tier::Minute && key.span == Span::Day => {
                    damaged_days.push((block.info, error));
                }
                Err(error) if is_needed => return Err(error),
                Err(_) => {}
            }
        }
        match damaged_days.into_iter().find(|(day, _)| unpacked.needs_minutes(*day, material)) {
            Some((_, error)) => Err(error),
            None => Ok(unpacked),
        }
    }

    /// Returns whether an hour that has lost its samples has minutes in the block of this day. The others get theirs from samples.
    fn needs_minutes(&self, day: BlockInfo, material: &Material) -> bool {
        let has_samples =
            |hour| [Span::Hour, Span::Day].iter().any(|span| !self.rows(Tier::Raw, *span, hour).is_empty());
        day.hours().any(|hour| material.hours.contains_key(&hour) && !has_samples(hour))
    }

    /// Returns the rows of an hour from its block of this tier and span.
    fn rows(&self, tier: Tier, span: Span, hour: i64) -> Vec<Row> {
        let Some(rows) = self.rows.get(&(tier, span, span.start_of(hour))) else { return Vec::new() };
        let from = rows.partition_point(|row| row.at < start_ms(hour));
        let rest = rows.iter().skip(from).take_while(|row| row.at < start_ms(hour) + HOUR_MS);
        rest.cloned().collect()
    }

    /// Returns the minutes of an hour from the hour's block, which is newer, or else from the day's.
    fn minutes(&self, hour: i64) -> Vec<Row> {
        let own = self.rows(Tier::Minute, Span::Hour, hour);
        if own.is_empty() { self.rows(Tier::Minute, Span::Day, hour) } else { own }
    }

    /// Returns the last sample of the hour before.
    fn last_before(&self, hour: i64) -> Option<Row> {
        let spans = [Span::Hour, Span::Day].into_iter();
        spans.filter_map(|span| self.rows(Tier::Raw, span, hour - 1).pop()).max_by_key(|row| row.at)
    }
}

/// The changes of sealing some hours of a server.
pub struct Prepared {
    pub sealing: Sealing,
    /// How many of the hours are sealed, from the first on.
    pub hours: usize,
    /// How many integers their new samples have.
    pub cells: i64,
}

/// Prepares the sealing of some hours of a server, on a blocking thread. `hours` must be sorted.
pub async fn prepare(store: &Store, server_id: Uuid, hours: &[PieceInfo]) -> Result<Prepared, ArchiveError> {
    let material = gather(store, server_id, hours).await?;
    let store = store.clone();
    let sealed = tokio::task::spawn_blocking(move || {
        let sealing = seal(&store, server_id, &material)?;
        Ok(Prepared { sealing, hours: material.hours.len(), cells: material.cells() })
    });
    sealed.await.map_err(|_| ArchiveError::Interrupted)?
}
