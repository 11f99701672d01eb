//! Nothing remains when its owner is deleted.

use std::collections::BTreeSet;

use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement};
use signalbox::store::history::HistoryTable;
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{owner, server};

/// Columns that name a row of another table without a foreign key that deletes it, and why that is right.
const ON_PURPOSE: &[(&str, &str, &str)] = &[
    ("alert_counts", "owner_id", "goes with its server"),
    ("alert_counts", "threshold_id", "counts alerts, which outlive their threshold"),
    ("alert_events", "user_id", "tells who it was"),
    ("alerts", "threshold_id", "an alert outlives its threshold"),
    ("approval_signatures", "user_id", "tells who it was"),
    ("approvals", "batch_id", "what somebody asked for outlives its batch"),
    ("audit_log", "owner_id", "the audit log forgets nothing"),
    ("audit_log", "server_id", "the audit log forgets nothing"),
    ("audit_log", "user_id", "the audit log forgets nothing"),
    ("claims", "user_id", "the first account stays the first"),
    ("commands", "batch_id", "goes with its server"),
    ("commands", "owner_id", "goes with its server"),
    ("commands", "user_id", "tells who it was"),
    ("history_blocks", "server_id", "the archive looks for it"),
    ("history_pieces", "server_id", "the archive looks for it"),
    ("notifications", "owner_id", "goes with its channel"),
    ("samples", "server_id", "moves into the journal at a start"),
    ("schedule_runs", "batch_id", "a run outlives the output of its batch"),
    ("server_events", "server_id", "goes in the transaction that deletes the server, or when it is too old"),
    ("server_tags", "owner_id", "goes with its server"),
];

const OWNERS: [&str; 9] = [
    "server_id",
    "owner_id",
    "user_id",
    "team_id",
    "subject_user_id",
    "channel_id",
    "alert_id",
    "batch_id",
    "threshold_id",
];

#[actix_web::test]
async fn every_row_that_belongs_to_another_goes_with_it_or_is_looked_for() {
    let directory = TempDir::new().unwrap();
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("signalbox.db").display());
    signalbox::store::Store::open(&url, Default::default()).await.unwrap().close().await;
    let database = Database::connect(url).await.unwrap();
    let query = |sql: &'static str| {
        let database = database.clone();
        async move { database.query_all_raw(Statement::from_string(DbBackend::Sqlite, sql)).await.unwrap() }
    };
    let column = |row: &sea_orm::QueryResult| -> (String, String) {
        (row.try_get_by_index(0).unwrap(), row.try_get_by_index(1).unwrap())
    };

    let all =
        "SELECT t.name, c.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c WHERE t.type = 'table'";
    let cascading = "SELECT t.name, f.\"from\" FROM sqlite_master AS t JOIN pragma_foreign_key_list(t.name) AS f \
                     WHERE t.type = 'table' AND f.on_delete = 'CASCADE'";
    let all: BTreeSet<(String, String)> = query(all).await.iter().map(column).collect();
    let cascading: BTreeSet<(String, String)> = query(cascading).await.iter().map(column).collect();

    let left: Vec<(&str, &str)> = all
        .difference(&cascading)
        .map(|(table, column)| (table.as_str(), column.as_str()))
        .filter(|(_, column)| OWNERS.contains(column))
        .collect();
    let on_purpose: Vec<(&str, &str)> = ON_PURPOSE.iter().map(|(table, column, _)| (*table, *column)).collect();
    assert_eq!(left, on_purpose);
}

async fn insert_piece(database: &DatabaseConnection, server_id: Uuid) {
    let (id, data) = match database.get_database_backend() {
        DbBackend::Sqlite => (format!("X'{}'", server_id.simple()), "X'00'"),
        _ => (format!("'{server_id}'"), "'\\x00'"),
    };
    let insert = format!(
        "INSERT INTO history_pieces (server_id, hour, number, samples, cells, data) VALUES ({id}, 1, 1, 1, 1, {data})"
    );
    database.execute_unprepared(&insert).await.unwrap();
}

#[actix_web::test]
async fn histories_of_servers_that_are_gone_are_found_some_at_a_time_and_no_others() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let there = server(&store, owner(&store).await, "web-1", "a").await;
    let gone: BTreeSet<Uuid> = (0..150).map(|_| Uuid::now_v7()).collect();
    let database = Database::connect(storage.direct_url()).await.unwrap();
    for server_id in gone.iter().chain([&there]) {
        insert_piece(&database, *server_id).await;
    }

    let (mut found, mut after, mut looks) = (BTreeSet::new(), Some(Uuid::nil()), 0);
    while let Some(from) = after {
        let some = store.orphans(HistoryTable::Pieces, from).await.unwrap();
        found.extend(some.server_ids);
        (after, looks) = (some.after, looks + 1);
    }

    assert_eq!((found, looks), (gone.clone(), 3));
    for table in [HistoryTable::Blocks, HistoryTable::Samples] {
        assert_eq!(store.orphans(table, Uuid::nil()).await.unwrap().server_ids, Vec::<Uuid>::new());
    }
    for server_id in &gone {
        store.delete_history(*server_id).await.unwrap();
    }
    assert_eq!(store.orphans(HistoryTable::Pieces, Uuid::nil()).await.unwrap().server_ids, Vec::<Uuid>::new());
    database.close().await.unwrap();
    store.close().await;
}
