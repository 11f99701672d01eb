//! `scripts/prometheus-token`: how Prometheus gets valid tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::command_line::{Outcome, run};
use crate::support::{Account, TestService};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/prometheus-token");

/// An account whose refresh token is in a directory, as a user puts it there.
async fn signed_in() -> (TestService, Account, TempDir) {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("refresh-token"), format!("{}\n", account.refresh_token)).unwrap();
    (service, account, directory)
}

async fn exchange(service: &TestService, directory: &Path) -> Outcome {
    let mut command = Command::new(SCRIPT);
    command.arg(format!("http://{}", service.address)).arg(directory).env("no_proxy", "*");
    run(command).await
}

fn read(directory: &TempDir, file: &str) -> String {
    fs::read_to_string(directory.path().join(file)).unwrap().trim_end().to_owned()
}

#[actix_web::test]
async fn every_run_leaves_a_token_that_works_and_the_means_for_the_next() {
    let (service, account, directory) = signed_in().await;
    let mut before = account.refresh_token;

    for _ in 0..3 {
        assert_eq!(exchange(&service, directory.path()).await.printed(), "");

        let token = read(&directory, "token");
        service.client.get("/metrics/prometheus").bearer(&token).expect_answer(200).await;
        let after = read(&directory, "refresh-token");
        assert_ne!(after, before);
        before = after;
    }
}

#[actix_web::test]
async fn nobody_else_may_read_the_tokens() {
    let (service, _, directory) = signed_in().await;

    exchange(&service, directory.path()).await.printed();

    for file in fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[actix_web::test]
async fn a_refused_exchange_leaves_everything_as_it_was() {
    let (service, account, directory) = signed_in().await;
    fs::write(directory.path().join("token"), &account.token).unwrap();
    service.client.post("/auth/logout").bearer(&account.token).expect(200).await;

    let outcome = exchange(&service, directory.path()).await;

    assert!(outcome.code.is_some_and(|code| code != 0), "{outcome:?}");
    assert!(outcome.stderr.contains("401"), "{outcome:?}");
    assert_eq!(read(&directory, "refresh-token"), account.refresh_token);
    assert_eq!(read(&directory, "token"), account.token);
}
