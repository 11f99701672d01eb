//! Reads the history: any range of a server, at any resolution, from all places in which it is stored.

pub mod catalog;
mod listing;
mod load;
mod plan;
pub mod reader;
mod resolution;
pub mod wanted;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use signalbox_history::block::BlockError;
use signalbox_history::codec::CodecError;
use signalbox_history::frame::Granularity;
use signalbox_history::open::Measured;
use signalbox_history::processes;
use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::TopProcesses;
use uuid::Uuid;

use self::load::Loader;
use self::plan::{Inventory, STORED, Source, Step, sources_of};
pub use self::reader::Reader;
pub use self::resolution::width_for;
use self::resolution::{TIERS, TierWidth, most_points};
use self::wanted::Selection;
use super::archive::{RetentionCutoffs, RetentionPolicy, block_key, hour_of};
use super::recent::{Recent, RecentError};
use super::tail::{Fresh, Tail};
use crate::clock::Clock;
use crate::fleet::{Fleet, OF_NOW_MS, Snapshot};
use crate::memory::Memory;
use crate::shares::{Full, Permit, Share, Shares};
use crate::store::history::{BlockKey, Hours, Span, Tier};
use crate::store::{Store, StoreError};

/// How long a query waits for its turn: as long as a page waits for its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most points of an answer that takes one of the many places for small ones. The usual charts of a server's page have at most 199
/// series of 900 points.
const SMALL: u64 = 200_000;

/// How often a query is planned, if blocks that it has to read are compacted in the meantime.
const PLANS: usize = 8;

/// No hour is sealed earlier than this after its end. Without this every server would be looked up in the history when an
/// hour begins.
const UNSEALED_MS: i64 = 30_000;

/// How long before the requested time to look for lists of top processes.
const PROCESSES_WITHIN_MS: i64 = 3_600_000;

/// The history of every server; cheap to clone.
#[derive(Clone)]
pub struct History {
    store: Store,
    fleet: Fleet,
    recent: Recent,
    clock: Clock,
    policy: RetentionPolicy,
    shares: Shares,
    /// The account for which it reads; `None` for the service itself.
    account: Option<Uuid>,
    purpose: Purpose,
    memory: Memory,
}

/// What becomes of what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It is an answer.
    Answer,
    /// It becomes part of a larger answer at once.
    Passing,
    /// It becomes part of a list at once, which has a place.
    List,
}

/// The requested resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// The finest with at most this many points.
    Auto { max_points: u64 },
    /// Every sample.
    Raw,
    /// The mean of each span of this many seconds.
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
    #[error("too many points and series for one answer: select series by name, or a shorter range")]
    TooMuch,
    #[error("the history kept being compacted during the read, try again")]
    Restless,
    #[error("too many requests are waiting")]
    Busy,
    #[error("the work was interrupted")]
    Interrupted,
}

impl From<Full> for HistoryError {
    fn from(_: Full) -> Self {
        Self::Busy
    }
}

impl From<RecentError> for HistoryError {
    fn from(error: RecentError) -> Self {
        match error {
            RecentError::Store(error) => Self::Store(error),
            RecentError::Interrupted => Self::Interrupted,
        }
    }
}

impl History {
    pub fn new(store: Store, fleet: Fleet, tail: Tail, clock: Clock, policy: RetentionPolicy, shares: Shares) -> Self {
        let recent = Recent::new(store.clone(), tail);
        let (account, memory) = (None, Memory::unlimited());
        Self { store, fleet, recent, clock, policy, shares, account, purpose: Purpose::Answer, memory }
    }

