//! Converts between blocks of the store and rows.

use signalbox_history::block::{self, BlockError};
use signalbox_history::codec::CodecError;
use signalbox_history::frame::{Frame, Granularity, Row};
use signalbox_history::processes;
use uuid::Uuid;

use crate::metrics::recent::RecentError;
use crate::store::history::{Block, BlockInfo, BlockKey, Span, Tier};
use crate::store::{Store, StoreError};

/// Why the history could not be compacted.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A newer version wrote it: removing it would lose samples.
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("the work was interrupted")]
    Interrupted,
}

impl From<RecentError> for ArchiveError {
    fn from(error: RecentError) -> Self {
        match error {
            RecentError::Store(error) => Self::Store(error),
            RecentError::Interrupted => Self::Interrupted,
        }
    }
}

/// Reads a whole block of a server, if there is one.
pub async fn take(store: &Store, server_id: Uuid, key: BlockKey) -> Result<Option<Block>, StoreError> {
    let BlockKey { tier, span, start } = key;
    Ok(store.blocks(server_id, (tier, span), (start, start), None).await?.pop())
}

/// Returns the rows of a block.
pub fn rows_of(block: &Block) -> Result<Vec<Row>, BlockError> {
    Ok(frame_of(block)?.rows())
}

/// Returns the last row of a block.
pub fn last_row_of(block: &Block) -> Result<Option<Row>, BlockError> {
    let frame = frame_of(block)?;
    let Some(last) = frame.times.last().copied() else { return Ok(None) };
    Ok(frame.into_between(last, last.saturating_add(1)).rows().pop())
}

fn frame_of(block: &Block) -> Result<Frame, BlockError> {
    let parts: Vec<&[u8]> = block.parts.values().map(Vec::as_slice).collect();
    block::read(&parts)
}

/// Returns the lists of a block of top processes.
pub fn lists_of(block: &Block) -> Result<Vec<processes::At>, BlockError> {
    processes::read(block.parts.get(&0).map(Vec::as_slice).unwrap_or_default())
}

/// Returns rows as a block; `None` if there are no rows.
pub fn block_of(key: BlockKey, granularity: Granularity, rows: &[Row]) -> Result<Option<Block>, BlockError> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
    let info = BlockInfo { key, rows: rows.len() as i64, first_at: first.at, last_at: last.at };
    let parts = block::write(Frame::from_rows(granularity, rows))?;
    Ok(Some(Block { info, parts: parts.into_iter().enumerate().collect() }))
}

/// Returns lists of top processes as a block; `None` if there are no lists.
pub fn block_of_lists(key: BlockKey, lists: &[processes::At]) -> Result<Option<Block>, BlockError> {
    let (Some((first_at, _)), Some((last_at, _))) = (lists.first(), lists.last()) else { return Ok(None) };
    let info = BlockInfo { key, rows: lists.len() as i64, first_at: *first_at, last_at: *last_at };
    Ok(Some(Block { info, parts: [(0, processes::write(lists)?)].into() }))
}

/// Returns the key of the block of this tier and span that contains an hour.
pub fn key(tier: Tier, span: Span, hour: i64) -> BlockKey {
    BlockKey { tier, span, start: span.start_of(hour) }
}
