//! Reading the history: any range of a server, as fine as is wanted, whatever it lies in.

mod load;
mod plan;
pub mod reader;
pub mod wanted;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use signalbox_protocol::sample::TopProcesses;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use self::load::Loader;
use self::plan::{Inventory, Source, Step};
pub use self::reader::Reader;
use self::wanted::{Wanted, name_of, unit};
use super::archive::{HOUR_MS, Horizons, block_key, hour_of, piece_lists, start_ms};
use super::block::{BlockError, Head};
use super::codec::CodecError;
use super::frame::{Column, Grain};
use super::processes;
use super::tail::Tail;
use crate::config::Retention;
use crate::fleet::{Fleet, Snapshot};
use crate::store::history::{BlockInfo, BlockKey, Hours, Span, Tier};
use crate::store::{Store, StoreError};

/// How often a question is begun anew, because what it was to read went into longer blocks meanwhile.
const PLANS: usize = 8;

/// Widths of buckets, in seconds, from which the finest that fits is taken.
const WIDTHS: [i64; 16] = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400];

/// Tiers, finest first, and how many seconds one row of each stands for.
const TIERS: [(Tier, i64); 3] = [(Tier::Minute, 60), (Tier::Quarter, 900), (Tier::Hour, 3_600)];

/// How long before the asked time lists of top processes are looked for.
const PROCESSES_WITHIN_MS: i64 = 3_600_000;

/// The history of every server, behind cheap clones.
#[derive(Clone)]
pub struct History {
    store: Store,
    fleet: Fleet,
    tail: Tail,
    retention: Retention,
}

/// How fine an answer should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// As fine as at most this many points allow.
    Auto { max_points: u64 },
    /// Every sample.
    Raw,
    /// The mean of each span of so many seconds.
    Seconds(i64),
}

/// From `start` to `end`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub start: Timestamp,
    pub end: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(transparent)]
    Block(#[from] BlockError),
    #[error("too many points and series for one answer: choose some by name, or a shorter range")]
    TooMuch,
    #[error("the history was put together anew again and again while it was read")]
    Restless,
    #[error("the work was interrupted")]
    Interrupted,
}

/// A series that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesName {
    pub name: String,
    pub unit: &'static str,
}

/// What an open range is made of.
struct Shape {
    tier: Tier,
    width_ms: Option<i64>,
}

impl History {
    pub fn new(store: Store, fleet: Fleet, tail: Tail, retention: Retention) -> Self {
        Self { store, fleet, tail, retention }
    }

    /// The newest sample of a server; none when it never sent one that is still kept.
    pub async fn latest(&self, server_id: Uuid) -> Result<Option<Arc<Snapshot>>, HistoryError> {
        if let Some(latest) = self.fleet.latest(server_id) {
            return Ok(Some(latest));
        }
        let sample = match self.tail.newest(server_id) {
            Some(fresh) => Some(fresh.row.sample(Grain::Raw)),
            None => self.newest_kept(server_id).await?,
        };
        let Some(sample) = sample else { return Ok(None) };
        let snapshot = Arc::new(Snapshot::new(server_id, sample));
        self.fleet.record(snapshot.clone());
        Ok(Some(snapshot))
    }

    /// The newest sample that lies in a piece or a block; where samples are not kept for so long, what stands for it.
    async fn newest_kept(&self, server_id: Uuid) -> Result<Option<Sample>, HistoryError> {
        let everything = Hours { server_id, from: i64::MIN / 4, until: i64::MAX / 4 };
        let pieces = self.store.piece_infos(everything).await?;
        let hour_of_pieces = pieces.iter().map(|info| info.hour).max();
        let block = self.store.newest_block(server_id, Tier::Raw).await?;
        let hour_of_block = block.map(|info| hour_of(info.last_at));
        let source = match hour_of_pieces.max(hour_of_block) {
            Some(hour) => Step { from: hour, until: hour + 1, source: Source::Samples },
            None => {
                let Some(newest) = self.newest_rolled(server_id).await? else { return Ok(None) };
                let (from, until) = (newest.start, newest.start + newest.span.hours());
                Step { from, until, source: Source::Block(newest) }
            }
        };
        let loader = self.loader(server_id, Wanted::everything());
        let frames = loader.load(&[source]).await?.unwrap_or_default();
        let last = frames.last().and_then(|frame| Some((frame.rows().pop()?, frame.grain)));
        Ok(last.map(|(row, grain)| row.sample(grain)))
    }

