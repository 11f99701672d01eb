//! Opens the database with the settings of each engine, and their reasons.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use migration::{Migrator, MigratorTrait, SchemaManager};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use sea_orm::sqlx::Connection;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseBackend, DbErr};

use super::connections::{Connections, Mode};
use super::health_probe::{self, HealthProbe};
use super::history::Partitions;
use super::target::{Target, parameters, target, tls_files, unbracketed};
use super::{Quotas, Store, StoreError, failure, reach};

/// A request that gets no free connection within this time fails, so that requests do not pile up.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// PostgreSQL's settings for each session, or for each transaction behind a pooler; in milliseconds. It ends a statement after
/// half a minute, so that one bad query cannot hold a connection for ever, and an idle transaction, so that an instance that
/// hangs cannot hold its locks. It does not compile statements: none here runs long enough for that to pay.
const SETTINGS: [(&str, &str); 3] =
    [("statement_timeout", "30000"), ("idle_in_transaction_session_timeout", "60000"), ("jit", "off")];

/// In seconds, and a count: PostgreSQL notices within half a minute that an instance has vanished, and releases its locks.
const KEEPALIVE: [(&str, &str); 3] =
    [("tcp_keepalives_idle", "10"), ("tcp_keepalives_interval", "5"), ("tcp_keepalives_count", "3")];

/// Removes the statements that earlier clients prepared on a connection that a pooler lends.
const CLEARED: &str = "DEALLOCATE ALL";

/// Connections from one instance to PostgreSQL, whose default limit is 100 in total.
pub const POSTGRES_CONNECTIONS: u32 = 16;

/// Connections that read SQLite: each costs a thread and a page cache.
pub(super) const SQLITE_READERS: u32 = 4;

const WRITER_CACHE_KIB: u32 = 48 * 1024;

/// A reader finds other pages in the system's cache.
const READER_CACHE_KIB: u32 = 4 * 1024;

/// An arbitrary number that must be the same in every instance.
const MIGRATION_LOCK: i64 = 0x5349_474e_414c;

/// How long an instance waits for another one's migrations: rewriting a large table takes time.
const MIGRATION_TURN: Duration = Duration::from_secs(300);

/// How long a migration waits for a lock on a table. Other statements queue after it, so it gives up and tries again later.
const MIGRATION_PATIENCE: Duration = Duration::from_secs(2);

/// After this many attempts an operator has to decide who waits.
const MIGRATION_ATTEMPTS: u32 = 3;

/// How the service connects to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// The most connections to PostgreSQL. One additional connection checks whether it answers.
    pub connections: u32,
    /// What is between the service and PostgreSQL.
    pub pooler: Pooler,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        Self { connections: POSTGRES_CONNECTIONS, pooler: Pooler::None }
    }
}

/// What is between the service and PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Pooler {
    /// Nothing, or a pooler that gives each client a connection of its own.
    #[default]
    None,
    /// A pooler that lends a connection for one transaction, such as PgBouncer with pool_mode = transaction.
    Transaction,
}

pub(super) async fn open(url: &str, settings: DatabaseSettings) -> Result<Store, StoreError> {
    match target(url)? {
        Target::Sqlite(file) => open_sqlite(url, &file).await,
        Target::Postgres(options) => open_postgres(url, *options, settings).await,
    }
}

async fn open_sqlite(url: &str, file: &Path) -> Result<Store, StoreError> {
    permitted(file)?;
    let unusable = |error| cannot_open(url, file, &error);
    // The writer connects first, because it creates the file that the readers open.
    let write = Database::connect(sqlite(url, 1, WRITER_CACHE_KIB, writer)).await.map_err(unusable)?;
    let read = Database::connect(sqlite(url, SQLITE_READERS, READER_CACHE_KIB, reader)).await.map_err(unusable)?;
    let read = Connections::new(read, HealthProbe::new(), None, Mode::Read);
    let write = Connections::new(write, HealthProbe::new(), None, Mode::Write);
    Ok(Store { read, write, partitions: Partitions::default(), quotas: Quotas::default() })
}

/// SQLite's error names neither the file nor says that it is missing.
fn cannot_open(url: &str, file: &Path, error: &DbErr) -> StoreError {
    let path = file.to_owned();
    // Where this process may not look, the file may exist.
    let is_there = file.try_exists().unwrap_or(true);
    if is_there || parameters(url).any(|(key, value)| key == "mode" && value == "rwc") {
        return StoreError::CannotOpen { path, detail: failure::words(error) };
    }
    StoreError::NoFile(path)
}

async fn open_postgres(url: &str, options: PgConnectOptions, settings: DatabaseSettings) -> Result<Store, StoreError> {
    let asking = session(options, settings.pooler).application_name("signalbox");
    // Fails here where there is no database, because a pool retries and then knows no reason. The pool's connections are made
    // when they are needed.
    reach::reach(&asking, &tls_files(url)).await?;
    let mut options = postgres(url, settings);
    options.connect_lazy(true);
    let line = HealthProbe::new();
    let pool = Database::connect(options.clone()).await?;
    let prologue = match settings.pooler {
        Pooler::None => None,
        Pooler::Transaction => Some(prologue()),
    };
    let connections = Connections::new(pool, line.clone(), prologue, Mode::Write);
    tokio::spawn(health_probe::probe(line, asking, options, Arc::downgrade(connections.shared())));
    let (partitions, quotas) = (Partitions::default(), Quotas::default());
    Ok(Store { read: connections.clone(), write: connections, partitions, quotas })
}

