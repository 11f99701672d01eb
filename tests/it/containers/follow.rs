//! Follows a log on the server itself, as the agent does for a dashboard.

use std::process::Command;

use serde_json::json;
use signalbox_agent::docker::Docker;
use signalbox_agent::policy::Policy;
use signalbox_agent::signed::Gate;
use signalbox_protocol::agent::{LogLine, RequestError};
use tempfile::TempDir;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use super::logs::{LONG_LINES, long_line};
use crate::support::engine::{Container, Engine};
use crate::support::{eventually, in_time};

/// The received lines, and how the stream ended.
struct Followed {
    lines: Receiver<LogLine>,
    ended: JoinHandle<Result<(), RequestError>>,
}

impl Followed {
    fn start(engine: &Engine, container: &Container, tail: u32) -> Self {
        let docker = Docker::new(&Policy { docker_host: Some(engine.address()), ..Policy::default() }, Gate::default());
        let (sender, lines) = channel(16);
        let id = container.id.clone();
        let ended = tokio::spawn(async move { docker.follow(&id, tail, sender).await });
        Self { lines, ended }
    }

    async fn next(&mut self) -> String {
        in_time("the next line", self.lines.recv()).await.expect("the following ended").message
    }

    async fn expect(&mut self, messages: &[&str]) {
        for message in messages {
            assert_eq!(self.next().await, *message);
        }
    }
}

#[actix_web::test]
async fn a_log_is_followed_through_stops_and_starts() {
    for engine in [Engine::docker(), Engine::podman()] {
        let container = engine.run("echo begin; sleep 0.2; echo end");
        let mut followed = Followed::start(&engine, &container, 100);

        followed.expect(&["begin", "end"]).await;
        for _ in 0..3 {
            eventually("it ends", async || (container.state() == "exited").then_some(())).await;
            container.act("start");
            followed.expect(&["begin", "end"]).await;
        }
        container.remove();

        assert_eq!(followed.lines.recv().await, None, "nothing comes twice");
        let ended = in_time("the end", followed.ended).await.unwrap();
        assert_eq!(ended.unwrap_err().code, "container_not_found");
    }
}

#[actix_web::test]
async fn a_log_is_followed_from_its_last_lines_on_although_they_are_long() {
    let engine = Engine::docker();
    let container = engine.run(LONG_LINES);
    eventually("it ends", async || (container.state() == "exited").then_some(())).await;

    let mut all = Vec::new();
    for tail in [1, 15, 16, 17, 100] {
        let mut followed = Followed::start(&engine, &container, tail);
        for number in 121 - tail..=120 {
            let line = followed.next().await;
            assert!(line == long_line(number), "{tail}: {line:.20}");
        }
        all.push(followed);
    }
    container.remove();

    for mut followed in all {
        assert_eq!(in_time("the end", followed.lines.recv()).await, None, "nothing comes twice");
    }
}

#[actix_web::test]
async fn a_hundred_thousand_lines_are_followed_without_a_loss() {
    for engine in [Engine::docker(), Engine::podman()] {
        let container = engine.run_in_steps("echo ready; pause; seq 1 100000; exec sleep 1000");
        let mut followed = Followed::start(&engine, &container, 10_000);
        followed.expect(&["ready"]).await;
        container.go_on();

        for number in 1..=100_000 {
            assert_eq!(followed.next().await, number.to_string());
        }
    }
}

#[actix_web::test]
async fn the_following_ends_when_nobody_watches() {
    let engine = Engine::docker();
    let container = engine.run("echo one; exec sleep 1000");
    let mut followed = Followed::start(&engine, &container, 1);
    followed.expect(&["one"]).await;

    drop(followed.lines);

    assert_eq!(in_time("the end", followed.ended).await.unwrap(), Ok(()));
}

/// An engine for this test only, which it may end and start again.
pub struct OwnEngine {
    dir: TempDir,
    pub engine: Engine,
}

impl OwnEngine {
    pub fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("signalbox-engine.").tempdir().unwrap();
        let engine = Engine::at(&dir.path().join("docker/engine.sock"));
        let own = Self { dir, engine };
        own.script("up");
        own
    }

    pub fn script(&self, action: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/engine");
        let status =
            Command::new(script).args([action, "docker"]).arg(self.dir.path().join("docker")).status().unwrap();
        assert!(status.success(), "scripts/engine {action}: {status}");
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        self.script("down");
    }
}

#[actix_web::test]
async fn a_log_is_followed_through_a_restart_of_the_engine() {
    let own = OwnEngine::start();
    let policy = json!({"HostConfig": {"RestartPolicy": {"Name": "always"}}});
    let container = own.engine.run_with("trap 'exit 0' TERM; echo begin; while true; do sleep 0.1; done", policy);
    let mut followed = Followed::start(&own.engine, &container, 100);
    followed.expect(&["begin"]).await;

    for _ in 0..2 {
        own.script("stop");
        own.script("start");
        followed.expect(&["begin"]).await;
    }
}
