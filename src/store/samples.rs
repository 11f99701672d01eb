use entity::{Millis, sample};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Store, StoreError};

/// One sample as it is kept; `data` is `metrics::codec`'s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSample {
    pub server_id: Uuid,
    pub at: Timestamp,
    pub data: Vec<u8>,
}

impl From<sample::Model> for StoredSample {
    fn from(row: sample::Model) -> Self {
        Self { server_id: row.server_id, at: row.at.into(), data: row.data }
    }
}

impl Store {
    /// The newest sample of a server.
    pub async fn latest_sample(&self, server_id: Uuid) -> Result<Option<StoredSample>, StoreError> {
        let row = sample::Entity::find()
            .filter(sample::Column::ServerId.eq(server_id))
            .order_by_desc(sample::Column::At)
            .one(&self.read)
            .await?;
        Ok(row.map(StoredSample::from))
    }

    /// How many samples lie in `from..=to`.
    pub async fn count_samples(&self, server_id: Uuid, from: Timestamp, to: Timestamp) -> Result<u64, StoreError> {
        Ok(range(server_id, from, to).count(&self.read).await?)
    }

    /// When the first and the last sample in `from..=to` were taken.
    pub async fn sample_extent(
        &self,
        server_id: Uuid,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Option<(Timestamp, Timestamp)>, StoreError> {
        // Two looks into the primary key instead of one aggregate over the range.
        let first = range(server_id, from, to).order_by_asc(sample::Column::At).one(&self.read).await?;
        let last = range(server_id, from, to).order_by_desc(sample::Column::At).one(&self.read).await?;
        Ok(first.zip(last).map(|(first, last)| (first.at.into(), last.at.into())))
    }

    /// At most `limit` samples in `from..=to`, oldest first. To go on, ask again from behind the last one.
    pub async fn samples(
        &self,
        server_id: Uuid,
        from: Timestamp,
        to: Timestamp,
        limit: u64,
    ) -> Result<Vec<StoredSample>, StoreError> {
        let rows = range(server_id, from, to).order_by_asc(sample::Column::At).limit(limit).all(&self.read).await?;
        Ok(rows.into_iter().map(StoredSample::from).collect())
    }
}

fn range(server_id: Uuid, from: Timestamp, to: Timestamp) -> sea_orm::Select<sample::Entity> {
    sample::Entity::find()
        .filter(sample::Column::ServerId.eq(server_id))
        .filter(sample::Column::At.gte(Millis::from(from)))
        .filter(sample::Column::At.lte(Millis::from(to)))
}
