//! Lists the columns of a range, from heads and shapes: one block, piece or page of samples at a time, on blocking threads.
//! No column is unpacked, and only what the caller keeps stays in memory.

use std::collections::HashSet;

use signalbox_history::block::{BlockError, Head};
use signalbox_history::frame::Column;
use signalbox_history::shape::Shape;
use uuid::Uuid;

use super::catalog::{Catalog, Names};
use super::plan::{Source, Step, sources_of};
use super::wanted::Selection;
use super::{History, HistoryError, PATIENCE, PLANS, TimeRange};
use crate::metrics::archive::{piece_head, start_ms};
use crate::store::history::{Block, BlockKey, Span, Tier};

/// The most columns of a table: its header and each of its lines are built in memory.
const MAX_COLUMNS: usize = 50_000;

/// Receives the columns of a range as they are read; each may occur many times.
trait Listing: Send + Sized + 'static {
    fn add(&mut self, column: &Column);
}

impl Listing for Catalog {
    fn add(&mut self, column: &Column) {
        Catalog::add(self, column);
    }
}

/// Every column, in the order of its first occurrence.
#[derive(Default)]
struct All {
    columns: Vec<Column>,
    seen: HashSet<Column>,
    are_too_many: bool,
}

impl Listing for All {
    fn add(&mut self, column: &Column) {
        if self.seen.contains(column) {
            return;
        }
        if self.columns.len() >= MAX_COLUMNS {
            self.are_too_many = true;
            return;
        }
        self.seen.insert(column.clone());
        self.columns.push(column.clone());
    }
}

/// The end of a range that is read first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    OldestFirst,
    NewestFirst,
}

impl History {
    /// Returns at most `limit` series of a range whose names contain `part`. Present series come before those that no longer
    /// exist.
    pub async fn names(
        &self,
        server_id: Uuid,
        range: TimeRange,
        part: Option<&str>,
        limit: usize,
    ) -> Result<Names, HistoryError> {
        let catalog = || Catalog::new(part, limit);
        Ok(self.list(server_id, range, Order::NewestFirst, catalog).await?.finish())
    }

    /// Returns at most `limit` series in the latest samples of these servers whose names contain `part`.
    pub async fn present_names(
        &self,
        servers: &[Uuid],
        part: Option<String>,
        limit: usize,
    ) -> Result<Names, HistoryError> {
        self.until_there_is_room().await?;
        let _permit = self.shares.listings.enter_within(self.share(), PATIENCE).await?;
        let latest = self.latest_of(servers).await?;
        off_the_workers(move || {
            let mut catalog = Catalog::new(part.as_deref(), limit);
            for snapshot in latest.values() {
                let shape = Shape::with_open(&snapshot.sample, &snapshot.open);
                shape.slots().for_each(|slot| catalog.add(&Column::from(slot)));
            }
            catalog.finish()
        })
        .await
    }

    /// Returns every column of a range, in the order of its first occurrence.
    pub async fn columns(&self, server_id: Uuid, range: TimeRange) -> Result<Vec<Column>, HistoryError> {
        let all = self.list(server_id, range, Order::OldestFirst, All::default).await?;
        if all.are_too_many { Err(HistoryError::TooMuch) } else { Ok(all.columns) }
    }

    async fn list<L: Listing>(
        &self,
        server_id: Uuid,
        range: TimeRange,
        order: Order,
        listing: impl Fn() -> L,
    ) -> Result<L, HistoryError> {
        self.until_there_is_room().await?;
        let _permit = self.shares.listings.enter_within(self.share(), PATIENCE).await?;
        for _ in 0..PLANS {
            let inventory = self.inventory(server_id, range, sources_of(Tier::Hour)).await?;
            let mut steps = inventory.tier(Tier::Hour, self.cutoffs().raw);
            if order == Order::NewestFirst {
                steps.reverse();
            }
            let reading = ColumnReader { history: self, server_id, wanted: Selection::named([]) };
            if let Some(listing) = reading.all(&steps, listing()).await? {
                return Ok(listing);
            }
        }
        Err(HistoryError::Restless)
    }
}

/// A read of one server's columns.
struct ColumnReader<'a> {
    history: &'a History,
    server_id: Uuid,
    /// Counts and logs damaged blocks.
    wanted: Selection,
}

impl ColumnReader<'_> {
    /// Adds the columns of all steps. Returns `None` if a block was compacted in the meantime.
    async fn all<L: Listing>(&self, steps: &[Step], mut listing: L) -> Result<Option<L>, HistoryError> {
        for step in steps {
            match step.source {
                Source::Block(key) => {
                    let Some(block) = self.first_parts(key).await? else { return Ok(None) };
                    listing = self.add_head(block, listing).await?;
                }
                Source::Samples => {
                    for hour in step.from..step.until {
                        listing = self.add_hour(hour, listing).await?;
                    }
                }
            }
        }
        Ok(Some(listing))
    }

    /// Adds the columns of an hour, from its unsealed samples and its blocks.
    async fn add_hour<L: Listing>(&self, hour: i64, mut listing: L) -> Result<L, HistoryError> {
        let within = (start_ms(hour), start_ms(hour + 1) - 1);
        let mut shapes = self.history.recent.shapes(self.server_id, within);
        while let Some(some) = shapes.next().await? {
            let add = move || {
                for shape in some {
                    shape.slots().for_each(|slot| listing.add(&Column::from(slot)));
                }
                listing
            };
            listing = off_the_workers(add).await?;
        }
        let mut after = i64::MIN;
        // A piece that disappears during this was sealed, and is found in the hour's block.
        while let Some(piece) = self.history.store.next_piece(self.server_id, hour, after).await? {
            after = piece.number;
            let key = BlockKey { tier: Tier::Raw, span: Span::Hour, start: hour };
            listing = self.add(key, move || piece_head(&piece), listing).await?;
        }
        for span in [Span::Hour, Span::Day] {
            let key = BlockKey { tier: Tier::Raw, span, start: span.start_of(hour) };
            if let Some(block) = self.first_parts(key).await? {
                listing = self.add_head(block, listing).await?;
            }
        }
        Ok(listing)
    }

    /// Returns a block with only its first part; `None` if there is no such block.
    async fn first_parts(&self, key: BlockKey) -> Result<Option<Block>, HistoryError> {
        let starts = (key.start, key.start);
        Ok(self.history.store.blocks(self.server_id, (key.tier, key.span), starts, Some(&[0])).await?.pop())
    }

    async fn add_head<L: Listing>(&self, block: Block, listing: L) -> Result<L, HistoryError> {
        let read = move || Head::read(block.parts.get(&0).map(Vec::as_slice).unwrap_or_default());
        self.add(block.info.key, read, listing).await
    }

    async fn add<L: Listing>(
        &self,
        key: BlockKey,
        head: impl FnOnce() -> Result<Head, BlockError> + Send + 'static,
        mut listing: L,
    ) -> Result<L, HistoryError> {
        let add = move || {
            let read = head().map(|head| head.columns.iter().for_each(|column| listing.add(column)));
            (listing, read)
        };
        let (listing, read) = off_the_workers(add).await?;
        if let Err(error) = read {
            self.wanted.damaged(self.server_id, key, &error);
        }
        Ok(listing)
    }
}

async fn off_the_workers<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, HistoryError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| HistoryError::Interrupted)
}
