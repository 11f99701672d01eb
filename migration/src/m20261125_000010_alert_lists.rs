//! Indexes of alerts in the order of their lists, by the filters of lists, so that none reads a year of them.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden, Clone, Copy)]
enum Alerts {
    Table,
    Id,
    OwnerId,
    ServerId,
    ThresholdId,
    MetricType,
    Severity,
    ResolvedAt,
}

const BY_KIND: &str = "alerts_by_kind";
const BY_SERVER_AND_KIND: &str = "alerts_by_server_and_kind";
const BY_THRESHOLD_AND_KIND: &str = "alerts_by_threshold_and_kind";
const EXCEPTIONAL: &str = "alerts_exceptional";

/// The index that the new ones replace.
const BY_SERVER: &str = "alerts_by_server";
const BY_RESOLUTION: &str = "alerts_by_resolution";

/// The condition of exceptional alerts: those that were not resolved within six hours, and those whose id does not begin with
/// the time at which they were triggered, give or take ten minutes. A statement that repeats it to the letter may use the index
/// of these few.
pub fn exceptional(backend: DatabaseBackend) -> &'static str {
    match backend {
        DatabaseBackend::Postgres => {
            "resolved_at IS NULL OR resolved_at < triggered_at OR resolved_at > triggered_at + 21600000 \
             OR id < CAST(lpad(to_hex(triggered_at - 600000), 12, '0') || '00000000000000000000' AS uuid) \
             OR id >= CAST(lpad(to_hex(triggered_at + 600000), 12, '0') || '00000000000000000000' AS uuid)"
        }
        _ => {
            "resolved_at IS NULL OR resolved_at < triggered_at OR resolved_at > triggered_at + 21600000 \
             OR hex(substr(id, 1, 6)) < printf('%012X', triggered_at - 600000) \
             OR hex(substr(id, 1, 6)) >= printf('%012X', triggered_at + 600000)"
        }
    }
}

fn index(name: &str, columns: &[Alerts]) -> IndexCreateStatement {
    let mut index = Index::create();
    index.name(name).table(Alerts::Table);
    for &column in columns {
        index.col(column);
    }
    index.to_owned()
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        use Alerts as A;
        // In this order: of two equally good ones, SQLite uses the one that was created first.
        let indexes = [
            index(BY_THRESHOLD_AND_KIND, &[A::ThresholdId, A::OwnerId, A::MetricType, A::Severity, A::Id]),
            index(BY_SERVER_AND_KIND, &[A::ServerId, A::OwnerId, A::MetricType, A::Severity, A::Id]),
            index(BY_KIND, &[A::OwnerId, A::MetricType, A::Severity, A::Id]),
        ];
        for index in indexes {
            manager.create_index(index).await?;
        }
        // With all columns that lists filter by, so that counting reads no row.
        let those = exceptional(manager.get_database_backend());
        let create = format!(
            "CREATE INDEX {EXCEPTIONAL} ON alerts (owner_id, id, triggered_at, resolved_at, server_id, threshold_id, \
             metric_type, severity, status) WHERE {those}"
        );
        manager.get_connection().execute_unprepared(&create).await?;
        for name in [BY_SERVER, BY_RESOLUTION] {
            manager.drop_index(Index::drop().name(name).table(A::Table).to_owned()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        use Alerts as A;
        manager.create_index(index(BY_RESOLUTION, &[A::OwnerId, A::ResolvedAt])).await?;
        manager.create_index(index(BY_SERVER, &[A::ServerId, A::Id])).await?;
        for name in [EXCEPTIONAL, BY_THRESHOLD_AND_KIND, BY_SERVER_AND_KIND, BY_KIND] {
            manager.drop_index(Index::drop().name(name).table(A::Table).to_owned()).await?;
        }
        Ok(())
    }
}