    async fn newest_rolled(&self, server_id: Uuid) -> Result<Option<BlockKey>, StoreError> {
        for (tier, _) in TIERS {
            if let Some(newest) = self.store.newest_block(server_id, tier).await? {
                return Ok(Some(newest.key));
            }
        }
        Ok(None)
    }

    /// Opens a range for reading, stretch by stretch.
    pub async fn open(
        &self,
        server_id: Uuid,
        range: TimeRange,
        resolution: Resolution,
        wanted: Wanted,
    ) -> Result<Reader, HistoryError> {
        let inventory = self.inventory(server_id, range).await?;
        let shape = self.shape(server_id, &inventory, range, resolution).await?;
        Reader::open(self.clone(), self.loader(server_id, wanted), inventory, range, shape.tier, shape.width_ms).await
    }

    fn loader(&self, server_id: Uuid, wanted: Wanted) -> Loader {
        Loader { store: self.store.clone(), tail: self.tail.clone(), server_id, wanted }
    }

    fn horizons(&self) -> Horizons {
        Horizons::new(&self.retention, Timestamp::now())
    }

    /// What there is in a range. What is youngest is asked first: it may move on, but only to where is looked later.
    async fn inventory(&self, server_id: Uuid, range: TimeRange) -> Result<Inventory, StoreError> {
        let (start, end) = (range.start.as_millis(), range.end.as_millis());
        let hours = Hours { server_id, from: hour_of(start), until: hour_of(end) + 1 };
        let mut open_hours: BTreeSet<i64> = BTreeSet::new();
        for fresh in self.tail.samples(server_id, start_ms(hours.from), start_ms(hours.until) - 1) {
            open_hours.insert(hour_of(fresh.row.at));
        }
        open_hours.extend(self.store.piece_infos(hours).await?.into_iter().map(|info| info.hour));
        let tiers = [Tier::Raw, Tier::Minute, Tier::Quarter, Tier::Hour];
        Ok(Inventory { blocks: self.store.block_infos(hours, &tiers).await?, open_hours })
    }

    /// Which tier answers, and how wide its buckets are.
    async fn shape(
        &self,
        server_id: Uuid,
        inventory: &Inventory,
        range: TimeRange,
        resolution: Resolution,
    ) -> Result<Shape, HistoryError> {
        match resolution {
            Resolution::Raw => Ok(Shape { tier: Tier::Raw, width_ms: None }),
            Resolution::Seconds(seconds) => {
                let tier =
                    TIERS.iter().rev().find(|(_, step)| seconds % step == 0).map_or(Tier::Raw, |(tier, _)| *tier);
                Ok(Shape { tier, width_ms: Some(seconds.saturating_mul(1000)) })
            }
            Resolution::Auto { max_points } => self.finest(server_id, inventory, range, max_points).await,
        }
    }

