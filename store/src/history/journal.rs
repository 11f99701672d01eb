use entity::{Millis, history_journal, sample};
use sea_orm::{
    ActiveValue, ColumnTrait, ConnectionTrait, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, Set,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::{Store, StoreError};

/// A row of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRow {
    /// The row's number.
    pub id: i64,
    /// Its bytes, in the format of `signalbox_history::journal`.
    pub data: Vec<u8>,
}

/// Which rows of the journal have been read into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalRead {
    /// The id of this process, which knows what it wrote itself.
    pub writer: Uuid,
    /// What this process wrote is in memory up to here.
    pub up_to: i64,
    /// What other processes wrote was read up to here.
    pub replayed_to: i64,
}

/// Samples in the first format of the history that are moved at a time.
pub(super) const ADOPT_ROWS: u64 = 512;

impl Store {
    /// Rows after `after`, oldest first, at most `limit`.
    pub async fn journal_after(&self, after: i64, limit: u64) -> Result<Vec<JournalRow>, StoreError> {
        let rows = history_journal::Entity::find()
            .filter(history_journal::Column::Id.gt(after))
            .order_by_asc(history_journal::Column::Id)
            .limit(limit)
            .all(&self.read)
            .await?;
        Ok(rows.into_iter().map(|row| JournalRow { id: row.id, data: row.data }).collect())
    }

    /// Moves some samples in the first format of the history to the journal, converted by `rewrite`. Returns how many there
    /// were.
    pub async fn adopt_samples(
        &self,
        writer: Uuid,
        rewrite: impl Fn(Vec<(Uuid, Vec<u8>)>) -> Vec<u8> + Send,
    ) -> Result<usize, StoreError> {
        let rows = sample::Entity::find()
            .order_by_asc(sample::Column::ServerId)
            .order_by_asc(sample::Column::At)
            .limit(ADOPT_ROWS)
            .all(&self.read)
            .await?;
        let Some(last) = rows.last() else { return Ok(0) };
        let (server_id, at, count) = (last.server_id, Timestamp::from(last.at), rows.len());
        let transaction = self.write.begin().await?;
        let earlier = sample::Column::ServerId.lt(server_id);
        let same = sample::Column::ServerId.eq(server_id).and(sample::Column::At.lte(Millis::from(at)));
        sample::Entity::delete_many().filter(earlier.or(same)).exec(&transaction).await?;
        let data = rewrite(rows.into_iter().map(|row| (row.server_id, row.data)).collect());
        insert(&transaction, writer, data).await?;
        transaction.commit().await?;
        Ok(count)
    }
}

/// Appends a row and returns its number.
pub(crate) async fn insert(connection: &impl ConnectionTrait, writer: Uuid, data: Vec<u8>) -> Result<i64, StoreError> {
    let row = history_journal::ActiveModel { id: ActiveValue::NotSet, writer: Set(writer), data: Set(data) };
    Ok(history_journal::Entity::insert(row).exec(connection).await?.last_insert_id)
}

/// Deletes the rows that have been read.
pub(super) async fn forget(connection: &impl ConnectionTrait, read: &JournalRead) -> Result<(), StoreError> {
    let (own, others) =
        (history_journal::Column::Writer.eq(read.writer), history_journal::Column::Writer.ne(read.writer));
    let of_own = own.and(history_journal::Column::Id.lte(read.up_to));
    // Rows that another process wrote after the last reading are still unread.
    let of_others = others.and(history_journal::Column::Id.lte(Ord::min(read.up_to, read.replayed_to)));
    history_journal::Entity::delete_many().filter(of_own.or(of_others)).exec(connection).await?;
    Ok(())
}
