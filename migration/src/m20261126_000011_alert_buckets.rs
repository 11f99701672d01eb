//! The number of alerts by the time that their ids begin with: the total of a list with times is a sum.
//!
//! On PostgreSQL all alerts of an owner of some days share rows, and instances write alerts at the same moment. So the changes
//! of a transaction are first recorded in `alert_bucket_changes`, where no other transaction sees them, and added up as its
//! commit begins, in the order of the key. A transaction that waits for one of these rows already has all other locks, so none
//! wait in a circle, and each lock is held for the length of a commit.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, string, uuid};
use sea_orm_migration::sea_orm::DatabaseBackend;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum AlertBuckets {
    Table,
    OwnerId,
    Scope,
    ScopeId,
    Bucket,
    MetricType,
    Severity,
    Count,
}

#[derive(DeriveIden)]
enum Users {
    Table,
    Id,
}

/// What lists filter by, and the column of an alert that identifies it.
const SCOPES: [(&str, &str); 3] = [("owner", "owner_id"), ("server", "server_id"), ("threshold", "threshold_id")];

const KEY: &str = "owner_id, scope, scope_id, bucket, metric_type, severity";

/// Columns of an alert that never change; if one did, another bucket would be right.
const COUNTED: &str = "id, owner_id, server_id, threshold_id, metric_type, severity";

const UPDATE_TRIGGER: &str = "alert_buckets_update";

/// How many hexadecimal digits of an id make its bucket. An id begins with 48 bits of milliseconds; those that begin with the
/// same 20 of them were made within 2^28 ms, three days and two hours. Half a year is 60 rows of each kind, and the rest at
/// both ends is counted alert by alert.
pub const BUCKET_DIGITS: usize = 5;

fn bucket(backend: DatabaseBackend, id: &str) -> String {
    match backend {
        DatabaseBackend::Postgres => format!("left(CAST({id} AS text), {BUCKET_DIGITS})"),
        _ => format!("lower(substr(hex({id}), 1, {BUCKET_DIGITS}))"),
    }
}

/// Counts the existing alerts.
fn fill(backend: DatabaseBackend) -> String {
    let of = |(scope, id): (&str, &str)| {
        format!(
            "SELECT owner_id, '{scope}', {id}, bucket, metric_type, severity, SUM(number) FROM counted \
             GROUP BY owner_id, {id}, bucket, metric_type, severity"
        )
    };
    format!(
        "INSERT INTO alert_buckets ({KEY}, count) WITH counted AS MATERIALIZED (SELECT owner_id, server_id, threshold_id, \
         {bucket} AS bucket, metric_type, severity, COUNT(*) AS number FROM alerts \
         GROUP BY owner_id, server_id, threshold_id, bucket, metric_type, severity) {all}",
        bucket = bucket(backend, "id"),
        all = SCOPES.map(of).join(" UNION ALL ")
    )
}

/// SQLite has one writer: each alert is counted when it is inserted and deleted.
mod sqlite {
    use super::{COUNTED, DatabaseBackend, KEY, SCOPES, UPDATE_TRIGGER, bucket};

    const EMPTY: &str = "alert_buckets_empty";

    fn one_more(row: &str) -> String {
        let bucket = bucket(DatabaseBackend::Sqlite, &format!("{row}.id"));
        let of = |(scope, id): (&str, &str)| {
            format!(
                "INSERT INTO alert_buckets ({KEY}, count) \
                 VALUES ({row}.owner_id, '{scope}', {row}.{id}, {bucket}, {row}.metric_type, {row}.severity, 1) \
                 ON CONFLICT ({KEY}) DO UPDATE SET count = alert_buckets.count + 1;"
            )
        };
        SCOPES.map(of).join(" ")
    }

    /// While the owner is being deleted its counts may be gone already.
    fn one_less(row: &str) -> String {
        let bucket = bucket(DatabaseBackend::Sqlite, &format!("{row}.id"));
        let of = |(scope, id): (&str, &str)| {
            format!(
                "UPDATE alert_buckets SET count = count - 1 \
                 WHERE owner_id = {row}.owner_id AND scope = '{scope}' AND scope_id = {row}.{id} AND bucket = {bucket} \
                 AND metric_type = {row}.metric_type AND severity = {row}.severity;"
            )
        };
        SCOPES.map(of).join(" ")
    }

