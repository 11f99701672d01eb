//! A database that cannot be used: a start, and every command, ends at once with one line that says where and why.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use actix_web::rt;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::authority::Authority;
use crate::support::command_line::{Outcome, run, signalbox};
use crate::support::port::Port;

/// The promised 5 s, and the time to start a program on a loaded machine.
const AT_ONCE: Duration = Duration::from_secs(25);

const PASSWORD: &str = "hunter2secret";

/// Everything that opens the database.
const COMMANDS: [&[&str]; 4] =
    [&["serve", "--listen", "127.0.0.1:0"], &["audit", "verify"], &["user", "reset-password", "ada"], &["migrate"]];

async fn with_database(arguments: &[&str], url: &str) -> Outcome {
    let mut command = signalbox(arguments);
    command.env("SIGNALBOX_DATABASE_URL", url);
    run(command).await
}

#[track_caller]
fn assert_says(outcome: &Outcome, address: &str, cause: &str) {
    outcome.assert_refused(address);
    assert!(outcome.stderr.contains(cause), "{outcome:?} does not name {cause}");
    assert!(!outcome.stderr.contains(PASSWORD) && !outcome.stderr.contains("at line"), "{outcome:?}");
}

#[actix_web::test]
async fn nobody_listens_there() {
    let nobody = Port::reserve();
    let url = format!("postgres://ada:{PASSWORD}@{}/signalbox", nobody.address);

    for arguments in COMMANDS {
        let began = Instant::now();
        let outcome = with_database(arguments, &url).await;

        assert!(began.elapsed() < AT_ONCE, "{arguments:?} took {:?}", began.elapsed());
        assert_says(&outcome, &nobody.address.to_string(), "refused");
    }
}

#[actix_web::test]
async fn somebody_listens_there_and_says_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();

    let began = Instant::now();
    let outcome = with_database(COMMANDS[0], &format!("postgres://ada:{PASSWORD}@{address}/signalbox")).await;

    assert!(began.elapsed() < AT_ONCE, "it took {:?}", began.elapsed());
    assert_says(&outcome, &address.to_string(), "timed out");
}

#[actix_web::test]
async fn the_name_is_nobodys() {
    let outcome = with_database(COMMANDS[0], &format!("postgres://ada:{PASSWORD}@nobody.invalid/signalbox")).await;

    assert_says(&outcome, "nobody.invalid:5432", "cannot be resolved");
}

/// The address of a server that accepts connections as PostgreSQL does, up to TLS.
async fn speaking_tls(acceptor: TlsAcceptor) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    rt::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The request for TLS, and its acceptance.
            stream.read_exact(&mut [0; 8]).await.unwrap();
            stream.write_all(b"S").await.unwrap();
            assert!(acceptor.accept(stream).await.is_err(), "the certificate was taken");
        }
    });
    address
}

#[actix_web::test]
async fn a_certificate_that_is_not_trusted_is_no_other_protocol() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (trusted, unknown) = (authority.file(), stranger.file());
    let missing = trusted.with_file_name("missing.pem");
    let missing_told = format!("sslrootcert {}: no such file", missing.display());

    for (name, file, cause) in [
        ("localhost", unknown, "TLS: no authority that is trusted here has signed its certificate; sslrootcert=FILE"),
        ("other.example.com", trusted, "TLS: its certificate is for another name than localhost"),
        ("localhost", missing, missing_told.as_str()),
    ] {
        let place = format!("localhost:{}", speaking_tls(authority.acceptor(name)).await.port());
        let tls = format!("sslmode=verify-full&sslrootcert={}", file.display());

        let url = format!("postgres://ada:{PASSWORD}@{place}/signalbox?{tls}");
        let outcome = with_database(COMMANDS[1], &url).await;

        assert_says(&outcome, &place, cause);
    }
}

#[actix_web::test]
async fn a_database_without_data_has_another_error_than_one_that_lacks_a_table() {
    let storage = Storage::empty().await;
    let url = storage.direct_url();
    let place = match url.strip_prefix("postgres://").and_then(|rest| rest.rsplit_once('@')) {
        Some((_, place)) => place.to_owned(),
        None => {
            let file = storage.path().join("signalbox.db");
            std::fs::write(&file, "").unwrap();
            file.to_str().unwrap().to_owned()
        }
    };

    for arguments in &COMMANDS[1..3] {
        let outcome = with_database(arguments, &url).await;
        assert_says(&outcome, &place, "holds no data of Signalbox; if it is the right one, run `signalbox migrate`");
    }

    with_database(&["migrate"], &url).await.printed();
    with_database(&["audit", "verify"], &url).await.printed();
}

