//! What the journal holds, brought back into memory at a start.

use std::sync::Arc;

use signalbox_protocol::Sample;
use uuid::Uuid;

use super::codec::{self, CodecError};
use super::frame::Row;
use super::journal;
use super::tail::{Fresh, Tail};
use crate::store::{Store, StoreError};

/// Rows that are read at once: some 2 MB.
const ROWS: u64 = 16;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Written by a newer version: forgetting it would lose samples.
    #[error("the journal of the history cannot be read: {0}")]
    Codec(#[from] CodecError),
}

/// Fills the tail with everything that is in the journal. Gives how many samples there were.
pub async fn replay(store: &Store, tail: &Tail, writer: Uuid) -> Result<usize, ReplayError> {
    while store.adopt_samples(writer, adopt).await? > 0 {}
    let (mut after, mut count) = (0, 0);
    loop {
        let rows = store.journal_after(after, ROWS).await?;
        let Some(last) = rows.last() else { return Ok(count) };
        after = last.id;
        for row in rows {
            let samples = journal::read(&row.data)?;
            let samples: Vec<(Uuid, Fresh)> = samples
                .into_iter()
                .map(|(server_id, encoded)| fresh(tail, server_id, encoded))
                .collect::<Result<_, _>>()?;
            count += samples.len();
            tail.append(row.id, samples);
        }
    }
}

/// Samples of the first form of the history as a row of the journal.
fn adopt(samples: Vec<(Uuid, Vec<u8>)>) -> Vec<u8> {
    let mut row = journal::Writer::default();
    samples.iter().for_each(|(server_id, encoded)| row.add(*server_id, encoded));
    row.finish().unwrap_or_default()
}

fn fresh(tail: &Tail, server_id: Uuid, encoded: &[u8]) -> Result<(Uuid, Fresh), CodecError> {
    let mut sample: Sample = codec::decode(encoded)?;
    let processes = sample.processes.take().map(Arc::new);
    let row = Row::of(&sample, tail.shape(server_id, &sample));
    Ok((server_id, Fresh { row, processes }))
}
