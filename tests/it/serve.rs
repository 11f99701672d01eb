//! `signalbox serve` as a process: its output, its settings, its end.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::command_line::{Launched, signalbox};
use crate::support::{PASSWORD, registration, text_of, write_private};

/// How long a service may take to end: the promised 10 s, and 15 s for a machine under load.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(25);

fn serve(data_dir: &Path, more: &[&str]) -> Command {
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir.to_str().unwrap()]);
    command.args(more);
    command
}

#[actix_web::test]
async fn it_prints_where_it_listens_and_nothing_else() {
    let data = TempDir::new().unwrap();
    let mut service = Launched::start(serve(data.path(), &[]));
    let address = service.address().await;
    service.client().await.post("/auth/register").json(registration("alice")).expect(201).await;

    service.signal("TERM");
    let outcome = service.outcome().await;

    assert_eq!(outcome.printed(), format!("listening on http://{address}\n"));
    assert!(address.ip().is_loopback() && address.port() != 0, "{address}");
}

#[actix_web::test]
async fn sigterm_and_sigint_end_it_in_time_while_clients_hold_connections() {
    for signal in ["TERM", "INT"] {
        let data = TempDir::new().unwrap();
        let mut service = Launched::start(serve(data.path(), &[]));
        let _silent = TcpStream::connect(service.address().await).unwrap();
        service.client().await.get("/auth/me").expect_refusal(401).await;

        let signalled = Instant::now();
        service.signal(signal);
        let outcome = service.outcome().await;

        assert_eq!(outcome.code, Some(0), "{signal}: {outcome:?}");
        assert!(signalled.elapsed() < SHUTDOWN_LIMIT, "{signal}: {:?}", signalled.elapsed());
    }
}

#[actix_web::test]
async fn the_bare_program_serves_and_takes_its_settings_from_the_environment() {
    let data = TempDir::new().unwrap();
    let mut command = signalbox(&[]);
    command.env("SIGNALBOX_LISTEN", "127.0.0.1:0").env("SIGNALBOX_DATA_DIR", data.path());
    command.env("SIGNALBOX_REGISTRATION", "closed");

    let mut service = Launched::start(command);

    let client = service.client().await;
    client.post("/auth/register").json(registration("alice")).expect(201).await;
    client.post("/auth/register").json(registration("bob")).expect_error(403, "registration_closed").await;
    assert!(std::fs::read_dir(data.path()).unwrap().count() > 0);
}

#[actix_web::test]
async fn a_flag_goes_before_the_environment() {
    let data = TempDir::new().unwrap();
    let mut command = serve(data.path(), &["--registration", "open"]);
    // An address of no machine (RFC 5737), so that it would not even start.
    command.env("SIGNALBOX_REGISTRATION", "closed").env("SIGNALBOX_LISTEN", "192.0.2.1:8000");

    let mut service = Launched::start(command);

    let client = service.client().await;
    client.post("/auth/register").json(registration("alice")).expect(201).await;
    client.post("/auth/register").json(registration("bob")).expect(201).await;
}

#[actix_web::test]
async fn the_data_directory_is_made_below_the_working_directory() {
    let mut service = Launched::start(signalbox(&["--listen", "127.0.0.1:0"]));

    service.address().await;

    assert!(service.directory().join("data").is_dir());
}

#[actix_web::test]
async fn the_signing_secret_is_its_owners_alone() {
    let data = TempDir::new().unwrap();
    let mut service = Launched::start(serve(data.path(), &[]));
    service.address().await;

    let entries = std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap());
    let secrets: Vec<_> = entries.filter(|entry| entry.file_name().to_str().unwrap().contains("secret")).collect();

    assert_eq!(secrets.len(), 1);
    let metadata = secrets[0].metadata().unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    // An HS256 key has at least the 32 bytes of its digest (RFC 7518, 3.2).
    assert!(metadata.len() >= 32, "{}", metadata.len());
}

#[actix_web::test]
async fn tokens_survive_a_restart() {
    let data = TempDir::new().unwrap();
    let mut service = Launched::start(serve(data.path(), &[]));
    let body = registration("alice");
    let tokens = service.client().await.post("/auth/register").json(body).expect(201).await;
    service.signal("TERM");
    assert_eq!(service.outcome().await.code, Some(0));

    let client = Launched::start(serve(data.path(), &[]));

    assert_tokens_work(client, &tokens).await;
}

#[actix_web::test]
async fn a_named_secret_is_used_instead_of_a_new_one() {
    let data = TempDir::new().unwrap();
    let kept = TempDir::new().unwrap();
    let file = kept.path().join("signing-key");
    write_private(&file, &"0f".repeat(32));
    let arguments = ["--jwt-secret-file", file.to_str().unwrap()];
    let mut service = Launched::start(serve(data.path(), &arguments));
    let body = registration("alice");
    let tokens = service.client().await.post("/auth/register").json(body).expect(201).await;
    service.signal("TERM");
    assert_eq!(service.outcome().await.code, Some(0));

    let mut unrelated = Launched::start(serve(data.path(), &[]));
    let me = unrelated.client().await.get("/auth/me").bearer(&text_of(&tokens["access_token"]));
    me.expect_refusal(401).await;
    unrelated.signal("TERM");
    assert_eq!(unrelated.outcome().await.code, Some(0));

    assert_tokens_work(Launched::start(serve(data.path(), &arguments)), &tokens).await;
}

async fn assert_tokens_work(mut service: Launched, tokens: &Value) {
    let client = service.client().await;
    client.get("/auth/me").bearer(&text_of(&tokens["access_token"])).expect(200).await;
    client.post("/auth/refresh").json(json!({"refresh_token": tokens["refresh_token"]})).expect(200).await;
}

#[actix_web::test]
async fn the_log_is_json_on_demand_and_holds_no_secret() {
    let data = TempDir::new().unwrap();
    let mut service = Launched::start(serve(data.path(), &["--log", "debug", "--log-format", "json"]));
    let client = service.client().await;
    let tokens = client.post("/auth/register").json(registration("alice")).expect(201).await;
    let token = text_of(&tokens["access_token"]);
    let body = json!({"name": "web-1", "host": "192.0.2.10"});
    let server = client.post("/servers").bearer(&token).json(body).expect(201).await;
    let body = json!({"server_id": server["id"], "name": "agent"});
    let key = client.post("/api-keys").bearer(&token).json(body).expect(201).await;
    let refreshed = client.post("/auth/refresh").json(json!({"refresh_token": tokens["refresh_token"]}));
    refreshed.expect(200).await;
    // Not a WebSocket request, so it is refused; its token is in the address anyway.
    client.get(format!("/ws/metrics/{}?token={token}", text_of(&server["id"]))).send().await;
    client.post("/auth/login").form(&[("username", "alice"), ("password", PASSWORD)]).expect(200).await;

    service.signal("TERM");
    let outcome = service.outcome().await;

    for line in outcome.stderr.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok_and(|event| event.is_object()), "{line}");
    }
    assert!(outcome.stderr.lines().count() > 0);
    for secret in [&token, &text_of(&tokens["refresh_token"]), &text_of(&key["key"]), PASSWORD] {
        assert!(!outcome.stderr.contains(secret), "{secret} is in {}", outcome.stderr);
    }
}
