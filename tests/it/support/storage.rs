//! Where a service under test stores its data: a directory, and on demand a PostgreSQL database.
//!
//! `SIGNALBOX_TEST_POSTGRES=postgres://user@host:port/postgres` runs the whole suite on PostgreSQL, one database per service.
//! Without it everything is on SQLite. With `SIGNALBOX_TEST_POSTGRES_ADMIN` the first variable leads through a pooler in
//! transaction mode and this one past it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use actix_web::rt::System;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbErr};
use signalbox::config::Config;
use signalbox::store::{Pooler, Store};
use tempfile::TempDir;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::template;

const POSTGRES_VARIABLE: &str = "SIGNALBOX_TEST_POSTGRES";

const ADMIN_VARIABLE: &str = "SIGNALBOX_TEST_POSTGRES_ADMIN";

/// Whether somebody wants to know which test executes which statements: see scripts/with-postgres.
const STATEMENTS_VARIABLE: &str = "SIGNALBOX_TEST_STATEMENTS";

/// The cost of a password hash in tests: the real one would take as long as everything else together.
const TEST_ITERATIONS: u32 = 1_000;

/// Samples are acknowledged when they are stored. In tests few come at once, and a test waits for each.
const TEST_COMMIT_INTERVAL: Duration = Duration::from_millis(20);

/// A service's connections to PostgreSQL in tests. Each is a process that begins with empty caches: 16 of them, which a service
/// opens at its start if it may, took PostgreSQL longer than all statements of most tests.
const TEST_CONNECTIONS: u32 = 4;

pub struct Storage {
    directory: TempDir,
    database_url: Option<String>,
    /// Whether the database goes with it.
    is_owner: bool,
}

/// What is in a new database.
#[derive(Clone, Copy)]
enum Contents {
    Tables,
    Nothing,
}

/// The address that makes and drops databases; none on SQLite.
fn admin_url() -> Option<String> {
    std::env::var(ADMIN_VARIABLE).or_else(|_| std::env::var(POSTGRES_VARIABLE)).ok()
}

/// The address of a service's database without a pooler in between.
pub fn direct(url: &str) -> String {
    match admin_url() {
        Some(admin) if url.starts_with("postgres") => beside(&admin, name_in(url)),
        _ => url.to_owned(),
    }
}

/// Whether a pooler is in between.
fn is_pooled() -> bool {
    std::env::var(ADMIN_VARIABLE).is_ok()
}

impl Storage {
    /// All tables, and nothing in them.
    pub async fn fresh() -> Self {
        let storage = Self::with_database(Contents::Tables).await;
        if storage.database_url.is_none() {
            template::copy_to(storage.path()).await;
        }
        storage
    }

    /// Not even a table, as at a service's very first start.
    pub async fn empty() -> Self {
        Self::with_database(Contents::Nothing).await
    }

    /// The same on SQLite, wherever the other tests keep their data.
    pub async fn embedded() -> Self {
        let directory = TempDir::new().unwrap();
        template::copy_to(directory.path()).await;
        Self { directory, database_url: None, is_owner: false }
    }

    async fn with_database(contents: Contents) -> Self {
        let directory = TempDir::new().unwrap();
        let database_url = match std::env::var(POSTGRES_VARIABLE) {
            Ok(url) => Some(beside(&url, &create_database(&admin_url().unwrap(), contents).await)),
            Err(_) => None,
        };
        Self { directory, database_url, is_owner: true }
    }

