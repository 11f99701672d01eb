use entity::{history_block, history_piece};
use sea_orm::{ColumnTrait, Condition, EntityTrait, ExprTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::{Span, Tier};
use crate::store::{Store, StoreError};

/// Deleting holds the writer no longer than so many blocks take: at 32 KiB a part some 10 MB.
const DELETE_BLOCKS: u64 = 256;

/// A server and where one of its spans begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromQueryResult)]
pub struct Due {
    pub server_id: Uuid,
    pub start: i64,
}

impl Store {
    /// Blocks of a tier and span that begin before `before`, of any server but these, oldest first, at most `limit`.
    pub async fn blocks_before(
        &self,
        (tier, span): (Tier, Span),
        before: i64,
        but: &[Uuid],
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
            .order_by_asc(history_block::Column::Start)
            .order_by_asc(history_block::Column::ServerId)
            .limit(limit)
            .into_model();
        Ok(due.all(&self.read).await?)
    }

    /// Removes blocks of a tier and span that begin before `before`, some at a time, so that others may write in
    /// between. Gives how many there were; none means that no more are left.
    pub async fn drop_blocks(&self, (tier, span): (Tier, Span), before: i64) -> Result<u64, StoreError> {
        let due = self.blocks_before((tier, span), before, &[], DELETE_BLOCKS).await?;
        let Some(last) = due.last().copied() else { return Ok(0) };
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

    /// Removes the whole history of a server, some of it a transaction, so that others may write in between.
    pub async fn delete_history(&self, server_id: Uuid) -> Result<(), StoreError> {
        for tier in Tier::ALL {
            for span in Span::ALL {
                while self.delete_some(server_id, tier, span).await? {}
            }
        }
        let pieces = history_piece::Entity::delete_many().filter(history_piece::Column::ServerId.eq(server_id));
        pieces.exec(&self.write).await?;
        Ok(())
    }

    /// Gives whether there are more.
    async fn delete_some(&self, server_id: Uuid, tier: Tier, span: Span) -> Result<bool, StoreError> {
        let these = Condition::all()
            .add(history_block::Column::ServerId.eq(server_id))
            .add(history_block::Column::Tier.eq(tier as i16))
            .add(history_block::Column::Span.eq(span as i16));
        let next: Option<i64> = history_block::Entity::find()
            .select_only()
            .column(history_block::Column::Start)
            .filter(these.clone())
            .order_by_asc(history_block::Column::Start)
            .offset(DELETE_BLOCKS)
            .limit(1)
            .into_tuple()
            .one(&self.read)
            .await?;
        let up_to = next.map(|start| history_block::Column::Start.lte(start));
        let these = these.add_option(up_to);
        history_block::Entity::delete_many().filter(these).exec(&self.write).await?;
        Ok(next.is_some())
    }
}
