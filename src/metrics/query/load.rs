//! Reads the blocks of a plan's steps from the store, and unpacks the requested columns.

use std::collections::BTreeMap;

use signalbox_history::block::Head;
use signalbox_history::frame::{Frame, Granularity, merged};
use uuid::Uuid;

use super::plan::{Source, Step};
use super::wanted::Selection;
use super::{HistoryError, PATIENCE};
use crate::metrics::archive::{piece_frame, start_ms};
use crate::metrics::names;
use crate::metrics::recent::Recent;
use crate::metrics::tail::Fresh;
use crate::shares::{Gate, Share};
use crate::store::Store;
use crate::store::history::{Block, BlockKey, Hours, Piece, Span, Tier};

/// Blocks that are read at once: about 5 MB for blocks of a day's minutes with all columns.
const AT_ONCE: usize = 32;

/// From this many columns on, blocks are unpacked on a blocking thread.
const COSTLY: usize = 64;

/// From this many columns on, two threads unpack half of the blocks each. Every series of a year has 500 columns of three vectors, and
/// to unpack the 744 hours of a vector takes 10 µs.
const VERY_COSTLY: usize = 256;

/// The same for samples that are turned into columns, in values.
const COSTLY_CELLS: usize = 20_000;

/// Loads sealed and unsealed rows.
#[derive(Clone)]
pub struct Loader {
    pub store: Store,
    pub recent: Recent,
    pub server_id: Uuid,
    pub wanted: Selection,
    pub reads: Gate,
    /// The account, or the service, for which it reads.
    pub share: Share,
}

/// A block and its head; `None` if the block is damaged.
type Opened = (Block, Option<Head>);

/// The frames of some steps, oldest first, each cut to the hours of its step.
pub type Loaded = Vec<Frame>;

/// Returns how many of the steps, from the first on, are loaded together.
pub fn together(steps: &[Step]) -> usize {
    let kind = |step: &Step| match step.source {
        Source::Samples => None,
        Source::Block(key) => Some((key.tier, key.span)),
    };
    let Some(first) = steps.first().map(kind) else { return 0 };
    match first {
        None => 1,
        // Several steps may be in the same block, which must not be read twice.
        Some(_) => steps.iter().take(AT_ONCE).take_while(|step| kind(step) == first).count(),
    }
}

impl Loader {
    /// Loads the frames of steps that [`together`] found. Returns `None` if a block no longer exists, because it was compacted
    /// in the meantime: the plan must be made again.
    pub async fn load(&self, steps: &[Step]) -> Result<Option<Loaded>, HistoryError> {
        // Bounds how much is unpacked at the same time, for all requests together.
        let _permit = self.reads.enter_within(self.share, PATIENCE).await?;
        match steps.first() {
            Some(Step { from, until, source: Source::Samples }) => self.samples(*from, *until).await.map(Some),
            Some(Step { source: Source::Block(key), .. }) => self.blocks(*key, steps).await,
            None => Ok(Some(Vec::new())),
        }
    }

    async fn blocks(&self, first: BlockKey, steps: &[Step]) -> Result<Option<Loaded>, HistoryError> {
        let starts = steps.iter().filter_map(|step| match step.source {
            Source::Block(key) => Some(key.start),
            Source::Samples => None,
        });
        let last = starts.clone().max().unwrap_or(first.start);
        let Some(blocks) = self.take((first.tier, first.span), (first.start, last)).await? else { return Ok(None) };
        let missing = starts.clone().any(|start| !blocks.iter().any(|(block, _)| block.info.key.start == start));
        if missing {
            return Ok(None);
        }
        let wanted: Vec<(i64, i64, i64)> = steps
            .iter()
            .filter_map(|step| match step.source {
                Source::Block(key) => Some((key.start, start_ms(step.from), start_ms(step.until))),
                Source::Samples => None,
            })
            .collect();
        let mut frames = self.unpack(blocks).await?;
        let mut loaded = Vec::with_capacity(wanted.len());
        let mut wanted = wanted.into_iter().peekable();
        while let Some((start, from, until)) = wanted.next() {
            // Steps are in order, so those of one block follow each other.
            let is_needed_again = wanted.peek().is_some_and(|(next, ..)| *next == start);
            loaded.extend(match is_needed_again {
                true => frames.get(&start).map(|frame| frame.between(from, until)),
                false => frames.remove(&start).map(|frame| frame.into_between(from, until)),
            });
        }
        Ok(Some(loaded))
    }

