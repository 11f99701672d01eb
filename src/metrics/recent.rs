//! Samples that are not sealed: with an embedded database they are in memory ([`Tail`]), otherwise in a table that every
//! instance reads.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use signalbox_history::codec::{self, CodecError, Stored};
use signalbox_history::shape::Shape;
use uuid::Uuid;

use super::archive::{MAX_CELLS, hour_of, start_ms};
use super::tail::{Fresh, Tail};
use crate::store::history::{FreshSample, Hours};
use crate::store::{Store, StoreError};

/// Samples that are read from the table at once: about 100 KB for an ordinary server, at most 64 MB.
const PAGE: usize = 256;

/// The same if only their shapes are needed: at most 8 MB.
const PAGE_OF_SHAPES: usize = 32;

/// From this many bytes on, samples are unpacked on a blocking thread.
const COSTLY: usize = 128 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum RecentError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the work was interrupted")]
    Interrupted,
}

/// The unsealed samples of every server; cheap to clone.
#[derive(Clone)]
pub struct Recent {
    store: Store,
    tail: Tail,
}

impl Recent {
    pub fn new(store: Store, tail: Tail) -> Self {
        Self { store, tail }
    }

    /// Returns the samples of a server taken in `from..=to` (milliseconds since the epoch).
    pub async fn samples(&self, server_id: Uuid, (from, to): (i64, i64)) -> Result<Vec<Fresh>, RecentError> {
        if self.store.has_sample_table() {
            return Ok(take(&self.store, server_id, (from, to)).await?.fresh);
        }
        Ok(self.tail.samples(server_id, from, to))
    }

    /// Returns the shapes of a server's samples taken in `from..=to` (milliseconds since the epoch), page by page.
    pub fn shapes(&self, server_id: Uuid, (from, to): (i64, i64)) -> ShapePages<'_> {
        ShapePages { recent: self, server_id, next: Some(from), to }
    }

    /// Returns how many samples of a server were taken in `from..=to` (milliseconds since the epoch).
    pub async fn count(&self, server_id: Uuid, (from, to): (i64, i64)) -> Result<u64, StoreError> {
        if self.store.has_sample_table() {
            return self.store.count_samples(server_id, (from, to)).await;
        }
        Ok(self.tail.samples(server_id, from, to).len() as u64)
    }

    /// Returns which of these hours have samples.
    pub async fn hours(&self, hours: Hours) -> Result<BTreeSet<i64>, StoreError> {
        if self.store.has_sample_table() {
            return Ok(self.store.sample_hours(hours).await?.into_iter().collect());
        }
        let samples = self.tail.samples(hours.server_id, start_ms(hours.from), start_ms(hours.until) - 1);
        Ok(samples.iter().map(|fresh| hour_of(fresh.row.at)).collect())
    }

    /// Returns the newest sample up to `until` (milliseconds since the epoch) of each of these servers that has one.
    pub async fn newest(&self, servers: &[Uuid], until: i64) -> Result<HashMap<Uuid, Fresh>, StoreError> {
        if !self.store.has_sample_table() {
            return Ok(servers.iter().filter_map(|id| Some((*id, self.tail.newest(*id, until)?))).collect());
        }
        let mut newest = HashMap::new();
        for sample in self.store.newest_samples(servers, until).await? {
            match unpack(&sample, None) {
                Ok(fresh) => _ = newest.insert(sample.server_id, fresh),
                Err(error) => damaged(&sample, &error),
            }
        }
        Ok(newest)
    }
}

/// Reads shapes page by page.
pub struct ShapePages<'a> {
    recent: &'a Recent,
    server_id: Uuid,
    /// The earliest time of the next sample; `None` at the end.
    next: Option<i64>,
    to: i64,
}

