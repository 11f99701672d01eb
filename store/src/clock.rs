//! What the service remembers of the time, and what the database knows about it.

use entity::{audit_entry, clock, server};
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseBackend, EntityTrait, IntoActiveModel, QueryOrder,
    QuerySelect, Statement,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::instances::NOW;
use super::{Store, StoreError};

/// The key of the only row.
const ROW: i16 = 1;

/// A time that has certainly passed, and by which clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedClock {
    /// The boot of the machine.
    pub boot_id: String,
    /// Milliseconds since that boot, suspended or not.
    pub boot_ms: i64,
    /// The time that has certainly passed; milliseconds since the epoch.
    pub certain_ms: i64,
}

impl Store {
    /// The last saved clock; none before the first time.
    pub async fn saved_clock(&self) -> Result<Option<SavedClock>, StoreError> {
        let row = clock::Entity::find_by_id(ROW).one(&self.read).await?;
        Ok(row.map(|row| SavedClock { boot_id: row.boot_id, boot_ms: row.boot_ms, certain_ms: row.certain_ms }))
    }

    /// Saves the clock.
    pub async fn save_clock(&self, saved: &SavedClock) -> Result<(), StoreError> {
        let SavedClock { boot_id, boot_ms, certain_ms } = saved.clone();
        let row = clock::Model { id: ROW, boot_id, boot_ms, certain_ms };
        let values = [clock::Column::BootId, clock::Column::BootMs, clock::Column::CertainMs];
        self.retried(|| async {
            let insert = clock::Entity::insert(row.clone().into_active_model().reset_all())
                .on_conflict(OnConflict::column(clock::Column::Id).update_columns(values).to_owned());
            Ok(_ = insert.exec_without_returning(&self.write).await?)
        })
        .await
    }

    /// The time of the newest row that an earlier version stored; none without any.
    pub async fn newest_stored_at(&self) -> Result<Option<Timestamp>, StoreError> {
        let changed: Option<i64> = audit_entry::Entity::find()
            .select_only()
            .column(audit_entry::Column::At)
            .order_by_desc(audit_entry::Column::Seq)
            .limit(1)
            .into_tuple()
            .one(&self.read)
            .await?;
        let seen: Option<Option<i64>> = server::Entity::find()
            .select_only()
            .column_as(server::Column::LastSeenAt.max(), "newest")
            .into_tuple()
            .one(&self.read)
            .await?;
        Ok(changed.max(seen.flatten()).map(Timestamp::from_millis))
    }

    /// How far the clock of a server's last agent was ahead, in milliseconds; none where it is unknown.
    pub async fn agent_clock_offset(&self, server_id: Uuid) -> Result<Option<i64>, StoreError> {
        let agent = server::Entity::find_by_id(server_id).select_only().column(server::Column::Agent).into_tuple();
        let agent: Option<Option<String>> = agent.one(&self.read).await?;
        let said = agent.flatten().and_then(|json| serde_json::from_str::<serde_json::Value>(&json).ok());
        Ok(said.and_then(|said| said.get("clock_offset_ms")?.as_i64()))
    }

    /// The database's clock; none where it is this machine's.
    pub async fn database_now_ms(&self) -> Result<Option<i64>, StoreError> {
        if self.read.get_database_backend() != DatabaseBackend::Postgres {
            return Ok(None);
        }
        let now = Statement::from_string(DatabaseBackend::Postgres, format!("SELECT {NOW}"));
        let Some(row) = self.read.query_one_raw(now).await? else { return Ok(None) };
        Ok(Some(row.try_get_by_index(0)?))
    }
}