    /// Removes rows that count no alert any more.
    fn empty() -> String {
        let same = KEY.split(", ").map(|column| format!("{column} = NEW.{column}")).collect::<Vec<_>>().join(" AND ");
        format!(
            "CREATE TRIGGER {EMPTY} AFTER UPDATE OF count ON alert_buckets WHEN NEW.count <= 0 \
             BEGIN DELETE FROM alert_buckets WHERE {same}; END"
        )
    }

    pub fn up() -> Vec<String> {
        let trigger = |name: &str, event: &str, work: &str| {
            format!("CREATE TRIGGER {name} AFTER {event} ON alerts BEGIN {work} END")
        };
        let moved = format!("{} {}", one_less("OLD"), one_more("NEW"));
        vec![
            trigger("alert_buckets_insert", "INSERT", &one_more("NEW")),
            trigger("alert_buckets_delete", "DELETE", &one_less("OLD")),
            trigger(UPDATE_TRIGGER, &format!("UPDATE OF {COUNTED}"), &moved),
            empty(),
        ]
    }

    pub fn down() -> Vec<String> {
        let names = ["alert_buckets_insert", "alert_buckets_delete", UPDATE_TRIGGER, EMPTY];
        names.map(|name| format!("DROP TRIGGER {name}")).to_vec()
    }
}

/// PostgreSQL collects the changes of each statement, and counts them at the end of the transaction.
mod postgres {
    use super::{COUNTED, DatabaseBackend, KEY, SCOPES, UPDATE_TRIGGER, bucket};

    /// Empty except for the changes of running transactions, and so not worth the write-ahead log.
    const CHANGES: &str = "CREATE UNLOGGED TABLE alert_bucket_changes (owner_id uuid NOT NULL, server_id uuid NOT NULL, \
                           threshold_id uuid NOT NULL, bucket varchar COLLATE \"C\" NOT NULL, metric_type varchar NOT NULL, \
                           severity varchar NOT NULL, change bigint NOT NULL, is_first boolean NOT NULL)";

    /// The first row that a transaction records has them all added up. A transaction sees only its own rows.
    const IS_FIRST: &str = "NOT EXISTS (SELECT FROM alert_bucket_changes)";

    fn function(name: &str, declared: &str, work: &str) -> String {
        format!(
            "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ {declared} BEGIN {work} RETURN NULL; END $$"
        )
    }

    /// Records what a statement has added or removed.
    fn note() -> String {
        let bucket = bucket(DatabaseBackend::Postgres, "id");
        let work = format!(
            "INSERT INTO alert_bucket_changes \
             SELECT owner_id, server_id, threshold_id, {bucket}, metric_type, severity, \
             CASE TG_OP WHEN 'DELETE' THEN -COUNT(*) ELSE COUNT(*) END, row_number() OVER () = 1 AND {IS_FIRST} \
             FROM changed GROUP BY owner_id, server_id, threshold_id, {bucket}, metric_type, severity;"
        );
        function("alert_buckets_note", "", &work)
    }

    /// Records that an alert has changed.
    fn note_update() -> String {
        let note = |row: &str, change: i64| {
            let bucket = bucket(DatabaseBackend::Postgres, &format!("{row}.id"));
            format!(
                "INSERT INTO alert_bucket_changes VALUES ({row}.owner_id, {row}.server_id, {row}.threshold_id, {bucket}, \
                 {row}.metric_type, {row}.severity, {change}, {IS_FIRST});"
            )
        };
        function("alert_buckets_note_update", "", &format!("{} {}", note("OLD", -1), note("NEW", 1)))
    }

