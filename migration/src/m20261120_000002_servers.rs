//! Servers, their tags and their agents' keys.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, binary, integer, string, string_uniq, text, text_null, uuid, uuid_null,
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
    OwnerId,
    SearchText,
    Name,
    Host,
    Port,
    Description,
    Agent,
    SessionId,
    LastSeenAt,
    CreatedAt,
    UpdatedAt,
}

#[derive(DeriveIden)]
enum ServerTags {
    Table,
    ServerId,
    Tag,
    Position,
}

#[derive(DeriveIden)]
enum ApiKeys {
    Table,
    Id,
    ServerId,
    Name,
    Prefix,
    Digest,
    CreatedAt,
    LastUsedAt,
    ExpiresAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let servers = Table::create()
            .table(Servers::Table)
            .col(uuid(Servers::Id).primary_key())
            .col(uuid(Servers::OwnerId))
            .col(text(Servers::SearchText))
            .col(string(Servers::Name))
            .col(string(Servers::Host))
            .col(integer(Servers::Port))
            .col(text(Servers::Description))
            .col(text_null(Servers::Agent))
            .col(uuid_null(Servers::SessionId))
            .col(big_integer_null(Servers::LastSeenAt))
            .col(big_integer(Servers::CreatedAt))
            .col(big_integer(Servers::UpdatedAt))
            .foreign_key(
                ForeignKey::create()
                    .from(Servers::Table, Servers::OwnerId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(servers).await?;
        let by_owner = Index::create().name("servers_by_owner").table(Servers::Table).col(Servers::OwnerId).to_owned();
        manager.create_index(by_owner).await?;

        let tags = Table::create()
            .table(ServerTags::Table)
            .col(uuid(ServerTags::ServerId))
            .col(string(ServerTags::Tag))
            .col(integer(ServerTags::Position))
            .primary_key(Index::create().col(ServerTags::ServerId).col(ServerTags::Tag))
            .foreign_key(
                ForeignKey::create()
                    .from(ServerTags::Table, ServerTags::ServerId)
                    .to(Servers::Table, Servers::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(tags).await?;

        let keys = Table::create()
            .table(ApiKeys::Table)
            .col(uuid(ApiKeys::Id).primary_key())
            .col(uuid(ApiKeys::ServerId))
            .col(string(ApiKeys::Name))
            .col(string_uniq(ApiKeys::Prefix))
            .col(binary(ApiKeys::Digest))
            .col(big_integer(ApiKeys::CreatedAt))
            .col(big_integer_null(ApiKeys::LastUsedAt))
            .col(big_integer_null(ApiKeys::ExpiresAt))
            .foreign_key(
                ForeignKey::create()
                    .from(ApiKeys::Table, ApiKeys::ServerId)
                    .to(Servers::Table, Servers::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(keys).await?;
        let by_server =
            Index::create().name("api_keys_by_server").table(ApiKeys::Table).col(ApiKeys::ServerId).to_owned();
        manager.create_index(by_server).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(ApiKeys::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(ServerTags::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Servers::Table).to_owned()).await
    }
}
