//! Commands that recur, and their runs.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
}

#[derive(DeriveIden)]
enum Schedules {
    Table,
    Id,
    OwnerId,
    Username,
    Name,
    Command,
    ServerIds,
    Tag,
    TimeoutSeconds,
    Concurrency,
    StopOnFailure,
    Signed,
    Cron,
    TimeZone,
    IsEnabled,
    UntilAt,
    NextAt,
    Missed,
    MissedAt,
    CreatedAt,
    UpdatedAt,
}

#[derive(DeriveIden)]
enum ScheduleRuns {
    Table,
    ScheduleId,
    DueAt,
    BatchId,
    Outcome,
    StartedAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let schedules = Table::create()
            .table(Schedules::Table)
            .col(ColumnDef::new(Schedules::Id).uuid().not_null().primary_key())
            .col(ColumnDef::new(Schedules::OwnerId).uuid().not_null())
            .col(ColumnDef::new(Schedules::Username).text().not_null())
            .col(ColumnDef::new(Schedules::Name).text().not_null())
            .col(ColumnDef::new(Schedules::Command).text().not_null())
            .col(ColumnDef::new(Schedules::ServerIds).text().not_null())
            .col(ColumnDef::new(Schedules::Tag).text().null())
            .col(ColumnDef::new(Schedules::TimeoutSeconds).integer().not_null())
            .col(ColumnDef::new(Schedules::Concurrency).integer().not_null())
            .col(ColumnDef::new(Schedules::StopOnFailure).boolean().not_null())
            .col(ColumnDef::new(Schedules::Signed).text().null())
            .col(ColumnDef::new(Schedules::Cron).text().not_null())
            .col(ColumnDef::new(Schedules::TimeZone).text().not_null())
            .col(ColumnDef::new(Schedules::IsEnabled).boolean().not_null())
            .col(ColumnDef::new(Schedules::UntilAt).big_integer().null())
            .col(ColumnDef::new(Schedules::NextAt).big_integer().null())
            .col(ColumnDef::new(Schedules::Missed).big_integer().not_null())
            .col(ColumnDef::new(Schedules::MissedAt).big_integer().null())
            .col(ColumnDef::new(Schedules::CreatedAt).big_integer().not_null())
            .col(ColumnDef::new(Schedules::UpdatedAt).big_integer().not_null())
            .foreign_key(
                ForeignKey::create()
                    .from(Schedules::Table, Schedules::OwnerId)
                    .to(Users::Table, Users::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(schedules).await?;
        let of_owner =
            Index::create().name("schedules_owner").table(Schedules::Table).col(Schedules::OwnerId).to_owned();
        manager.create_index(of_owner).await?;
        let due = Index::create().name("schedules_next").table(Schedules::Table).col(Schedules::NextAt).to_owned();
        manager.create_index(due).await?;

        let runs = Table::create()
            .table(ScheduleRuns::Table)
            .col(ColumnDef::new(ScheduleRuns::ScheduleId).uuid().not_null())
            .col(ColumnDef::new(ScheduleRuns::DueAt).big_integer().not_null())
            .col(ColumnDef::new(ScheduleRuns::BatchId).uuid().null())
            .col(ColumnDef::new(ScheduleRuns::Outcome).text().null())
            .col(ColumnDef::new(ScheduleRuns::StartedAt).big_integer().not_null())
            .primary_key(Index::create().col(ScheduleRuns::ScheduleId).col(ScheduleRuns::DueAt))
            .foreign_key(
                ForeignKey::create()
                    .from(ScheduleRuns::Table, ScheduleRuns::ScheduleId)
                    .to(Schedules::Table, Schedules::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(runs).await?;
        let open = "CREATE INDEX schedule_runs_open ON schedule_runs (due_at) WHERE outcome IS NULL";
        manager.get_connection().execute_unprepared(open).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(ScheduleRuns::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Schedules::Table).to_owned()).await
    }
}
