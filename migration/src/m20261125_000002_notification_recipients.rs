//! Which recipients of a message have it, so that a retry continues with the rest.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let recipients = ColumnDef::new(Notifications::Recipients).text().null().to_owned();
        let table = Table::alter().table(Notifications::Table).add_column(recipients).to_owned();
        manager.alter_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::alter().table(Notifications::Table).drop_column(Notifications::Recipients).to_owned();
        manager.alter_table(table).await
    }
}

#[derive(DeriveIden)]
enum Notifications {
    Table,
    Recipients,
}
