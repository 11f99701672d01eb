//! A real container engine and a minimal client, so that the test shares no code with what it tests.
//!
//! `scripts/with-engines` starts a Docker and a Podman and names their sockets. Tests share them and only touch their own
//! containers.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{PATIENCE, text_of};

/// The only image that exists.
const IMAGE: &str = "docker.io/library/busybox:test";

#[derive(Debug, Clone)]
pub struct Engine {
    pub socket: PathBuf,
}

/// A container that is gone when the test has ended.
#[derive(Debug)]
pub struct Container {
    engine: Engine,
    pub id: String,
    pub name: String,
}

impl Engine {
    pub fn docker() -> Self {
        Self::of_variable("SIGNALBOX_TEST_DOCKER")
    }

    pub fn podman() -> Self {
        Self::of_variable("SIGNALBOX_TEST_PODMAN")
    }

    fn of_variable(name: &str) -> Self {
        let address = std::env::var(name).unwrap_or_else(|_| {
            panic!("{name} is not set: run these tests with `scripts/with-engines cargo nextest run ...`")
        });
        Self::at(Path::new(address.strip_prefix("unix://").unwrap_or(&address)))
    }

    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Its address, as `--docker-host` takes it.
    pub fn address(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Status and body of an answer.
    pub fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = UnixStream::connect(&self.socket).unwrap_or_else(|error| panic!("{self:?}: {error}"));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = body.to_string();
        let head =
            format!("{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer to {path}: {answer}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn expect(&self, method: &str, path: &str, body: &Value) -> Value {
        let (mut status, mut answer) = self.call(method, path, body);
        // Podman reads a running container's process, and fails when that ends in the meantime: repeatedly, while it has not
        // noticed the end.
        let is_passing = |status: u16, answer: &Value| {
            let is_busy = answer["message"].as_str().is_some_and(could_not_freeze);
            status == 500 && (is_busy || answer["cause"] == "no such process")
        };
        let deadline = Instant::now() + PATIENCE;
        while is_passing(status, &answer) && Instant::now() < deadline {
            (status, answer) = self.call(method, path, body);
        }
        assert!(status < 400, "{method} {path}: {status} {answer}");
        answer
    }

    /// A container that runs a shell script. `more` overrides its definition.
    pub fn create(&self, script: &str, more: Value) -> Container {
        let name = format!("test-{}", Uuid::now_v7().simple());
        let mut made_of = json!({
            "Image": IMAGE, "Cmd": ["sh", "-c", script], "HostConfig": {"NetworkMode": "none"},
        });
        merge(&mut made_of, more);
        let created = self.expect("POST", &format!("/v1.41/containers/create?name={name}"), &made_of);
        Container { engine: self.clone(), id: text_of(&created["Id"]), name }
    }

    /// A container that runs a shell script now.
    pub fn run(&self, script: &str) -> Container {
        self.run_with(script, json!({}))
    }

    pub fn run_with(&self, script: &str, more: Value) -> Container {
        let container = self.create(script, more);
        container.act("start");
        container
    }

    /// The same with a `pause` that lasts until [`Container::go_on`]. Its output before the first one shows that it handles
    /// that signal.
    pub fn run_in_steps(&self, script: &str) -> Container {
        let pause = r#"trap 'go=1' USR1; pause() { while [ -z "$go" ]; do sleep 0.1; done; go=; }"#;
        self.run(&format!("{pause}; {script}"))
    }
}

/// Whether an engine says that runc could not freeze a container, as happens on a busy machine. Podman only tells how runc
/// ended.
pub fn could_not_freeze(message: &str) -> bool {
    message.contains("unable to freeze") || (message.contains(" pause ") && message.contains("failed: exit status"))
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(name, value)| merge(into.entry(name).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}

impl Container {
    /// Has the engine do something to it, without the service.
    pub fn act(&self, verb: &str) {
        self.engine.expect("POST", &format!("/v1.41/containers/{}/{verb}", self.id), &json!({}));
    }

    /// Ends a `pause` of [`Engine::run_in_steps`].
    pub fn go_on(&self) {
        self.act("kill?signal=SIGUSR1");
    }

    pub fn inspect(&self) -> Value {
        self.engine.expect("GET", &format!("/v1.41/containers/{}/json", self.id), &Value::Null)
    }

    pub fn state(&self) -> String {
        text_of(&self.inspect()["State"]["Status"])
    }

    pub fn remove(&self) {
        self.engine.expect("DELETE", &format!("/v1.41/containers/{}?force=1", self.id), &json!({}));
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // The engine may be gone by now, or the test may have removed it; during a panic nothing may panic again.
        let Ok(mut stream) = UnixStream::connect(&self.engine.socket) else { return };
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let request = format!("DELETE /v1.41/containers/{}?force=1&v=1 HTTP/1.0\r\n\r\n", self.id);
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
    }
}