    /// The same history, but queries for accounts wait while too much memory is in use.
    pub fn within(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// Waits until there is memory for the query of an account. Queries of the service itself do not wait, because alerts
    /// depend on them.
    async fn until_there_is_room(&self) -> Result<(), HistoryError> {
        match self.account {
            Some(_) => self.memory.room().await.map_err(|_| HistoryError::Busy),
            None => Ok(()),
        }
    }

    /// The same history, read for an account. Queries of one account share its part of the capacity.
    pub fn read_by(&self, account: Option<Uuid>) -> Self {
        Self { account, ..self.clone() }
    }

    /// The same history, for answers about many servers, which keep little of what they read of each. They do not wait for exports, which
    /// slow clients may keep for hours.
    pub fn in_passing(self) -> Self {
        Self { purpose: Purpose::Passing, ..self }
    }

    /// The same history, for a list of what is read of many servers, with the place of that list. `points` is how many it has at most;
    /// `None` if only the data shows that.
    pub async fn for_list(self, points: Option<u64>) -> Result<(Self, Option<Permit>), HistoryError> {
        self.until_there_is_room().await?;
        let place = self.place(points).await?;
        Ok((Self { purpose: Purpose::List, ..self }, place))
    }

    /// Returns the newest stored sample of a server, if it has one.
    pub async fn latest(&self, server_id: Uuid) -> Result<Option<Arc<Snapshot>>, HistoryError> {
        if let Some(latest) = self.fleet.latest(server_id) {
            return Ok(Some(latest));
        }
        let fresh = self.recent.newest(&[server_id], i64::MAX).await?.remove(&server_id);
        self.latest_beside(server_id, fresh).await
    }

    /// Returns the newest stored sample of each of these servers that has one.
    pub async fn latest_of(&self, servers: &[Uuid]) -> Result<HashMap<Uuid, Arc<Snapshot>>, HistoryError> {
        let mut latest: HashMap<Uuid, Arc<Snapshot>> =
            servers.iter().filter_map(|id| Some((*id, self.fleet.latest(*id)?))).collect();
        let missing: Vec<Uuid> = servers.iter().filter(|id| !latest.contains_key(id)).copied().collect();
        if missing.is_empty() {
            return Ok(latest);
        }
        let mut fresh = self.recent.newest(&missing, i64::MAX).await?;
        for server_id in missing {
            match self.latest_beside(server_id, fresh.remove(&server_id)).await {
                Ok(found) => latest.extend(found.map(|snapshot| (server_id, snapshot))),
                Err(HistoryError::Store(error)) => return Err(error.into()),
                // A damaged sample of one server must not hide all others.
                Err(error) => tracing::error!(server.id = %server_id, %error, "the latest sample cannot be read"),
            }
        }
        Ok(latest)
    }

    /// Returns the newest sample of a server. `fresh` is its newest unsealed one.
    async fn latest_beside(
        &self,
        server_id: Uuid,
        fresh: Option<Fresh>,
    ) -> Result<Option<Arc<Snapshot>>, HistoryError> {
        let fresh = fresh.map(|fresh| fresh.row.measured(Granularity::Raw));
        let unsealed = hour_of(self.clock.now().as_millis() - UNSEALED_MS);
        // The newest unsealed sample is not always the newest of all, but no sample of the present hour is sealed.
        let kept = match &fresh {
            Some(Measured { sample, .. })
                if self.store.has_sample_table() && hour_of(sample.timestamp.as_millis()) >= unsealed =>
            {
                None
            }
            _ => self.newest_kept(server_id, i64::MAX).await?,
        };
        let newest = fresh.into_iter().chain(kept).max_by_key(|newest| newest.sample.timestamp);
        let Some(newest) = newest else { return Ok(None) };
        let (measured, now) = self.of_no_future(server_id, newest).await?;
        let snapshot = Arc::new(Snapshot::of(server_id, measured));
        self.fleet.record(snapshot.clone(), now);
        Ok(Some(snapshot))
    }

    /// Returns `newest`, or if that is in the future, because the machine's clock was ahead once, the newest sample that is
    /// not. Also returns the time of that machine.
    async fn of_no_future(&self, server_id: Uuid, newest: Measured) -> Result<(Measured, Timestamp), HistoryError> {
        let now = self.clock.now().plus_millis(OF_NOW_MS);
        if newest.sample.timestamp <= now {
            return Ok((newest, now));
        }
        let offset_ms = match self.fleet.clock_offset(server_id) {
            Some(offset_ms) => Some(offset_ms),
            None => self.store.agent_clock_offset(server_id).await?,
        };
        let now = now.plus_millis(offset_ms.unwrap_or_default().max(0));
        if newest.sample.timestamp <= now {
            return Ok((newest, now));
        }
        let until = now.as_millis();
        let fresh = self.recent.newest(&[server_id], until).await?.remove(&server_id);
        let fresh = fresh.map(|fresh| fresh.row.measured(Granularity::Raw));
        let kept = self.newest_kept(server_id, until).await?;
        let present = fresh.into_iter().chain(kept).max_by_key(|newest| newest.sample.timestamp);
        Ok((present.unwrap_or(newest), now))
    }

    /// Returns the newest sample up to `until` from pieces and blocks; if the samples have expired, the newest downsampled row.
    async fn newest_kept(&self, server_id: Uuid, until: i64) -> Result<Option<Measured>, HistoryError> {
        let end = hour_of(until).saturating_add(1).min(i64::MAX / 4);
        let pieces = self.store.piece_infos(Hours { server_id, from: i64::MIN / 4, until: end }).await?;
        let hour_of_pieces = pieces.iter().map(|info| info.hour).max();
        let block = self.store.newest_block(server_id, Tier::Raw, end).await?;
        let hour_of_block = block.map(|info| hour_of(info.last_at.min(until)));
        let source = match hour_of_pieces.max(hour_of_block) {
            // The block has to be read to find its last sample up to `until`.
            Some(_)
                if let Some(block) = block.filter(|block| block.last_at > until && hour_of_pieces < hour_of_block) =>
            {
                let key = block.key;
                Step { from: key.start, until: key.start + key.span.hours(), source: Source::Block(key) }
            }
            Some(hour) => Step { from: hour, until: hour + 1, source: Source::Samples },
            None => {
                let Some(newest) = self.newest_rolled(server_id, end).await? else { return Ok(None) };
                let (from, until) = (newest.start, newest.start + newest.span.hours());
                Step { from, until, source: Source::Block(newest) }
            }
        };
        let loader = self.loader(server_id, Selection::everything());
        let frames = loader.load(&[source]).await?.unwrap_or_default();
        let last = frames.last().and_then(|frame| {
            let row = frame.rows().into_iter().rev().find(|row| row.at <= until)?;
            Some((row, frame.granularity))
        });
        Ok(last.map(|(row, granularity)| row.measured(granularity)))
    }

    async fn newest_rolled(&self, server_id: Uuid, until: i64) -> Result<Option<BlockKey>, StoreError> {
        for (tier, _) in TIERS {
            if let Some(newest) = self.store.newest_block(server_id, tier, until).await? {
                return Ok(Some(newest.key));
            }
        }
        Ok(None)
    }

    /// Takes a place for an answer to an account, which keeps it until its client has everything. A reader that waits for one holds
    /// nothing in memory yet.
    async fn place(&self, points: Option<u64>) -> Result<Option<Permit>, HistoryError> {
        let Some(account) = self.account else { return Ok(None) };
        let Shares { answers, exports, overviews, .. } = &self.shares;
        let is_small = points.is_some_and(|points| points <= SMALL);
        let places = match (is_small, self.purpose) {
            // The place of the list is enough, and lists that have one would wait for each other here.
            (true, Purpose::List) => return Ok(None),
            (true, Purpose::Answer | Purpose::Passing) => answers,
            (false, Purpose::Answer) => exports,
            (false, Purpose::Passing | Purpose::List) => overviews,
        };
        Ok(Some(places.enter_within(Share::Account(account), PATIENCE).await?))
    }

    /// Opens a range, to be read in steps.
    pub async fn open(
        &self,
        server_id: Uuid,
        range: TimeRange,
        resolution: Resolution,
        wanted: Selection,
    ) -> Result<Reader, HistoryError> {
        self.until_there_is_room().await?;
        let place = self.place(most_points(range, resolution, &wanted)).await?;
        let (tier_width, found) = match resolution {
            Resolution::Raw => (TierWidth::EVERY_SAMPLE, None),
            Resolution::Seconds(seconds) => (TierWidth::of_seconds(seconds), None),
            Resolution::Auto { max_points } => {
                let inventory = self.inventory(server_id, range, &STORED).await?;
                let tier_width = self.finest(server_id, &inventory, range, max_points).await?;
                // A range of samples stays as it is.
                (tier_width, Some(inventory).filter(|_| tier_width.tier == Tier::Raw))
            }
        };
        let range = tier_width.whole_buckets(range);
        let inventory = match found {
            Some(inventory) => inventory,
            None => self.inventory(server_id, range, sources_of(tier_width.tier)).await?,
        };
        let reader = Reader::open(self.clone(), self.loader(server_id, wanted), inventory, range, tier_width).await?;
        Ok(reader.with_place(place))
    }

    fn loader(&self, server_id: Uuid, wanted: Selection) -> Loader {
        let (reads, share) = (self.shares.reads.clone(), self.share());
        Loader { store: self.store.clone(), recent: self.recent.clone(), server_id, wanted, reads, share }
    }

    /// Returns the share of the capacity that this history uses.
    fn share(&self) -> Share {
        self.account.map_or(Share::Service, Share::Account)
    }

    fn cutoffs(&self) -> RetentionCutoffs {
        self.policy.cutoffs()
    }

    /// Returns what is stored for a range, of these tiers. The newest places are read first, because samples only move to places
    /// that are read later.
    async fn inventory(&self, server_id: Uuid, range: TimeRange, tiers: &[Tier]) -> Result<Inventory, StoreError> {
        let (start, end) = (range.start.as_millis(), range.end.as_millis());
        let hours = Hours { server_id, from: hour_of(start), until: hour_of(end) + 1 };
        let mut open_hours = self.recent.hours(hours).await?;
        open_hours.extend(self.store.piece_infos(hours).await?.into_iter().map(|info| info.hour));
        let blocks = self.store.block_infos(hours, tiers).await?;
        Ok(Inventory { hours: hours.from..hours.until, blocks, open_hours })
    }

    /// Returns the top processes at a time: the last list before it, at most an hour old.
    pub async fn processes(
        &self,
        server_id: Uuid,
        at: Timestamp,
    ) -> Result<Option<(Timestamp, TopProcesses)>, HistoryError> {
        self.until_there_is_room().await?;
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
