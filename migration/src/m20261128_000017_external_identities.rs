//! People who sign in at an identity provider: who they are there, the logins that came of it, and which of the provider's
//! messages about the end of a session were used.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, string_null, text, uuid};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum Logins {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum ExternalIdentities {
    Table,
    Id,
    UserId,
    Issuer,
    Subject,
    Email,
    Groups,
    CreatedAt,
    LastSignInAt,
}

#[derive(DeriveIden)]
enum ExternalLogins {
    Table,
    LoginId,
    IdentityId,
    Sid,
}

#[derive(DeriveIden)]
enum LogoutTokens {
    Table,
    Issuer,
    Jti,
    ExpiresAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(identities()).await?;
        let by_subject = Index::create()
            .name("external_identities_by_subject")
            .table(ExternalIdentities::Table)
            .col(ExternalIdentities::Issuer)
            .col(ExternalIdentities::Subject)
            .unique()
            .to_owned();
        manager.create_index(by_subject).await?;
        let by_user = Index::create()
            .name("external_identities_by_user")
            .table(ExternalIdentities::Table)
            .col(ExternalIdentities::UserId)
            .to_owned();
        manager.create_index(by_user).await?;

        manager.create_table(logins()).await?;
        let by_identity = Index::create()
            .name("external_logins_by_identity")
            .table(ExternalLogins::Table)
            .col(ExternalLogins::IdentityId)
            .to_owned();
        manager.create_index(by_identity).await?;
        let by_sid = Index::create()
            .name("external_logins_by_sid")
            .table(ExternalLogins::Table)
            .col(ExternalLogins::Sid)
            .to_owned();
        manager.create_index(by_sid).await?;

        let tokens = Table::create()
            .table(LogoutTokens::Table)
            .col(string(LogoutTokens::Issuer))
            .col(string(LogoutTokens::Jti))
            .col(big_integer(LogoutTokens::ExpiresAt))
            .primary_key(Index::create().col(LogoutTokens::Issuer).col(LogoutTokens::Jti))
            .to_owned();
        manager.create_table(tokens).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(LogoutTokens::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(ExternalLogins::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(ExternalIdentities::Table).to_owned()).await
    }
}

fn identities() -> TableCreateStatement {
    Table::create()
        .table(ExternalIdentities::Table)
        .col(uuid(ExternalIdentities::Id).primary_key())
        .col(uuid(ExternalIdentities::UserId))
        .col(string(ExternalIdentities::Issuer))
        .col(string(ExternalIdentities::Subject))
        .col(string(ExternalIdentities::Email))
        .col(text(ExternalIdentities::Groups))
        .col(big_integer(ExternalIdentities::CreatedAt))
        .col(big_integer(ExternalIdentities::LastSignInAt))
        .foreign_key(
            ForeignKey::create()
                .from(ExternalIdentities::Table, ExternalIdentities::UserId)
                .to(Users::Table, Users::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .to_owned()
}

fn logins() -> TableCreateStatement {
    Table::create()
        .table(ExternalLogins::Table)
        .col(uuid(ExternalLogins::LoginId).primary_key())
        .col(uuid(ExternalLogins::IdentityId))
        .col(string_null(ExternalLogins::Sid))
        .foreign_key(
            ForeignKey::create()
                .from(ExternalLogins::Table, ExternalLogins::LoginId)
                .to(Logins::Table, Logins::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .foreign_key(
            ForeignKey::create()
                .from(ExternalLogins::Table, ExternalLogins::IdentityId)
                .to(ExternalIdentities::Table, ExternalIdentities::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .to_owned()
}