    /// As fine as `max_points` allow, and as what is kept allows: samples of years ago are not.
    async fn finest(
        &self,
        server_id: Uuid,
        inventory: &Inventory,
        range: TimeRange,
        max_points: u64,
    ) -> Result<Shape, HistoryError> {
        let Some((first, last)) = extent(inventory, range) else {
            return Ok(Shape { tier: Tier::Raw, width_ms: None });
        };
        let samples_are_kept = reaches_back(inventory, &[Tier::Raw], first);
        if samples_are_kept && self.is_at_most(server_id, inventory, range, max_points).await? {
            return Ok(Shape { tier: Tier::Raw, width_ms: None });
        }
        let fitting = width_for(first, last, max_points);
        // The coarsest that gives such buckets; and coarser still, where that is not kept for so long.
        let natural = TIERS.iter().rev().find(|(_, step)| fitting % step == 0).copied();
        let is_kept = |tier: &(Tier, i64)| reaches_back(inventory, &[tier.0, Tier::Minute], first);
        let tier = match natural {
            None if samples_are_kept => None,
            None => TIERS.into_iter().find(is_kept).or(TIERS.last().copied()),
            Some((_, step)) => {
                TIERS.into_iter().filter(|(_, own)| *own >= step).find(is_kept).or(TIERS.last().copied())
            }
        };
        let step = tier.map_or(1, |(_, step)| step);
        let seconds =
            if fitting % step == 0 { fitting } else { fitting.div_euclid(step).saturating_add(1).saturating_mul(step) };
        Ok(Shape { tier: tier.map_or(Tier::Raw, |(tier, _)| tier), width_ms: Some(seconds.saturating_mul(1000)) })
    }

    /// Whether a range has at most so many samples. Only the blocks at its ends are looked into.
    async fn is_at_most(
        &self,
        server_id: Uuid,
        inventory: &Inventory,
        range: TimeRange,
        max_points: u64,
    ) -> Result<bool, HistoryError> {
        let (start, end) = (range.start.as_millis(), range.end.as_millis());
        let raw = inventory
            .blocks
            .iter()
            .filter(|info| info.key.tier == Tier::Raw && info.last_at >= start && info.first_at <= end);
        let (inside, straddling): (Vec<_>, Vec<_>) =
            raw.partition(|info| info.first_at >= start && info.last_at <= end);
        let mut count: u64 = inside.iter().map(|info: &&BlockInfo| info.rows.unsigned_abs()).sum();
        if count > max_points {
            return Ok(false);
        }
        let times_only = self.loader(server_id, Wanted::named([]));
        let mut steps: Vec<Step> = straddling
            .iter()
            .map(|info| Step {
                from: info.key.start,
                until: info.key.start + info.key.span.hours(),
                source: Source::Block(info.key),
            })
            .collect();
        steps.sort_by_key(|step| step.from);
        for step in &steps {
            // One that went meanwhile went into a longer one: it is counted for too little then, which the next look
            // puts right.
            let frames = times_only.load(std::slice::from_ref(step)).await?.unwrap_or_default();
            count +=
                frames.iter().flat_map(|frame| &frame.times).filter(|at| (start..=end).contains(*at)).count() as u64;
        }
        if count > max_points {
            return Ok(false);
        }
        if let (Some(first), Some(last)) = (inventory.open_hours.first(), inventory.open_hours.last()) {
            let hours = Hours { server_id, from: *first, until: last + 1 };
            for piece in self.store.pieces(hours).await? {
                let frame = super::archive::piece_frame(&piece)?;
                count += frame.times.iter().filter(|at| (start..=end).contains(*at)).count() as u64;
            }
            count += self.tail.samples(server_id, start, end).len() as u64;
        }
        Ok(count <= max_points)
    }

    /// The series that a range has, by name.
    pub async fn names(&self, server_id: Uuid, range: TimeRange) -> Result<Vec<SeriesName>, HistoryError> {
        let columns = self.columns(server_id, range).await?;
        let names: BTreeMap<String, &'static str> =
            columns.iter().filter_map(|column| Some((name_of(column)?, unit(column.field)))).collect();
        Ok(names.into_iter().map(|(name, unit)| SeriesName { name, unit }).collect())
    }

