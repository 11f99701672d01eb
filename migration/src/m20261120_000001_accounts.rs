//! Users, their logins, and the role that only the first account gets.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, boolean, string, string_uniq, text, uuid, uuid_null};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
    Email,
    EmailKey,
    Username,
    UsernameKey,
    FullName,
    PasswordHash,
    IsAdmin,
    CreatedAt,
    UpdatedAt,
}

#[derive(DeriveIden)]
enum Claims {
    Table,
    Name,
    UserId,
}

#[derive(DeriveIden)]
enum Logins {
    Table,
    Id,
    UserId,
    CurrentToken,
    PreviousToken,
    RotatedAt,
    CreatedAt,
    LastUsedAt,
    ExpiresAt,
    UserAgent,
    Address,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let users = Table::create()
            .table(Users::Table)
            .col(uuid(Users::Id).primary_key())
            .col(string(Users::Email))
            .col(string_uniq(Users::EmailKey))
            .col(string(Users::Username))
            .col(string_uniq(Users::UsernameKey))
            .col(string(Users::FullName))
            .col(string(Users::PasswordHash))
            .col(boolean(Users::IsAdmin))
            .col(big_integer(Users::CreatedAt))
            .col(big_integer(Users::UpdatedAt))
            .to_owned();
        manager.create_table(users).await?;

        let claims = Table::create()
            .table(Claims::Table)
            .col(string(Claims::Name).primary_key())
            .col(uuid(Claims::UserId))
            .to_owned();
        manager.create_table(claims).await?;

        let logins = Table::create()
            .table(Logins::Table)
            .col(uuid(Logins::Id).primary_key())
            .col(uuid(Logins::UserId))
            .col(uuid(Logins::CurrentToken))
            .col(uuid_null(Logins::PreviousToken))
            .col(big_integer(Logins::RotatedAt))
            .col(big_integer(Logins::CreatedAt))
            .col(big_integer(Logins::LastUsedAt))
            .col(big_integer(Logins::ExpiresAt))
            .col(text(Logins::UserAgent))
            .col(string(Logins::Address))
            .foreign_key(
                ForeignKey::create()
                    .from(Logins::Table, Logins::UserId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(logins).await?;
        for (name, column) in [("logins_by_user", Logins::UserId), ("logins_by_expiry", Logins::ExpiresAt)] {
            manager.create_index(Index::create().name(name).table(Logins::Table).col(column).to_owned()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Logins::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Claims::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Users::Table).to_owned()).await
    }
}
