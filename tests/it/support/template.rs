//! A database with all migrations and nothing else, of which tests take copies: in a debug build applying the migrations takes
//! longer than all the rest of a service's start.
//!
//! It is made by the first test that asks, and belongs to one build of the tests. A build that is older by an hour may lose its own.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};
use signalbox::config::DATABASE_FILE;
use signalbox::store::{DatabaseSettings, Store};
use tempfile::TempDir;
use uuid::Uuid;

use super::storage::beside;

/// Any number, as long as all tests take the same one.
const TURN: i64 = 0x7465_6d70;

const ENDING: &str = "template.db";

/// How long a template is kept: other programs of the tests may be using it.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Distinguishes this build of the tests from every other one.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let program = fs::metadata(std::env::current_exe().unwrap()).unwrap();
        let built = program.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        format!("{:x}", built.as_nanos())
    })
}

/// Writes a copy to the path of a service's embedded database.
pub async fn copy_to(data_dir: &Path) {
    let template = file();
    if !template.exists() {
        make_file(&template).await;
    }
    fs::copy(&template, data_dir.join(DATABASE_FILE)).unwrap();
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.{ENDING}", build()))
}

/// Those that ask for it at the same time make one each, and the last one stays: they are alike.
async fn make_file(template: &Path) {
    let directory = template.parent().unwrap();
    let making = TempDir::new_in(directory).unwrap();
    let made = making.path().join(DATABASE_FILE);
    let store = Store::open(&format!("sqlite://{}?mode=rwc", made.display()), DatabaseSettings::default()).await;
    store.unwrap().close().await;
    assert!(!made.with_extension("db-wal").exists(), "all of it is in the file that is copied");
    fs::rename(&made, template).unwrap();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_name().to_string_lossy().ends_with(ENDING) && is_old(&entry) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// False where it is unknown.
fn is_old(entry: &DirEntry) -> bool {
    let age = entry.metadata().and_then(|file| file.modified()).ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > KEPT)
}

/// The name of the database that `CREATE DATABASE ... TEMPLATE` copies. `admin` has one connection, because the lock below belongs
/// to a session.
pub async fn database(admin: &DatabaseConnection, admin_url: &str) -> String {
    let name = format!("signalbox_template_{}", build());
    if !exists(admin, &name).await {
        admin.execute_unprepared(&format!("SELECT pg_advisory_lock({TURN})")).await.unwrap();
        // Another test may have created it.
        if !exists(admin, &name).await {
            make_database(admin, admin_url, &name).await;
        }
        admin.execute_unprepared(&format!("SELECT pg_advisory_unlock({TURN})")).await.unwrap();
    }
    name
}

async fn exists(admin: &DatabaseConnection, name: &str) -> bool {
    let query = format!("SELECT 1 FROM pg_database WHERE datname = '{name}'");
    let statement = Statement::from_string(admin.get_database_backend(), query);
    admin.query_one_raw(statement).await.unwrap().is_some()
}

/// Under another name until it is complete.
async fn make_database(admin: &DatabaseConnection, admin_url: &str, name: &str) {
    let making = format!("signalbox_making_{}", Uuid::now_v7().simple());
    admin.execute_unprepared(&format!("CREATE DATABASE {making}")).await.unwrap();
    Store::open(&beside(admin_url, &making), DatabaseSettings::default()).await.unwrap().close().await;
    // Connections that are being closed would block it.
    let rest = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{making}'");
    admin.execute_unprepared(&rest).await.unwrap();
    admin.execute_unprepared(&format!("ALTER DATABASE {making} RENAME TO {name}")).await.unwrap();
}
