//! Releases of the agent on their way to servers.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum Servers {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum UpdateRollouts {
    Table,
    Id,
    OwnerId,
    Version,
    Release,
    Signature,
    Waves,
    PauseSeconds,
    MaxFailed,
    Status,
    StoppedReason,
    Wave,
    WaveSince,
    CreatedBy,
    CreatedAt,
    EndedAt,
}

#[derive(DeriveIden)]
enum UpdateRolloutServers {
    Table,
    RolloutId,
    ServerId,
    Wave,
    State,
    Reason,
    FromVersion,
    SessionId,
    Offers,
    ChangedAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let rollouts = Table::create()
            .table(UpdateRollouts::Table)
            .col(ColumnDef::new(UpdateRollouts::Id).uuid().not_null().primary_key())
            .col(ColumnDef::new(UpdateRollouts::OwnerId).uuid().not_null())
            .col(ColumnDef::new(UpdateRollouts::Version).text().not_null())
            .col(ColumnDef::new(UpdateRollouts::Release).text().not_null())
            .col(ColumnDef::new(UpdateRollouts::Signature).text().not_null())
            .col(ColumnDef::new(UpdateRollouts::Waves).text().not_null())
            .col(ColumnDef::new(UpdateRollouts::PauseSeconds).integer().not_null())
            .col(ColumnDef::new(UpdateRollouts::MaxFailed).integer().not_null())
            .col(ColumnDef::new(UpdateRollouts::Status).text().not_null())
            .col(ColumnDef::new(UpdateRollouts::StoppedReason).text().null())
            .col(ColumnDef::new(UpdateRollouts::Wave).integer().not_null())
            .col(ColumnDef::new(UpdateRollouts::WaveSince).big_integer().not_null())
            .col(ColumnDef::new(UpdateRollouts::CreatedBy).text().not_null())
            .col(ColumnDef::new(UpdateRollouts::CreatedAt).big_integer().not_null())
            .col(ColumnDef::new(UpdateRollouts::EndedAt).big_integer().null())
            .foreign_key(
                ForeignKey::create()
                    .from(UpdateRollouts::Table, UpdateRollouts::OwnerId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(rollouts).await?;
        let of_owner = Index::create()
            .name("update_rollouts_owner")
            .table(UpdateRollouts::Table)
            .col(UpdateRollouts::OwnerId)
            .col(UpdateRollouts::CreatedAt)
            .to_owned();
        manager.create_index(of_owner).await?;
        let open = "CREATE UNIQUE INDEX update_rollouts_open ON update_rollouts (owner_id) WHERE ended_at IS NULL";
        manager.get_connection().execute_unprepared(open).await?;

        let servers = Table::create()
            .table(UpdateRolloutServers::Table)
            .col(ColumnDef::new(UpdateRolloutServers::RolloutId).uuid().not_null())
            .col(ColumnDef::new(UpdateRolloutServers::ServerId).uuid().not_null())
            .col(ColumnDef::new(UpdateRolloutServers::Wave).integer().not_null())
            .col(ColumnDef::new(UpdateRolloutServers::State).text().not_null())
            .col(ColumnDef::new(UpdateRolloutServers::Reason).text().null())
            .col(ColumnDef::new(UpdateRolloutServers::FromVersion).text().not_null())
            .col(ColumnDef::new(UpdateRolloutServers::SessionId).uuid().null())
            .col(ColumnDef::new(UpdateRolloutServers::Offers).integer().not_null())
            .col(ColumnDef::new(UpdateRolloutServers::ChangedAt).big_integer().not_null())
            .primary_key(Index::create().col(UpdateRolloutServers::RolloutId).col(UpdateRolloutServers::ServerId))
            .foreign_key(
                ForeignKey::create()
                    .from(UpdateRolloutServers::Table, UpdateRolloutServers::RolloutId)
                    .to(UpdateRollouts::Table, UpdateRollouts::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .foreign_key(
                ForeignKey::create()
                    .from(UpdateRolloutServers::Table, UpdateRolloutServers::ServerId)
                    .to(Servers::Table, Servers::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(servers).await?;
        let of_server = Index::create()
            .name("update_rollout_servers_server")
            .table(UpdateRolloutServers::Table)
            .col(UpdateRolloutServers::ServerId)
            .to_owned();
        manager.create_index(of_server).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(UpdateRolloutServers::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(UpdateRollouts::Table).to_owned()).await
    }
}
