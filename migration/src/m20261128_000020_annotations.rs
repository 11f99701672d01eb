//! An index of the events that people and programs write: deploys and notes. Each server keeps a limited number of them, and
//! they are counted with each new one.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

/// A busy machine has thousands of other events in between.
const ANNOTATIONS: &str = "CREATE INDEX server_events_annotations ON server_events (server_id, id) \
                           WHERE kind IN ('deploy', 'note')";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(ANNOTATIONS).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared("DROP INDEX server_events_annotations").await?;
        Ok(())
    }
}
