//! Second factors: authenticator apps, recovery codes, passkeys. Each login knows by which means its user signed in, and when
//! they last proved who they are.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, binary, integer, string, uuid};

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
    CreatedAt,
    Means,
    ProvedAt,
    SecondFactor,
}

#[derive(DeriveIden)]
enum TotpSecrets {
    Table,
    UserId,
    Sealed,
    CreatedAt,
    ConfirmedAt,
    LastStep,
    Failures,
    FailingSince,
}

#[derive(DeriveIden)]
enum RecoveryCodes {
    Table,
    UserId,
    Digest,
}

#[derive(DeriveIden)]
enum Passkeys {
    Table,
    Id,
    UserId,
    CredentialId,
    PublicKey,
    SignCount,
    Name,
    CreatedAt,
    LastUsedAt,
}

#[derive(DeriveIden)]
enum SpentChallenges {
    Table,
    Nonce,
    ExpiresAt,
}

/// Deletes the rows of a table with their user.
fn of_user(table: impl Iden + 'static, user_id: impl Iden + 'static) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .from(table, user_id)
        .to(Users::Table, Users::Id)
        .on_delete(ForeignKeyAction::Cascade)
        .to_owned()
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let (mut means, mut proved, mut second) =
            (ColumnDef::new(Logins::Means), ColumnDef::new(Logins::ProvedAt), ColumnDef::new(Logins::SecondFactor));
        means.string().not_null().default("password");
        proved.big_integer().not_null().default(0);
        second.boolean().not_null().default(false);
        for column in [means, proved, second] {
            manager.alter_table(Table::alter().table(Logins::Table).add_column(column).to_owned()).await?;
        }
        let earlier =
            Query::update().table(Logins::Table).value(Logins::ProvedAt, Expr::col(Logins::CreatedAt)).to_owned();
        manager.exec_stmt(earlier).await?;

        let secrets = Table::create()
            .table(TotpSecrets::Table)
            .col(uuid(TotpSecrets::UserId).primary_key())
            .col(binary(TotpSecrets::Sealed))
            .col(big_integer(TotpSecrets::CreatedAt))
            .col(big_integer_null(TotpSecrets::ConfirmedAt))
            .col(big_integer(TotpSecrets::LastStep))
            .col(integer(TotpSecrets::Failures))
            .col(big_integer(TotpSecrets::FailingSince))
            .foreign_key(&mut of_user(TotpSecrets::Table, TotpSecrets::UserId))
            .to_owned();
        manager.create_table(secrets).await?;

        let codes = Table::create()
            .table(RecoveryCodes::Table)
            .col(uuid(RecoveryCodes::UserId))
            .col(binary(RecoveryCodes::Digest))
            .primary_key(Index::create().col(RecoveryCodes::UserId).col(RecoveryCodes::Digest))
            .foreign_key(&mut of_user(RecoveryCodes::Table, RecoveryCodes::UserId))
            .to_owned();
        manager.create_table(codes).await?;

        let passkeys = Table::create()
            .table(Passkeys::Table)
            .col(uuid(Passkeys::Id).primary_key())
            .col(uuid(Passkeys::UserId))
            .col(binary(Passkeys::CredentialId).unique_key())
            .col(binary(Passkeys::PublicKey))
            .col(big_integer(Passkeys::SignCount))
            .col(string(Passkeys::Name))
            .col(big_integer(Passkeys::CreatedAt))
            .col(big_integer_null(Passkeys::LastUsedAt))
            .foreign_key(&mut of_user(Passkeys::Table, Passkeys::UserId))
            .to_owned();
        manager.create_table(passkeys).await?;
        let by_user = Index::create().name("passkeys_by_user").table(Passkeys::Table).col(Passkeys::UserId).to_owned();
        manager.create_index(by_user).await?;

        let spent = Table::create()
            .table(SpentChallenges::Table)
            .col(binary(SpentChallenges::Nonce).primary_key())
            .col(big_integer(SpentChallenges::ExpiresAt))
            .to_owned();
        manager.create_table(spent).await?;
        let by_end = Index::create()
            .name("spent_challenges_by_end")
            .table(SpentChallenges::Table)
            .col(SpentChallenges::ExpiresAt)
            .to_owned();
        manager.create_index(by_end).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(SpentChallenges::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Passkeys::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(RecoveryCodes::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(TotpSecrets::Table).to_owned()).await?;
        for column in [Logins::SecondFactor, Logins::ProvedAt, Logins::Means] {
            manager.alter_table(Table::alter().table(Logins::Table).drop_column(column).to_owned()).await?;
        }
        Ok(())
    }
}
