use std::path::Path;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::mpsc;

use super::*;

/// An engine that answers a ping with these headers and everything else with this status, and records its requests.
struct Played {
    engine: Engine,
    asked: mpsc::Receiver<String>,
    _directory: TempDir,
}

impl Played {
    fn new(pong: &'static str, status: &'static str) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("engine.sock");
        let (tell, asked) = mpsc::channel(10);
        tokio::spawn(play(listener(&path), pong, status, tell));
        Self { engine: Engine::new(Some(format!("unix://{}", path.display()))), asked, _directory: directory }
    }

    /// The first lines of all requests.
    async fn asked(mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Ok(line) = self.asked.try_recv() {
            all.push(line);
        }
        all
    }
}

fn listener(path: &Path) -> UnixListener {
    UnixListener::bind(path).unwrap()
}

async fn play(listener: UnixListener, pong: &str, status: &str, tell: mpsc::Sender<String>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let line = String::from_utf8(request).unwrap().lines().next().unwrap().to_owned();
        let (status, headers) = if line.contains("/_ping") { ("200 OK", pong) } else { (status, "") };
        tell.send(line).await.unwrap();
        let body = if status.starts_with("500") { ENDED } else { "" };
        let answer = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// Podman's answer when a container's process ended while it was read.
const ENDED: &str =
    r#"{"cause":"no such process","message":"read /proc/30159/cgroup: no such process","response":500}"#;

const DOCKER: &str = "Api-Version: 1.41\r\n";

#[tokio::test]
async fn one_ping_shows_the_engine_and_its_version() {
    let played = Played::new(DOCKER, "200 OK");

    assert_eq!(played.engine.kind().await.unwrap(), Kind::Docker);
    played.engine.open("/containers/json").await.unwrap();
    played.engine.act(ANSWER_WITHIN, "/containers/web/start").await.unwrap();

    let asked =
        ["GET /_ping HTTP/1.1", "GET /v1.41/containers/json HTTP/1.1", "POST /v1.41/containers/web/start HTTP/1.1"];
    assert_eq!(played.asked().await, asked);
}

#[tokio::test]
async fn a_question_that_fails_at_a_containers_end_is_repeated() {
    let played = Played::new(DOCKER, "500 Internal Server Error");

    let error = played.engine.open("/containers/web/json").await.unwrap_err();

    assert!(error.is_of_an_ended_process(), "{error}");
    let asked = played.asked().await;
    assert_eq!(asked[0], "GET /_ping HTTP/1.1");
    assert_eq!(asked[1..], ["GET /v1.41/containers/web/json HTTP/1.1"; 1 + MAX_STUMBLES as usize]);
}

#[tokio::test]
async fn podman_names_its_own_version_as_well() {
    let played = Played::new("Api-Version: 1.41\r\nLibpod-Api-Version: 5.4.2\r\n", "200 OK");

    assert_eq!(played.engine.kind().await.unwrap(), Kind::Podman);
}

#[tokio::test]
async fn a_newer_engine_is_asked_in_the_newest_version_that_is_understood() {
    let played = Played::new("Api-Version: 1.100\r\n", "200 OK");

    played.engine.open("/containers/json").await.unwrap();

    assert_eq!(played.asked().await, ["GET /_ping HTTP/1.1", "GET /v1.53/containers/json HTTP/1.1"]);
}

#[tokio::test]
async fn an_engine_that_names_no_version_is_not_understood() {
    for pong in ["", "Api-Version: next\r\n"] {
        let error = Played::new(pong, "200 OK").engine.kind().await.unwrap_err();

        assert!(matches!(error, EngineError::Unexpected(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_state_that_is_already_reached_is_no_error() {
    let played = Played::new(DOCKER, "304 Not Modified");

    played.engine.act(ANSWER_WITHIN, "/containers/web/start").await.unwrap();
}

#[tokio::test]
async fn a_refused_action_is_requested_once() {
    let played = Played::new(DOCKER, "409 Conflict");

    let error = played.engine.act(ANSWER_WITHIN, "/containers/web/pause").await.unwrap_err();

    assert!(matches!(error, EngineError::Refused { status: 409, .. }), "{error:?}");
    assert_eq!(played.asked().await, ["GET /_ping HTTP/1.1", "POST /v1.41/containers/web/pause HTTP/1.1"]);
}
