//! Logs: what may be read, how much, and what a busy one must not delay.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;
use signalbox_agent::Config;
use signalbox_agent::policy::{Policy, Switch};
use signalbox_protocol::agent::{AgentMessage, LogLine, LogLines, LogsStart, Request, Response, ServiceMessage};
use tempfile::TempDir;
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::agent::{Agent, config};
use crate::requests::request;
use crate::service::{Peer, Service};

const STREAM: Uuid = Uuid::from_u128(7);

/// A machine with a directory of logs, its agent, and the service's end of the connection.
struct Scene {
    dir: TempDir,
    peer: Peer<TcpStream>,
    samples: u64,
    _agent: Agent,
}

impl Scene {
    async fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let service = Service::start().await;
        let policy = Policy { logs: Switch::On, log_paths: vec![dir.path().into()], ..Policy::default() };
        let agent = Agent::start(Config { policy, ..config(&service.url()) });
        let peer = service.accept_authenticated().await;
        Self { dir, peer, samples: 0, _agent: agent }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    async fn follow(&mut self, path: &Path, tail: u32, credit: u64) {
        let start = LogsStart {
            stream_id: STREAM,
            source: "file".into(),
            container_id: None,
            path: Some(path.to_str().unwrap().to_owned()),
            tail: Some(tail),
            credit: Some(credit),
            by: Some("ada from 192.0.2.1".into()),
        };
        self.peer.send(&ServiceMessage::LogsStart(start)).await;
    }

    async fn credit(&mut self, bytes: u64) {
        self.peer.send(&ServiceMessage::Credit { stream_id: STREAM, bytes }).await;
    }

    /// The next message that is no sample; samples are acknowledged and counted.
    async fn next(&mut self) -> AgentMessage {
        loop {
            match self.peer.message().await {
                AgentMessage::Metrics(metrics) => {
                    self.samples += 1;
                    self.peer.ack(metrics.seq).await;
                }
                other => return other,
            }
        }
    }

    async fn lines(&mut self) -> LogLines {
        match self.next().await {
            AgentMessage::LogLines(lines) => lines,
            other => panic!("lines, not {other:?}"),
        }
    }

    /// The next lines, and all that follow them before five samples without a line between them.
    async fn lines_until_silence(&mut self) -> LogLines {
        let (mut all, mut silent) = (self.lines().await, 0);
        while silent < 5 {
            match self.peer.message().await {
                AgentMessage::Metrics(metrics) => {
                    silent += 1;
                    self.peer.ack(metrics.seq).await;
                }
                AgentMessage::LogLines(more) => {
                    silent = 0;
                    all.lines.extend(more.lines);
                    all.dropped += more.dropped;
                }
                other => panic!("lines or samples, not {other:?}"),
            }
        }
        all
    }

    async fn refusal(&mut self, path: &Path) -> String {
        self.follow(path, 1, 1_000).await;
        match self.next().await {
            AgentMessage::Response(Response { request_id: STREAM, error: Some(error), .. }) => error.code,
            other => panic!("a refusal, not {other:?}"),
        }
    }

    /// Waits for this many samples; nothing else may come before them.
    async fn expect_only_samples(&mut self, count: u64) {
        for _ in 0..count {
            let metrics = self.peer.metrics().await;
            self.peer.ack(metrics.seq).await;
        }
    }
}

