//! Commands on servers, and batches of them.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, binary_null, boolean, integer, integer_null, string, string_null, text, text_null,
    uuid, uuid_null,
};

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
enum CommandBatches {
    Table,
    Id,
    OwnerId,
    Username,
    Command,
    TimeoutSeconds,
    Concurrency,
    StopOnFailure,
    IsCancelled,
    CreatedAt,
    FinishedAt,
}

#[derive(DeriveIden)]
enum Commands {
    Table,
    Id,
    ServerId,
    BatchId,
    OwnerId,
    UserId,
    LoginId,
    Username,
    Address,
    Command,
    Stdin,
    TimeoutSeconds,
    Status,
    ExitCode,
    DurationMs,
    IsTruncated,
    Output,
    OutputParts,
    ErrorCode,
    ErrorDetail,
    CreatedAt,
    StartedAt,
    FinishedAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let batches = Table::create()
            .table(CommandBatches::Table)
            .col(uuid(CommandBatches::Id).primary_key())
            .col(uuid(CommandBatches::OwnerId))
            .col(string(CommandBatches::Username))
            .col(text(CommandBatches::Command))
            .col(integer(CommandBatches::TimeoutSeconds))
            .col(integer(CommandBatches::Concurrency))
            .col(boolean(CommandBatches::StopOnFailure))
            .col(boolean(CommandBatches::IsCancelled))
            .col(big_integer(CommandBatches::CreatedAt))
            .col(big_integer_null(CommandBatches::FinishedAt))
            .foreign_key(
                ForeignKey::create()
                    .from(CommandBatches::Table, CommandBatches::OwnerId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(batches).await?;
        let by_owner = Index::create()
            .name("command_batches_by_owner")
            .table(CommandBatches::Table)
            .col(CommandBatches::OwnerId)
            .col(CommandBatches::Id)
            .to_owned();
        manager.create_index(by_owner).await?;

        let commands = Table::create()
            .table(Commands::Table)
            .col(uuid(Commands::Id).primary_key())
            .col(uuid(Commands::ServerId))
            .col(uuid_null(Commands::BatchId))
            .col(uuid(Commands::OwnerId))
            .col(uuid(Commands::UserId))
            .col(uuid_null(Commands::LoginId))
            .col(string(Commands::Username))
            .col(string(Commands::Address))
            .col(text(Commands::Command))
            .col(text_null(Commands::Stdin))
            .col(integer(Commands::TimeoutSeconds))
            .col(string(Commands::Status))
            .col(integer_null(Commands::ExitCode))
            .col(big_integer_null(Commands::DurationMs))
            .col(boolean(Commands::IsTruncated))
            .col(binary_null(Commands::Output))
            .col(text_null(Commands::OutputParts))
            .col(string_null(Commands::ErrorCode))
            .col(text_null(Commands::ErrorDetail))
            .col(big_integer(Commands::CreatedAt))
            .col(big_integer_null(Commands::StartedAt))
            .col(big_integer_null(Commands::FinishedAt))
            .foreign_key(
                ForeignKey::create()
                    .from(Commands::Table, Commands::ServerId)
                    .to(Servers::Table, Servers::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(commands).await?;
        for (name, columns) in [
            ("commands_by_server", [Commands::ServerId, Commands::Id]),
            ("commands_by_batch", [Commands::BatchId, Commands::Id]),
            ("commands_by_status", [Commands::Status, Commands::ServerId]),
        ] {
            let mut index = Index::create();
            index.name(name).table(Commands::Table);
            for column in columns {
                index.col(column);
            }
            manager.create_index(index.to_owned()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Commands::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(CommandBatches::Table).to_owned()).await
    }
}
