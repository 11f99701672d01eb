//! The metric history: journal, pieces and blocks. The service moves the rows of the earlier `samples` to the journal.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, binary_null, integer, small_integer, uuid};
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum HistoryJournal {
    Table,
    Id,
    Writer,
    Data,
}

#[derive(DeriveIden)]
enum HistoryPieces {
    Table,
    ServerId,
    Hour,
    Number,
    Samples,
    Cells,
    Data,
    Processes,
}

#[derive(DeriveIden)]
enum HistoryBlocks {
    Table,
    ServerId,
    Tier,
    Span,
    Start,
    Part,
    Rows,
    FirstAt,
    LastAt,
    Data,
}

/// Already compressed: PostgreSQL need not try, and can read a part of it.
const STORED_AS_IT_IS: [&str; 2] = [
    "ALTER TABLE history_blocks ALTER COLUMN data SET STORAGE EXTERNAL",
    "ALTER TABLE history_pieces ALTER COLUMN data SET STORAGE EXTERNAL",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let journal = Table::create()
            .table(HistoryJournal::Table)
            .col(big_integer(HistoryJournal::Id).auto_increment().primary_key())
            .col(uuid(HistoryJournal::Writer))
            .col(ColumnDef::new(HistoryJournal::Data).blob().not_null())
            .to_owned();
        manager.create_table(journal).await?;

        let pieces = Table::create()
            .table(HistoryPieces::Table)
            .col(uuid(HistoryPieces::ServerId))
            .col(big_integer(HistoryPieces::Hour))
            .col(big_integer(HistoryPieces::Number))
            .col(big_integer(HistoryPieces::Samples))
            .col(big_integer(HistoryPieces::Cells))
            .col(ColumnDef::new(HistoryPieces::Data).blob().not_null())
            .col(binary_null(HistoryPieces::Processes))
            .primary_key(
                Index::create().col(HistoryPieces::ServerId).col(HistoryPieces::Hour).col(HistoryPieces::Number),
            )
            .to_owned();
        manager.create_table(pieces).await?;
        let by_hour = Index::create()
            .name("history_pieces_by_hour")
            .table(HistoryPieces::Table)
            .col(HistoryPieces::Hour)
            .col(HistoryPieces::ServerId)
            .to_owned();
        manager.create_index(by_hour).await?;

        let blocks = Table::create()
            .table(HistoryBlocks::Table)
            .col(uuid(HistoryBlocks::ServerId))
            .col(small_integer(HistoryBlocks::Tier))
            .col(small_integer(HistoryBlocks::Span))
            .col(big_integer(HistoryBlocks::Start))
            .col(integer(HistoryBlocks::Part))
            .col(big_integer(HistoryBlocks::Rows))
            .col(big_integer(HistoryBlocks::FirstAt))
            .col(big_integer(HistoryBlocks::LastAt))
            .col(ColumnDef::new(HistoryBlocks::Data).blob().not_null())
            .primary_key(
                Index::create()
                    .col(HistoryBlocks::ServerId)
                    .col(HistoryBlocks::Tier)
                    .col(HistoryBlocks::Span)
                    .col(HistoryBlocks::Start)
                    .col(HistoryBlocks::Part),
            )
            .to_owned();
        manager.create_table(blocks).await?;
        let by_age = Index::create()
            .name("history_blocks_by_age")
            .table(HistoryBlocks::Table)
            .col(HistoryBlocks::Span)
            .col(HistoryBlocks::Tier)
            .col(HistoryBlocks::Start)
            .col(HistoryBlocks::ServerId)
            .col(HistoryBlocks::Part)
            .to_owned();
        manager.create_index(by_age).await?;
        if manager.get_database_backend() == DatabaseBackend::Postgres {
            for statement in STORED_AS_IT_IS {
                manager.get_connection().execute_unprepared(statement).await?;
            }
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(HistoryBlocks::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(HistoryPieces::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(HistoryJournal::Table).to_owned()).await
    }
}
