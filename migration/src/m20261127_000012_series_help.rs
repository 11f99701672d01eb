//! Help texts of open series, one line for people by server and name.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{string, text, uuid};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum SeriesHelp {
    Table,
    ServerId,
    Name,
    Help,
}

#[derive(DeriveIden)]
enum Servers {
    Table,
    Id,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let help = Table::create()
            .table(SeriesHelp::Table)
            .col(uuid(SeriesHelp::ServerId))
            .col(string(SeriesHelp::Name))
            .col(text(SeriesHelp::Help))
            .primary_key(Index::create().col(SeriesHelp::ServerId).col(SeriesHelp::Name))
            .foreign_key(
                ForeignKey::create()
                    .from(SeriesHelp::Table, SeriesHelp::ServerId)
                    .to(Servers::Table, Servers::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(help).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(SeriesHelp::Table).to_owned()).await
    }
}