    /// Every column that a range has, those that came first before those that came later. Only heads are read.
    pub async fn columns(&self, server_id: Uuid, range: TimeRange) -> Result<Vec<Column>, HistoryError> {
        let inventory = self.inventory(server_id, range).await?;
        let loader = self.loader(server_id, Wanted::named([]));
        let (mut columns, mut seen) = (Vec::new(), HashSet::new());
        let mut add = |found: &[Column]| {
            for column in found {
                if seen.insert(column.clone()) {
                    columns.push(column.clone());
                }
            }
        };
        for step in inventory.tier(Tier::Hour, self.horizons().raw) {
            match step.source {
                Source::Block(key) => {
                    let kind = (key.tier, key.span);
                    for block in self.store.blocks(server_id, kind, (key.start, key.start), Some(&[0])).await? {
                        match Head::read(block.parts.get(&0).map(Vec::as_slice).unwrap_or_default()) {
                            Ok(head) => add(&head.columns),
                            Err(error) => loader.wanted.damaged(server_id, key, &error),
                        }
                    }
                }
                Source::Samples => {
                    let frames = loader.load(std::slice::from_ref(&step)).await?.unwrap_or_default();
                    frames.iter().for_each(|frame| add(&frame.columns));
                }
            }
        }
        Ok(columns)
    }

    /// Who used the most at a time: the last list before it, at most an hour old.
    pub async fn processes(
        &self,
        server_id: Uuid,
        at: Timestamp,
    ) -> Result<Option<(Timestamp, TopProcesses)>, HistoryError> {
        let (from, at) = (at.as_millis().saturating_sub(PROCESSES_WITHIN_MS), at.as_millis());
        let mut lists: Vec<processes::At> = Vec::new();
        for fresh in self.tail.samples(server_id, from, at) {
            lists.extend(fresh.processes.map(|top| (fresh.row.at, top.as_ref().clone())));
        }
        let hours = Hours { server_id, from: hour_of(from), until: hour_of(at) + 1 };
        lists.extend(piece_lists(&self.store.pieces(hours).await?)?);
        for span in [Span::Hour, Span::Day] {
            let starts = (block_key(Tier::Processes, span, hours.from).start, hours.until - 1);
            for block in self.store.blocks(server_id, (Tier::Processes, span), starts, None).await? {
                lists.extend(processes::read(block.parts.get(&0).map(Vec::as_slice).unwrap_or_default())?);
            }
        }
        let newest = lists.into_iter().filter(|(taken, _)| (from..=at).contains(taken)).max_by_key(|(taken, _)| *taken);
        Ok(newest.map(|(taken, top)| (Timestamp::from_millis(taken), top)))
    }
}

/// When the first and last row of a range may lie; milliseconds since the epoch. None when it has none.
fn extent(inventory: &Inventory, range: TimeRange) -> Option<(i64, i64)> {
    let (start, end) = (range.start.as_millis(), range.end.as_millis());
    let blocks = inventory.blocks.iter().map(|info| (info.first_at, info.last_at));
    let open = inventory.open_hours.iter().map(|hour| (start_ms(*hour), start_ms(hour + 1) - 1));
    let within: Vec<(i64, i64)> = blocks.chain(open).filter(|(first, last)| *last >= start && *first <= end).collect();
    let first = within.iter().map(|(first, _)| *first).min()?;
    let last = within.iter().map(|(_, last)| *last).max()?;
    Some((first.max(start), last.min(end)))
}

/// Whether some tiers, or samples that are not sealed, begin as early as the first time of a range does: within the
/// hour, for that is what the coarsest tier tells it by.
fn reaches_back(inventory: &Inventory, tiers: &[Tier], first: i64) -> bool {
    let blocks = inventory.blocks.iter().filter(|info| tiers.contains(&info.key.tier)).map(|info| info.first_at);
    let open = inventory.open_hours.iter().map(|hour| start_ms(*hour));
    blocks.chain(open).any(|at| at < first.saturating_add(HOUR_MS))
}

/// The narrowest bucket width, in seconds, that puts `first..=last` (milliseconds) into at most `max_points` buckets.
fn width_for(first: i64, last: i64, max_points: u64) -> i64 {
    let fits = |width: &i64| {
        let (first, last) = (first.div_euclid(1000), last.div_euclid(1000));
        (last.div_euclid(*width) - first.div_euclid(*width) + 1).unsigned_abs() <= max_points
    };
    let wider = std::iter::successors(Some(86_400_i64 * 2), |width| width.checked_mul(2));
    // The last resort holds all of time in one bucket.
    WIDTHS.into_iter().chain(wider).find(fits).unwrap_or(i64::MAX / 1_000)
}