    /// Reads blocks with the parts that contain the requested columns. Returns `None` if a block changed during this.
    async fn take(&self, kind: (Tier, Span), starts: (i64, i64)) -> Result<Option<Vec<Opened>>, HistoryError> {
        if self.wanted.is_all() {
            let blocks = self.store.blocks(self.server_id, kind, starts, None).await?;
            return Ok(Some(self.heads(blocks)));
        }
        let blocks = self.store.blocks(self.server_id, kind, starts, Some(&[0])).await?;
        let mut blocks = self.heads(blocks);
        let mut parts: Vec<usize> = blocks.iter().flat_map(|(_, head)| self.parts(head)).collect();
        parts.sort_unstable();
        parts.dedup();
        if parts.is_empty() {
            return Ok(Some(blocks));
        }
        // The first part once more, to detect a block that was rewritten in between and has its columns elsewhere.
        parts.push(0);
        let others = self.store.blocks(self.server_id, kind, starts, Some(&parts)).await?;
        let mut others: BTreeMap<i64, Block> = others.into_iter().map(|block| (block.info.key.start, block)).collect();
        for (block, head) in &mut blocks {
            let Some(other) = others.remove(&block.info.key.start) else { return Ok(None) };
            if other.parts.get(&0) != block.parts.get(&0) {
                return Ok(None);
            }
            block.parts.extend(other.parts);
            if !self.parts(head).iter().all(|part| block.parts.contains_key(part)) {
                return Ok(None);
            }
        }
        Ok(Some(blocks))
    }

    /// Returns the parts, except the first, that contain the requested columns.
    fn parts(&self, head: &Option<Head>) -> Vec<usize> {
        head.as_ref().map(|head| head.parts(&|column| self.wanted.has(column))).unwrap_or_default()
    }

    /// Reads the heads of blocks. A damaged block is logged, and its hours stay empty.
    fn heads(&self, blocks: Vec<Block>) -> Vec<Opened> {
        let head = |block: Block| {
            let first = block.parts.get(&0).map(Vec::as_slice).unwrap_or_default();
            match Head::read(first) {
                Ok(head) => (block, Some(head)),
                Err(error) => {
                    self.wanted.damaged(self.server_id, block.info.key, &error);
                    (block, None)
                }
            }
        };
        blocks.into_iter().map(head).collect()
    }

    /// Returns the frames of blocks, by the starts of the blocks.
    async fn unpack(&self, blocks: Vec<Opened>) -> Result<BTreeMap<i64, Frame>, HistoryError> {
        let wanted = self.wanted.clone();
        let heads = blocks.iter().filter_map(|(_, head)| head.as_ref());
        let columns: usize = heads.map(|head| head.columns.iter().filter(|column| wanted.has(column)).count()).sum();
        let server_id = self.server_id;
        let unpack = move |blocks: Vec<Opened>| -> BTreeMap<i64, Frame> {
            let frame = |(block, head): Opened| {
                let head = head?;
                let part = |number: usize| block.parts.get(&number).map(Vec::as_slice);
                let key = block.info.key;
                match head.into_frame(part, &|column| wanted.has(column)) {
                    Ok(frame) => Some((key.start, frame)),
                    Err(error) => {
                        wanted.damaged(server_id, key, &error);
                        None
                    }
                }
            };
            blocks.into_iter().filter_map(frame).collect()
        };
        if columns < COSTLY {
            return Ok(unpack(blocks));
        }
        let mut blocks = blocks;
        let later = (columns >= VERY_COSTLY).then(|| {
            let (later, unpack) = (blocks.split_off(blocks.len().div_ceil(2)), unpack.clone());
            tokio::task::spawn_blocking(move || unpack(later))
        });
        let unpacked = tokio::task::spawn_blocking(move || unpack(blocks));
        let mut frames = unpacked.await.map_err(|_| HistoryError::Interrupted)?;
        if let Some(later) = later {
            frames.extend(later.await.map_err(|_| HistoryError::Interrupted)?);
        }
        Ok(frames)
    }

    /// Returns the last sample before an hour, for the first rate in it; `None` if no counter is requested, or there is none.
    pub async fn lead(&self, hour: i64) -> Result<Option<Frame>, HistoryError> {
        if !self.wanted.has_counters() {
            return Ok(None);
        }
        let before = [Step { from: hour - 1, until: hour, source: Source::Samples }];
        let frames = self.load(&before).await?.unwrap_or_default();
        Ok(frames.into_iter().last().and_then(|frame| {
            let last = *frame.times.last()?;
            Some(Frame { is_lead: true, ..frame.between(last, last + 1) })
        }))
    }

