//! Teams that are groups of an identity provider.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Teams {
    Table,
    Issuer,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Every team that is there was made by a person.
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let issuer = ColumnDef::new(Teams::Issuer).text().null().to_owned();
        manager.alter_table(Table::alter().table(Teams::Table).add_column(issuer).to_owned()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table(Teams::Table).drop_column(Teams::Issuer).to_owned()).await
    }
}
