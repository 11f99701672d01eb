//! Which directory a demo uses, that it is none of a service, and that nothing is left of a temporary one.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use signalbox::config::MIN_PASSWORD_ITERATIONS;

use super::{demo_with, greeted, greeting_of, signed_in};
use crate::support::command_line::{Launched, run, signalbox};
use crate::support::{PASSWORD, registration};

fn serve(data: &Path) -> Command {
    signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()])
}

async fn stop(program: Launched) {
    program.signal("TERM");
    assert_eq!(program.outcome().await.code, Some(0));
}

#[actix_web::test]
async fn a_demo_refuses_the_data_of_a_service() {
    let data = tempfile::tempdir().unwrap();
    let mut service = Launched::start(serve(data.path()));
    service.client().await.post("/auth/register").json(registration("demo")).expect(201).await;
    stop(service).await;

    let refused = run(demo_with(&["--data-dir", data.path().to_str().unwrap()])).await;

    refused.assert_refused("has the data of a service");
    assert!(refused.stderr.contains(data.path().canonicalize().unwrap().to_str().unwrap()), "{refused:?}");
    let mut service = Launched::start(serve(data.path()));
    let form = [("username", "demo"), ("password", PASSWORD)];
    service.client().await.post("/auth/login").form(&form).expect(200).await;
    stop(service).await;
}

#[actix_web::test]
async fn a_demo_refuses_a_directory_with_only_the_secrets_of_a_service() {
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("jwt-secret"), "0f".repeat(32)).unwrap();

    let refused = run(demo_with(&["--data-dir", data.path().to_str().unwrap()])).await;

    refused.assert_refused("has the data of a service");
    assert!(!data.path().join("signalbox.db").exists());
}

#[actix_web::test]
async fn a_demo_refuses_a_directory_with_a_database_of_another_name() {
    let data = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/other.db?mode=rwc", data.path().display());
    run(signalbox(&["migrate", "--database-url", &url])).await.printed();

    let refused = run(demo_with(&["--data-dir", data.path().to_str().unwrap()])).await;

    refused.assert_refused("has the data of a service");
    assert!(!data.path().join("demo-data").exists());
}

#[actix_web::test]
async fn a_demo_that_cannot_make_its_directory_names_the_place_and_the_flag() {
    let parent = tempfile::tempdir().unwrap();
    let missing = parent.path().join("missing");
    let mut command = demo_with(&[]);
    command.env("TMPDIR", &missing);

    let refused = run(command).await;

    refused.assert_refused(&format!("in {}: choose another one with --data-dir", missing.display()));
}

#[actix_web::test]
async fn a_service_refuses_the_data_of_a_demo() {
    let data = tempfile::tempdir().unwrap();
    let (demo, _) = greeted(&["--data-dir", data.path().to_str().unwrap()]).await;
    stop(demo).await;

    let refused = run(serve(data.path())).await;

    refused.assert_refused("has the data of a demo");
    assert!(refused.stderr.contains(data.path().canonicalize().unwrap().to_str().unwrap()), "{refused:?}");
}

#[actix_web::test]
async fn a_directory_in_which_a_demo_could_not_start_is_free_for_a_service() {
    let data = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let path = data.path().to_str().unwrap();
    run(signalbox(&["demo", "--listen", &address, "--data-dir", path])).await.assert_refused("cannot listen");

    let mut service = Launched::start(serve(data.path()));
    service.address().await;
    stop(service).await;

    run(demo_with(&["--data-dir", path])).await.assert_refused("has the data of a service");
}

#[actix_web::test]
async fn a_demo_leaves_the_directory_of_the_variable_alone() {
    let data = tempfile::tempdir().unwrap();
    let mut command = demo_with(&[]);
    // As the image sets it.
    command.env("SIGNALBOX_DATA_DIR", data.path());

    let demo = Launched::start(command);
    greeting_of(&demo).await;
    stop(demo).await;

    let made: Vec<_> = fs::read_dir(data.path()).unwrap().collect();
    assert!(made.is_empty(), "{made:?}");
}

#[actix_web::test]
async fn a_demo_whose_terminal_closes_removes_its_data() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = demo_with(&[]);
    command.env("TMPDIR", temporary.path());
    let demo = Launched::start(command);
    greeting_of(&demo).await;

    demo.signal("HUP");

    assert_eq!(demo.outcome().await.code, Some(0));
    let left: Vec<_> = fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[actix_web::test]
async fn a_demo_that_was_started_to_outlive_its_terminal_does() {
    let program = env!("CARGO_BIN_EXE_signalbox");
    let mut command = Command::new("/bin/sh");
    command.env_clear().env("SIGNALBOX_PASSWORD_ITERATIONS", MIN_PASSWORD_ITERATIONS.to_string());
    // As nohup does.
    command.args(["-c", "trap '' HUP; exec \"$0\" demo --listen 127.0.0.1:0", program]);
    let demo = Launched::start(command);
    let greeting = greeting_of(&demo).await;

    demo.signal("HUP");

    let status = fs::read_to_string(format!("/proc/{}/status", demo.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 1, 1, "{status}");
    signed_in(&greeting).await;
    stop(demo).await;
}