    /// Returns the samples of some hours from all places, each once.
    async fn samples(&self, from: i64, until: i64) -> Result<Loaded, HistoryError> {
        let mut frames = self.all_samples(from, until).await?;
        // In most cases the frames do not overlap. Then they do not have to be merged, and the requested columns suffice.
        let mut bounds: Vec<(i64, i64)> =
            frames.iter().filter_map(|frame| Some((*frame.times.first()?, *frame.times.last()?))).collect();
        bounds.sort_unstable();
        if bounds.iter().zip(bounds.iter().skip(1)).all(|((_, last), (first, _))| last < first) {
            frames.sort_by_key(|frame| frame.times.first().copied());
            return Ok(frames);
        }
        if !self.wanted.is_all() {
            let all = Self { wanted: self.wanted.all(), ..self.clone() };
            frames = all.all_samples(from, until).await?;
        }
        let merge = move || {
            // If two have the same time, the one that was stored first counts.
            let rows = merged(frames.iter().flat_map(Frame::rows).collect());
            vec![Frame::from_rows(Granularity::Raw, &rows)]
        };
        tokio::task::spawn_blocking(merge).await.map_err(|_| HistoryError::Interrupted)
    }

    async fn all_samples(&self, from: i64, until: i64) -> Result<Loaded, HistoryError> {
        // Fresh samples first: those that are flushed during this are found in a later read.
        let fresh = self.recent.samples(self.server_id, (start_ms(from), start_ms(until) - 1)).await?;
        let hours = Hours { server_id: self.server_id, from, until };
        let pieces = self.store.pieces(hours).await?;
        let day = Span::Day.start_of(from);
        // Each place is read before the one to which its samples move, so that a sample may be found twice but is never
        // missed. The present hour is usually in no block, but no clock can prove that: a clock that was ahead may have
        // sealed hours and days before they were over.
        let sealed = self.store.block_infos(hours, &[Tier::Raw]).await?;
        let (mut hour_blocks, mut day_blocks) = (Vec::new(), Vec::new());
        if sealed.iter().any(|info| info.key.span == Span::Hour) {
            hour_blocks = self.take_sound((Tier::Raw, Span::Hour), (from, until - 1)).await?;
        }
        if !sealed.is_empty() {
            day_blocks = self.take_sound((Tier::Raw, Span::Day), (day, day)).await?;
        }
        let hour_frames = self.unpack(hour_blocks).await?;
        let day_frames = self.unpack(day_blocks).await?;
        let mut frames: Vec<Frame> = day_frames
            .into_values()
            .map(|frame| frame.between(start_ms(from), start_ms(until)))
            .chain(hour_frames.into_values())
            .filter(|frame| !frame.times.is_empty())
            .collect();
        frames.extend(self.piece_frames(pieces).await?);
        if !fresh.is_empty() {
            frames.push(fresh_frame(fresh).await?);
        }
        Ok(frames)
    }

    /// Returns the frames of an hour's pieces.
    pub async fn pieces(&self, hour: i64) -> Result<Vec<Frame>, HistoryError> {
        let hours = Hours { server_id: self.server_id, from: hour, until: hour + 1 };
        self.piece_frames(self.store.pieces(hours).await?).await
    }

    async fn piece_frames(&self, pieces: Vec<Piece>) -> Result<Vec<Frame>, HistoryError> {
        if pieces.is_empty() {
            return Ok(Vec::new());
        }
        let (server_id, wanted) = (self.server_id, self.wanted.clone());
        let unpack = move || {
            let frame = |piece: Piece| {
                let damaged = |error| {
                    let key = BlockKey { tier: Tier::Raw, span: Span::Hour, start: piece.hour };
                    wanted.damaged(server_id, key, &error);
                };
                piece_frame(&piece).map_err(damaged).ok()
            };
            pieces.into_iter().filter_map(frame).collect()
        };
        tokio::task::spawn_blocking(unpack).await.map_err(|_| HistoryError::Interrupted)
    }

    /// Like [`Self::take`], but retries if a block changed.
    async fn take_sound(&self, kind: (Tier, Span), starts: (i64, i64)) -> Result<Vec<Opened>, HistoryError> {
        for _ in 0..super::PLANS {
            if let Some(blocks) = self.take(kind, starts).await? {
                return Ok(blocks);
            }
        }
        Err(HistoryError::Restless)
    }
}

/// Returns the frame of unsealed samples, with the same limit of names as a block.
async fn fresh_frame(fresh: Vec<Fresh>) -> Result<Frame, HistoryError> {
    let cells: usize = fresh.iter().map(|fresh| fresh.row.values.len()).sum();
    let make = move || {
        let mut rows = merged(fresh.into_iter().map(|fresh| fresh.row).collect());
        names::limit(&mut rows);
        Frame::from_rows(Granularity::Raw, &rows)
    };
    if cells < COSTLY_CELLS {
        return Ok(make());
    }
    tokio::task::spawn_blocking(make).await.map_err(|_| HistoryError::Interrupted)
}
