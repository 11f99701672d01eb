//! Opening the database: what each engine is told, and why.

use std::str::FromStr;
use std::time::Duration;

use migration::{Migrator, MigratorTrait};
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseBackend, DatabaseConnection, SqliteTransactionMode,
    TransactionOptions, TransactionTrait,
};

use super::{Store, StoreError};

/// A request that finds no free connection for this long is answered with an error instead of piling up.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// PostgreSQL ends a statement after this long, so that one bad query cannot hold a connection for ever.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections to PostgreSQL from one instance. Its own default allows 100 in all.
const POSTGRES_CONNECTIONS: u32 = 16;

/// Readers of SQLite: each costs a thread and a page cache.
const SQLITE_READERS: u32 = 4;

const WRITER_CACHE_KIB: u32 = 48 * 1024;

/// What a reader does not find it takes from the system's cache.
const READER_CACHE_KIB: u32 = 4 * 1024;

/// Any number will do, as long as every instance takes the same one.
const MIGRATION_LOCK: i64 = 0x5349_474e_414c;

pub(super) async fn open(url: &str) -> Result<Store, StoreError> {
    check(url)?;
    if url.starts_with("sqlite:") {
        // The writer first: it makes the file, which the readers then find.
        let write = Database::connect(sqlite(url, 1, WRITER_CACHE_KIB)).await?;
        let read = Database::connect(sqlite(url, SQLITE_READERS, READER_CACHE_KIB)).await?;
        return Ok(Store { read, write });
    }
    let mut options = common(url, POSTGRES_CONNECTIONS);
    options.statement_timeout(STATEMENT_TIMEOUT).set_application_name("signalbox");
    let pool = Database::connect(options).await?;
    Ok(Store { read: pool.clone(), write: pool })
}

/// Parses the URL as the drivers will: the layer between takes a bad one for a reason to panic.
fn check(url: &str) -> Result<(), StoreError> {
    let is_sqlite = url.starts_with("sqlite:") && SqliteConnectOptions::from_str(url).is_ok();
    let is_postgres = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme))
        && PgConnectOptions::from_str(url).is_ok();
    if is_sqlite || is_postgres { Ok(()) } else { Err(StoreError::BadUrl) }
}

fn common(url: &str, connections: u32) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(connections)
        .min_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_timeout(ACQUIRE_TIMEOUT)
        .sqlx_logging(false);
    options
}

fn sqlite(url: &str, connections: u32, cache_kib: u32) -> ConnectOptions {
    let mut options = common(url, connections);
    // A connection to a file does not go stale; reopening one would only throw its page cache away.
    options.idle_timeout(None).max_lifetime(None).map_sqlx_sqlite_opts(move |options| {
        options
            .journal_mode(SqliteJournalMode::Wal)
            // What the journal and sealed pieces took is given back (`Store::shrink`). Only of a file that is made so.
            .auto_vacuum(SqliteAutoVacuum::Incremental)
            // An acknowledged sample survives a power cut, not only a kill: group commits make the extra sync cheap.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(ACQUIRE_TIMEOUT)
            // KiB. Each server writes into a page of its own: ten thousand of them to some 40 MiB in turn. (Pages of half
            // the size cost more: a sample does not fit into the tree any more and takes a page beside it.)
            .pragma("cache_size", format!("-{cache_kib}"))
            // Pages. Between two checkpoints a page is written to the log several times and to the database once.
            .pragma("wal_autocheckpoint", "16384")
            // The log is cut back to this after a checkpoint, so that one burst does not keep its size for ever.
            .pragma("journal_size_limit", "67108864")
    });
    options
}

/// Applies what is missing. Instances that start together take turns.
pub(super) async fn migrate(connection: &DatabaseConnection) -> Result<(), StoreError> {
    let options =
        TransactionOptions { sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate), ..Default::default() };
    let transaction = connection.begin_with_options(options).await?;
    if connection.get_database_backend() == DatabaseBackend::Postgres {
        transaction.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")).await?;
    }
    Migrator::up(&transaction, None).await?;
    Ok(transaction.commit().await?)
}
