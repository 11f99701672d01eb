//! The newest samples, in memory: everything that is in the journal and not yet in a piece.
//!
//! The journal makes them durable and is only read at startup; the tail answers queries for the last minutes. While it is
//! flushed into pieces, its samples stay readable until the pieces are written. A reader asks the tail first and the
//! database second, so it may find a sample twice but never misses one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use signalbox_history::frame::Row;
use signalbox_history::open::Open;
use signalbox_history::shape::Shape;
use signalbox_protocol::Sample;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};
use uuid::Uuid;

use super::shapes::Shapes;

/// The memory from which on the tail is flushed into pieces. At four times as much, samples are refused.
pub const MOVE_FROM_BYTES: usize = 32 * 1024 * 1024;

/// The same while memory is tight. Not always, because many small pieces cost more later.
const MOVE_FROM_BYTES_WHEN_TIGHT: usize = 4 * 1024 * 1024;

/// A sample in the tail.
#[derive(Debug, Clone)]
pub struct Fresh {
    pub row: Row,
    pub processes: Option<Arc<TopProcesses>>,
}

impl Fresh {
    /// Returns its memory after a sample with the shape `before`: its values, their containers, and its shape if that differs.
    fn bytes(&self, before: Option<&Arc<Shape>>) -> usize {
        const HOLDERS: usize = size_of::<Fresh>() + 32;
        HOLDERS + self.row.values.len() * size_of::<i64>() + self.beside(before)
    }

    /// Returns its size in integers.
    pub fn cells(&self, before: Option<&Arc<Shape>>) -> i64 {
        (self.row.values.len() + self.beside(before) / size_of::<i64>()) as i64
    }

    fn beside(&self, before: Option<&Arc<Shape>>) -> usize {
        let is_new = before.is_none_or(|before| !Arc::ptr_eq(before, &self.row.shape));
        let shape = if is_new { self.row.shape.bytes() } else { 0 };
        let of_process = |process: &ProcessUsage| size_of::<ProcessUsage>() + process.name.len() + process.user.len();
        let processes = self.processes.iter().flat_map(|top| top.by_cpu.iter().chain(&top.by_memory));
        shape + processes.map(of_process).sum::<usize>()
    }
}

/// Samples that are flushed together.
#[derive(Debug, Default)]
pub struct Generation {
    pub servers: HashMap<Uuid, Vec<Fresh>>,
    /// The last row of the journal that contains one of them.
    pub journal_id: i64,
    /// The time of its oldest sample.
    oldest: Option<i64>,
    bytes: usize,
}

/// The tail; cheap to clone.
#[derive(Clone, Default)]
pub struct Tail {
    generations: Arc<RwLock<Generations>>,
    bytes: Arc<AtomicUsize>,
    shapes: Arc<Shapes>,
    is_tight: Arc<AtomicBool>,
}

#[derive(Default)]
struct Generations {
    /// Receives new samples.
    young: Generation,
    /// Is being flushed.
    leaving: Option<Arc<Generation>>,
}

