//! How serious a failure of a schedule is, and an index of the alerts of schedules that have not ended.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Schedules {
    Table,
    Severity,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let severity = text(Schedules::Severity).default("warning").to_owned();
        let add = Table::alter().table(Schedules::Table).add_column(severity).to_owned();
        manager.alter_table(add).await?;
        let unsettled = "CREATE INDEX alerts_of_schedules ON alerts (threshold_id) \
                         WHERE metric_type = 'schedule' AND rearmed_at IS NULL";
        manager.get_connection().execute_unprepared(unsettled).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared("DROP INDEX alerts_of_schedules").await?;
        let drop = Table::alter().table(Schedules::Table).drop_column(Schedules::Severity).to_owned();
        manager.alter_table(drop).await
    }
}
