//! Signed commands that wait until enough people have signed them.

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
enum Approvals {
    Table,
    Id,
    UserId,
    LoginId,
    Username,
    Address,
    Command,
    Stdin,
    TimeoutSeconds,
    Concurrency,
    StopOnFailure,
    Payload,
    Needed,
    Status,
    NotBefore,
    ExpiresAt,
    CreatedAt,
    EndedAt,
}

#[derive(DeriveIden)]
enum ApprovalServers {
    Table,
    ApprovalId,
    ServerId,
}

#[derive(DeriveIden)]
enum ApprovalSignatures {
    Table,
    ApprovalId,
    Signer,
    Signature,
    UserId,
    Username,
    SignedAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let asker = ForeignKey::create()
            .from(Approvals::Table, Approvals::UserId)
            .to(Users::Table, Users::Id)
            .on_delete(ForeignKeyAction::Cascade)
            .to_owned();
        let approvals = Table::create()
            .table(Approvals::Table)
            .col(ColumnDef::new(Approvals::Id).uuid().not_null().primary_key())
            .col(ColumnDef::new(Approvals::UserId).uuid().not_null())
            .col(ColumnDef::new(Approvals::LoginId).uuid().null())
            .col(ColumnDef::new(Approvals::Username).text().not_null())
            .col(ColumnDef::new(Approvals::Address).text().not_null())
            .col(ColumnDef::new(Approvals::Command).text().not_null())
            .col(ColumnDef::new(Approvals::Stdin).text().null())
            .col(ColumnDef::new(Approvals::TimeoutSeconds).integer().not_null())
            .col(ColumnDef::new(Approvals::Concurrency).integer().not_null())
            .col(ColumnDef::new(Approvals::StopOnFailure).boolean().not_null())
            .col(ColumnDef::new(Approvals::Payload).blob().not_null())
            .col(ColumnDef::new(Approvals::Needed).integer().not_null())
            .col(ColumnDef::new(Approvals::Status).text().not_null())
            .col(ColumnDef::new(Approvals::NotBefore).big_integer().not_null())
            .col(ColumnDef::new(Approvals::ExpiresAt).big_integer().not_null())
            .col(ColumnDef::new(Approvals::CreatedAt).big_integer().not_null())
            .col(ColumnDef::new(Approvals::EndedAt).big_integer().null())
            .foreign_key(&mut asker.clone())
            .to_owned();
        manager.create_table(approvals).await?;
        let of_user = Index::create()
            .name("approvals_user")
            .table(Approvals::Table)
            .col(Approvals::UserId)
            .col(Approvals::Status)
            .to_owned();
        manager.create_index(of_user).await?;
        let by_status = Index::create()
            .name("approvals_status")
            .table(Approvals::Table)
            .col(Approvals::Status)
            .col(Approvals::ExpiresAt)
            .to_owned();
        manager.create_index(by_status).await?;

        let servers = Table::create()
            .table(ApprovalServers::Table)
            .col(ColumnDef::new(ApprovalServers::ApprovalId).uuid().not_null())
            .col(ColumnDef::new(ApprovalServers::ServerId).uuid().not_null())
            .primary_key(Index::create().col(ApprovalServers::ApprovalId).col(ApprovalServers::ServerId))
            .foreign_key(&mut of_approval(ApprovalServers::Table, ApprovalServers::ApprovalId))
            .foreign_key(
                ForeignKey::create()
                    .from(ApprovalServers::Table, ApprovalServers::ServerId)
                    .to(Servers::Table, Servers::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(servers).await?;
        let of_server = Index::create()
            .name("approval_servers_server")
            .table(ApprovalServers::Table)
            .col(ApprovalServers::ServerId)
            .to_owned();
        manager.create_index(of_server).await?;

        let signatures = Table::create()
            .table(ApprovalSignatures::Table)
            .col(ColumnDef::new(ApprovalSignatures::ApprovalId).uuid().not_null())
            .col(ColumnDef::new(ApprovalSignatures::Signer).text().not_null())
            .col(ColumnDef::new(ApprovalSignatures::Signature).blob().not_null())
            .col(ColumnDef::new(ApprovalSignatures::UserId).uuid().not_null())
            .col(ColumnDef::new(ApprovalSignatures::Username).text().not_null())
            .col(ColumnDef::new(ApprovalSignatures::SignedAt).big_integer().not_null())
            .primary_key(Index::create().col(ApprovalSignatures::ApprovalId).col(ApprovalSignatures::Signer))
            .foreign_key(&mut of_approval(ApprovalSignatures::Table, ApprovalSignatures::ApprovalId))
            .to_owned();
        manager.create_table(signatures).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(ApprovalSignatures::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(ApprovalServers::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Approvals::Table).to_owned()).await
    }
}

fn of_approval(table: impl IntoIden, column: impl IntoIden) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .from(table.into_iden(), column)
        .to(Approvals::Table, Approvals::Id)
        .on_delete(ForeignKeyAction::Cascade)
        .to_owned()
}
