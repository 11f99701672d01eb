//! Several instances on one database: their ids, the shards of each, and which one holds a server's session.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, boolean, small_integer, string, uuid, uuid_null};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Instances {
    Table,
    Id,
    Version,
    /// Identifies its secrets.
    Mark,
    IsDraining,
    StartedAt,
    SeenAt,
}

#[derive(DeriveIden)]
enum Shards {
    Table,
    Shard,
    InstanceId,
    ExpiresAt,
}

#[derive(DeriveIden)]
enum Servers {
    Table,
    InstanceId,
    SessionEpoch,
}

#[derive(DeriveIden)]
enum CommandBatches {
    Table,
    InstanceId,
}

const SERVERS_BY_INSTANCE: &str = "servers_by_instance";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let instances = Table::create()
            .table(Instances::Table)
            .col(uuid(Instances::Id).primary_key())
            .col(string(Instances::Version))
            .col(string(Instances::Mark))
            .col(boolean(Instances::IsDraining))
            .col(big_integer(Instances::StartedAt))
            .col(big_integer(Instances::SeenAt))
            .to_owned();
        manager.create_table(instances).await?;
        let shards = Table::create()
            .table(Shards::Table)
            .col(small_integer(Shards::Shard).primary_key())
            .col(uuid_null(Shards::InstanceId))
            .col(big_integer(Shards::ExpiresAt))
            .to_owned();
        manager.create_table(shards).await?;
        // One column per statement: SQLite accepts no more.
        for column in [uuid_null(Servers::InstanceId), big_integer(Servers::SessionEpoch).default(0).take()] {
            manager.alter_table(Table::alter().table(Servers::Table).add_column(column).to_owned()).await?;
        }
        let batch =
            Table::alter().table(CommandBatches::Table).add_column(uuid_null(CommandBatches::InstanceId)).to_owned();
        manager.alter_table(batch).await?;
        let by_instance =
            Index::create().name(SERVERS_BY_INSTANCE).table(Servers::Table).col(Servers::InstanceId).to_owned();
        manager.create_index(by_instance).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_index(Index::drop().name(SERVERS_BY_INSTANCE).table(Servers::Table).to_owned()).await?;
        let batch = Table::alter().table(CommandBatches::Table).drop_column(CommandBatches::InstanceId).to_owned();
        manager.alter_table(batch).await?;
        for column in [Servers::SessionEpoch.into_iden(), Servers::InstanceId.into_iden()] {
            manager.alter_table(Table::alter().table(Servers::Table).drop_column(column).to_owned()).await?;
        }
        manager.drop_table(Table::drop().table(Shards::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Instances::Table).to_owned()).await
    }
}
