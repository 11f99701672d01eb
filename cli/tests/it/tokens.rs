//! Tokens for programs, against a service of this test that answers as the contract says.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::{Outcome, Running};

const ID: &str = "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10";

/// The requests so far: their first lines, and their bodies.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

struct Fake {
    url: String,
    requests: Requests,
    home: tempfile::TempDir,
}

impl Fake {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Requests::default();
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| serve(stream, &kept)));
        Self { url, requests, home: tempfile::tempdir().unwrap() }
    }

    async fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_signalboxctl"));
        command.env_clear().env("HOME", self.home.path()).env("TZ", "UTC").args(arguments).stdin(Stdio::null());
        command.env("SIGNALBOX_URL", &self.url).env("SIGNALBOX_TOKEN", "a.b.c");
        Running::start(command).outcome().await
    }
}

fn serve(mut stream: TcpStream, requests: &Requests) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let (head, body) = loop {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return };
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let line = head.lines().next().unwrap_or_default().to_owned();
    requests.lock().push((line.clone(), serde_json::from_str(&body).unwrap_or_default()));
    let listed = json!({"id": ID, "name": "grafana", "role": "operator", "rights": ["logs"], "scope": {"tag": "production"},
        "prefix": "sbt_abc", "expires_at": "2027-01-01T00:00:00.000Z", "last_used_at": null, "last_used_address": null, "networks": ["10.0.0.0/8"],
        "created_at": "2026-10-03T00:00:00.000Z"});
    let mut made = listed.clone();
    made["token"] = json!("sbt_abc_secret");
    let (status, answer) = match line.split(' ').next().unwrap_or_default() {
        "POST" if body.contains("\"refused\"") => (
            "403 Forbidden",
            json!({"detail": "This token does not allow this", "status_code": 403, "code": "token_not_allowed"}),
        ),
        "POST" => ("201 Created", made),
        "DELETE" => ("200 OK", json!({"data": null, "message": "Token revoked"})),
        _ => ("200 OK", json!([listed])),
    };
    let answer = answer.to_string();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", answer.len());
    let _ = stream.write_all(format!("{head}Content-Type: application/json\r\n\r\n{answer}").as_bytes());
}

#[tokio::test]
async fn a_token_goes_to_a_private_file_and_nowhere_else() {
    let fake = Fake::start();
    let file = fake.home.path().join("token");
    let name = file.to_str().unwrap();

    let arguments = [
        "tokens",
        "add",
        "grafana",
        "--token-file",
        name,
        "--tag",
        "production",
        "--expires-in",
        "30d",
        "--network",
        "10.0.0.0/8",
        "--role",
        "operator",
        "--right",
        "logs",
    ];
    let made = fake.run(&arguments).await;
    let piped = fake.run(&["tokens", "add", "grafana", "--token-file", "-"]).await;

    assert_eq!(made.done(), format!("Made grafana. Its token is in {name}.\n"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "sbt_abc_secret\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(piped.done(), "sbt_abc_secret\n");
    let requests = fake.requests.lock();
    let (line, body) = &requests[0];
    assert_eq!(line, "POST /api/v1/tokens HTTP/1.1");
    assert_eq!(
        (&body["name"], &body["role"], &body["rights"]),
        (&json!("grafana"), &json!("operator"), &json!(["logs"]))
    );
    assert_eq!((&body["scope"], &body["networks"]), (&json!({"tag": "production"}), &json!(["10.0.0.0/8"])));
    assert_eq!((&requests[1].1["scope"], requests[1].1.get("rights")), (&json!({"all": true}), None));
}

#[tokio::test]
async fn a_refusal_leaves_no_file() {
    let fake = Fake::start();
    let file = fake.home.path().join("token");

    let refused = fake.run(&["tokens", "add", "refused", "--token-file", file.to_str().unwrap()]).await;

    refused.refused(1, "This token does not allow this: `signalboxctl login http://127.0.0.1");
    assert!(!file.exists());
}

#[tokio::test]
async fn tokens_are_listed_and_revoked_by_name() {
    let fake = Fake::start();

    let listed = fake.run(&["tokens"]).await;
    let unsure = fake.run(&["tokens", "rm", "grafana"]).await;
    let revoked = fake.run(&["tokens", "rm", "grafana", "--yes"]).await;
    let unknown = fake.run(&["tokens", "rm", "prometheus", "--yes"]).await;

    assert!(
        listed.done().contains("grafana  operator (logs)  tag production  10.0.0.0/8  2027-01-01 00:00:00  never"),
        "{listed:?}"
    );
    unsure.refused(2, "confirm with --yes");
    assert_eq!(revoked.done(), "Revoked grafana.\n");
    unknown.refused(1, "there is no token \"prometheus\"");
    let deleted = format!("DELETE /api/v1/tokens/{ID} HTTP/1.1");
    assert!(fake.requests.lock().iter().any(|(line, _)| *line == deleted));
}
