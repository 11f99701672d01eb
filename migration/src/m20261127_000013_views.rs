//! Saved views of series, and the dashboards that are made of them.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, text, uuid};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum Views {
    Table,
    Id,
    OwnerId,
    Kind,
    Name,
    Description,
    Definition,
    CreatedAt,
    UpdatedAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let views = Table::create()
            .table(Views::Table)
            .col(uuid(Views::Id).primary_key())
            .col(uuid(Views::OwnerId))
            .col(string(Views::Kind))
            .col(string(Views::Name))
            .col(text(Views::Description))
            .col(text(Views::Definition))
            .col(big_integer(Views::CreatedAt))
            .col(big_integer(Views::UpdatedAt))
            .foreign_key(
                ForeignKey::create()
                    .from(Views::Table, Views::OwnerId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(views).await?;
        let by_owner = Index::create()
            .name("views_by_owner")
            .table(Views::Table)
            .col(Views::OwnerId)
            .col(Views::Kind)
            .col(Views::Name)
            .to_owned();
        manager.create_index(by_owner).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Views::Table).to_owned()).await
    }
}
