//! Teams, their members, and grants: who besides the owner may do what to which servers.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, string_null, string_uniq, uuid, uuid_null};

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
enum Teams {
    Table,
    Id,
    Name,
    NameKey,
    CreatedBy,
    CreatedAt,
}

#[derive(DeriveIden)]
enum TeamMembers {
    Table,
    TeamId,
    UserId,
    AddedAt,
}

#[derive(DeriveIden)]
enum Grants {
    Table,
    Id,
    OwnerId,
    GiverId,
    SubjectUserId,
    SubjectTeamId,
    ServerId,
    Tag,
    Role,
    Rights,
    CreatedAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(teams()).await?;
        manager.create_table(members()).await?;
        manager.create_table(grants()).await?;
        let index = |name: &str| Index::create().name(name).to_owned();
        manager.create_index(index("teams_by_creator").table(Teams::Table).col(Teams::CreatedBy).to_owned()).await?;
        let by_user = index("team_members_by_user").table(TeamMembers::Table).col(TeamMembers::UserId).to_owned();
        manager.create_index(by_user).await?;
        let columns = [
            ("grants_by_owner", Grants::OwnerId),
            ("grants_by_giver", Grants::GiverId),
            ("grants_by_user", Grants::SubjectUserId),
            ("grants_by_team", Grants::SubjectTeamId),
            ("grants_by_server", Grants::ServerId),
        ];
        for (name, column) in columns {
            manager.create_index(index(name).table(Grants::Table).col(column).to_owned()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Grants::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(TeamMembers::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Teams::Table).to_owned()).await
    }
}

/// A team outlives its creator: the administrator manages it then.
fn teams() -> TableCreateStatement {
    Table::create()
        .table(Teams::Table)
        .col(uuid(Teams::Id).primary_key())
        .col(string(Teams::Name))
        .col(string_uniq(Teams::NameKey))
        .col(uuid_null(Teams::CreatedBy))
        .col(big_integer(Teams::CreatedAt))
        .foreign_key(
            ForeignKey::create()
                .from(Teams::Table, Teams::CreatedBy)
                .to(Users::Table, Users::Id)
                .on_delete(ForeignKeyAction::SetNull),
        )
        .to_owned()
}

fn members() -> TableCreateStatement {
    Table::create()
        .table(TeamMembers::Table)
        .col(uuid(TeamMembers::TeamId))
        .col(uuid(TeamMembers::UserId))
        .col(big_integer(TeamMembers::AddedAt))
        .primary_key(Index::create().col(TeamMembers::TeamId).col(TeamMembers::UserId))
        .foreign_key(
            ForeignKey::create()
                .from(TeamMembers::Table, TeamMembers::TeamId)
                .to(Teams::Table, Teams::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .foreign_key(
            ForeignKey::create()
                .from(TeamMembers::Table, TeamMembers::UserId)
                .to(Users::Table, Users::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .to_owned()
}

/// A grant ends with its owner, its subject and its server, and outlives who gave it.
fn grants() -> TableCreateStatement {
    let mut table = Table::create();
    table
        .table(Grants::Table)
        .col(uuid(Grants::Id).primary_key())
        .col(uuid(Grants::OwnerId))
        .col(uuid_null(Grants::GiverId))
        .col(uuid_null(Grants::SubjectUserId))
        .col(uuid_null(Grants::SubjectTeamId))
        .col(uuid_null(Grants::ServerId))
        .col(string_null(Grants::Tag))
        .col(string(Grants::Role))
        .col(string(Grants::Rights))
        .col(big_integer(Grants::CreatedAt));
    for (column, action) in [
        (Grants::OwnerId, ForeignKeyAction::Cascade),
        (Grants::GiverId, ForeignKeyAction::SetNull),
        (Grants::SubjectUserId, ForeignKeyAction::Cascade),
    ] {
        table.foreign_key(
            ForeignKey::create().from(Grants::Table, column).to(Users::Table, Users::Id).on_delete(action),
        );
    }
    let team = ForeignKey::create()
        .from(Grants::Table, Grants::SubjectTeamId)
        .to(Teams::Table, Teams::Id)
        .on_delete(ForeignKeyAction::Cascade)
        .to_owned();
    let server = ForeignKey::create()
        .from(Grants::Table, Grants::ServerId)
        .to(Servers::Table, Servers::Id)
        .on_delete(ForeignKeyAction::Cascade)
        .to_owned();
    table.foreign_key(&mut team.clone()).foreign_key(&mut server.clone()).to_owned()
}
