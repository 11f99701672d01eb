//! The accounts that a view or dashboard is shared with. Those that are there are shared with nobody.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::string;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Views {
    Table,
    Kind,
    Name,
    SharedWith,
}

/// The index of those that are shared.
const SHARED: &str = "views_shared";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shared_with = string(Views::SharedWith).default("nobody").to_owned();
        manager.alter_table(Table::alter().table(Views::Table).add_column(shared_with).to_owned()).await?;
        let shared = Index::create()
            .name(SHARED)
            .table(Views::Table)
            .col(Views::SharedWith)
            .col(Views::Kind)
            .col(Views::Name)
            .to_owned();
        manager.create_index(shared).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_index(Index::drop().name(SHARED).table(Views::Table).to_owned()).await?;
        manager.alter_table(Table::alter().table(Views::Table).drop_column(Views::SharedWith).to_owned()).await
    }
}
