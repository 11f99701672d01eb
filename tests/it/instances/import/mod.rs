//! `signalbox import sqlite-to-postgres`: a whole service moves, an import that was interrupted continues, and what cannot
//! be moved is refused.

mod refused;
mod resumed;
mod whole;

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement};

use crate::support::Storage;
use crate::support::command_line::signalbox;
use crate::support::rows::{owner, server};

/// The command that moves what is in one storage to another.
fn import(source: &Storage, target: &Storage) -> Command {
    let mut command = signalbox(&["import", "sqlite-to-postgres", "--data-dir"]);
    command.arg(source.path());
    target.named_to(&mut command);
    command
}

/// A service that would run on the target, with a data directory of its own.
fn serve(target: &Storage, beside: &Storage) -> Command {
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(beside.path());
    target.named_to(&mut command);
    command
}

/// One session of the database, which keeps its locks.
async fn session(storage: &Storage) -> DatabaseConnection {
    let mut options = ConnectOptions::new(storage.direct_url());
    options.max_connections(1).sqlx_logging(false);
    Database::connect(options).await.unwrap()
}

/// The number in the first row of a query; none without a row, or where a table is missing.
pub async fn number(storage: &Storage, query: &str) -> Option<i64> {
    let database = session(storage).await;
    let statement = Statement::from_string(database.get_database_backend(), query);
    let row = database.query_one_raw(statement).await.ok().flatten();
    database.close().await.unwrap();
    row.map(|row| row.try_get_by_index(0).unwrap())
}

/// A database with an account, a server and so many events of it, whose keys and times count up from 1.
async fn source_with_events(count: u32) -> Storage {
    let source = Storage::embedded().await;
    let store = source.store().await;
    let owner_id = owner(&store).await;
    server(&store, owner_id, "web-1", "web").await;
    store.close().await;
    let events = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
         INSERT INTO server_events (id, server_id, kind, at, detail) \
         SELECT CAST(printf('%016d', i) AS BLOB), (SELECT id FROM servers), 'reboot', i, '{{}}' FROM n"
    );
    source.execute(&[events.as_str()]).await;
    // As a service leaves it: a file that others can read is mentioned in the log.
    set_permissions(source.path().join("signalbox.db"), Permissions::from_mode(0o600)).unwrap();
    source
}
