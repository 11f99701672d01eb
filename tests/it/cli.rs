//! The command line: help, bad settings, and the commands other than `serve`.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use serde_json::Value;
use signalbox::config::MIN_PASSWORD_ITERATIONS;
use tempfile::TempDir;

use crate::support::command_line::{Launched, Outcome, run, signalbox};
use crate::support::port::Port;
use crate::support::{PASSWORD, eventually, registration};

fn serving(data_dir: &Path) -> Launched {
    Launched::start(signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir.to_str().unwrap()]))
}

/// Another command on the data of a service.
pub fn beside(data_dir: &Path, arguments: &[&str]) -> Command {
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
    for command in ["serve", "demo", "health", "openapi", "backup", "migrate", "import", "user", "audit"] {
        assert!(help.contains(command), "{command}: {help}");
    }
}

#[actix_web::test]
async fn a_bad_value_is_one_line_and_exit_code_2() {
    // The flag, its value, and the rest of the line.
    let fewest_rounds = format!("from {MIN_PASSWORD_ITERATIONS} to");
    let cases = [
        ("--listen", "nonsense", "127.0.0.1:8000"),
        ("--listen", "127.0.0.1:70000", "127.0.0.1:8000"),
        ("--listen", "8000", "127.0.0.1:8000"),
        ("--listen", ":8000", "0.0.0.0:8000"),
        ("--listen", "localhost:8000", "[::1]:8000"),
        ("--public-url", "foo", "https://signalbox.example.com"),
        ("--public-url", "", "https://signalbox.example.com"),
        ("--public-url", "//", "https://signalbox.example.com"),
        ("--public-url", "https://", "https://signalbox.example.com"),
        ("--public-url", "https://a/b", "no path"),
        ("--allowed-origins", "foo", "https://dashboard.example.com"),
        ("--allowed-origins", "https://a/x", "no path"),
        ("--allowed-origins", "https://a,*", "'*'"),
        ("--install-dir", "/nope", "No such file"),
        ("--install-dir", "/etc/hostname", "not a directory"),
        ("--log", "foo", "info,signalbox=debug"),
        ("--log", "wran", "warn"),
        ("--log", "info,wran", "warn"),
        ("--log", "", "warn"),
        ("--log", "signalbox=loud", "debug"),
        ("--log-format", "xml", "json"),
        ("--registration", "maybe", "closed"),
        ("--web", "maybe", "off"),
        ("--retention-raw", "-1", "a whole number from 1 to 36500 is needed"),
        ("--retention-raw", "0", "from 1 to 36500"),
        ("--retention-commands", "x", "from 1 to 36500"),
        ("--min-free-disk", "-1", "from 0 to"),
        ("--quota-servers", "-1", "from 1 to 1000000000"),
        ("--quota-command-storage", "x", "from 1 to"),
        ("--workers", "0", "from 1 to 1024"),
        ("--drain", "60", "from 0 to 5"),
        ("--drain", "x", "from 0 to 5"),
        ("--password-iterations", "1", &fewest_rounds),
        ("--database-connections", "1", "from 2 to 1000"),
        ("--database-pooler", "session", "transaction"),
        ("--smtp-from", "signalbox@example.com", "--smtp-url"),
        ("--smtp-url", "smtp://localhost", "--smtp-from"),
        ("--nats-prefix", "a b", "letters, digits"),
        ("--nats-credentials-file", "/does/not/exist", "--nats-url"),
        ("--jwt-secret-file", "/does/not/exist", "No such file"),
        ("--encryption-key-file", "/does/not/exist", "No such file"),
        ("--notification-ca-file", "/does/not/exist", "no such file"),
        ("--notification-networks", "10.0.0.0/33", "10.0.0.0/8"),
        ("--trusted-proxies", "10.0.0.1,balancer", "balancer"),
        ("--colour", "red", "unexpected argument"),
    ];

    for (flag, value, said) in cases {
        let mut command = signalbox(&["serve", flag, value]);
        command.env("SIGNALBOX_LISTEN", "127.0.0.1:0");
        let outcome = run(command).await;
        outcome.assert_refused(said);
        // Of a flag that needs another one only the other is named.
        assert!(outcome.stderr.contains(flag) || said.starts_with("--"), "{flag}: {outcome:?}");
    }
    for (url, said) in [
        ("carrier-pigeon://home", "must begin with postgres:// or sqlite://"),
        ("postgres://ada@localhost/box?sslmode=foo", "foo"),
        ("postgres://ada@localhost:abc/box", "invalid port number"),
        ("postgres://ada@localhost/box?foo=bar", "no parameter foo"),
        ("postgres://ada@localhost/box?sslmode=disable&sslmod=verify-full", "no parameter sslmod"),
        ("sqlite://", "name a file"),
        ("sqlite::memory:", "name a file"),
    ] {
        for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["audit", "verify"]] {
            run(signalbox(&[command, &["--database-url", url]].concat())).await.assert_refused(said);
        }
    }
    let short = ["serve", "--listen", "127.0.0.1:0", "--retention-raw", "90", "--retention-1m", "30"];
    run(signalbox(&short)).await.assert_refused("retention");
    run(signalbox(&["server"])).await.assert_refused("server");
    for (command, verb) in [("user", "reset-password"), ("audit", "verify")] {
        run(signalbox(&[command])).await.assert_refused(verb);
    }
}

#[actix_web::test]
async fn a_backup_of_postgres_is_refused_before_the_database_is_asked() {
    let target = TempDir::new().unwrap();
    let copy = target.path().join("copy.db");
    // It accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://nobody@{}/none", silent.local_addr().unwrap());

    let outcome = run(signalbox(&["backup", copy.to_str().unwrap(), "--database-url", &url])).await;

    outcome.assert_refused("SQLite");
    silent.set_nonblocking(true).unwrap();
    assert!(silent.accept().is_err(), "the database was asked");
}

