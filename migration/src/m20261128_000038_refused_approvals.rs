//! What became of a command that has waited for signatures: the batch that it is, and why agents refused the one before.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{text_null, uuid_null};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Approvals {
    Table,
    BatchId,
    RefusedReason,
}

const INDEX: &str = "approvals_batch";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [uuid_null(Approvals::BatchId), text_null(Approvals::RefusedReason)] {
            // SQLite takes one column in a statement.
            manager.alter_table(Table::alter().table(Approvals::Table).add_column(column).to_owned()).await?;
        }
        let by_batch = Index::create().name(INDEX).table(Approvals::Table).col(Approvals::BatchId).to_owned();
        manager.create_index(by_batch).await?;
        let approved = "UPDATE approvals SET batch_id = id WHERE status = 'approved'";
        manager.get_connection().execute_unprepared(approved).await.map(|_| ())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_index(Index::drop().name(INDEX).table(Approvals::Table).to_owned()).await?;
        for column in [Approvals::BatchId, Approvals::RefusedReason] {
            manager.alter_table(Table::alter().table(Approvals::Table).drop_column(column).to_owned()).await?;
        }
        Ok(())
    }
}
