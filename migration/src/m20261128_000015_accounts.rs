//! Accounts that are disabled, the last sign-in of each, and invitations to make one.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, binary_uniq, text, text_null, uuid, uuid_null};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
    DisabledAt,
    LastLoginAt,
}

#[derive(DeriveIden)]
enum Invitations {
    Table,
    Id,
    OwnerId,
    Digest,
    Email,
    Grants,
    CreatedAt,
    ExpiresAt,
}

/// The last sign-in that is still known: sessions that have ended left no row.
const FILL: &str = "UPDATE users SET last_login_at = \
                    (SELECT MAX(logins.created_at) FROM logins WHERE logins.user_id = users.id)";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite changes one column at a time.
        for column in [Users::DisabledAt, Users::LastLoginAt] {
            let add = Table::alter().table(Users::Table).add_column(big_integer_null(column)).to_owned();
            manager.alter_table(add).await?;
        }
        manager.get_connection().execute_unprepared(FILL).await?;

        let invitations = Table::create()
            .table(Invitations::Table)
            .col(uuid(Invitations::Id).primary_key())
            .col(uuid_null(Invitations::OwnerId))
            .col(binary_uniq(Invitations::Digest))
            .col(text_null(Invitations::Email))
            .col(text(Invitations::Grants))
            .col(big_integer(Invitations::CreatedAt))
            .col(big_integer(Invitations::ExpiresAt))
            .foreign_key(
                ForeignKey::create()
                    .from(Invitations::Table, Invitations::OwnerId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(invitations).await?;
        let by_owner =
            Index::create().name("invitations_by_owner").table(Invitations::Table).col(Invitations::OwnerId).to_owned();
        manager.create_index(by_owner).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Invitations::Table).to_owned()).await?;
        for column in [Users::DisabledAt, Users::LastLoginAt] {
            manager.alter_table(Table::alter().table(Users::Table).drop_column(column).to_owned()).await?;
        }
        Ok(())
    }
}