fn postgres(url: &str, settings: DatabaseSettings) -> ConnectOptions {
    let mut options = common(url, settings.connections);
    // SeaORM would test each connection before it hands it out. That costs a round trip, and no query gets a connection that
    // the server closed when it restarted.
    options.set_application_name("signalbox").map_sqlx_postgres_opts(move |options| session(options, settings.pooler));
    options
}

/// Settings of a new session. A pooler knows few of these settings and refuses the others.
fn session(options: PgConnectOptions, pooler: Pooler) -> PgConnectOptions {
    let options = unbracketed(options);
    match pooler {
        Pooler::None => options.options(SETTINGS).options(KEEPALIVE),
        Pooler::Transaction => options.statement_cache_capacity(0).extra_float_digits(None),
    }
}

/// The first statements of a transaction on a borrowed connection.
fn prologue() -> String {
    let settings = SETTINGS.map(|(name, value)| format!("; SET LOCAL {name} = {value}")).concat();
    format!("{CLEARED}{settings}")
}

/// Checks whether the file, if it exists, may be used, because SQLite names no reason. It opens nothing: closing the file again
/// would release the locks that this process has on it.
fn permitted(file: &Path) -> Result<(), StoreError> {
    match access(file, Access::READ_OK | Access::WRITE_OK) {
        Err(Errno::ACCESS | Errno::PERM) => Err(StoreError::NoPermission(file.to_owned())),
        // SQLite reports any other fault.
        Ok(()) | Err(_) => Ok(()),
    }
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

fn writer(options: SqliteConnectOptions) -> SqliteConnectOptions {
    // Allows freed space to be returned to the system (`Store::shrink`). Only a new file can be set up for it; for an existing
    // one it would be a write, and a command beside the service must not write merely because it opens the database.
    let is_there = std::fs::metadata(options.get_filename()).is_ok_and(|file| file.len() > 0);
    if is_there { options } else { options.auto_vacuum(SqliteAutoVacuum::Incremental) }
}

fn reader(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options.pragma("query_only", "on")
}

fn sqlite(
    url: &str,
    connections: u32,
    cache_kib: u32,
    role: fn(SqliteConnectOptions) -> SqliteConnectOptions,
) -> ConnectOptions {
    let mut options = common(url, connections);
    // A connection to a file does not go stale. Reopening one would discard its page cache, and testing it costs each read and
    // each transaction a round trip to its thread.
    options.idle_timeout(None).max_lifetime(None).test_before_acquire(false);
    // Where the disk is full or fails, SQLite ends a transaction by itself, and the driver counts it for ever: each later one
    // would be a part of it, and would never be committed. The pool closes such a connection and opens another.
    options.map_sqlx_sqlite_before_acquire(|connection, _| {
        let is_sound = !connection.is_in_transaction();
        Box::pin(async move { Ok(is_sound) })
    });
    options.map_sqlx_sqlite_opts(move |options| {
        role(options)
            .journal_mode(SqliteJournalMode::Wal)
            // An acknowledged sample survives a power cut, not only a kill: group commits make the extra sync cheap.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(ACQUIRE_TIMEOUT)
            // KiB. Each server writes to a page of its own; ten thousand of them use some 40 MiB in turn. (Pages of half the
            // size cost more, because a sample no longer fits into the tree and takes an extra page.)
            .pragma("cache_size", format!("-{cache_kib}"))
            // Pages. Between two checkpoints a page is written to the log several times and to the database once.
            .pragma("wal_autocheckpoint", "16384")
            // The log is truncated to this after a checkpoint, so that one burst does not keep its size for ever.
            .pragma("journal_size_limit", "67108864")
    });
    options
}

/// Applies the missing migrations and returns their names. Where none is missing it takes no lock. Instances that start
/// together take turns; the later ones find the work done.
pub(super) async fn migrate(connections: &Connections) -> Result<Vec<String>, StoreError> {
    if Migrator::get_pending_migrations_read_only(connections).await?.is_empty() {
        return Ok(Vec::new());
    }
    let mut attempts = 1;
    loop {
        match apply(connections).await {
            Err(error) if error.is_lock_timeout() && attempts < MIGRATION_ATTEMPTS => {
                tracing::warn!(%error, attempts, "a migration found a table in use and is tried again");
                tokio::time::sleep(MIGRATION_PATIENCE).await;
                attempts += 1;
            }
            Err(error) if error.is_lock_timeout() => return Err(StoreError::MigrationBlocked),
            outcome => return outcome,
        }
    }
}

/// Whether migrations were ever applied.
pub(super) async fn is_migrated(connections: &Connections) -> Result<bool, StoreError> {
    let transaction = connections.begin().await?;
    let table = Migrator::migration_table_name().to_string();
    let is_there = SchemaManager::new(transaction.inner()).has_table(table).await?;
    transaction.rollback().await?;
    Ok(is_there)
}

/// Applies all missing migrations in one transaction.
async fn apply(connections: &Connections) -> Result<Vec<String>, StoreError> {
    let transaction = connections.begin().await?;
    if connections.get_database_backend() == DatabaseBackend::Postgres {
        let (turn, patience) = (MIGRATION_TURN.as_millis(), MIGRATION_PATIENCE.as_millis());
        // No statement timeout: an index of a large table takes longer than any query may.
        let turn = format!(
            "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {turn}; \
             SELECT pg_advisory_xact_lock({MIGRATION_LOCK}); SET LOCAL lock_timeout = {patience}"
        );
        transaction.execute_unprepared(&turn).await?;
    }
    let missing = Migrator::get_pending_migrations_read_only(transaction.inner()).await?;
    Migrator::up(transaction.inner(), None).await?;
    transaction.commit().await?;
    Ok(missing.iter().map(|migration| migration.name().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use sea_orm::Statement;

    use super::*;

    async fn data_version(store: &Store) -> i64 {
        let version = Statement::from_string(DatabaseBackend::Sqlite, "PRAGMA data_version");
        store.write.query_one_raw(version).await.unwrap().unwrap().try_get_by_index(0).unwrap()
    }

    /// Bytes that this process has read from files so far.
    fn bytes_read() -> u64 {
        let io = std::fs::read_to_string("/proc/self/io").unwrap();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
    }

    #[tokio::test]
    async fn pages_in_memory_are_freed_and_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("signalbox.db").display());
        let store = Store::open(&url, DatabaseSettings::default()).await.unwrap();
        store.write.execute_unprepared("CREATE TABLE filler (bytes BLOB)").await.unwrap();
        let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) \
                    INSERT INTO filler SELECT randomblob(4000) FROM n";
        store.write.execute_unprepared(fill).await.unwrap();
        // Returns how much of it came from the file.
        let read = async || {
            let before = bytes_read();
            let sum = "SELECT sum(length(bytes)) FROM filler WHERE bytes <> x'00'";
            let statement = Statement::from_string(DatabaseBackend::Sqlite, sum);
            let row = store.write.query_one_raw(statement).await.unwrap().unwrap();
            assert_eq!(row.try_get_by_index::<i64>(0).unwrap(), 36_000_000);
            bytes_read() - before
        };
        let from_memory = read().await;

        store.forget_pages().await.unwrap();

        let from_file = read().await;
        assert!(from_file > from_memory + 30_000_000, "{from_memory} bytes before, {from_file} after");
    }

    #[tokio::test]
    async fn writes_are_committed_after_one_that_sqlite_rolled_back_by_itself() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("signalbox.db").display());
        let store = Store::open(&url, DatabaseSettings::default()).await.unwrap();
        store.write.execute_unprepared("CREATE TABLE filler (bytes BLOB)").await.unwrap();
        // SQLite does not go below the pages that there are.
        store.write.execute_unprepared("PRAGMA max_page_count = 1").await.unwrap();
        let full = store.write.begin().await.unwrap();
        let error = full.execute_unprepared("INSERT INTO filler VALUES (zeroblob(8000000))").await.unwrap_err();
        assert_eq!(failure::words(&error), "database or disk is full");
        assert!(StoreError::from(error).is_disk_full());
        drop(full);
        // There is room again, also for that connection.
        store.write.execute_unprepared("PRAGMA max_page_count = 1000000").await.unwrap();

        store.write.begin().await.unwrap().rollback().await.unwrap();
        let writing = store.write.begin().await.unwrap();
        writing.execute_unprepared("INSERT INTO filler VALUES (x'00')").await.unwrap();
        writing.commit().await.unwrap();

        let count = Statement::from_string(DatabaseBackend::Sqlite, "SELECT count(*) FROM filler");
        let row = store.read.query_one_raw(count).await.unwrap().unwrap();
        assert_eq!(row.try_get_by_index::<i64>(0).unwrap(), 1);
        // The connection that replaced it has its settings.
        let setting = Statement::from_string(DatabaseBackend::Sqlite, "PRAGMA journal_size_limit");
        let row = store.write.query_one_raw(setting).await.unwrap().unwrap();
        assert_eq!(row.try_get_by_index::<i64>(0).unwrap(), 67_108_864);
    }

    #[tokio::test]
    async fn a_new_reader_writes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("signalbox.db");
        let store =
            Store::open(&format!("sqlite://{}?mode=rwc", file.display()), DatabaseSettings::default()).await.unwrap();
        let before = data_version(&store).await;

        // Each holds a connection until all have one.
        let readers = join_all((0..SQLITE_READERS).map(|_| store.read.begin())).await;

        assert!(readers.iter().all(Result::is_ok), "{readers:?}");
        assert_eq!(data_version(&store).await, before);
        assert!(store.read.execute_unprepared("CREATE TABLE anything (id INTEGER)").await.is_err());
    }
}