#[actix_web::test]
async fn a_database_that_may_not_be_looked_for_is_not_said_to_be_missing() {
    let parent = TempDir::new().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();

    // A path below a file is as unreadable as one in another user's directory.
    let outcome = run(signalbox(&["audit", "verify", "--data-dir", file.to_str().unwrap()])).await;

    outcome.assert_refused("cannot look for the database");
}

#[actix_web::test]
async fn a_reader_that_has_read_enough_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);

    let output = signalbox(&["openapi"]).stdout(writer).stderr(Stdio::piped()).output().unwrap();

    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[actix_web::test]
async fn a_start_says_what_runs_where_and_what_comes_first() {
    let data = TempDir::new().unwrap();
    let mut service = serving(data.path());
    let address = service.address().await;

    let log = service.stderr();

    let ready = log.lines().find(|line| line.contains("the service is ready")).unwrap_or_else(|| panic!("{log}"));
    for named in [env!("CARGO_PKG_VERSION"), &address.to_string(), data.path().to_str().unwrap(), "SQLite"] {
        assert!(ready.contains(named), "{named}: {ready}");
    }
    assert!(log.contains(&format!("create the administrator's at http://{address}")), "{log}");
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

#[actix_web::test]
async fn only_its_owner_can_read_a_backup_whatever_the_umask() {
    let (data, target) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let copy = target.path().join("copy.db");
    let mut service = serving(data.path());
    service.client().await.post("/auth/register").json(registration("alice")).expect(201).await;
    let backup = beside(data.path(), &["backup", copy.to_str().unwrap()]);
    let mut open_to_all = Command::new("/bin/sh");
    open_to_all.env_clear().args(["-c", "umask 000; exec \"$@\"", "sh"]).arg(backup.get_program());
    open_to_all.args(backup.get_args()).env("SIGNALBOX_DATA_DIR", data.path());

    run(open_to_all).await.printed();

    assert_eq!(integrity_of(&copy).await, "ok");
    let names = names_in(target.path());
    assert_eq!((names, mode_of(&copy)), (vec!["copy.db".to_owned()], 0o600));
}

#[actix_web::test]
async fn a_backup_that_fails_leaves_nothing_and_changes_nothing() {
    let (data, target) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let copy = target.path().join("copy.db");
    std::fs::write(&copy, "precious").unwrap();
    serving(data.path()).address().await;
    let (there, nowhere) = (copy.to_str().unwrap().to_owned(), format!("{}/no/copy.db", target.path().display()));

    for file in [there, nowhere] {
        run(beside(data.path(), &["backup", &file])).await.assert_refused(&file);
    }

    assert_eq!(std::fs::read(&copy).unwrap(), b"precious");
    assert_eq!(names_in(target.path()), ["copy.db"]);
}

#[actix_web::test]
async fn a_backup_that_is_interrupted_ends_and_leaves_nothing() {
    let (data, target) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    serving(data.path()).address().await;
    let file = data.path().join(database_name_in(data.path()));
    let database = Database::connect(format!("sqlite://{}", file.display())).await.unwrap();
    // Many small rows take a copy longer than their bytes.
    let fill = "CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) \
                SELECT i, zeroblob(50) AS bytes FROM n";
    database.execute_unprepared(fill).await.unwrap();
    database.close().await.unwrap();
    let copy = target.path().join("copy.db");
    let has_begun = || copy.exists() || names_in(target.path()).iter().any(|name| name.ends_with("-journal"));
    let interrupted = eventually("a copy is interrupted", async || {
        let backup = Launched::start(beside(data.path(), &["backup", copy.to_str().unwrap()]));
        eventually("the copy is being written", async || has_begun().then_some(())).await;
        backup.signal("TERM");
        let outcome = backup.outcome().await;
        // A copy that is complete before the signal comes is made again.
        (outcome.code != Some(0) || std::fs::remove_file(&copy).is_err()).then_some(outcome)
    });

    interrupted.await.assert_refused("the backup was interrupted");
    assert_eq!(names_in(target.path()), Vec::<String>::new());
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn mode_of(file: &Path) -> u32 {
    std::fs::metadata(file).unwrap().permissions().mode() & 0o777
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

/// The output of `signalbox health` for the service that listens there.
async fn health(listen: &str, arguments: &[&str]) -> Outcome {
    run(signalbox(&[&["health", "--listen", listen], arguments].concat())).await
}

#[actix_web::test]
async fn health_says_by_its_exit_code_whether_a_service_is_there() {
    let data = TempDir::new().unwrap();
    // Another program could get a free port once the service has ended.
    let port = Port::reserve();
    let mut service = Launched::start(beside(data.path(), &["serve", "--listen", &port.address.to_string()]));
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

    let alive = health(&address, &[]).await;
    // The disk is checked once the service runs.
    let ready = eventually("the disk is found full", async || {
        Some(health(&address, &["--ready"]).await).filter(|ready| ready.code != Some(0))
    })
    .await;

    alive.printed();
    assert_eq!((ready.code, ready.stdout.as_str(), ready.stderr.lines().count()), (Some(1), "", 1), "{ready:?}");
    assert!(ready.stderr.contains("503") && ready.stderr.contains("disk"), "{ready:?}");
}

#[actix_web::test]
async fn health_refuses_what_names_no_service() {
    health("127.0.0.1:0", &[]).await.assert_refused("--url");
    health("127.0.0.1:1", &["--url", "ftp://box"]).await.assert_refused("ftp://box");
    health("127.0.0.1:1", &["--url", "foo"]).await.assert_refused("http://127.0.0.1:8000");
}
