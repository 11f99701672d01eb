//! How much PostgreSQL reads for a list of alerts. For SQLite, tests next to the code check the plan; PostgreSQL counts the
//! rows that were fetched, whatever its plan is.

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement};
use signalbox::store::{AlertAudience, AlertChange, AlertFilter, DatabaseSettings, PageRequest, Store, Visibility};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::rows::{alert, owner, server};
use crate::support::{Storage, eventually};

/// Alerts that were resolved, one a minute, half a second after they were triggered.
const RESOLVED: i64 = 30_000;
const MINUTE: i64 = 60_000;
/// The first of these are of a kind that has not been seen since.
const RARE: i64 = 3;

const PAGE: PageRequest = PageRequest { limit: 50, offset: 0 };

async fn number(connection: &DatabaseConnection, query: &str) -> i64 {
    let statement = Statement::from_string(connection.get_database_backend(), query);
    connection.query_one_raw(statement).await.unwrap().unwrap().try_get_by_index(0).unwrap()
}

/// Rows of alerts that were read since the database began, by connections that are closed.
async fn rows_read(connection: &DatabaseConnection) -> i64 {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                  AND backend_type = 'client backend'";
    eventually("the store is gone", async || (number(connection, others).await == 0).then_some(())).await;
    let read = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'alerts'";
    number(connection, read).await
}

#[actix_web::test]
async fn no_list_reads_all_that_was_ever_resolved() {
    let storage = Storage::fresh().await;
    if storage.config().is_embedded() {
        return;
    }
    let store = Store::open(&storage.direct_url(), DatabaseSettings::default()).await.unwrap();
    let owner_id = owner(&store).await;
    let server_id = server(&store, owner_id, "web-1", "a").await;
    let open = alert(owner_id, server_id, Uuid::now_v7());
    let opened = AlertChange::Opened { alert: Box::new(open.clone()), audience: AlertAudience::default() };
    store.change_alerts(&[opened]).await.unwrap();
    store.close().await;
    // A connection of its own: all others are the store's.
    let mut alone = ConnectOptions::new(storage.direct_url());
    alone.max_connections(1);
    let connection = Database::connect(alone).await.unwrap();
    let start = Timestamp::now().as_millis() - (RESOLVED + 1) * MINUTE;
    let resolve = format!(
        "INSERT INTO alerts SELECT (jsonb_populate_record(a, jsonb_build_object('id', lpad(to_hex(at), 12, '0') || \
         '70008000' || lpad(to_hex(n), 12, '0'), 'status', 'resolved', 'triggered_at', at, 'resolved_at', at + 500, \
         'rearmed_at', at + 500, 'severity', CASE WHEN n <= {RARE} THEN 'info' ELSE 'warning' END))).* \
         FROM alerts a, generate_series(1, {RESOLVED}) n, LATERAL (SELECT {start} + n * {MINUTE} AS at) times"
    );
    connection.execute_unprepared(&resolve).await.unwrap();
    // Rows whose commit is not on the disk yet stay unvacuumed, and the tests' PostgreSQL does not wait for the disk.
    eventually("the alerts are vacuumed", async || {
        connection.execute_unprepared("VACUUM ANALYZE alerts").await.unwrap();
        let missing = "SELECT CAST(relpages - relallvisible AS BIGINT) FROM pg_class WHERE relname = 'alerts'";
        (number(&connection, missing).await == 0).then_some(())
    })
    .await;
    let at = |minute: i64| Some(Timestamp::from_millis(start + minute * MINUTE - 1));
    let since = |last: i64| at(RESOLVED - last + 1);
    let all = AlertFilter::default();

    let cases = [
        (all.clone(), RESOLVED + 1, 100),
        (AlertFilter { status: Some("resolved"), ..all.clone() }, RESOLVED, 100),
        (AlertFilter { status: Some("active"), ..all.clone() }, 1, 100),
        (AlertFilter { severity: Some("warning"), ..all.clone() }, RESOLVED + 1 - RARE, 200),
        (AlertFilter { severity: Some("info"), ..all.clone() }, RARE, 100),
        (AlertFilter { severity: Some("critical"), ..all.clone() }, 0, 100),
        (AlertFilter { metric_type: Some("cpu"), severity: Some("info"), ..all.clone() }, RARE, 100),
        (AlertFilter { server_id: Some(server_id), ..all.clone() }, RESOLVED + 1, 200),
        (AlertFilter { server_id: Some(server_id), severity: Some("info"), ..all.clone() }, RARE, 100),
        (AlertFilter { threshold_id: Some(open.threshold_id), ..all.clone() }, RESOLVED + 1, 200),
        // In the hours in which it is not certain what belongs to the list, each alert is read.
        (AlertFilter { since: since(200), ..all.clone() }, 201, 1_000),
        (AlertFilter { since: since(6_000), ..all.clone() }, 6_001, 1_000),
        (AlertFilter { since: since(6_000), until: at(RESOLVED + 2), ..all.clone() }, 6_001, 1_000),
        (AlertFilter { since: since(6_000), severity: Some("warning"), ..all.clone() }, 6_001, 1_000),
        (AlertFilter { since: since(29_000), severity: Some("info"), ..all.clone() }, 0, 1_000),
        (AlertFilter { until: at(5_001), ..all.clone() }, 5_000, 1_000),
        (AlertFilter { until: at(25_001), ..all.clone() }, 25_000, 1_000),
        (AlertFilter { until: at(5_001), status: Some("active"), ..all.clone() }, 0, 1_000),
        (AlertFilter { since: at(9_001), until: at(9_501), server_id: Some(server_id), ..all.clone() }, 500, 1_000),
    ];
    let mut too_many = Vec::new();
    for (filter, found, most) in cases {
        let before = rows_read(&connection).await;
        let store = Store::open(&storage.direct_url(), DatabaseSettings::default()).await.unwrap();

        let page = store.list_alerts(&Visibility::of_owner(owner_id), filter.clone(), PAGE).await.unwrap();

        store.close().await;
        let read = rows_read(&connection).await - before;
        assert_eq!(page.total, found as u64, "{filter:?}");
        if read > most {
            too_many.push(format!("{read} rows, not {most} at most, for {filter:?}"));
        }
    }
    assert!(too_many.is_empty(), "{too_many:#?}");
    connection.close().await.unwrap();
}
