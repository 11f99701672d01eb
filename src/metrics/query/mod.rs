//! Reading the history: any range of a server, as fine as is wanted, whatever it lies in.

mod fineness;
mod load;
mod plan;
pub mod reader;
pub mod wanted;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use signalbox_protocol::sample::TopProcesses;
use signalbox_protocol::{Sample, Timestamp};
use tokio::sync::Semaphore;
use uuid::Uuid;

use self::fineness::TIERS;
use self::load::Loader;
use self::plan::{Inventory, Source, Step};
pub use self::reader::Reader;
use self::wanted::{Wanted, name_of, unit};
use super::archive::{Horizons, block_key, hour_of};
use super::block::{BlockError, Head};
use super::codec::CodecError;
use super::frame::{Column, Grain};
use super::processes;
use super::recent::{Recent, RecentError};
use super::tail::{Fresh, Tail};
use crate::config::Retention;
use crate::fleet::{Fleet, Snapshot};
use crate::store::history::{BlockKey, Hours, Span, Tier};
use crate::store::{Store, StoreError};

/// Questions that unpack blocks at a time; the others wait for their turn.
const READERS: usize = 16;

/// How often a question is begun anew, because what it was to read went into longer blocks meanwhile.
const PLANS: usize = 8;

/// How long before the asked time lists of top processes are looked for.
const PROCESSES_WITHIN_MS: i64 = 3_600_000;

/// The history of every server, behind cheap clones.
#[derive(Clone)]
pub struct History {
    store: Store,
    fleet: Fleet,
    recent: Recent,
    retention: Retention,
    places: Arc<Semaphore>,
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

impl From<RecentError> for HistoryError {
    fn from(error: RecentError) -> Self {
        match error {
            RecentError::Store(error) => Self::Store(error),
            RecentError::Interrupted => Self::Interrupted,
        }
    }
}

/// A series that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesName {
    pub name: String,
    pub unit: &'static str,
}

impl History {
    pub fn new(store: Store, fleet: Fleet, tail: Tail, retention: Retention) -> Self {
        let recent = Recent::new(store.clone(), tail);
        Self { store, fleet, recent, retention, places: Arc::new(Semaphore::new(READERS)) }
    }

    /// The newest sample of a server; none when it never sent one that is still kept.
    pub async fn latest(&self, server_id: Uuid) -> Result<Option<Arc<Snapshot>>, HistoryError> {
        if let Some(latest) = self.fleet.latest(server_id) {
            return Ok(Some(latest));
        }
        let fresh = self.recent.newest(&[server_id]).await?.remove(&server_id);
        self.latest_beside(server_id, fresh).await
    }

    /// The newest sample of each of these servers that ever sent one that is still kept.
    pub async fn latest_of(&self, servers: &[Uuid]) -> Result<HashMap<Uuid, Arc<Snapshot>>, HistoryError> {
        let mut latest: HashMap<Uuid, Arc<Snapshot>> =
            servers.iter().filter_map(|id| Some((*id, self.fleet.latest(*id)?))).collect();
        let missing: Vec<Uuid> = servers.iter().filter(|id| !latest.contains_key(id)).copied().collect();
        if missing.is_empty() {
            return Ok(latest);
        }
        let mut fresh = self.recent.newest(&missing).await?;
        for server_id in missing {
            match self.latest_beside(server_id, fresh.remove(&server_id)).await {
                Ok(found) => latest.extend(found.map(|snapshot| (server_id, snapshot))),
                Err(HistoryError::Store(error)) => return Err(error.into()),
                // One server's broken sample must not hide all others.
                Err(error) => tracing::error!(server.id = %server_id, %error, "the latest sample is unreadable"),
            }
        }
        Ok(latest)
    }

    /// The newest sample of a server whose newest that is not sealed is this.
    async fn latest_beside(
        &self,
        server_id: Uuid,
        fresh: Option<Fresh>,
    ) -> Result<Option<Arc<Snapshot>>, HistoryError> {
        let fresh = fresh.map(|fresh| fresh.row.sample(Grain::Raw));
        let open = hour_of(Timestamp::now().as_millis());
        // What came last need not be the newest; but nothing of an hour that goes on is sealed.
        let kept = match &fresh {
            Some(sample) if self.store.has_sample_table() && hour_of(sample.timestamp.as_millis()) >= open => None,
            _ => self.newest_kept(server_id).await?,
        };
        let newest = fresh.into_iter().chain(kept).max_by_key(|sample| sample.timestamp);
        let Some(sample) = newest else { return Ok(None) };
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
        let mut inventory = self.inventory(server_id, range).await?;
        let fineness = self.fineness(server_id, &inventory, range, resolution).await?;
        let range = fineness.whole_buckets(range);
        if fineness.tier != Tier::Raw {
            inventory = self.inventory(server_id, range).await?;
        }
        Reader::open(self.clone(), self.loader(server_id, wanted), inventory, range, fineness).await
    }

    fn loader(&self, server_id: Uuid, wanted: Wanted) -> Loader {
        let places = self.places.clone();
        Loader { store: self.store.clone(), recent: self.recent.clone(), server_id, wanted, places }
    }

    fn horizons(&self) -> Horizons {
        Horizons::new(&self.retention, Timestamp::now())
    }

    /// What there is in a range. What is youngest is asked first: it may move on, but only to where is looked later.
    async fn inventory(&self, server_id: Uuid, range: TimeRange) -> Result<Inventory, StoreError> {
        let (start, end) = (range.start.as_millis(), range.end.as_millis());
        let hours = Hours { server_id, from: hour_of(start), until: hour_of(end) + 1 };
        let mut open_hours = self.recent.hours(hours).await?;
        open_hours.extend(self.store.piece_infos(hours).await?.into_iter().map(|info| info.hour));
        let tiers = [Tier::Raw, Tier::Minute, Tier::Quarter, Tier::Hour];
        Ok(Inventory { blocks: self.store.block_infos(hours, &tiers).await?, open_hours })
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
        for fresh in self.recent.samples(server_id, (from, at)).await? {
            lists.extend(fresh.processes.map(|top| (fresh.row.at, top.as_ref().clone())));
        }
        let hours = Hours { server_id, from: hour_of(from), until: hour_of(at) + 1 };
        let mut packed: Vec<Vec<u8>> =
            self.store.pieces(hours).await?.into_iter().filter_map(|piece| piece.processes).collect();
        for span in [Span::Hour, Span::Day] {
            let starts = (block_key(Tier::Processes, span, hours.from).start, hours.until - 1);
            for mut block in self.store.blocks(server_id, (Tier::Processes, span), starts, None).await? {
                packed.extend(block.parts.remove(&0));
            }
        }
        let unpack = move || {
            let lists = |bytes: &Vec<u8>| {
                let damaged = |error| tracing::error!(%error, server.id = %server_id, "a list of processes is damaged");
                processes::read(bytes).map_err(damaged).unwrap_or_default()
            };
            packed.iter().flat_map(lists).collect::<Vec<_>>()
        };
        lists.extend(tokio::task::spawn_blocking(unpack).await.map_err(|_| HistoryError::Interrupted)?);
        let newest = lists.into_iter().filter(|(taken, _)| (from..=at).contains(taken)).max_by_key(|(taken, _)| *taken);
        Ok(newest.map(|(taken, top)| (Timestamp::from_millis(taken), top)))
    }
}