impl ShapePages<'_> {
    /// Returns the next shapes; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<Shape>>>, RecentError> {
        let Some(from) = self.next.take().filter(|from| *from <= self.to) else { return Ok(None) };
        let store = &self.recent.store;
        if !store.has_sample_table() {
            return Ok(Some(self.recent.tail.shapes(self.server_id, from, self.to)));
        }
        let page = store.samples(self.server_id, (from, self.to), PAGE_OF_SHAPES as u64).await?;
        if page.len() == PAGE_OF_SHAPES {
            self.next = page.last().and_then(|last| last.at.checked_add(1));
        }
        let unpack = move || {
            let mut shapes: Vec<Arc<Shape>> = Vec::new();
            for sample in &page {
                match unpack(sample, shapes.last()) {
                    Ok(fresh) => shapes.push(fresh.row.shape),
                    Err(error) => damaged(sample, &error),
                }
            }
            shapes.dedup_by(|one, other| Arc::ptr_eq(one, other));
            shapes
        };
        tokio::task::spawn_blocking(unpack).await.map(Some).map_err(|_| RecentError::Interrupted)
    }
}

/// Samples of a server from the table, oldest first.
#[derive(Default)]
pub struct SampleBatch {
    pub fresh: Vec<Fresh>,
    /// The time of each sample that was read, including damaged ones, in milliseconds since the epoch.
    pub at: Vec<i64>,
    /// How many integers they unpack to.
    pub cells: i64,
    /// The last accepted sample of the last hour that has too many.
    pub left_out_after: Option<i64>,
    /// The error if a newer version wrote one of them.
    pub unknown: Option<CodecError>,
    /// The integers of the present hour so far.
    in_the_hour: i64,
}

impl SampleBatch {
    /// Adds the samples that follow. Returns the time up to which the table was read; for an hour with too many samples this is
    /// its end.
    fn add(&mut self, page: Vec<FreshSample>) -> Option<i64> {
        let mut came = None;
        for sample in page {
            if came.is_some_and(|came| sample.at <= came) {
                continue;
            }
            let before = self.at.last().copied();
            if before.is_none_or(|before| hour_of(before) != sample.hour()) {
                self.in_the_hour = 0;
            }
            match unpack(&sample, self.fresh.last().map(|last| &last.row.shape)) {
                Ok(fresh) => {
                    let cells = fresh.cells(self.fresh.last().map(|last| &last.row.shape));
                    if self.in_the_hour + cells > MAX_CELLS {
                        self.left_out_after = before;
                        came = Some(start_ms(sample.hour() + 1) - 1);
                        continue;
                    }
                    self.in_the_hour += cells;
                    self.cells += cells;
                    self.fresh.push(fresh);
                }
                Err(error @ CodecError::Version(_)) => self.unknown = Some(error),
                Err(error) => damaged(&sample, &error),
            }
            self.at.push(sample.at);
            came = Some(sample.at);
        }
        came
    }
}

/// Reads the samples of a server taken in `from..=to` (milliseconds since the epoch) from the table, of each hour at most
/// [`MAX_CELLS`] integers.
pub async fn take(store: &Store, server_id: Uuid, (from, to): (i64, i64)) -> Result<SampleBatch, RecentError> {
    let (mut taken, mut next) = (SampleBatch::default(), from);
    loop {
        let page = store.samples(server_id, (next, to), PAGE as u64).await?;
        let is_last = page.len() < PAGE;
        let bytes: usize = page.iter().map(|sample| sample.data.len()).sum();
        let came = if bytes < COSTLY {
            taken.add(page)
        } else {
            let added = tokio::task::spawn_blocking(move || {
                let came = taken.add(page);
                (taken, came)
            });
            let (all, came) = added.await.map_err(|_| RecentError::Interrupted)?;
            taken = all;
            came
        };
        match came.and_then(|came| came.checked_add(1)) {
            Some(after) if !is_last && after <= to => next = after,
            _ => return Ok(taken),
        }
    }
}

/// Decodes a sample. It shares its shape with the one before if they are equal.
fn unpack(sample: &FreshSample, before: Option<&Arc<Shape>>) -> Result<Fresh, CodecError> {
    let Stored { row, processes, .. } = codec::decode(&sample.data, before)?;
    Ok(Fresh { row, processes: processes.map(Arc::new) })
}

fn damaged(sample: &FreshSample, error: &CodecError) {
    metrics::counter!("signalbox_history_damaged_total").increment(1);
    tracing::error!(%error, server.id = %sample.server_id, sample.at, "a sample cannot be read");
}