fn cost(lines: &LogLines) -> u64 {
    lines.lines.iter().map(LogLine::cost).sum()
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[tokio::test]
async fn without_credit_nothing_flows_but_samples() {
    let mut scene = Scene::start().await;
    let path = scene.path("hot.log");
    append(&path, &(0..100_000).map(|number| format!("line {number}\n")).collect::<String>());

    scene.follow(&path, 10_000, 2_000).await;
    // A message is sent after 20 ms, so a reader that is slow makes several of them.
    let first = scene.lines_until_silence().await;
    scene.credit(cost(&first)).await;
    let second = scene.lines_until_silence().await;

    assert_eq!(first.lines.first().unwrap().message, "line 90000");
    let next = 90_000 + first.lines.len();
    assert_eq!(second.lines.first().unwrap().message, format!("line {next}"));
    assert!(cost(&first) <= 2_000 && cost(&second) <= 2_000, "{} {}", cost(&first), cost(&second));
    assert_eq!((first.dropped, second.dropped), (0, 0));
}

#[tokio::test]
async fn a_hundred_thousand_lines_are_followed_through_rotations_while_they_are_written() {
    const LINES: usize = 100_000;
    let mut scene = Scene::start().await;
    let path = scene.path("busy.log");
    append(&path, "ready\n");
    scene.follow(&path, 1, 256 * 1024).await;
    // When this arrives, the end of the file has been looked for.
    assert_eq!(scene.lines().await.lines.first().unwrap().message, "ready");

    let writer = std::thread::spawn(move || {
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        for number in 0..LINES {
            writeln!(file, "line number {number}").unwrap();
            if number == LINES / 2 {
                fs::rename(&path, path.with_extension("log.1")).unwrap();
                file = File::create_new(&path).unwrap();
            }
        }
    });
    let mut expected = 0;
    while expected < LINES {
        let lines = scene.lines().await;
        assert_eq!(lines.dropped, 0);
        for line in &lines.lines {
            assert_eq!(line.message, format!("line number {expected}"));
            expected += 1;
        }
        scene.credit(cost(&lines)).await;
    }

    writer.join().unwrap();
    assert!(scene.samples > 0);
}

#[tokio::test]
async fn paths_that_lead_out_of_the_permitted_ones_are_refused() {
    let mut scene = Scene::start().await;
    let outside = TempDir::new().unwrap();
    append(&outside.path().join("secret.log"), "secret\n");
    symlink(outside.path().join("secret.log"), scene.path("link.log")).unwrap();
    symlink(outside.path(), scene.path("up")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(scene.path("pipe")).status().unwrap().success());
    fs::create_dir(scene.path("dir")).unwrap();
    let dots = scene.dir.path().join("..").join(outside.path().file_name().unwrap()).join("secret.log");

    let cases = [
        (outside.path().join("secret.log"), "path_not_allowed"),
        (dots, "path_not_allowed"),
        (scene.path("link.log"), "path_not_allowed"),
        (scene.path("up/secret.log"), "path_not_allowed"),
        ("/dev/zero".into(), "path_not_allowed"),
        (scene.path("pipe"), "not_a_file"),
        (scene.path("dir"), "not_a_file"),
        (scene.path("none.log"), "not_found"),
    ];
    for (path, code) in cases {
        assert_eq!(scene.refusal(&path).await, code, "{}", path.display());
    }
}

#[tokio::test]
async fn a_stopped_stream_sends_nothing_more_and_can_be_started_again() {
    let mut scene = Scene::start().await;
    let path = scene.path("app.log");
    append(&path, "one\n");
    scene.follow(&path, 10, 10_000).await;
    assert_eq!(scene.lines().await.lines.len(), 1);

    scene.peer.send(&ServiceMessage::LogsStop { stream_id: STREAM }).await;
    // A later request is answered later.
    scene.peer.send(&request(9, "agent.info")).await;
    assert!(matches!(scene.next().await, AgentMessage::Response(_)));
    append(&path, "two\n");
    scene.expect_only_samples(20).await;
    scene.follow(&path, 1, 10_000).await;

    assert_eq!(scene.lines().await.lines.first().unwrap().message, "two");
}

#[tokio::test]
async fn a_search_returns_the_lines_that_match() {
    let mut scene = Scene::start().await;
    let path = scene.path("app.log");
    append(&path, "2026-11-20T09:30:00Z all is well\n2026-11-20T09:31:00Z an ERROR\n  with a trace\n");
    let request_id = Uuid::from_u128(9);
    let request = Request {
        request_id,
        method: "logs.query".into(),
        params: json!({"source": "file", "path": path, "since": "2026-11-20T09:30:30Z"}),
        timeout_ms: Some(60_000),
        by: None,
    };

    scene.peer.send(&ServiceMessage::Request(request)).await;

    let line =
        |timestamp: Option<&str>, message: &str| json!({"timestamp": timestamp, "stream": null, "message": message});
    let expected = json!({
        "lines": [
            line(Some("2026-11-20T09:31:00.000Z"), "2026-11-20T09:31:00Z an ERROR"),
            line(None, "  with a trace"),
        ],
        "truncated": false, "stopped_at": null,
    });
    assert_eq!(scene.next().await, AgentMessage::Response(Response::new(request_id, Ok(expected))));
}
