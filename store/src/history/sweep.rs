use entity::{history_block, history_piece, history_sample};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, ExprTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, Statement, Value,
};
use uuid::Uuid;

use super::partitions::Parted;
use super::{Span, Tier};
use crate::{Share, Store, StoreError};

/// How many blocks one deletion removes, which limits how long it holds the writer: at 32 KiB a part some 10 MB.
const DELETE_BLOCKS: u64 = 256;

/// For PostgreSQL, whose index of old blocks has each block once, by server and beginning.
const DELETE: &str = "\
    DELETE FROM history_blocks AS block USING unnest($3::uuid[], $4::bigint[]) AS old (server_id, start) \
    WHERE block.tier = $1 AND block.span = $2 AND block.server_id = old.server_id AND block.start = old.start \
    AND block.start >= $5 AND block.start <= $6";

/// A server and the beginning of one of its spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromQueryResult)]
pub struct Due {
    /// The server.
    pub server_id: Uuid,
    /// In hours since the epoch.
    pub start: i64,
}

impl Store {
    /// Blocks of a tier and span that begin before `before`, of any server of a share except these, oldest first, at most
    /// `limit`.
    pub async fn blocks_before(
        &self,
        (tier, span): (Tier, Span),
        before: i64,
        but: &[Uuid],
        share: &Share,
        limit: u64,
    ) -> Result<Vec<Due>, StoreError> {
        let due = history_block::Entity::find()
            .select_only()
            .columns([history_block::Column::ServerId, history_block::Column::Start])
            .filter(history_block::Column::Tier.eq(tier as i16))
            .filter(history_block::Column::Span.eq(span as i16))
            .filter(history_block::Column::Start.lt(before))
            .filter(history_block::Column::Part.eq(0))
            .filter(history_block::Column::ServerId.is_not_in(but.iter().copied()))
            .apply_if(share.condition("server_id"), QueryFilter::filter)
            .order_by_asc(history_block::Column::Start)
            .order_by_asc(history_block::Column::ServerId)
            .limit(limit)
            .into_model();
        Ok(due.all(&self.read).await?)
    }

    /// Servers of a share, except these, with more than `most` blocks of a tier and span that begin in `first..=last`, at most
    /// `limit`.
    pub async fn with_more_blocks(
        &self,
        most: u64,
        (tier, span): (Tier, Span),
        (first, last): (i64, i64),
        but: &[Uuid],
        share: &Share,
        limit: u64,
    ) -> Result<Vec<Uuid>, StoreError> {
        let found = history_block::Entity::find()
            .select_only()
            .column(history_block::Column::ServerId)
            .filter(history_block::Column::Tier.eq(tier as i16))
            .filter(history_block::Column::Span.eq(span as i16))
            .filter(history_block::Column::Start.between(first, last))
            .filter(history_block::Column::Part.eq(0))
            .filter(history_block::Column::ServerId.is_not_in(but.iter().copied()))
            .apply_if(share.condition("server_id"), QueryFilter::filter)
            .group_by(history_block::Column::ServerId)
            .having(history_block::Column::ServerId.count().gt(most))
            .order_by_asc(history_block::Column::ServerId)
            .limit(limit)
            .into_tuple();
        Ok(found.all(&self.read).await?)
    }

    /// Removes some blocks of a tier and span that begin before `before`, of servers of a share, so that others may write in
    /// between. Returns how many there were; 0 means that none are left.
    pub async fn drop_blocks(&self, (tier, span): (Tier, Span), before: i64, share: &Share) -> Result<u64, StoreError> {
        let due = self.blocks_before((tier, span), before, &[], share, DELETE_BLOCKS).await?;
        let (Some(first), Some(last)) = (due.first(), due.last().copied()) else { return Ok(0) };
        if self.has_sample_table() {
            let (tier, span) = (tier as i16, span as i16);
            let servers: Vec<Uuid> = due.iter().map(|due| due.server_id).collect();
            let starts: Vec<i64> = due.iter().map(|due| due.start).collect();
            let values: [Value; 6] =
                [tier.into(), span.into(), servers.into(), starts.into(), first.start.into(), last.start.into()];
            let delete = Statement::from_sql_and_values(self.write.get_database_backend(), DELETE, values);
            self.retried(|| async { Ok(self.write.execute_raw(delete.clone()).await?) }).await?;
            // Those that another instance has deleted are gone as well.
            return Ok(due.len() as u64);
        }
        let deleted = history_block::Entity::delete_many()
            .filter(history_block::Column::Tier.eq(tier as i16))
            .filter(history_block::Column::Span.eq(span as i16))
            .filter(history_block::Column::Start.lt(last.start).or(
                history_block::Column::Start.eq(last.start).and(history_block::Column::ServerId.lte(last.server_id)),
            ))
            .exec(&self.write)
            .await?;
        Ok(deleted.rows_affected)
    }

    /// Drops partitions of a tier that have nothing from `first_kept` on, in hours since the epoch. A partition in use is left
    /// for the next time.
    pub async fn drop_old_partitions(&self, tier: Tier, first_kept: i64) -> Result<(), StoreError> {
        if self.has_sample_table() {
            for partition in self.partitions_of(Parted::Blocks(tier)).await? {
                if partition.until() <= first_kept {
                    self.drop_partition(partition).await?;
                }
            }
        }
        Ok(())
    }

    /// Removes the whole history of a server, in several transactions, so that others may write in between.
    pub async fn delete_history(&self, server_id: Uuid) -> Result<(), StoreError> {
        while self.delete_part_of_history(server_id).await? {}
        Ok(())
    }

    /// Removes some of the history of a server. Returns whether there may be more.
    pub async fn delete_part_of_history(&self, server_id: Uuid) -> Result<bool, StoreError> {
        for tier in Tier::ALL {
            for span in Span::ALL {
                if self.retried(|| self.delete_some(server_id, tier, span)).await? > 0 {
                    return Ok(true);
                }
            }
        }
        self.retried(|| async {
            let pieces = history_piece::Entity::delete_many().filter(history_piece::Column::ServerId.eq(server_id));
            pieces.exec(&self.write).await?;
            if self.has_sample_table() {
                let samples =
                    history_sample::Entity::delete_many().filter(history_sample::Column::ServerId.eq(server_id));
                samples.exec(&self.write).await?;
            }
            Ok(false)
        })
        .await
    }

    /// Returns how many rows there were.
    async fn delete_some(&self, server_id: Uuid, tier: Tier, span: Span) -> Result<u64, StoreError> {
        let these = Condition::all()
            .add(history_block::Column::ServerId.eq(server_id))
            .add(history_block::Column::Tier.eq(tier as i16))
            .add(history_block::Column::Span.eq(span as i16));
        let starts = history_block::Entity::find()
            .select_only()
            .column(history_block::Column::Start)
            .filter(these.clone())
            .order_by_asc(history_block::Column::Start);
        let first: Option<i64> = starts.clone().limit(1).into_tuple().one(&self.read).await?;
        if first.is_none() {
            return Ok(0);
        }
        let last: Option<i64> = starts.offset(DELETE_BLOCKS).limit(1).into_tuple().one(&self.read).await?;
        let these = these.add_option(last.map(|start| history_block::Column::Start.lte(start)));
        Ok(history_block::Entity::delete_many().filter(these).exec(&self.write).await?.rows_affected)
    }
}
