//! Sealing: what came of an hour that is over becomes one block of its samples and one of its minutes.
//!
//! Samples may come late: then the hour is sealed again, together with what was sealed before. Those that are in the
//! day's block already stay there, and the hour's block holds the others.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::shelf::{ArchiveError, block_of, block_of_lists, key, lists_of, rows_of, take};
use super::{HOUR_MS, MINUTE_MS, hour_of, pieces, start_ms};
use crate::metrics::block::BlockError;
use crate::metrics::frame::{Grain, Row, merged};
use crate::metrics::{names, processes, rollup};
use crate::store::Store;
use crate::store::history::{Block, Hours, Piece, PieceInfo, Sealing, Span, Tier};

/// Hours that are sealed in one go: a day's backlog.
pub const MOST_HOURS: usize = 24;

/// Everything that sealing some hours of a server needs, taken from the store.
#[derive(Default)]
struct Material {
    pieces: BTreeMap<i64, Vec<Piece>>,
    /// Every block that reaches into the hours or the one before them, by tier and span.
    blocks: Vec<Block>,
}

/// Takes what sealing these hours needs.
async fn gather(store: &Store, server_id: Uuid, hours: &[PieceInfo]) -> Result<Material, ArchiveError> {
    let mut material = Material::default();
    let mut seen = HashSet::new();
    for PieceInfo { hour, .. } in hours {
        let only = Hours { server_id, from: *hour, until: hour + 1 };
        material.pieces.insert(*hour, store.pieces(only).await?);
        let mut wanted = vec![
            key(Tier::Raw, Span::Hour, hour - 1),
            key(Tier::Raw, Span::Day, hour - 1),
            key(Tier::Raw, Span::Hour, *hour),
            key(Tier::Raw, Span::Day, *hour),
            key(Tier::Processes, Span::Hour, *hour),
        ];
        // Where the samples themselves are gone, the minutes stand for them.
        wanted.extend([key(Tier::Minute, Span::Hour, *hour), key(Tier::Minute, Span::Day, *hour)]);
        for key in wanted {
            if seen.insert(key) {
                material.blocks.extend(take(store, server_id, key).await?);
            }
        }
    }
    Ok(material)
}

/// What sealing changes. Pure, and the costly part.
fn seal(server_id: Uuid, material: &Material) -> Result<Sealing, ArchiveError> {
    let mut sealing = Sealing { server_id, pieces: Vec::new(), replaced: Vec::new(), blocks: Vec::new() };
    let unpacked = Unpacked::open(material)?;
    let mut before: Option<Row> = None;
    for (hour, pieces) in &material.pieces {
        let number = pieces.iter().map(|piece| piece.number).max().unwrap_or_default();
        if !pieces.is_empty() {
            sealing.pieces.push((*hour, number));
        }
        let new = merged(pieces::rows(pieces)?);
        let hours_before = before.take().filter(|row| hour_of(row.at) == hour - 1);
        let in_the_day = unpacked.rows(Tier::Raw, Span::Day, *hour);
        let mut in_the_hour = unpacked.rows(Tier::Raw, Span::Hour, *hour);
        let known_minutes = unpacked.minutes(*hour);
        if pieces.is_empty() && in_the_day.is_empty() && in_the_hour.is_empty() {
            continue;
        }
        let samples_are_gone = in_the_day.is_empty() && in_the_hour.is_empty() && !known_minutes.is_empty();
        let mut minutes = if samples_are_gone {
            // They were not kept for so long: what came late is added to the minutes that stand for them.
            let rolled = rollup::roll(&new, Grain::Raw, MINUTE_MS, hours_before);
            rollup::combined(known_minutes, rolled, MINUTE_MS)
        } else {
            let known: HashSet<i64> = in_the_day.iter().map(|row| row.at).collect();
            let there: usize = in_the_hour.iter().chain(&in_the_day).map(|row| row.values.len()).sum();
            add_within(&mut in_the_hour, new, there);
            let mut in_the_hour = merged(in_the_hour);
            in_the_hour.retain(|row| !known.contains(&row.at));
            names::limit(&mut in_the_hour);
            replace(&mut sealing, Tier::Raw, *hour, Grain::Raw, &in_the_hour)?;
            let all = merged(in_the_day.into_iter().chain(in_the_hour).collect());
            let hours_before = hours_before.or_else(|| unpacked.last_before(*hour));
            before = all.last().cloned();
            rollup::roll(&all, Grain::Raw, MINUTE_MS, hours_before)
        };
        names::limit_rolled(&mut minutes);
        replace(&mut sealing, Tier::Minute, *hour, Grain::Rolled, &minutes)?;
        seal_lists(&mut sealing, &unpacked, *hour, pieces)?;
    }
    Ok(sealing)
}

