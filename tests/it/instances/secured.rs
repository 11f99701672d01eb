//! Who may use the message bus, and the error of an instance that is refused.

use std::sync::Arc;
use std::time::Duration;

use signalbox::bus::nats::{NatsBus, NatsConfig};
use signalbox::bus::{Bus, BusError};

use tempfile::TempDir;

use super::*;
use crate::support::authority::Authority;
use crate::support::command_line::{Outcome, run, signalbox};
use crate::support::nats::Nats;
use crate::support::port::Port;
use crate::support::{PATIENCE, write_private};

/// A request that is lost on the way is repeated after this time.
const SOON: Duration = Duration::from_secs(10);

/// A server that only accepts TLS, and permits a user no more than the documentation asks for.
async fn guarded(authority: &Authority) -> Nats {
    let (certificate, key) = authority.files("localhost");
    let subjects = r#"["signalbox.v1.>", "_INBOX.>"]"#;
    let permissions = format!("publish: {{ allow: {subjects} }}, subscribe: {{ allow: {subjects} }}");
    Nats::start_with(&format!(
        "tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\n\
         authorization {{ users: [ {{ user: box, password: \"right-password\", permissions: {{ {permissions} }} }} ] }}"
    ))
    .await
}

fn config(nats: &Nats, password: &str, authority: &Authority) -> NatsConfig {
    let url = format!("tls://box:{password}@localhost:{}", nats.address.port());
    NatsConfig { url: url.into(), credentials_file: None, ca_file: Some(authority.file()) }
}

#[actix_web::test]
async fn the_bus_works_by_tls_and_with_no_more_rights_than_documented() {
    let authority = Authority::new();
    let nats = guarded(&authority).await;
    let asking = NatsBus::connect(&config(&nats, "right-password", &authority), "asking").await.unwrap();
    let answering = NatsBus::connect(&config(&nats, "right-password", &authority), "answering").await.unwrap();
    let mut asked = answering.subscribe("signalbox.v1.agent.test".to_owned()).await.unwrap();
    rt::spawn(async move {
        while let Some(delivery) = asked.next().await {
            delivery.answer("yes".into());
        }
    });

    let answer = asking.request("signalbox.v1.agent.test".to_owned(), "there?".into(), PATIENCE).await;
    let nobody = asking.request("signalbox.v1.agent.other".to_owned(), "there?".into(), PATIENCE).await;

    assert_eq!(answer, Ok("yes".into()));
    assert_eq!(nobody, Err(BusError::NoResponder));
}

#[actix_web::test]
async fn a_refused_instance_reports_it_without_a_secret() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let nats = guarded(&authority).await;

    for (config, cause) in [
        (config(&nats, "wrong-password", &authority), "refuses this user"),
        (
            config(&nats, "right-password", &stranger),
            "TLS: no authority that is trusted here has signed its certificate",
        ),
    ] {
        let error = NatsBus::connect(&config, "nobody").await.err().expect("it is not let in").to_string();
        let place = format!("cannot reach the message bus at localhost:{}: ", nats.address.port());
        assert!(error.starts_with(&place) && error.contains(cause), "{error}");
        assert!(!error.contains("-password"), "{error}");
    }
}

#[actix_web::test]
async fn a_bus_that_is_not_there_is_named_with_the_cause() {
    let directory = TempDir::new().unwrap();
    let (missing, empty) = (directory.path().join("missing.pem"), directory.path().join("empty.pem"));
    std::fs::write(&empty, "no certificate").unwrap();
    let nobody = Port::reserve();
    let free = nobody.address;
    let at = |file: &std::path::Path, problem: &str| format!("--nats-ca-file {}: {problem}", file.display());

    for (url, ca_file, place, cause) in [
        (format!("nats://box:secret@{free}"), None, format!("message bus at {free}: "), "refused"),
        ("nobody.invalid".to_owned(), None, "message bus at nobody.invalid:4222: ".to_owned(), "cannot be resolved"),
        (format!("nats://{free}"), Some(missing.clone()), at(&missing, ""), "no such file"),
        (format!("tls://{free}"), Some(empty.clone()), at(&empty, ""), "holds no certificate"),
    ] {
        let config = NatsConfig { url: url.into(), credentials_file: None, ca_file };
        let error = NatsBus::connect(&config, "nobody").await.err().expect("nobody is there").to_string();
        assert!(error.contains(&place) && error.contains(cause), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[actix_web::test]
async fn a_subject_is_heard_again_after_the_bus_was_away() {
    let mut nats = Nats::start().await;
    let config = NatsConfig { url: nats.url().into(), credentials_file: None, ca_file: None };
    let bus = Arc::new(NatsBus::connect(&config, "test").await.unwrap());
    let mut asked = bus.subscribe("a".to_owned()).await.unwrap();
    rt::spawn(async move {
        while let Some(delivery) = asked.next().await {
            delivery.answer("yes".into());
        }
    });

    nats.kill().await;
    eventually("it is away", async || (!bus.is_up()).then_some(())).await;
    assert_eq!(bus.request("a".to_owned(), "?".into(), SOON).await, Err(BusError::Away));
    assert_eq!(bus.publish("a".to_owned(), "?".into()).await, Err(BusError::Away));
    nats.again().await;

    eventually("it answers", async || bus.request("a".to_owned(), "?".into(), SOON).await.ok()).await;
}

/// The output of a service that is to use the cluster's database with secrets of its own.
async fn stranger(cluster: &Cluster, arguments: &[&str]) -> Outcome {
    let data = TempDir::new().unwrap();
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--log", "error"]);
    for (flag, secret) in [("--jwt-secret-file", "jwt"), ("--encryption-key-file", "encryption")] {
        write_private(&data.path().join(secret), &format!("another {secret} secret, long enough for a key"));
        command.arg(flag).arg(data.path().join(secret));
    }
    command.args(arguments).arg("--data-dir").arg(data.path());
    command.env("SIGNALBOX_DATABASE_URL", cluster.storage.config().database_url());
    run(command).await
}

#[actix_web::test]
async fn an_instance_with_other_secrets_ends_with_one_line() {
    let cluster = Cluster::start(1).await;

    let outcome = stranger(&cluster, &["--nats-url", &cluster.nats.url()]).await;

    outcome.assert_refused("--jwt-secret-file");
}

#[actix_web::test]
async fn a_service_alone_leaves_the_database_of_others_alone() {
    let cluster = Cluster::start(1).await;

    let outcome = stranger(&cluster, &[]).await;

    outcome.assert_refused("--nats-url");
}

#[actix_web::test]
async fn several_instances_say_what_they_lack() {
    let nats = Nats::start().await;
    let data = TempDir::new().unwrap();
    let serve = |arguments: &[&str]| {
        let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--log", "error", "--data-dir"]);
        command.arg(data.path()).args(["--nats-url", &nats.url()]).args(arguments);
        command
    };

    run(serve(&[])).await.assert_refused("PostgreSQL");
    run(serve(&["--database-url", "postgres://nobody@127.0.0.1:9/none"])).await.assert_refused("--jwt-secret-file");
}
