//! Commands by their owner, to count those of one account and to find the oldest. And how many series of a server the history
//! omits.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Commands {
    Table,
    Id,
    OwnerId,
}

#[derive(DeriveIden)]
enum Servers {
    Table,
    SeriesDropped,
}

const BY_OWNER: &str = "commands_by_owner";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let by_owner =
            Index::create().name(BY_OWNER).table(Commands::Table).col(Commands::OwnerId).col(Commands::Id).to_owned();
        manager.create_index(by_owner).await?;
        let mut dropped = ColumnDef::new(Servers::SeriesDropped);
        dropped.integer().not_null().default(0);
        manager.alter_table(Table::alter().table(Servers::Table).add_column(dropped).to_owned()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let without = Table::alter().table(Servers::Table).drop_column(Servers::SeriesDropped).to_owned();
        manager.alter_table(without).await?;
        manager.drop_index(Index::drop().name(BY_OWNER).table(Commands::Table).to_owned()).await
    }
}
