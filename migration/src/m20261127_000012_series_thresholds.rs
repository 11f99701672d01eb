//! Thresholds on open series, and the alerts that they raise.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum AlertThresholds {
    Table,
    Series,
}

#[derive(DeriveIden)]
enum Alerts {
    Table,
    Series,
    Unit,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // One column per statement: SQLite adds one at a time.
        let mut series = ColumnDef::new(AlertThresholds::Series);
        series.text().null();
        manager.alter_table(Table::alter().table(AlertThresholds::Table).add_column(series).to_owned()).await?;
        for column in [Alerts::Series, Alerts::Unit] {
            let mut column = ColumnDef::new(column);
            column.text().null();
            manager.alter_table(Table::alter().table(Alerts::Table).add_column(column).to_owned()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [Alerts::Unit, Alerts::Series] {
            manager.alter_table(Table::alter().table(Alerts::Table).drop_column(column).to_owned()).await?;
        }
        let without = Table::alter().table(AlertThresholds::Table).drop_column(AlertThresholds::Series).to_owned();
        manager.alter_table(without).await
    }
}
