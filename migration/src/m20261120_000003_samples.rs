//! Metric history in its first format.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Samples {
    Table,
}

/// No foreign key: a group commit must not look up 512 servers, and deleting a server also deletes its samples.
///
/// SQLite stores the rows in the primary key's own tree (`WITHOUT ROWID`): one tree to write instead of two, with the range of
/// a query in one place. The schema builder cannot express that.
const SQLITE: &str = "CREATE TABLE samples (server_id BLOB NOT NULL, at INTEGER NOT NULL, data BLOB NOT NULL, \
                      PRIMARY KEY (server_id, at)) WITHOUT ROWID";
const POSTGRES: &str = "CREATE TABLE samples (server_id UUID NOT NULL, at BIGINT NOT NULL, data BYTEA NOT NULL, \
                        PRIMARY KEY (server_id, at))";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let statement = match manager.get_database_backend() {
            DatabaseBackend::Sqlite => SQLITE,
            _ => POSTGRES,
        };
        manager.get_connection().execute_unprepared(statement).await.map(|_| ())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Samples::Table).to_owned()).await
    }
}
