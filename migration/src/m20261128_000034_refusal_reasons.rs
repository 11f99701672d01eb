//! Why a signature did not suffice for a command, for programs.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Commands {
    Table,
    ErrorReason,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter().table(Commands::Table).add_column(text_null(Commands::ErrorReason)).to_owned();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter().table(Commands::Table).drop_column(Commands::ErrorReason).to_owned();
        manager.alter_table(drop).await
    }
}