/// Adds what came late, as far as one hour may have it.
fn add_within(rows: &mut Vec<Row>, new: Vec<Row>, mut cells: usize) {
    let before = rows.len() + new.len();
    rows.extend(new.into_iter().take_while(|row| {
        cells += row.values.len();
        cells <= pieces::MOST_CELLS as usize
    }));
    metrics::counter!("signalbox_history_samples_left_out_total").increment((before - rows.len()) as u64);
}

/// Puts a block of an hour in the place of the one that may be there.
fn replace(sealing: &mut Sealing, tier: Tier, hour: i64, grain: Grain, rows: &[Row]) -> Result<(), BlockError> {
    let key = key(tier, Span::Hour, hour);
    sealing.replaced.push(key);
    sealing.blocks.extend(block_of(key, grain, rows)?);
    Ok(())
}

fn seal_lists(sealing: &mut Sealing, unpacked: &Unpacked, hour: i64, pieces: &[Piece]) -> Result<(), ArchiveError> {
    let key = key(Tier::Processes, Span::Hour, hour);
    let mut lists = unpacked.lists.get(&hour).cloned().unwrap_or_default();
    lists.extend(pieces::lists(pieces)?);
    sealing.replaced.push(key);
    sealing.blocks.extend(block_of_lists(key, &processes::merged(lists))?);
    Ok(())
}

/// Blocks, unpacked.
struct Unpacked {
    rows: BTreeMap<(Tier, Span, i64), Arc<Vec<Row>>>,
    lists: BTreeMap<i64, Vec<processes::At>>,
}

impl Unpacked {
    fn open(material: &Material) -> Result<Self, BlockError> {
        let mut unpacked = Self { rows: BTreeMap::new(), lists: BTreeMap::new() };
        for block in &material.blocks {
            let key = block.info.key;
            if key.tier == Tier::Processes {
                unpacked.lists.insert(key.start, lists_of(block)?);
                continue;
            }
            let is_needed = (key.start..key.start + key.span.hours()).any(|hour| material.pieces.contains_key(&hour));
            match rows_of(block) {
                Ok(rows) => _ = unpacked.rows.insert((key.tier, key.span, key.start), Arc::new(rows)),
                Err(error) if is_needed => return Err(error),
                // Of the hour before only the last sample is asked, for one rate.
                Err(_) => {}
            }
        }
        Ok(unpacked)
    }

    /// The rows of an hour in the block of this tier and span that holds it.
    fn rows(&self, tier: Tier, span: Span, hour: i64) -> Vec<Row> {
        let Some(rows) = self.rows.get(&(tier, span, span.start_of(hour))) else { return Vec::new() };
        let from = rows.partition_point(|row| row.at < start_ms(hour));
        let rest = rows.iter().skip(from).take_while(|row| row.at < start_ms(hour) + HOUR_MS);
        rest.cloned().collect()
    }

    /// The minutes of an hour: those of the hour's block, for they are the newer ones, else those of the day's.
    fn minutes(&self, hour: i64) -> Vec<Row> {
        let own = self.rows(Tier::Minute, Span::Hour, hour);
        if own.is_empty() { self.rows(Tier::Minute, Span::Day, hour) } else { own }
    }

    /// The last sample of the hour before.
    fn last_before(&self, hour: i64) -> Option<Row> {
        let spans = [Span::Hour, Span::Day].into_iter();
        spans.filter_map(|span| self.rows(Tier::Raw, span, hour - 1).pop()).max_by_key(|row| row.at)
    }
}

/// Seals some hours of a server, off the threads that serve. `hours` must be sorted.
pub async fn prepare(store: &Store, server_id: Uuid, hours: &[PieceInfo]) -> Result<Sealing, ArchiveError> {
    let material = gather(store, server_id, hours).await?;
    let sealed = tokio::task::spawn_blocking(move || seal(server_id, &material));
    sealed.await.map_err(|_| ArchiveError::Interrupted)?
}