    /// Adds up what a transaction has recorded. While the owner is being deleted its counts may be gone already.
    fn fold() -> String {
        let scopes = SCOPES.map(|(scope, id)| format!("('{scope}', gone.{id})")).join(", ");
        let row = KEY.split(", ").map(|column| format!("kind.{column}")).collect::<Vec<_>>().join(", ");
        let same = KEY.split(", ").map(|column| format!("alert_buckets.{column} = kind.{column}")).collect::<Vec<_>>();
        let same = same.join(" AND ");
        let work = format!(
            "FOR kind IN \
               WITH gone AS (DELETE FROM alert_bucket_changes RETURNING *) \
               SELECT {KEY}, CAST(SUM(change) AS bigint) AS change \
               FROM gone CROSS JOIN LATERAL (VALUES {scopes}) AS scopes (scope, scope_id) \
               GROUP BY {KEY} HAVING SUM(change) <> 0 ORDER BY {KEY} \
             LOOP \
               IF kind.change > 0 THEN \
                 INSERT INTO alert_buckets ({KEY}, count) VALUES ({row}, kind.change) \
                 ON CONFLICT ON CONSTRAINT alert_buckets_pkey DO UPDATE SET count = alert_buckets.count + excluded.count; \
               ELSE \
                 UPDATE alert_buckets SET count = count + kind.change WHERE {same}; \
                 DELETE FROM alert_buckets WHERE {same} AND count <= 0; \
               END IF; \
             END LOOP;"
        );
        function("alert_buckets_fold", "DECLARE kind record;", &work)
    }

    pub fn up() -> Vec<String> {
        let of_statement = |name: &str, event: &str, rows: &str| {
            format!(
                "CREATE TRIGGER {name} AFTER {event} ON alerts REFERENCING {rows} TABLE AS changed \
                 FOR EACH STATEMENT EXECUTE FUNCTION alert_buckets_note()"
            )
        };
        vec![
            CHANGES.to_owned(),
            note(),
            note_update(),
            fold(),
            of_statement("alert_buckets_insert", "INSERT", "NEW"),
            of_statement("alert_buckets_delete", "DELETE", "OLD"),
            // A trigger of certain columns sees only its own rows.
            format!(
                "CREATE TRIGGER {UPDATE_TRIGGER} AFTER UPDATE OF {COUNTED} ON alerts \
                 FOR EACH ROW EXECUTE FUNCTION alert_buckets_note_update()"
            ),
            "CREATE CONSTRAINT TRIGGER alert_buckets_fold AFTER INSERT ON alert_bucket_changes \
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.is_first) EXECUTE FUNCTION alert_buckets_fold()"
                .to_owned(),
        ]
    }

    pub fn down() -> Vec<String> {
        let triggers = ["alert_buckets_insert", "alert_buckets_delete", UPDATE_TRIGGER];
        let triggers = triggers.iter().map(|name| format!("DROP TRIGGER {name} ON alerts"));
        let functions = ["alert_buckets_fold", "alert_buckets_note", "alert_buckets_note_update"];
        let functions = functions.iter().map(|name| format!("DROP FUNCTION {name}()"));
        triggers.chain(["DROP TABLE alert_bucket_changes".to_owned()]).chain(functions).collect()
    }
}

fn buckets(backend: DatabaseBackend) -> TableCreateStatement {
    use AlertBuckets as C;
    let mut key = Index::create();
    for column in [C::OwnerId, C::Scope, C::ScopeId, C::Bucket, C::MetricType, C::Severity] {
        key.col(column);
    }
    let mut owner = ForeignKey::create()
        .from(C::Table, C::OwnerId)
        .to(Users::Table, Users::Id)
        .on_delete(ForeignKeyAction::Cascade)
        .to_owned();
    let mut bucket = string(C::Bucket);
    if backend == DatabaseBackend::Postgres {
        // In the order of ids, whatever the database's collation is.
        bucket.extra("COLLATE \"C\"");
    }
    let mut table = Table::create();
    table
        .table(C::Table)
        .col(uuid(C::OwnerId))
        .col(string(C::Scope))
        .col(uuid(C::ScopeId))
        .col(bucket)
        .col(string(C::MetricType))
        .col(string(C::Severity))
        .col(big_integer(C::Count))
        .primary_key(&mut key)
        .foreign_key(&mut owner);
    if backend == DatabaseBackend::Sqlite {
        // Its rows are in the order of their key, so that a sum reads nothing else.
        table.extra("WITHOUT ROWID");
    }
    table
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        manager.create_table(buckets(backend)).await?;
        let triggers = if backend == DatabaseBackend::Postgres { postgres::up() } else { sqlite::up() };
        // The triggers keep all others from writing alerts until all are counted.
        for statement in triggers.iter().chain([&fill(backend)]) {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let triggers = if backend == DatabaseBackend::Postgres { postgres::down() } else { sqlite::down() };
        for statement in &triggers {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        manager.drop_table(Table::drop().table(AlertBuckets::Table).to_owned()).await
    }
}
