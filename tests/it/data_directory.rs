//! The data directory: one process at a time, and no other user can read its files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::command_line::{Launched, run, signalbox};
use crate::support::{registration, write_private};

/// The program with these arguments, started by a shell whose umask lets everybody read new files.
fn careless(arguments: &[&str]) -> Command {
    let mut command = Command::new("/bin/sh");
    command.env_clear().args(["-c", "umask 022; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_signalbox")]).args(arguments);
    command
}

fn serve(data_dir: &Path) -> [&str; 5] {
    ["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir.to_str().unwrap()]
}

fn mode_of(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[actix_web::test]
async fn a_second_process_on_one_directory_ends_and_names_the_first() {
    let data = TempDir::new().unwrap();
    let mut first = Launched::start(signalbox(&serve(data.path())));
    first.client().await.post("/auth/register").json(registration("alice")).expect(201).await;
    // The same directory under another name, and the demo, which is a service, too.
    let elsewhere = TempDir::new().unwrap();
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(data.path(), &link).unwrap();
    let demo = ["demo", "--listen", "127.0.0.1:0", "--data-dir", data.path().to_str().unwrap()];
    let file = format!("sqlite://{}/signalbox.db", data.path().display());
    let own = TempDir::new().unwrap();
    let other_data = [&serve(own.path())[..], &["--database-url", &file]].concat();

    for arguments in [&serve(data.path())[..], &serve(&link), &demo, &other_data] {
        let second = run(signalbox(arguments)).await;
        second.assert_refused(&format!("process {}", first.id()));
        let directory = data.path().canonicalize().unwrap();
        assert!(second.stderr.contains(directory.to_str().unwrap()), "{second:?}");
    }

    first.client().await.get("/service").expect(200).await;
    first.signal("KILL");
    first.outcome().await;
    Launched::start(signalbox(&serve(data.path()))).address().await;
}

#[actix_web::test]
async fn a_file_is_no_data_directory() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("data");
    std::fs::write(&file, "").unwrap();

    let outcome = run(signalbox(&serve(&file))).await;

    outcome.assert_refused("is not a directory");
    assert!(outcome.stderr.contains(file.to_str().unwrap()), "{outcome:?}");
}

#[actix_web::test]
async fn other_commands_work_beside_a_service() {
    let data = TempDir::new().unwrap();
    let mut service = Launched::start(signalbox(&serve(data.path())));
    service.client().await.post("/auth/register").json(registration("alice")).expect(201).await;
    let copy = data.path().join("copy.db");

    for arguments in [
        vec!["backup", copy.to_str().unwrap()],
        vec!["audit", "verify"],
        vec!["user", "reset-password", "alice"],
        vec!["migrate"],
    ] {
        let mut command = signalbox(&arguments);
        command.env("SIGNALBOX_DATA_DIR", data.path());
        run(command).await.printed();
    }
}

#[actix_web::test]
async fn nothing_that_is_written_is_for_others() {
    let parent = TempDir::new().unwrap();
    let (data, copy) = (parent.path().join("data"), parent.path().join("copy.db"));
    let mut service = Launched::start(careless(&serve(&data)));
    service.client().await.post("/auth/register").json(registration("alice")).expect(201).await;

    let mut backup = careless(&["backup", copy.to_str().unwrap()]);
    backup.env("SIGNALBOX_DATA_DIR", &data);
    run(backup).await.printed();

    assert_eq!((mode_of(&data), mode_of(&copy)), (0o700, 0o600));
    let files = files_in(&data);
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        assert_eq!(mode_of(&file), 0o600, "{}", file.display());
    }
}

#[actix_web::test]
async fn what_others_could_read_is_closed_and_an_open_directory_is_reported() {
    let data = TempDir::new().unwrap();
    let mut service = Launched::start(signalbox(&serve(data.path())));
    service.address().await;
    service.signal("TERM");
    service.outcome().await.printed();
    set_mode(data.path(), 0o755);
    for file in files_in(data.path()) {
        set_mode(&file, 0o644);
    }

    let mut service = Launched::start(signalbox(&serve(data.path())));
    service.address().await;

    for name in ["signalbox.db", "jwt-secret", "encryption-key", "push-key"] {
        assert_eq!(mode_of(&data.path().join(name)), 0o600, "{name}");
    }
    let log = service.stderr();
    assert_eq!(log.lines().filter(|line| line.contains("it is private now")).count(), 4, "{log}");
    assert!(log.contains("other users can look into the data directory"), "{log}");
}

#[actix_web::test]
async fn a_database_of_another_name_is_closed_too() {
    let (data, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // A space in the path, as a URL encodes it.
    let directory = other.path().join("of mine");
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("custom.db");
    let url = format!("sqlite://{}/of%20mine/custom.db?mode=rwc", other.path().display());
    run(careless(&["migrate", "--database-url", &url])).await.printed();
    set_mode(&file, 0o644);

    let mut service = Launched::start(careless(&[&serve(data.path())[..], &["--database-url", &url]].concat()));
    service.client().await.post("/auth/register").json(registration("alice")).expect(201).await;

    let files = files_in(&directory);
    assert!(files.contains(&file) && files.len() >= 4, "{files:?}");
    for file in files {
        assert_eq!(mode_of(&file), 0o600, "{}", file.display());
    }
    let log = service.stderr();
    assert_eq!(log.lines().filter(|line| line.contains("it is private now")).count(), 1, "{log}");
}

#[actix_web::test]
async fn a_secret_that_others_can_read_is_refused() {
    let (data, kept) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = kept.path().join("secret");
    write_private(&file, &"0f".repeat(32));
    set_mode(&file, 0o644);
    let path = file.to_str().unwrap();

    for flag in ["--jwt-secret-file", "--encryption-key-file"] {
        let outcome = run(signalbox(&[&serve(data.path())[..], &[flag, path]].concat())).await;
        outcome.assert_refused(flag);
        assert!(outcome.stderr.contains(path) && outcome.stderr.contains("0644"), "{outcome:?}");
    }

    // As systemd passes it: readable for the group, in a directory that it names.
    let mut command = signalbox(&[&serve(data.path())[..], &["--jwt-secret-file", path]].concat());
    command.env("CREDENTIALS_DIRECTORY", kept.path());
    Launched::start(command).address().await;
}
