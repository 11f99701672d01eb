//! An index of the batches that have not ended, which instances look for all the time.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let open = "CREATE INDEX command_batches_open ON command_batches (id) WHERE finished_at IS NULL";
        manager.get_connection().execute_unprepared(open).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared("DROP INDEX command_batches_open").await?;
        Ok(())
    }
}
