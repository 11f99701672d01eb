//! Whether somebody has asked to end a command, so that a restart does not forget it while the agent is away.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Commands {
    Table,
    IsCancelRequested,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(Commands::IsCancelRequested).default(false).to_owned();
        manager.alter_table(Table::alter().table(Commands::Table).add_column(column).to_owned()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .alter_table(Table::alter().table(Commands::Table).drop_column(Commands::IsCancelRequested).to_owned())
            .await
    }
}
