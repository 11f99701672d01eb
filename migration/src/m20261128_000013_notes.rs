//! Short texts that people keep for themselves.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, text, uuid};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Notes {
    Table,
    Id,
    OwnerId,
    Text,
    CreatedAt,
}

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let notes = Table::create()
            .table(Notes::Table)
            .col(uuid(Notes::Id).primary_key())
            .col(uuid(Notes::OwnerId))
            .col(text(Notes::Text))
            .col(big_integer(Notes::CreatedAt))
            .foreign_key(
                ForeignKey::create()
                    .from(Notes::Table, Notes::OwnerId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(notes).await?;
        // An owner's list, newest first.
        let by_owner =
            Index::create().name("notes_by_owner").table(Notes::Table).col(Notes::OwnerId).col(Notes::Id).to_owned();
        manager.create_index(by_owner).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Notes::Table).to_owned()).await
    }
}
