//! `signalbox audit verify` while the service runs.

use sea_orm::ConnectionTrait;
use serde_json::Value;

use super::last;
use crate::support::command_line::{Outcome, run, signalbox};
use crate::support::rows::writable_audit_log;
use crate::support::storage::direct;
use crate::support::{Account, TestService, text_of};

async fn verify(service: &TestService, expectation: &[&str]) -> Outcome {
    let mut command = signalbox(&[&["audit", "verify"], expectation].concat());
    command.env("SIGNALBOX_DATABASE_URL", direct(&service.state.config.database_url()));
    run(command).await
}

/// A service on which alice has done five things.
async fn scene() -> (TestService, Account, Value) {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    for name in ["web-1", "web-2", "web-3"] {
        service.server(&account, name).await;
    }
    let entry = last(&service, &account, 5).await;
    (service, account, entry)
}

async fn tamper(service: &TestService, statement: &str) {
    let connection = writable_audit_log(&direct(&service.state.config.database_url())).await;
    connection.execute_unprepared(statement).await.unwrap();
    connection.close().await.unwrap();
}

#[track_caller]
fn assert_broken(outcome: &Outcome, why: &str) {
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.stdout, "", "{outcome:?}");
    assert_eq!(outcome.stderr.trim(), format!("signalbox: the audit log is broken: {why}"));
}

#[actix_web::test]
async fn a_whole_log_says_how_long_it_is_and_how_it_ends() {
    let (service, _, entry) = scene().await;

    let outcome = verify(&service, &[]).await;

    let hash = text_of(&entry["hash"]);
    assert_eq!(outcome.printed().trim(), format!("audit log is whole: 5 entries, last hash {hash}"));
}

#[actix_web::test]
async fn an_entry_that_was_written_down_must_still_be_there() {
    let (service, account, entry) = scene().await;
    let hash = text_of(&entry["hash"]);
    service.server(&account, "web-4").await;

    verify(&service, &["--expect-seq", "5", "--expect-hash", &hash]).await.printed();
    let elsewhere = verify(&service, &["--expect-seq", "4", "--expect-hash", &hash]).await;
    let later = verify(&service, &["--expect-seq", "9", "--expect-hash", &hash]).await;

    assert_broken(&elsewhere, "entry 4 has another hash than the expected one");
    assert_broken(&later, "entry 9 is missing: it was expected");
}

#[actix_web::test]
async fn half_an_expectation_is_refused() {
    let service = TestService::start().await;

    for expectation in [["--expect-seq", "5"], ["--expect-hash", "abc"], ["--expect-seq", "0"]] {
        verify(&service, &expectation).await.assert_refused("--expect-");
    }
}

#[actix_web::test]
async fn tampering_behind_the_triggers_is_found() {
    let cases = [
        (
            "UPDATE audit_log SET address = '192.0.2.9' WHERE seq = 3",
            "entry 3 or the hash of the one before was changed",
        ),
        ("DELETE FROM audit_log WHERE seq = 2", "entry 2 is missing: entry 3 follows"),
        (
            "DELETE FROM audit_log WHERE seq > 3",
            "entry 4 is missing: the log has been cut, its head says that it ends with entry 5",
        ),
        ("UPDATE audit_head SET seq = 4", "entry 5 was added past the head of the log"),
        ("UPDATE audit_log SET seq = 0 WHERE seq = 1", "entry 0 does not belong there"),
    ];

    for (statement, why) in cases {
        let (service, ..) = scene().await;
        tamper(&service, statement).await;
        assert_broken(&verify(&service, &[]).await, why);
    }
}

#[actix_web::test]
async fn a_database_without_a_log_is_no_whole_log() {
    let directory = tempfile::TempDir::new().unwrap();

    let outcome = run(signalbox(&["audit", "verify", "--data-dir", directory.path().to_str().unwrap()])).await;

    outcome.assert_refused("no database");
}