impl Tail {
    /// Adds samples that are durable in a row of the journal.
    pub fn append(&self, journal_id: i64, samples: impl IntoIterator<Item = (Uuid, Fresh)>) {
        let mut generations = self.write();
        let young = &mut generations.young;
        young.journal_id = young.journal_id.max(journal_id);
        let mut bytes = 0;
        for (server_id, fresh) in samples {
            let samples = young.servers.entry(server_id).or_default();
            // An agent sends samples again after a broken connection: the first one stays.
            if samples.last().is_some_and(|last| last.row.at == fresh.row.at) {
                continue;
            }
            young.oldest = Some(young.oldest.map_or(fresh.row.at, |oldest| oldest.min(fresh.row.at)));
            bytes += fresh.bytes(samples.last().map(|last| &last.row.shape));
            samples.push(fresh);
        }
        young.bytes += bytes;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns whether the tail should be flushed into pieces: it is larger than the limit, which is lower while memory is
    /// tight.
    pub fn is_large(&self) -> bool {
        let is_tight = self.is_tight.load(Ordering::Relaxed);
        self.bytes() >= if is_tight { MOVE_FROM_BYTES_WHEN_TIGHT } else { MOVE_FROM_BYTES }
    }

    /// Records whether memory is tight.
    pub fn tighten(&self, is_tight: bool) {
        self.is_tight.store(is_tight, Ordering::Relaxed);
        self.shapes.forget_dead();
    }

    /// Returns the memory of all samples.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the samples of a server taken in `from..=to` (milliseconds since the epoch), in the order of arrival.
    pub fn samples(&self, server_id: Uuid, from: i64, to: i64) -> Vec<Fresh> {
        let generations = self.read();
        let leaving = generations.leaving.as_deref().and_then(|leaving| leaving.servers.get(&server_id));
        let young = generations.young.servers.get(&server_id);
        let all = leaving.into_iter().chain(young).flatten();
        all.filter(|fresh| (from..=to).contains(&fresh.row.at)).cloned().collect()
    }

    /// Returns the shapes of a server's samples taken in `from..=to` (milliseconds since the epoch), once for consecutive
    /// samples that share one.
    pub fn shapes(&self, server_id: Uuid, from: i64, to: i64) -> Vec<Arc<Shape>> {
        let mut shapes: Vec<Arc<Shape>> =
            self.samples(server_id, from, to).into_iter().map(|fresh| fresh.row.shape).collect();
        shapes.dedup_by(|one, other| Arc::ptr_eq(one, other));
        shapes
    }

    /// Returns the newest sample of a server up to `until` (milliseconds since the epoch).
    pub fn newest(&self, server_id: Uuid, until: i64) -> Option<Fresh> {
        self.samples(server_id, i64::MIN, until).into_iter().max_by_key(|fresh| fresh.row.at)
    }

    /// Returns whether a sample was taken before `before` (milliseconds since the epoch).
    pub fn has_before(&self, before: i64) -> bool {
        self.read().young.oldest.is_some_and(|oldest| oldest < before)
    }

    /// Begins a flush. Returns the samples; `None` if there are none, or if the last flush has not ended.
    pub fn begin_flush(&self) -> Option<Arc<Generation>> {
        let mut generations = self.write();
        if generations.leaving.is_some() || generations.young.servers.is_empty() {
            return None;
        }
        let leaving = Arc::new(std::mem::take(&mut generations.young));
        generations.leaving = Some(leaving.clone());
        Some(leaving)
    }

    /// Completes the flush: the samples are in pieces.
    pub fn commit_flush(&self) {
        let mut generations = self.write();
        if let Some(gone) = generations.leaving.take() {
            self.bytes.fetch_sub(gone.bytes, Ordering::Relaxed);
            drop(gone);
            self.shapes.forget_dead();
        }
    }

    /// Aborts the flush: its samples are put back, before those that have arrived since.
    pub fn abort_flush(&self) {
        let mut generations = self.write();
        let Some(back) = generations.leaving.take() else { return };
        let since = std::mem::take(&mut generations.young);
        // A reader may still hold it for a moment.
        let mut young = Arc::try_unwrap(back).unwrap_or_else(|shared| Generation {
            servers: shared.servers.clone(),
            journal_id: shared.journal_id,
            oldest: shared.oldest,
            bytes: shared.bytes,
        });
        young.journal_id = young.journal_id.max(since.journal_id);
        young.bytes += since.bytes;
        young.oldest = young.oldest.into_iter().chain(since.oldest).min();
        for (server_id, samples) in since.servers {
            young.servers.entry(server_id).or_default().extend(samples);
        }
        generations.young = young;
    }

    /// Returns the shape of a sample: the server's previous one, if that still fits.
    pub fn shape(&self, server_id: Uuid, sample: &Sample, open: &Open) -> Arc<Shape> {
        self.shapes.of(server_id, sample, open)
    }

    /// Returns the shape of a server's last sample.
    pub fn last_shape(&self, server_id: Uuid) -> Option<Arc<Shape>> {
        self.shapes.last(server_id)
    }

    /// Records a shape that was read. Returns the shared one that equals it.
    pub fn share(&self, server_id: Uuid, shape: Arc<Shape>) -> Arc<Shape> {
        self.shapes.share(server_id, shape)
    }

    /// Removes the shape of a server whose session ended or that was deleted. Its samples leave with the next flush.
    pub fn forget(&self, server_id: Uuid) {
        self.shapes.forget(server_id);
    }

    fn read(&self) -> RwLockReadGuard<'_, Generations> {
        self.generations.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Generations> {
        self.generations.write()
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Timestamp;

    use super::*;

    const SERVER: Uuid = Uuid::from_u128(7);

    fn fresh(tail: &Tail, millis: i64) -> (Uuid, Fresh) {
        let sample = Sample { timestamp: Timestamp::from_millis(millis), ..Sample::default() };
        let shape = tail.shape(SERVER, &sample, &Open::default());
        (SERVER, Fresh { row: Row::of(&sample, shape), processes: None })
    }

    fn times(tail: &Tail) -> Vec<i64> {
        tail.samples(SERVER, 0, 1_000).into_iter().map(|fresh| fresh.row.at).collect()
    }

    #[test]
    fn samples_can_be_read_until_their_flush_is_complete() {
        let tail = Tail::default();
        tail.append(1, [fresh(&tail, 1)]);

        let leaving = tail.begin_flush().unwrap();
        tail.append(2, [fresh(&tail, 2)]);

        assert_eq!((leaving.journal_id, times(&tail)), (1, vec![1, 2]));
        assert!(tail.begin_flush().is_none(), "one move at a time");
        tail.commit_flush();
        assert_eq!(times(&tail), [2]);
    }

    #[test]
    fn samples_of_an_aborted_flush_come_first_again() {
        let tail = Tail::default();
        tail.append(1, [fresh(&tail, 1)]);
        let bytes = tail.bytes();
        let held = tail.begin_flush();
        tail.append(2, [fresh(&tail, 2)]);

        tail.abort_flush();

        assert_eq!((times(&tail), tail.bytes()), (vec![1, 2], 2 * bytes));
        drop(held);
        assert_eq!(tail.begin_flush().unwrap().journal_id, 2);
        tail.commit_flush();
        assert_eq!(tail.bytes(), 0);
    }

    #[test]
    fn a_shape_is_shared_until_it_changes() {
        let tail = Tail::default();
        let (one, two) = (Sample::default(), Sample { cpu_per_core: vec![1.0], ..Sample::default() });

        let first = tail.shape(SERVER, &one, &Open::default());

        assert!(Arc::ptr_eq(&first, &tail.shape(SERVER, &one, &Open::default())));
        assert!(Arc::ptr_eq(&first, &tail.shape(Uuid::nil(), &one, &Open::default())), "machines of one kind share it");
        assert!(!Arc::ptr_eq(&first, &tail.shape(SERVER, &two, &Open::default())));
    }
}
