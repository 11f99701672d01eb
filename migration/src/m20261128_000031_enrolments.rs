//! Enrolments, with which machines make themselves servers, and the servers that were made with a request id.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, binary, integer, string, string_uniq, text, text_null, uuid,
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
enum Enrolments {
    Table,
    Id,
    OwnerId,
    Name,
    Prefix,
    Digest,
    Tags,
    Grants,
    Policy,
    Uses,
    UsesLeft,
    Networks,
    CreatedAt,
    ExpiresAt,
    LastUsedAt,
    LastUsedAddress,
}

#[derive(DeriveIden)]
enum EnrolledServers {
    Table,
    ServerId,
    EnrolmentId,
    Request,
    KeyId,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let enrolments = Table::create()
            .table(Enrolments::Table)
            .col(uuid(Enrolments::Id).primary_key())
            .col(uuid(Enrolments::OwnerId))
            .col(string(Enrolments::Name))
            .col(string_uniq(Enrolments::Prefix))
            .col(binary(Enrolments::Digest))
            .col(text(Enrolments::Tags))
            .col(text(Enrolments::Grants))
            .col(text_null(Enrolments::Policy))
            .col(integer(Enrolments::Uses))
            .col(integer(Enrolments::UsesLeft))
            .col(text(Enrolments::Networks))
            .col(big_integer(Enrolments::CreatedAt))
            .col(big_integer(Enrolments::ExpiresAt))
            .col(big_integer_null(Enrolments::LastUsedAt))
            .col(text_null(Enrolments::LastUsedAddress))
            .foreign_key(
                ForeignKey::create()
                    .from(Enrolments::Table, Enrolments::OwnerId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(enrolments).await?;
        let by_owner =
            Index::create().name("enrolments_by_owner").table(Enrolments::Table).col(Enrolments::OwnerId).to_owned();
        manager.create_index(by_owner).await?;

        let servers = Table::create()
            .table(EnrolledServers::Table)
            .col(uuid(EnrolledServers::ServerId).primary_key())
            .col(uuid(EnrolledServers::EnrolmentId))
            .col(binary(EnrolledServers::Request))
            .col(uuid(EnrolledServers::KeyId))
            .foreign_key(
                ForeignKey::create()
                    .from(EnrolledServers::Table, EnrolledServers::ServerId)
                    .to(Servers::Table, Servers::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .foreign_key(
                ForeignKey::create()
                    .from(EnrolledServers::Table, EnrolledServers::EnrolmentId)
                    .to(Enrolments::Table, Enrolments::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(servers).await?;
        let by_request = Index::create()
            .name("enrolled_servers_by_request")
            .table(EnrolledServers::Table)
            .col(EnrolledServers::EnrolmentId)
            .col(EnrolledServers::Request)
            .unique()
            .to_owned();
        manager.create_index(by_request).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(EnrolledServers::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Enrolments::Table).to_owned()).await
    }
}
