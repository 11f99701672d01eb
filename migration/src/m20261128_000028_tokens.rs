//! Tokens for programs, and which one was used for a command or a batch.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, binary, boolean, string, string_uniq, text, text_null, uuid, uuid_null,
};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum ProgramTokens {
    Table,
    Id,
    UserId,
    Name,
    Prefix,
    Digest,
    Role,
    Rights,
    Scope,
    Networks,
    SecondFactor,
    CreatedAt,
    ExpiresAt,
    LastUsedAt,
    LastUsedAddress,
}

#[derive(DeriveIden)]
enum Commands {
    Table,
    TokenName,
}

#[derive(DeriveIden)]
enum CommandBatches {
    Table,
    TokenId,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let tokens = Table::create()
            .table(ProgramTokens::Table)
            .col(uuid(ProgramTokens::Id).primary_key())
            .col(uuid(ProgramTokens::UserId))
            .col(string(ProgramTokens::Name))
            .col(string_uniq(ProgramTokens::Prefix))
            .col(binary(ProgramTokens::Digest))
            .col(string(ProgramTokens::Role))
            .col(string(ProgramTokens::Rights))
            .col(text(ProgramTokens::Scope))
            .col(text(ProgramTokens::Networks))
            .col(boolean(ProgramTokens::SecondFactor))
            .col(big_integer(ProgramTokens::CreatedAt))
            .col(big_integer(ProgramTokens::ExpiresAt))
            .col(big_integer_null(ProgramTokens::LastUsedAt))
            .col(text_null(ProgramTokens::LastUsedAddress))
            .foreign_key(
                ForeignKey::create()
                    .from(ProgramTokens::Table, ProgramTokens::UserId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(tokens).await?;
        let by_user = Index::create()
            .name("program_tokens_by_user")
            .table(ProgramTokens::Table)
            .col(ProgramTokens::UserId)
            .to_owned();
        manager.create_index(by_user).await?;
        let name = Table::alter().table(Commands::Table).add_column(text_null(Commands::TokenName)).to_owned();
        manager.alter_table(name).await?;
        let id = Table::alter().table(CommandBatches::Table).add_column(uuid_null(CommandBatches::TokenId)).to_owned();
        manager.alter_table(id).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let id = Table::alter().table(CommandBatches::Table).drop_column(CommandBatches::TokenId).to_owned();
        manager.alter_table(id).await?;
        let name = Table::alter().table(Commands::Table).drop_column(Commands::TokenName).to_owned();
        manager.alter_table(name).await?;
        manager.drop_table(Table::drop().table(ProgramTokens::Table).to_owned()).await
    }
}
