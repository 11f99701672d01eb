//! Where a service under test keeps its data: a directory, and on demand a PostgreSQL database.
//!
//! `SIGNALBOX_TEST_POSTGRES=postgres://user@host:port/postgres` runs the whole suite on PostgreSQL, one database a
//! service. Without it everything is on SQLite.

use std::path::Path;

use actix_web::rt::System;
use sea_orm::{ConnectionTrait, Database};
use signalbox::config::Config;
use tempfile::TempDir;
use uuid::Uuid;

const POSTGRES_VARIABLE: &str = "SIGNALBOX_TEST_POSTGRES";

/// The cost of a password hash in tests: the real one would take the time of everything else together.
const TEST_ITERATIONS: u32 = 1_000;

pub struct Storage {
    directory: TempDir,
    database_url: Option<String>,
}

impl Storage {
    /// Nothing stored yet.
    pub async fn fresh() -> Self {
        let directory = TempDir::new().unwrap();
        let database_url = match std::env::var(POSTGRES_VARIABLE) {
            Ok(admin_url) => Some(create_database(&admin_url).await),
            Err(_) => None,
        };
        Self { directory, database_url }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The settings of a test: a free port, one worker, cheap passwords.
    pub fn config(&self) -> Config {
        let mut config = Config::new(self.path());
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.workers = Some(1);
        config.password_iterations = TEST_ITERATIONS;
        config.database_url = self.database_url.clone().map(Into::into);
        config
    }

    /// Changes the database while no service uses it.
    pub async fn execute(&self, statements: &[&str]) {
        let database = Database::connect(self.config().database_url()).await.unwrap();
        for statement in statements {
            database.execute_unprepared(statement).await.unwrap();
        }
        database.close().await.unwrap();
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let Some(url) = self.database_url.take() else { return };
        // In a thread of its own, as this may run inside a test's runtime. A database that cannot be dropped is no
        // reason to fail a test that passed.
        let dropping = std::thread::spawn(move || System::new().block_on(drop_database(&url)));
        let _ = dropping.join();
    }
}

/// The URL of a new database beside the one that `admin_url` names.
async fn create_database(admin_url: &str) -> String {
    let name = format!("signalbox_test_{}", Uuid::now_v7().simple());
    let admin = Database::connect(admin_url).await.unwrap();
    admin.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
    admin.close().await.unwrap();

    let (server, _) = admin_url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

async fn drop_database(url: &str) -> Option<()> {
    let admin = Database::connect(std::env::var(POSTGRES_VARIABLE).ok()?).await.ok()?;
    let (_, name) = url.rsplit_once('/')?;
    admin.execute_unprepared(&format!("DROP DATABASE {name} WITH (FORCE)")).await.ok()?;
    admin.close().await.ok()
}
