//! The number of alerts of each kind, stored separately: counting a year of them for every page takes too long.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, uuid};
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum AlertCounts {
    Table,
    OwnerId,
    ServerId,
    ThresholdId,
    MetricType,
    Severity,
    Status,
    Count,
}

#[derive(DeriveIden)]
enum Servers {
    Table,
    Id,
}

/// The columns of a kind. A threshold that measures something else is another kind.
const KIND: &str = "owner_id, server_id, threshold_id, metric_type, severity, status";

const FILL: &str = "INSERT INTO alert_counts (owner_id, server_id, threshold_id, metric_type, severity, status, count) \
                    SELECT owner_id, server_id, threshold_id, metric_type, severity, status, COUNT(*) FROM alerts \
                    GROUP BY owner_id, server_id, threshold_id, metric_type, severity, status";

/// Alerts that were resolved within a time, and unresolved ones.
const BY_RESOLUTION: &str = "CREATE INDEX alerts_by_resolution ON alerts (owner_id, resolved_at)";

/// Adds one alert to the kind of `row`.
fn one_more(row: &str) -> String {
    let kind = KIND.split(", ").map(|column| format!("{row}.{column}")).collect::<Vec<_>>().join(", ");
    format!(
        "INSERT INTO alert_counts ({KIND}, count) VALUES ({kind}, 1) \
         ON CONFLICT ({KIND}) DO UPDATE SET count = alert_counts.count + 1;"
    )
}

/// Removes one alert from the kind of `row`: counts first, which serialises concurrent changes, then deletes the row. While the
/// server is being deleted its counts may be gone already.
fn one_less(row: &str) -> String {
    let columns = KIND.split(", ").map(|column| format!("{column} = {row}.{column}"));
    let same = columns.collect::<Vec<_>>().join(" AND ");
    format!(
        "UPDATE alert_counts SET count = count - 1 WHERE {same}; \
         DELETE FROM alert_counts WHERE {same} AND count <= 0;"
    )
}

/// When each trigger fires, and what it does.
fn triggers() -> [(&'static str, String, String); 3] {
    let change = format!("UPDATE OF {KIND}");
    [
        ("alert_counts_insert", "INSERT".to_owned(), one_more("NEW")),
        ("alert_counts_update", change, format!("{} {}", one_less("OLD"), one_more("NEW"))),
        ("alert_counts_delete", "DELETE".to_owned(), one_less("OLD")),
    ]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        use AlertCounts as C;
        let key = [C::OwnerId, C::ServerId, C::ThresholdId, C::MetricType, C::Severity, C::Status];
        let mut primary = Index::create();
        for column in key {
            primary.col(column);
        }
        let counts = Table::create()
            .table(C::Table)
            .col(uuid(C::OwnerId))
            .col(uuid(C::ServerId))
            .col(uuid(C::ThresholdId))
            .col(string(C::MetricType))
            .col(string(C::Severity))
            .col(string(C::Status))
            .col(big_integer(C::Count))
            .primary_key(&mut primary)
            .foreign_key(
                ForeignKey::create()
                    .from(C::Table, C::ServerId)
                    .to(Servers::Table, Servers::Id)
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .to_owned();
        manager.create_table(counts).await?;
        let by_server = Index::create().name("alert_counts_by_server").table(C::Table).col(C::ServerId).to_owned();
        manager.create_index(by_server).await?;
        let connection = manager.get_connection();
        connection.execute_unprepared(FILL).await?;
        connection.execute_unprepared(BY_RESOLUTION).await?;
        for (name, event, work) in triggers() {
            let statements = match manager.get_database_backend() {
                DatabaseBackend::Postgres => vec![
                    format!(
                        "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ \
                         BEGIN {work} RETURN NULL; END $$"
                    ),
                    format!("CREATE TRIGGER {name} AFTER {event} ON alerts FOR EACH ROW EXECUTE FUNCTION {name}()"),
                ],
                _ => vec![format!("CREATE TRIGGER {name} AFTER {event} ON alerts BEGIN {work} END")],
            };
            for statement in statements {
                connection.execute_unprepared(&statement).await?;
            }
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        for (name, _, _) in triggers() {
            let statements = match manager.get_database_backend() {
                DatabaseBackend::Postgres => {
                    vec![format!("DROP TRIGGER {name} ON alerts"), format!("DROP FUNCTION {name}()")]
                }
                _ => vec![format!("DROP TRIGGER {name}")],
            };
            for statement in statements {
                connection.execute_unprepared(&statement).await?;
            }
        }
        connection.execute_unprepared("DROP INDEX alerts_by_resolution").await?;
        manager.drop_table(Table::drop().table(AlertCounts::Table).to_owned()).await
    }
}