#[actix_web::test]
async fn a_role_without_rights_gets_the_databases_own_words() {
    let storage = Storage::empty().await;
    let url = storage.direct_url();
    // SQLite has no roles.
    let Some((_, place)) = url.strip_prefix("postgres://").and_then(|rest| rest.rsplit_once('@')) else { return };
    let role = format!("powerless_{}", Uuid::now_v7().simple());
    storage.execute(&["REVOKE CREATE ON SCHEMA public FROM PUBLIC", &format!("CREATE ROLE {role} LOGIN")]).await;

    let outcome = with_database(COMMANDS[0], &format!("postgres://{role}@{place}")).await;

    storage.execute(&[&format!("DROP ROLE {role}")]).await;
    assert_says(&outcome, "cannot open the database", "permission denied for schema public");
}

#[actix_web::test]
async fn a_file_that_is_no_database_is_named() {
    let data = TempDir::new().unwrap();
    let (text, missing) = (data.path().join("notes.txt"), data.path().join("missing.db"));
    std::fs::write(&text, "no database\n".repeat(100)).unwrap();
    std::fs::set_permissions(&text, PermissionsExt::from_mode(0o644)).unwrap();

    for arguments in COMMANDS {
        let outcome = with_database(arguments, &format!("sqlite://{}", text.display())).await;
        assert_says(&outcome, text.to_str().unwrap(), "file is not a database");
        assert!(!outcome.stderr.contains("code"), "{outcome:?}");
        // Anybody may own it: a user who can read it still can.
        assert_eq!(text.metadata().unwrap().mode() & 0o777, 0o644);

        let outcome = with_database(arguments, &format!("sqlite://{}", missing.display())).await;
        assert_says(&outcome, missing.to_str().unwrap(), "?mode=rwc");
    }
}

#[actix_web::test]
async fn the_database_or_the_user_is_not_there() {
    let storage = Storage::fresh().await;
    let url = storage.direct_url();
    // SQLite has neither.
    let Some((server, _)) = url.strip_prefix("postgres://").and_then(|rest| rest.rsplit_once('/')) else { return };
    let (_, address) = server.rsplit_once('@').unwrap();

    let database = with_database(COMMANDS[0], &format!("postgres://{server}/nothing_here")).await;
    let user = with_database(COMMANDS[2], &format!("postgres://nobody_here:{PASSWORD}@{address}/postgres")).await;

    assert_says(&database, address, "database nothing_here does not exist");
    assert_says(&user, address, "nobody_here");
}

/// A command as an account that is not the file's owner, and not almighty either.
fn powerless(arguments: &[&str], data_dir: &Path) -> Command {
    let program = signalbox(arguments);
    let mut command = match std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set", "-dac_override,-dac_read_search", "--"]).arg(program.get_program());
            command.env_clear().args(arguments).env("PATH", "/usr/bin:/bin");
            command
        }
        false => program,
    };
    command.env("SIGNALBOX_DATA_DIR", data_dir);
    command
}

#[actix_web::test]
async fn a_user_who_may_not_read_the_file_learns_so() {
    let data = TempDir::new().unwrap();
    let file = data.path().join("signalbox.db");
    let migrated = {
        std::fs::write(&file, "").unwrap();
        let mut command = signalbox(&["migrate"]);
        command.env("SIGNALBOX_DATA_DIR", data.path());
        run(command).await
    };
    migrated.printed();

    for (closed, mode) in [(file.as_path(), 0o600), (data.path(), 0o700)] {
        std::fs::set_permissions(closed, PermissionsExt::from_mode(0o000)).unwrap();
        for arguments in &COMMANDS[1..4] {
            let outcome = run(powerless(arguments, data.path())).await;

            outcome.assert_refused(file.to_str().unwrap());
            assert!(outcome.stderr.to_lowercase().contains("permission"), "{arguments:?} {outcome:?}");
        }
        std::fs::set_permissions(closed, PermissionsExt::from_mode(mode)).unwrap();
    }
}
