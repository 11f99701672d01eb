//! The first step: flushes the tail into pieces, and removes its samples from the journal. At startup it replays the
//! journal into the tail. If fresh samples are in a table instead, there is no flush, and startup moves the samples that an
//! earlier version left in the journal into the table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use signalbox_history::codec::{CodecError, Encoded, Stored};
use signalbox_history::journal;
use uuid::Uuid;

use super::block_io::ArchiveError;
use super::growing::Growing;
use super::{RetentionPolicy, hour_of, pieces, start_ms};
use crate::metrics::tail::{Fresh, Tail};
use crate::store::history::{FreshSample, JournalRead, JournalRow};
use crate::store::{Share, Store, StoreError};

/// Rows of the journal that are read at once. Each has the samples of one commit: about 100 KB, at most 32 MB.
const JOURNAL_ROWS: u64 = 4;

/// How many times 512 samples of the first version's history are taken over before they are flushed.
const ADOPTED_AT_ONCE: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A newer version wrote the journal: removing it would lose samples.
    #[error("the journal of the history cannot be read: {0}")]
    Journal(#[source] CodecError),
}

/// Flushes the tail.
pub struct Flusher {
    store: Store,
    tail: Tail,
    policy: RetentionPolicy,
    /// Names this process in the journal.
    writer: Uuid,
    /// The last row of the journal that was replayed.
    replayed_to: i64,
    /// The sizes of the pieces, by hour and server; `None` until they were looked up.
    cells: Option<Cells>,
    /// Past hours that got samples with the last flush.
    growing: Growing,
    /// When the last flush was.
    moved: Instant,
}

/// How many integers are in pieces, by hour and server.
pub type Cells = BTreeMap<(i64, Uuid), i64>;

impl Flusher {
    pub fn new(store: Store, tail: Tail, policy: RetentionPolicy, writer: Uuid) -> Self {
        let (growing, moved) = (Growing::default(), Instant::now());
        Self { store, tail, policy, writer, replayed_to: 0, cells: None, growing, moved }
    }

    /// Returns whether the tail is so large that it must be flushed.
    pub fn is_urgent(&self) -> bool {
        self.tail.is_large()
    }

    /// Returns whether the tail has samples of hours before `hour`.
    pub fn has_before(&self, hour: i64) -> bool {
        self.tail.has_before(start_ms(hour))
    }

    /// Returns how many hours before `hour` have pieces, over all servers.
    pub fn hours_in_pieces(&self, hour: i64) -> usize {
        self.cells.as_ref().map_or(0, |cells| cells.range(..(hour, Uuid::nil())).count())
    }

    /// Takes in that an hour was sealed.
    pub fn sealed(&mut self, server_id: Uuid, hour: i64) {
        if let Some(cells) = &mut self.cells {
            cells.remove(&(hour, server_id));
        }
    }

    /// Returns how long ago the tail was flushed.
    pub fn rested(&self) -> Duration {
        self.moved.elapsed()
    }

    /// Returns the past hours whose samples may still be arriving.
    pub fn growing(&self) -> &Growing {
        &self.growing
    }

    /// Takes in that no more samples of past hours are expected.
    pub fn forget_growing(&mut self) {
        self.growing = Growing::default();
    }

    /// Takes in that hours before this one have expired.
    pub fn forget_before(&mut self, hour: i64) {
        if let Some(cells) = &mut self.cells {
            *cells = cells.split_off(&(hour, Uuid::nil()));
        }
    }

    /// Replays the journal into the tail, and flushes the tail when it is too large. Returns the number of samples.
    pub async fn replay(&mut self) -> Result<usize, ReplayError> {
        if self.store.has_sample_table() {
            return self.take_over().await;
        }
        let mut count = 0;
        loop {
            let mut adopted = 0;
            for _ in 0..ADOPTED_AT_ONCE {
                adopted += self.store.adopt_samples(self.writer, adopt).await?;
            }
            count += self.replay_journal().await?;
            if adopted == 0 {
                return Ok(count);
            }
            self.move_tail().await?;
        }
    }

    /// Moves samples that earlier versions left into the table of samples. Other instances may be doing the same.
    async fn take_over(&self) -> Result<usize, ReplayError> {
        let oldest = self.policy.cutoffs().minute;
        let mut count = 0;
        loop {
            let some = self.store.take_over_samples(oldest).await?;
            if some == 0 {
                break;
            }
            count += some;
        }
        loop {
            let rows = self.store.journal_after(0, JOURNAL_ROWS).await?;
            if rows.is_empty() {
                return Ok(count);
            }
            let mut samples = Vec::new();
            for row in &rows {
                samples.extend(journaled(row)?);
            }
            samples.retain(|sample| sample.hour() >= oldest);
            let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
            if self.store.take_over_journal(&ids, &samples).await? {
                count += samples.len();
            }
        }
    }

