//! The command line: help, bad settings, and the commands beside `serve`.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::command_line::{Launched, Outcome, run, signalbox};
use crate::support::{PASSWORD, registration};

fn serving(data_dir: &Path) -> Launched {
    Launched::start(signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir.to_str().unwrap()]))
}

/// Another command on the data of a service.
fn beside(data_dir: &Path, arguments: &[&str]) -> Command {
    let mut command = signalbox(arguments);
    command.env("SIGNALBOX_DATA_DIR", data_dir);
    command
}

#[actix_web::test]
async fn help_explains_each_flag_with_its_default() {
    let outcome = run(signalbox(&["serve", "--help"])).await;

    let help = outcome.printed();
    let addresses = ["--listen", "--data-dir", "--database-url", "--nats-url", "--public-url"];
    let others = ["--jwt-secret-file", "--registration", "--allowed-origins", "--log", "--log-format"];
    let defaults = ["127.0.0.1:8000", "./data", "open", "info", "text"];
    for expected in addresses.into_iter().chain(others).chain(defaults) {
        assert!(help.contains(expected), "{expected}: {help}");
    }
}

#[actix_web::test]
async fn help_names_every_command() {
    let outcome = run(signalbox(&["--help"])).await;

    let help = outcome.printed();
    for command in ["serve", "demo", "health", "openapi", "backup", "user", "audit"] {
        assert!(help.contains(command), "{command}: {help}");
    }
}

#[actix_web::test]
async fn a_bad_value_is_one_line_and_exit_code_2() {
    let cases = [
        ["--listen", "nonsense"],
        ["--listen", "127.0.0.1:70000"],
        ["--registration", "maybe"],
        ["--log-format", "xml"],
        ["--jwt-secret-file", "/does/not/exist"],
        ["--encryption-key-file", "/does/not/exist"],
        ["--notification-networks", "10.0.0.0/33"],
        ["--trusted-proxies", "10.0.0.1,balancer"],
        ["--database-url", "carrier-pigeon://home"],
    ];

    for [flag, value] in cases {
        let outcome = run(signalbox(&["serve", flag, value])).await;
        outcome.assert_refused(if flag == "--database-url" { "database" } else { flag.trim_start_matches("--") });
    }
}

#[actix_web::test]
async fn a_bad_value_in_the_environment_is_refused_the_same() {
    let mut command = signalbox(&["serve"]);
    command.env("SIGNALBOX_REGISTRATION", "maybe");

    run(command).await.assert_refused("registration");
}

#[actix_web::test]
async fn an_unreachable_database_is_one_line_without_its_password() {
    let data = TempDir::new().unwrap();
    let url = "postgres://signalbox:hunter2-secret@127.0.0.1:1/signalbox";
    let data_dir = data.path().to_str().unwrap();

    let outcome =
        run(signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir, "--database-url", url])).await;

    outcome.assert_refused("database");
    assert!(!outcome.stderr.contains("hunter2"), "{outcome:?}");
}

#[actix_web::test]
async fn a_port_in_use_is_one_line() {
    let data = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let outcome = run(signalbox(&["serve", "--listen", &address, "--data-dir", data.path().to_str().unwrap()])).await;

    outcome.assert_refused(&address);
}

#[actix_web::test]
async fn a_data_directory_that_cannot_be_made_is_one_line() {
    let outcome = run(signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "/proc/signalbox"])).await;

    outcome.assert_refused("/proc/signalbox");
}

#[actix_web::test]
async fn openapi_prints_the_document() {
    let outcome = run(signalbox(&["openapi"])).await;

    let printed: Value = serde_json::from_str(outcome.printed()).unwrap();
    assert_eq!(printed, signalbox::http::openapi::document());
}

#[actix_web::test]
async fn a_backup_of_a_running_service_is_whole() {
    let data = TempDir::new().unwrap();
    let target = TempDir::new().unwrap();
    let copy = target.path().join("copy.db");
    let mut service = serving(data.path());
    service.client().await.post("/auth/register").json(registration("alice")).expect(201).await;

    run(beside(data.path(), &["backup", copy.to_str().unwrap()])).await.printed();

    assert_eq!(integrity_of(&copy).await, "ok");
    let restored = TempDir::new().unwrap();
    std::fs::copy(&copy, restored.path().join(database_name_in(data.path()))).unwrap();
    let form = [("username", "alice"), ("password", PASSWORD)];
    serving(restored.path()).client().await.post("/auth/login").form(&form).expect(200).await;
}

