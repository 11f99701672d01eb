//! Alert thresholds, the alerts that they raised, their timelines, and silences.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, boolean, double, double_null, integer, integer_null, string, string_null, text,
    text_null, uuid, uuid_null,
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
enum AlertThresholds {
    Table,
    Id,
    OwnerId,
    ServerId,
    Tag,
    MetricType,
    ThresholdValue,
    ClearValue,
    Comparison,
    DurationSeconds,
    Target,
    States,
    Severity,
    IsEnabled,
    ArmedAt,
    CreatedAt,
    UpdatedAt,
}

#[derive(DeriveIden)]
enum Alerts {
    Table,
    Id,
    OwnerId,
    ServerId,
    ThresholdId,
    MetricType,
    Target,
    WorstTarget,
    ThresholdValue,
    ClearValue,
    Comparison,
    DurationSeconds,
    Severity,
    Status,
    Value,
    PeakValue,
    Message,
    IsSilenced,
    SampleAt,
    NotifyAt,
    TriggeredAt,
    AcknowledgedAt,
    AcknowledgedBy,
    ResolvedAt,
    ResolvedBy,
    RearmedAt,
}

#[derive(DeriveIden)]
enum AlertEvents {
    Table,
    Id,
    AlertId,
    At,
    Kind,
    UserId,
    Username,
    Detail,
}