    /// Another directory for the same database, for a second service.
    pub fn beside(&self) -> Self {
        assert!(self.database_url.is_some(), "several services need PostgreSQL: run this by scripts/with-postgres");
        Self { directory: TempDir::new().unwrap(), database_url: self.database_url.clone(), is_owner: false }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The settings of a test: a free port, one worker, few connections, cheap passwords.
    pub fn config(&self) -> Config {
        let mut config = Config::new(self.path());
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.workers = Some(1);
        config.password_iterations = TEST_ITERATIONS;
        config.timing.commit_interval = TEST_COMMIT_INTERVAL;
        config.database_url = self.database_url.clone().map(Into::into);
        config.database.connections = TEST_CONNECTIONS;
        if is_pooled() {
            config.database.pooler = Pooler::Transaction;
        }
        config
    }

    /// The address of the database without a pooler.
    pub fn direct_url(&self) -> String {
        direct(&self.config().database_url())
    }

    /// Passes the database's address to a process of the service.
    pub fn named_to(&self, command: &mut Command) {
        command.env("SIGNALBOX_DATABASE_URL", self.config().database_url());
        command.env("SIGNALBOX_DATABASE_CONNECTIONS", TEST_CONNECTIONS.to_string());
        if is_pooled() {
            command.env("SIGNALBOX_DATABASE_POOLER", "transaction");
        }
    }

    /// A store on the data of an earlier or running service.
    pub async fn store(&self) -> Store {
        drop_tasks_inside_the_runtime();
        let config = self.config();
        Store::open(&config.database_url(), config.database).await.unwrap()
    }

    /// Changes the database.
    pub async fn execute(&self, statements: &[&str]) {
        let database = Database::connect(self.direct_url()).await.unwrap();
        for statement in statements {
            database.execute_unprepared(statement).await.unwrap();
        }
        database.close().await.unwrap();
    }
}

/// What still runs when the test ends is dropped inside the runtime, as in the service (`signalbox::startup::in_system`): a task
/// that holds a connection to the database returns it by spawning another task, and panics where there is no runtime.
///
/// The macro for tests drops its tasks, in the order in which they were spawned, after it has left the runtime. So one that is
/// spawned before those with connections enters it again, for the rest of the thread.
fn drop_tasks_inside_the_runtime() {
    struct Inside(Handle);
    impl Drop for Inside {
        fn drop(&mut self) {
            std::mem::forget(self.0.enter());
        }
    }
    let inside = Inside(Handle::current());
    drop(actix_web::rt::spawn(async move {
        let _inside = inside;
        std::future::pending::<()>().await;
    }));
}

impl Drop for Storage {
    fn drop(&mut self) {
        let Some(url) = self.database_url.take().filter(|_| self.is_owner) else { return };
        // In a thread of its own, because this may run inside a test's runtime. A database that cannot be dropped is no reason
        // to fail a test that passed.
        let dropping = std::thread::spawn(move || System::new().block_on(drop_database(&url)));
        let _ = dropping.join();
    }
}

/// The name of a new database.
async fn create_database(admin_url: &str, contents: Contents) -> String {
    let name = format!("signalbox_test_{}", Uuid::now_v7().simple());
    let admin = connect_once(admin_url).await.unwrap();
    let template = match contents {
        Contents::Tables => template::database(&admin, admin_url).await,
        Contents::Nothing => "template1".to_owned(),
    };
    // Copying files takes a third of the processor time that writing every page to the log takes, which is the default.
    let statement = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY");
    admin.execute_unprepared(&statement).await.unwrap();
    if std::env::var(STATEMENTS_VARIABLE).is_ok() {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let whose = format!("INSERT INTO whose SELECT oid, '{test}' FROM pg_database WHERE datname = '{name}'");
        admin.execute_unprepared(&whose).await.unwrap();
    }
    admin.close().await.unwrap();
    name
}

/// A single connection.
async fn connect_once(url: &str) -> Result<DatabaseConnection, DbErr> {
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false);
    Database::connect(options).await
}

async fn drop_database(url: &str) -> Option<()> {
    let admin = connect_once(&admin_url()?).await.ok()?;
    admin.execute_unprepared(&format!("DROP DATABASE {} WITH (FORCE)", name_in(url))).await.ok()?;
    admin.close().await.ok()
}

/// The address of another database of the same server.
pub(super) fn beside(url: &str, name: &str) -> String {
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

fn name_in(url: &str) -> &str {
    url.rsplit_once('/').unwrap().1
}