async fn integrity_of(file: &Path) -> String {
    let database = Database::connect(format!("sqlite://{}?mode=ro", file.display())).await.unwrap();
    let check = Statement::from_string(DbBackend::Sqlite, "PRAGMA integrity_check");
    let row = database.query_one_raw(check).await.unwrap().unwrap();
    row.try_get_by_index(0).unwrap()
}

/// The name of the SQLite database in a data directory.
fn database_name_in(directory: &Path) -> std::ffi::OsString {
    let is_database = |path: &Path| std::fs::read(path).is_ok_and(|content| content.starts_with(b"SQLite format 3"));
    let mut entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries.find(|entry| is_database(&entry.path())).expect("a database").file_name()
}

#[actix_web::test]
async fn a_reset_password_is_printed_and_signs_in() {
    let data = TempDir::new().unwrap();
    let mut service = serving(data.path());
    let client = service.client().await;
    client.post("/auth/register").json(registration("alice")).expect(201).await;

    let outcome = run(beside(data.path(), &["user", "reset-password", "alice"])).await;

    let password = outcome.printed().trim().strip_prefix("new password for alice: ").unwrap();
    let login = |password: &str| client.post("/auth/login").form(&[("username", "alice"), ("password", password)]);
    login(password).expect(200).await;
    login(PASSWORD).expect_error(401, "invalid_credentials").await;
}

#[actix_web::test]
async fn the_password_of_nobody_cannot_be_reset() {
    let data = TempDir::new().unwrap();
    serving(data.path()).address().await;

    let outcome = run(beside(data.path(), &["user", "reset-password", "nobody"])).await;

    assert!(outcome.code.is_some_and(|code| code != 0), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("nobody"), "{outcome:?}");
}

/// What `signalbox health` says of the service that listens there.
async fn health(listen: &str, arguments: &[&str]) -> Outcome {
    run(signalbox(&[&["health", "--listen", listen], arguments].concat())).await
}

#[actix_web::test]
async fn health_says_by_its_exit_code_whether_a_service_is_there() {
    let data = TempDir::new().unwrap();
    let mut service = serving(data.path());
    let address = service.address().await.to_string();

    let alive = health(&address, &[]).await;
    let ready = health("127.0.0.1:1", &["--ready", "--url", &format!("http://{address}/")]).await;
    service.signal("TERM");
    service.outcome().await;
    let gone = health(&address, &[]).await;

    assert_eq!(alive.printed(), format!("http://{address}/healthz answers that all is well\n"));
    assert_eq!(ready.printed(), format!("http://{address}/readyz answers that all is well\n"));
    assert_eq!((gone.code, gone.stdout.as_str(), gone.stderr.lines().count()), (Some(1), "", 1), "{gone:?}");
    assert!(gone.stderr.contains(&address), "{gone:?}");
}

#[actix_web::test]
async fn health_tells_a_service_that_is_up_from_one_that_is_ready() {
    let data = TempDir::new().unwrap();
    let no_disk_is_so_large = (1_u64 << 40).to_string();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--min-free-disk", &no_disk_is_so_large];
    let mut service = Launched::start(beside(data.path(), &serve));
    let address = service.address().await.to_string();

    let (alive, ready) = (health(&address, &[]).await, health(&address, &["--ready"]).await);

    alive.printed();
    assert_eq!((ready.code, ready.stdout.as_str(), ready.stderr.lines().count()), (Some(1), "", 1), "{ready:?}");
    assert!(ready.stderr.contains("503") && ready.stderr.contains("disk"), "{ready:?}");
}

#[actix_web::test]
async fn health_refuses_what_names_no_service() {
    health("127.0.0.1:0", &[]).await.assert_refused("--url");
    health("127.0.0.1:1", &["--url", "ftp://box"]).await.assert_refused("ftp://box");
}