#[derive(DeriveIden)]
enum Silences {
    Table,
    Id,
    OwnerId,
    ServerId,
    Tag,
    Reason,
    StartsAt,
    EndsAt,
    Weekdays,
    StartMinute,
    DurationMinutes,
    TimeZone,
    CreatedBy,
    CreatedAt,
    UpdatedAt,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(thresholds()).await?;
        manager.create_table(alerts()).await?;
        manager.create_table(events()).await?;
        manager.create_table(silences()).await?;
        for index in indices() {
            manager.create_index(index).await?;
        }
        // One unresolved alert per threshold, server and target. It is an expression, which the builder cannot express; both
        // databases accept this form.
        let one_open = "CREATE UNIQUE INDEX alerts_one_open ON alerts (threshold_id, server_id, COALESCE(target, '')) \
                        WHERE resolved_at IS NULL";
        manager.get_connection().execute_unprepared(one_open).await?;
        // Open alerts, and those that a user resolved while the metric has not recovered: few, and searched at every start.
        let unsettled = "CREATE INDEX alerts_unsettled ON alerts (server_id) \
                     WHERE rearmed_at IS NULL";
        manager.get_connection().execute_unprepared(unsettled).await?;
        // What dashboards show when they open: few among all that ever were.
        let open = "CREATE INDEX alerts_unresolved ON alerts (owner_id, id) WHERE resolved_at IS NULL";
        manager.get_connection().execute_unprepared(open).await?;
        let due = "CREATE INDEX alerts_to_notify ON alerts (notify_at) WHERE notify_at IS NOT NULL";
        manager.get_connection().execute_unprepared(due).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(Silences::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(AlertEvents::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(Alerts::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(AlertThresholds::Table).to_owned()).await
    }
}

fn thresholds() -> TableCreateStatement {
    use AlertThresholds as C;
    Table::create()
        .table(C::Table)
        .col(uuid(C::Id).primary_key())
        .col(uuid(C::OwnerId))
        .col(uuid_null(C::ServerId))
        .col(string_null(C::Tag))
        .col(string(C::MetricType))
        .col(double(C::ThresholdValue))
        .col(double_null(C::ClearValue))
        .col(string(C::Comparison))
        .col(integer(C::DurationSeconds))
        .col(text_null(C::Target))
        .col(string_null(C::States))
        .col(string(C::Severity))
        .col(boolean(C::IsEnabled))
        .col(big_integer(C::ArmedAt))
        .col(big_integer(C::CreatedAt))
        .col(big_integer(C::UpdatedAt))
        .foreign_key(&mut to_users(C::Table, C::OwnerId))
        .foreign_key(&mut to_servers(C::Table, C::ServerId))
        .to_owned()
}

fn alerts() -> TableCreateStatement {
    use Alerts as C;
    Table::create()
        .table(C::Table)
        .col(uuid(C::Id).primary_key())
        .col(uuid(C::OwnerId))
        .col(uuid(C::ServerId))
        .col(uuid(C::ThresholdId))
        .col(string(C::MetricType))
        .col(text_null(C::Target))
        .col(text_null(C::WorstTarget))
        .col(double(C::ThresholdValue))
        .col(double_null(C::ClearValue))
        .col(string(C::Comparison))
        .col(integer(C::DurationSeconds))
        .col(string(C::Severity))
        .col(string(C::Status))
        .col(double(C::Value))
        .col(double(C::PeakValue))
        .col(text(C::Message))
        .col(boolean(C::IsSilenced))
        .col(big_integer(C::SampleAt))
        .col(big_integer_null(C::NotifyAt))
        .col(big_integer(C::TriggeredAt))
        .col(big_integer_null(C::AcknowledgedAt))
        .col(uuid_null(C::AcknowledgedBy))
        .col(big_integer_null(C::ResolvedAt))
        .col(string_null(C::ResolvedBy))
        .col(big_integer_null(C::RearmedAt))
        .foreign_key(&mut to_users(C::Table, C::OwnerId))
        .foreign_key(&mut to_servers(C::Table, C::ServerId))
        .to_owned()
}

fn events() -> TableCreateStatement {
    use AlertEvents as C;
    Table::create()
        .table(C::Table)
        .col(uuid(C::Id).primary_key())
        .col(uuid(C::AlertId))
        .col(big_integer(C::At))
        .col(string(C::Kind))
        .col(uuid_null(C::UserId))
        .col(string_null(C::Username))
        .col(text_null(C::Detail))
        .foreign_key(
            ForeignKey::create()
                .from(C::Table, C::AlertId)
                .to(Alerts::Table, Alerts::Id)
                .on_delete(ForeignKeyAction::Cascade),
        )
        .to_owned()
}

fn silences() -> TableCreateStatement {
    use Silences as C;
    Table::create()
        .table(C::Table)
        .col(uuid(C::Id).primary_key())
        .col(uuid(C::OwnerId))
        .col(uuid_null(C::ServerId))
        .col(string_null(C::Tag))
        .col(text(C::Reason))
        .col(big_integer_null(C::StartsAt))
        .col(big_integer_null(C::EndsAt))
        .col(string_null(C::Weekdays))
        .col(integer_null(C::StartMinute))
        .col(integer_null(C::DurationMinutes))
        .col(string_null(C::TimeZone))
        .col(string(C::CreatedBy))
        .col(big_integer(C::CreatedAt))
        .col(big_integer(C::UpdatedAt))
        .foreign_key(&mut to_users(C::Table, C::OwnerId))
        .foreign_key(&mut to_servers(C::Table, C::ServerId))
        .to_owned()
}

fn indices() -> Vec<IndexCreateStatement> {
    let index = |name: &str, table: DynIden, columns: &[DynIden]| {
        let mut index = Index::create();
        index.name(name).table(table);
        for column in columns {
            index.col(column.clone());
        }
        index.to_owned()
    };
    use {AlertEvents as E, AlertThresholds as T, Alerts as A, Silences as S};
    vec![
        index("alert_thresholds_by_owner", T::Table.into_iden(), &[T::OwnerId.into_iden(), T::Id.into_iden()]),
        index("alert_thresholds_by_server", T::Table.into_iden(), &[T::ServerId.into_iden()]),
        index("alerts_by_owner", A::Table.into_iden(), &[A::OwnerId.into_iden(), A::Id.into_iden()]),
        index("alerts_by_server", A::Table.into_iden(), &[A::ServerId.into_iden(), A::Id.into_iden()]),
        index("alerts_by_status", A::Table.into_iden(), &[A::Status.into_iden(), A::ResolvedAt.into_iden()]),
        index("alert_events_by_alert", E::Table.into_iden(), &[E::AlertId.into_iden(), E::Id.into_iden()]),
        index("silences_by_owner", S::Table.into_iden(), &[S::OwnerId.into_iden(), S::Id.into_iden()]),
    ]
}

fn to_users(table: impl IntoTableRef, column: impl IntoIden) -> ForeignKeyCreateStatement {
    ForeignKey::create().from(table, column).to(Users::Table, Users::Id).on_delete(ForeignKeyAction::Cascade).to_owned()
}

fn to_servers(table: impl IntoTableRef, column: impl IntoIden) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .from(table, column)
        .to(Servers::Table, Servers::Id)
        .on_delete(ForeignKeyAction::Cascade)
        .to_owned()
}
