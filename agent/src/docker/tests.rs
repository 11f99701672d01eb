use std::fs;
use std::sync::Arc;

use serde_json::json;
use tempfile::{NamedTempFile, TempDir};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::*;

fn docker(access: DockerAccess) -> Docker {
    docker_at(access, "/nonexistent/engine.sock")
}

fn docker_at(access: DockerAccess, socket: &str) -> Docker {
    let docker_host = Some(format!("unix://{socket}"));
    Docker::new(&Policy { docker: access.into(), docker_host, ..Policy::default() }, Gate::default())
}

async fn refusal(access: DockerAccess, method: &str, params: Value) -> String {
    docker(access).call(method, params, None).unwrap().await.unwrap_err().code
}

const READING: [&str; 4] = ["docker.list", "docker.inspect", "docker.stats", "docker.logs"];
const CHANGING: [&str; 5] = ["docker.start", "docker.stop", "docker.restart", "docker.pause", "docker.unpause"];

fn params() -> Value {
    json!({"container_id": "web", "tail": 10, "stdout": true, "stderr": true})
}

#[tokio::test]
async fn the_policy_comes_before_everything_else() {
    for method in READING {
        assert_eq!(refusal(DockerAccess::Off, method, json!("nonsense")).await, "agent_refused", "{method}");
        assert_eq!(refusal(DockerAccess::Read, method, params()).await, "docker_unavailable", "{method}");
    }
    for method in CHANGING {
        for access in [DockerAccess::Off, DockerAccess::Read] {
            assert_eq!(refusal(access, method, json!("nonsense")).await, "agent_refused", "{method}");
        }
        assert_eq!(refusal(DockerAccess::Control, method, params()).await, "docker_unavailable", "{method}");
    }
}

#[tokio::test]
async fn following_a_log_asks_the_policy_too() {
    let (lines, _receiver) = tokio::sync::mpsc::channel(1);

    let refused = docker(DockerAccess::Off).follow("web", 1, lines).await.unwrap_err();

    assert_eq!(refused.code, "agent_refused");
}

#[tokio::test]
async fn nothing_but_a_name_reaches_the_engine() {
    for name in ["..", "../images/json", "web?all=1", ""] {
        for method in ["docker.inspect", "docker.stats", "docker.logs", "docker.start"] {
            let mut params = params();
            params["container_id"] = json!(name);
            assert_eq!(refusal(DockerAccess::Control, method, params).await, "bad_params", "{method} {name}");
        }
    }
}

#[test]
fn unlisted_methods_are_unknown() {
    for method in ["docker.exec", "docker.remove", "docker.", "list"] {
        assert!(docker(DockerAccess::Control).call(method, params(), None).is_none(), "{method}");
    }
}

/// An engine that answers a ping, until it is asked for a change.
async fn until_change(listener: UnixListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        if request.starts_with(b"POST ") {
            return;
        }
        let pong = "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(pong.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_change_is_in_the_log_also_where_nobody_waits_for_its_outcome() {
    let (directory, log) = (TempDir::new().unwrap(), NamedTempFile::new().unwrap());
    let writer = Arc::new(log.reopen().unwrap());
    let _logs =
        tracing::subscriber::set_default(tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish());
    let socket = directory.path().join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let docker = docker_at(DockerAccess::Control, socket.to_str().unwrap());

    let call = docker.call("docker.stop", json!({"container_id": "web"}), Some("ada".to_owned())).unwrap();
    tokio::select! {
        outcome = call => panic!("the engine did not answer: {outcome:?}"),
        () = until_change(listener) => {}
    }

    let lines = fs::read_to_string(log.path()).unwrap();
    assert!(lines.contains("container: stop begins") && lines.contains("\"ada\""), "{lines}");
}
