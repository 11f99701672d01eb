//! What operators signed for a command, as JSON.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Commands {
    Table,
    Signed,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add =
            Table::alter().table(Commands::Table).add_column(ColumnDef::new(Commands::Signed).text().null()).to_owned();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table(Commands::Table).drop_column(Commands::Signed).to_owned()).await
    }
}
