//! Instances without a message bus: one at a time may use a database.

use std::time::{Duration, Instant};

use migration::{Migrator, MigratorTrait};
use sea_orm::Database;

use super::import::number;
use super::slowness;
use crate::support::agent::sample_aged;
use crate::support::command_line::{Launched, Outcome, run, signalbox};
use crate::support::nats::Nats;
use crate::support::process::ServiceProcess;
use crate::support::{Storage, write_private};

/// How long a start may wait because the instance before it was killed.
const FREE_WITHIN: Duration = Duration::from_secs(9);

fn another(storage: &Storage, beside: &Storage) -> std::process::Command {
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(beside.path());
    storage.named_to(&mut command);
    command
}

/// Turns the schema into that of the version before this one.
async fn become_older(storage: &Storage) {
    let database = Database::connect(storage.direct_url()).await.unwrap();
    Migrator::down(&database, Some(1)).await.unwrap();
    database.close().await.unwrap();
}

async fn migrations_in(storage: &Storage) -> Option<i64> {
    number(storage, "SELECT COUNT(*) FROM seaql_migrations").await
}

#[track_caller]
fn assert_not_alone(outcome: &Outcome) {
    outcome.assert_refused("another instance uses this database");
}

#[actix_web::test]
async fn a_second_one_is_refused_and_the_first_notices_nothing() {
    let storage = Storage::fresh().await;
    let beside = storage.beside();
    let first = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
    let prepared = first.prepare().await;
    let mut agent = first.agent(&prepared).await;
    agent.store(1, vec![sample_aged(1)]).await;

    let second = run(another(&storage, &beside)).await;

    assert_not_alone(&second);
    agent.store(2, vec![sample_aged(0)]).await;
    let server = first.read(&prepared, &format!("/servers/{}", prepared.server_id)).await;
    assert_eq!(server["status"], "online");
}

#[actix_web::test]
async fn a_newer_one_does_not_change_the_schema_under_the_first() {
    let storage = Storage::fresh().await;
    let beside = storage.beside();
    let first = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
    let all = migrations_in(&storage).await.unwrap();
    become_older(&storage).await;

    let second = run(another(&storage, &beside)).await;

    assert_not_alone(&second);
    assert_eq!(migrations_in(&storage).await, Some(all - 1));
    first.terminate().await;
    Launched::start(another(&storage, &beside)).address().await;
    assert_eq!(migrations_in(&storage).await, Some(all));
}

#[actix_web::test]
async fn a_newer_one_of_several_does_not_change_the_schema_under_the_first() {
    let (storage, nats) = (Storage::fresh().await, Nats::start().await);
    let beside = storage.beside();
    let _first = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
    let all = migrations_in(&storage).await.unwrap();
    become_older(&storage).await;
    let secret = beside.path().join("secret");
    write_private(&secret, "a secret of the newer one, long enough for a key");
    let mut command = another(&storage, &beside);
    command.args(["--log", "error", "--nats-url", &nats.url()]);
    command.arg("--jwt-secret-file").arg(&secret).arg("--encryption-key-file").arg(&secret);

    let second = run(command).await;

    assert_not_alone(&second);
    assert_eq!(migrations_in(&storage).await, Some(all - 1));
}

#[actix_web::test]
async fn one_that_was_killed_does_not_keep_its_successor_out() {
    let storage = Storage::fresh().await;
    let started = Instant::now();
    let first = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
    let starts_in = started.elapsed();
    first.kill().await;

    let began = Instant::now();
    let second = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;

    let waited = began.elapsed().saturating_sub(starts_in);
    assert!(waited < FREE_WITHIN + slowness(starts_in), "it waited for {waited:?}");
    assert_eq!(second.terminate().await.code, Some(0));
}

#[actix_web::test]
async fn one_that_slept_while_another_took_over_ends() {
    let storage = Storage::fresh().await;
    let beside = storage.beside();
    let sleeper = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
    sleeper.signal("STOP");
    let mut second = Launched::start(another(&storage, &beside));
    second.address().await;

    sleeper.signal("CONT");
    let ended = sleeper.outcome().await;

    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("another instance has taken over the database"), "{ended:?}");
    assert!(!second.has_ended(), "{}", second.stderr());
}
