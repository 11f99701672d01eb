//! Events of servers: connections of agents, reboots, containers, versions.
//!
//! No foreign key: rows are written only while their server's row is locked, and deleted with it.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, text, uuid};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum ServerEvents {
    Table,
    Id,
    ServerId,
    Kind,
    At,
    Detail,
}

/// What availability is calculated from, and little else: a busy machine has thousands of other events in between.
const PRESENCE: &str = "CREATE INDEX server_events_presence ON server_events (server_id, at, id) \
                        WHERE kind IN ('online', 'offline', 'unwatched')";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let events = Table::create()
            .table(ServerEvents::Table)
            .col(uuid(ServerEvents::Id).primary_key())
            .col(uuid(ServerEvents::ServerId))
            .col(text(ServerEvents::Kind))
            .col(big_integer(ServerEvents::At))
            .col(text(ServerEvents::Detail))
            .to_owned();
        manager.create_table(events).await?;
        // A server's list, newest first, and its oldest events, which are deleted first.
        let by_server = Index::create()
            .name("server_events_by_server")
            .table(ServerEvents::Table)
            .col(ServerEvents::ServerId)
            .col(ServerEvents::At)
            .col(ServerEvents::Id)
            .to_owned();
        manager.create_index(by_server).await?;
        // Events beyond the retention.
        let by_time =
            Index::create().name("server_events_by_time").table(ServerEvents::Table).col(ServerEvents::At).to_owned();
        manager.create_index(by_time).await?;
        manager.get_connection().execute_unprepared(PRESENCE).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(ServerEvents::Table).to_owned()).await
    }
}
