use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use entity::history_block;
use sea_orm::sea_query::UnionType;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
    QueryTrait, Set,
};
use uuid::Uuid;

use super::{Hours, Span, Tier};
use crate::{Store, StoreError};

const HOUR_MS: i64 = 3_600_000;

/// Identifies a block of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockKey {
    /// The resolution.
    pub tier: Tier,
    /// The length.
    pub span: Span,
    /// The beginning, in hours since the epoch.
    pub start: i64,
}

/// A block without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockInfo {
    /// Which block it is.
    pub key: BlockKey,
    /// How many rows it has.
    pub rows: i64,
    /// The time of the first row, in milliseconds since the epoch.
    pub first_at: i64,
    /// The time of the last row, in milliseconds since the epoch.
    pub last_at: i64,
}

impl BlockInfo {
    /// The hours from its first to its last row, in hours since the epoch. The block of the present day ends before its span does.
    pub fn hours(&self) -> RangeInclusive<i64> {
        self.first_at.div_euclid(HOUR_MS)..=self.last_at.div_euclid(HOUR_MS)
    }
}

/// A block, or some of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The block.
    pub info: BlockInfo,
    /// The parts, by number.
    pub parts: BTreeMap<usize, Vec<u8>>,
}

#[derive(FromQueryResult)]
struct InfoRow {
    tier: i16,
    span: i16,
    start: i64,
    rows: i64,
    first_at: i64,
    last_at: i64,
}

impl InfoRow {
    /// None for a tier or span that this version does not know.
    fn info(self) -> Option<BlockInfo> {
        let (tier, span) = (Tier::from_number(self.tier)?, Span::from_number(self.span)?);
        let key = BlockKey { tier, span, start: self.start };
        Some(BlockInfo { key, rows: self.rows, first_at: self.first_at, last_at: self.last_at })
    }
}

impl Store {
    /// The blocks of these tiers that overlap these hours.
    pub async fn block_infos(&self, hours: Hours, tiers: &[Tier]) -> Result<Vec<BlockInfo>, StoreError> {
        let of_span = |span: Span| {
            history_block::Entity::find()
                .select_only()
                .columns([
                    history_block::Column::Tier,
                    history_block::Column::Span,
                    history_block::Column::Start,
                    history_block::Column::Rows,
                    history_block::Column::FirstAt,
                    history_block::Column::LastAt,
                ])
                .filter(history_block::Column::ServerId.eq(hours.server_id))
                .filter(history_block::Column::Tier.is_in(tiers.iter().map(|tier| *tier as i16)))
                .filter(history_block::Column::Span.eq(span as i16))
                .filter(history_block::Column::Start.gt(hours.from.saturating_sub(span.hours())))
                .filter(history_block::Column::Start.lt(hours.until))
                .filter(history_block::Column::Part.eq(0))
                .into_query()
        };
        // One select of all spans has an OR, for which SQLite reads every block of the tiers.
        let [mut query, days, months] = Span::ALL.map(of_span);
        query.union(UnionType::All, days).union(UnionType::All, months);
        let rows = self.read.query_all(&query).await?;
        let infos = rows.iter().map(|row| InfoRow::from_query_result(row, "")).collect::<Result<Vec<_>, _>>()?;
        Ok(infos.into_iter().filter_map(InfoRow::info).collect())
    }

    /// Blocks of one tier and span whose beginnings are in `first..=last`, oldest first: with all their parts, or with these.
    pub async fn blocks(
        &self,
        server_id: Uuid,
        (tier, span): (Tier, Span),
        (first, last): (i64, i64),
        parts: Option<&[usize]>,
    ) -> Result<Vec<Block>, StoreError> {
        let mut query = history_block::Entity::find()
            .filter(history_block::Column::ServerId.eq(server_id))
            .filter(history_block::Column::Tier.eq(tier as i16))
            .filter(history_block::Column::Span.eq(span as i16))
            .filter(history_block::Column::Start.gte(first))
            .filter(history_block::Column::Start.lte(last));
        if let Some(parts) = parts {
            query = query.filter(history_block::Column::Part.is_in(parts.iter().map(|part| *part as i32)));
        }
        let rows = query
            .order_by_asc(history_block::Column::Start)
            .order_by_asc(history_block::Column::Part)
            .all(&self.read)
            .await?;
        let mut blocks: Vec<Block> = Vec::new();
        for row in rows {
            let key = BlockKey { tier, span, start: row.start };
            let part = usize::try_from(row.part).unwrap_or_default();
            match blocks.last_mut() {
                Some(block) if block.info.key == key => _ = block.parts.insert(part, row.data),
                _ => {
                    let info = BlockInfo { key, rows: row.rows, first_at: row.first_at, last_at: row.last_at };
                    blocks.push(Block { info, parts: BTreeMap::from([(part, row.data)]) });
                }
            }
        }
        Ok(blocks)
    }

    /// A server's newest block that begins before the hour `until`; none without one.
    pub async fn newest_block(&self, server_id: Uuid, tier: Tier, until: i64) -> Result<Option<BlockInfo>, StoreError> {
        let mut newest: Option<BlockInfo> = None;
        for span in Span::ALL {
            let row = history_block::Entity::find()
                .filter(history_block::Column::ServerId.eq(server_id))
                .filter(history_block::Column::Tier.eq(tier as i16))
                .filter(history_block::Column::Span.eq(span as i16))
                .filter(history_block::Column::Part.eq(0))
                .filter(history_block::Column::Start.lt(until))
                .order_by_desc(history_block::Column::Start)
                .into_model::<InfoRow>()
                .one(&self.read)
                .await?;
            let info = row.and_then(InfoRow::info);
            newest = newest.into_iter().chain(info).max_by_key(|info| info.last_at);
        }
        Ok(newest)
    }
}

/// A month of a server with many series has some hundred parts; each statement carries a few, so that it stays small.
const PARTS_PER_INSERT: usize = 16;

/// Inserts a block that does not exist.
pub(super) async fn insert(connection: &impl ConnectionTrait, server_id: Uuid, block: Block) -> Result<(), DbErr> {
    let Block { info, parts } = block;
    let mut rows = parts.into_iter().map(|(part, data)| history_block::ActiveModel {
        server_id: Set(server_id),
        tier: Set(info.key.tier as i16),
        span: Set(info.key.span as i16),
        start: Set(info.key.start),
        part: Set(i32::try_from(part).unwrap_or(i32::MAX)),
        rows: Set(info.rows),
        first_at: Set(info.first_at),
        last_at: Set(info.last_at),
        data: Set(data),
    });
    loop {
        let chunk: Vec<_> = rows.by_ref().take(PARTS_PER_INSERT).collect();
        if chunk.is_empty() {
            return Ok(());
        }
        history_block::Entity::insert_many(chunk).exec_without_returning(connection).await?;
    }
}
