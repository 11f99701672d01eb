//! Writes samples of the tail as pieces, and reads pieces. Pure.

use std::collections::BTreeMap;

use signalbox_history::block::{self, BlockError, Head};
use signalbox_history::frame::{Frame, Granularity, Row, merged};
use signalbox_history::processes;
use uuid::Uuid;

use super::flusher::Cells;
use super::hour_of;
use crate::metrics::names;
use crate::metrics::tail::{Fresh, Generation};
use crate::store::history::Piece;

/// The integers that one hour of a server may have: five times those of a sample per second with 200 columns. Further
/// samples are dropped, which bounds the memory that sealing an hour takes.
pub const MAX_CELLS: i64 = 4_000_000;

/// The pieces of a flush.
pub struct Leaving {
    pub pieces: Vec<Piece>,
    /// Samples that were dropped: too many for one hour, or expired.
    pub left_out: u64,
}

/// Makes the pieces of a generation. `cells` has the sizes of the pieces so far, and is updated. Hours before `oldest` have
/// expired.
pub fn make(generation: &Generation, cells: &mut Cells, oldest: i64) -> Result<Leaving, BlockError> {
    let mut leaving = Leaving { pieces: Vec::new(), left_out: 0 };
    for (server_id, samples) in &generation.servers {
        let mut hours: BTreeMap<i64, Vec<&Fresh>> = BTreeMap::new();
        for fresh in samples {
            hours.entry(hour_of(fresh.row.at)).or_default().push(fresh);
        }
        for (hour, mut samples) in hours {
            if hour < oldest {
                leaving.left_out += samples.len() as u64;
                continue;
            }
            let there = cells.entry((hour, *server_id)).or_default();
            let before = samples.len();
            let mut shape = None;
            samples.retain(|fresh| {
                *there += fresh.cells(shape);
                shape = Some(&fresh.row.shape);
                *there <= MAX_CELLS
            });
            leaving.left_out += (before - samples.len()) as u64;
            if !samples.is_empty() {
                leaving.pieces.push(piece(*server_id, hour, generation.journal_id, &samples)?);
            }
        }
    }
    Ok(leaving)
}

fn piece(server_id: Uuid, hour: i64, number: i64, samples: &[&Fresh]) -> Result<Piece, BlockError> {
    let mut rows = merged(samples.iter().map(|fresh| fresh.row.clone()).collect());
    names::limit(&mut rows);
    let lists = samples.iter().filter_map(|fresh| Some((fresh.row.at, fresh.processes.as_deref()?.clone())));
    let lists = processes::merged(lists.collect());
    let frame = Frame::from_rows(Granularity::Raw, &rows);
    let cells = frame.cells() as i64;
    Ok(Piece {
        server_id,
        hour,
        number,
        samples: rows.len() as i64,
        cells,
        data: join(block::write(frame)?),
        processes: if lists.is_empty() { None } else { Some(processes::write(&lists)?) },
    })
}

/// Returns the samples of pieces, in the order of the pieces.
pub fn rows(pieces: &[Piece]) -> Result<Vec<Row>, BlockError> {
    let mut rows = Vec::new();
    for piece in pieces {
        rows.extend(frame(piece)?.rows());
    }
    Ok(rows)
}

/// Unpacks a piece.
pub fn frame(piece: &Piece) -> Result<Frame, BlockError> {
    block::read(&split(&piece.data)?)
}

/// Returns the head of a piece.
pub fn head(piece: &Piece) -> Result<Head, BlockError> {
    Head::read(split(&piece.data)?.first().copied().unwrap_or_default())
}

/// Returns the lists of top processes of pieces.
pub fn lists(pieces: &[Piece]) -> Result<Vec<processes::At>, BlockError> {
    let mut lists = Vec::new();
    for bytes in pieces.iter().filter_map(|piece| piece.processes.as_deref()) {
        lists.extend(processes::read(bytes)?);
    }
    Ok(lists)
}

/// Joins parts, each after its length in four bytes.
pub fn join(parts: Vec<Vec<u8>>) -> Vec<u8> {
    let mut joined = Vec::new();
    for part in parts {
        joined.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
        joined.extend_from_slice(&part);
    }
    joined
}

pub fn split(mut joined: &[u8]) -> Result<Vec<&[u8]>, BlockError> {
    let mut parts = Vec::new();
    while !joined.is_empty() {
        let next = joined
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let (part, rest) = next.ok_or(BlockError::Corrupt("it ends too early"))?;
        parts.push(part);
        joined = rest;
    }
    Ok(parts)
}
