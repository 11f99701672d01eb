//! How several instances find the servers whose agents are disconnected, and what is watched on them.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // A single instance knows it from its memory, and SQLite has a single one.
        if manager.get_database_backend() != DatabaseBackend::Postgres {
            return Ok(());
        }
        let away = "CREATE INDEX servers_without_session ON servers (id) WHERE session_id IS NULL";
        manager.get_connection().execute_unprepared(away).await?;
        // Most of an owner's thresholds are for one server each.
        let general = "CREATE INDEX alert_thresholds_general ON alert_thresholds (owner_id) WHERE server_id IS NULL";
        manager.get_connection().execute_unprepared(general).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() != DatabaseBackend::Postgres {
            return Ok(());
        }
        manager.get_connection().execute_unprepared("DROP INDEX alert_thresholds_general").await?;
        manager.get_connection().execute_unprepared("DROP INDEX servers_without_session").await?;
        Ok(())
    }
}