    async fn replay_journal(&mut self) -> Result<usize, ReplayError> {
        let mut count = 0;
        loop {
            let rows = self.store.journal_after(self.replayed_to, JOURNAL_ROWS).await?;
            let Some(last) = rows.last() else { return Ok(count) };
            self.replayed_to = last.id;
            for row in rows {
                let samples = match journal::read(&row.data) {
                    Ok(samples) => samples,
                    Err(error @ CodecError::Version(_)) => return Err(ReplayError::Journal(error)),
                    Err(error) => {
                        damaged(row.id, &error);
                        continue;
                    }
                };
                let mut fresh = Vec::with_capacity(samples.len());
                for (server_id, encoded) in samples {
                    match self.decode(server_id, encoded) {
                        Ok(sample) => fresh.push((server_id, sample)),
                        Err(error @ CodecError::Version(_)) => return Err(ReplayError::Journal(error)),
                        Err(error) => damaged(row.id, &error),
                    }
                }
                count += fresh.len();
                self.tail.append(row.id, fresh);
            }
            if self.is_urgent() {
                self.move_tail().await?;
            }
        }
    }

    fn decode(&self, server_id: Uuid, encoded: Encoded<'_>) -> Result<Fresh, CodecError> {
        let before = self.tail.last_shape(server_id);
        let Stored { mut row, processes, .. } = encoded.decode(before.as_ref())?;
        row.shape = self.tail.share(server_id, row.shape);
        Ok(Fresh { row, processes: processes.map(Arc::new) })
    }

    /// Flushes the whole tail into pieces.
    pub async fn move_tail(&mut self) -> Result<(), ArchiveError> {
        let mut cells = match self.cells.take() {
            Some(cells) => cells,
            None => self.look_up_cells().await?,
        };
        let Some(generation) = self.tail.begin_flush() else {
            self.cells = Some(cells);
            self.moved = Instant::now();
            return Ok(());
        };
        let read = JournalRead { writer: self.writer, up_to: generation.journal_id, replayed_to: self.replayed_to };
        let oldest = self.policy.cutoffs().minute;
        let made = tokio::task::spawn_blocking(move || {
            let made = pieces::make(&generation, &mut cells, oldest);
            (made, cells)
        });
        let outcome = async {
            let (made, cells) = made.await.map_err(|_| ArchiveError::Interrupted)?;
            let leaving = made?;
            let growing = Growing::of(&leaving.pieces, hour_of(self.policy.now().as_millis()));
            self.store.move_to_pieces(&read, leaving.pieces).await?;
            Ok::<_, ArchiveError>((cells, growing, leaving.left_out))
        };
        match outcome.await {
            Ok((cells, growing, left_out)) => {
                self.tail.commit_flush();
                self.cells = Some(cells);
                (self.growing, self.moved) = (growing, Instant::now());
                if left_out > 0 {
                    metrics::counter!("signalbox_history_samples_left_out_total").increment(left_out);
                    tracing::warn!(left_out, "samples were dropped: they had expired, or their hour had too many");
                }
                Ok(())
            }
            Err(error) => {
                self.tail.abort_flush();
                Err(error)
            }
        }
    }

    async fn look_up_cells(&self) -> Result<Cells, StoreError> {
        let infos = self.store.unsealed(i64::MAX, &[], &Share::All, u64::from(u32::MAX)).await?;
        Ok(infos.into_iter().map(|info| ((info.hour, info.server_id), info.cells)).collect())
    }
}

/// Returns the samples of a row of the journal. Damaged ones are logged and left out.
fn journaled(row: &JournalRow) -> Result<Vec<FreshSample>, ReplayError> {
    let encoded = match journal::read(&row.data) {
        Ok(encoded) => encoded,
        Err(error @ CodecError::Version(_)) => return Err(ReplayError::Journal(error)),
        Err(error) => {
            damaged(row.id, &error);
            return Ok(Vec::new());
        }
    };
    let mut samples = Vec::with_capacity(encoded.len());
    for (server_id, encoded) in encoded {
        match encoded.decode(None) {
            Ok(stored) => {
                let (at, data) = (stored.row.at, encoded.whole().into_owned());
                samples.push(FreshSample { server_id, session_id: Uuid::nil(), at, data });
            }
            Err(error @ CodecError::Version(_)) => return Err(ReplayError::Journal(error)),
            Err(error) => damaged(row.id, &error),
        }
    }
    Ok(samples)
}

fn damaged(row: i64, error: &CodecError) {
    metrics::counter!("signalbox_history_damaged_total").increment(1);
    tracing::error!(%error, row, "a row of the journal cannot be read: its samples are lost");
}

/// Returns samples of the first version's history as a row of the journal.
fn adopt(samples: Vec<(Uuid, Vec<u8>)>) -> Vec<u8> {
    let mut row = journal::Writer::default();
    samples.iter().for_each(|(server_id, encoded)| row.add(*server_id, encoded));
    row.finish().unwrap_or_default()
}
