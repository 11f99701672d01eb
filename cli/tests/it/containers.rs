//! Containers of a real agent, whose engine is a small one of this test: no other test needs Docker for the program.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::Client;
use crate::relay::Relay;
use crate::support::{Agent, Running, Site, eventually, open_to_all};

/// Answers as Docker does about one container, and notes what it is asked to do.
pub fn engine(path: &std::path::Path) -> Arc<Mutex<Vec<String>>> {
    engine_with(path, || 0)
}

/// The same with this many newer containers, each time that it lists them.
fn engine_with(path: &std::path::Path, newer: impl Fn() -> usize + Send + Sync + 'static) -> Arc<Mutex<Vec<String>>> {
    let newer = Arc::new(newer);
    let listener = UnixListener::bind(path).unwrap();
    open_to_all(path);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (log, newer) = (Arc::clone(&log), Arc::clone(&newer));
            std::thread::spawn(move || serve(stream, &log, &*newer));
        }
    });
    asked
}

/// `nginx`, and this many newer containers.
fn listed(newer: usize) -> String {
    let one = |id: String, name: String, created: usize| {
        json!({
            "Id": id, "Names": [format!("/{name}")], "Image": format!("{name}:1"), "Created": created,
            "State": "running", "Status": "Up 2 hours", "Ports": [], "Labels": {},
        })
    };
    let created = 1_760_000_000;
    let nginx = one("0123456789abcdef".repeat(4), "nginx".to_owned(), created);
    let newer = (1..=newer).map(|number| one(format!("{number:064x}"), format!("worker-{number}"), created + number));
    newer.chain([nginx]).collect::<Value>().to_string()
}

fn serve(mut stream: UnixStream, log: &Mutex<Vec<String>>, newer: &impl Fn() -> usize) {
    let mut buffer = [0; 4096];
    let Ok(count) = stream.read(&mut buffer) else { return };
    let request = String::from_utf8_lossy(&buffer[..count]).into_owned();
    let line = request.lines().next().unwrap_or_default().to_owned();
    let id = "0123456789abcdef".repeat(4);
    let (status, body) = if line.contains("/_ping") {
        ("200 OK", "OK".to_owned())
    } else if line.contains("/json?all=") {
        ("200 OK", listed(newer()))
    } else if line.starts_with("POST") && line.contains("/nginx/") {
        log.lock().push(line);
        ("204 No Content", String::new())
    } else if line.contains("/nginx/json") {
        (
            "200 OK",
            format!(r#"{{"Id":"{id}","Name":"/nginx","State":{{"Status":"running","Running":true}},"Config":{{}}}}"#),
        )
    } else if line.contains("/events") {
        // Nothing happens, for as long as somebody listens.
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let _ = stream.read(&mut buffer);
        return;
    } else {
        ("404 Not Found", r#"{"message":"No such container"}"#.to_owned())
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    let _ =
        stream.write_all(format!("{head}Content-Type: application/json\r\nApi-Version: 1.43\r\n\r\n{body}").as_bytes());
}

#[tokio::test]
async fn containers_are_listed_and_restarted() {
    let site = Site::start().await;
    let room = tempfile::tempdir().unwrap();
    open_to_all(room.path());
    let socket = room.path().join("engine.sock");
    let asked = engine(&socket);
    let host = format!("unix://{}", socket.display());
    let _agent = site.agent("web-1", &[], &["--docker", "control", "--docker-host", &host]).await;

    let listed = site.run(&["containers", "web-1"]).await;
    let restarted = site.run(&["containers", "web-1", "restart", "nginx", "--timeout", "3"]).await;
    let missing = site.run(&["containers", "web-1", "stop", "redis", "nginx"]).await;

    assert!(listed.done().ends_with("nginx  running  Up 2 hours  nginx:1  0123456789ab\n"), "{listed:?}");
    assert_eq!(restarted.done(), "nginx (0123456789ab) is running.\n");
    missing.refused(1, "web-1: ");
    assert!(missing.stdout.contains("nginx (0123456789ab)"), "the others have their turn: {missing:?}");
    let asked = asked.lock();
    assert!(asked[0].contains("/containers/nginx/restart") && asked[0].contains("t=3"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_containers_than_a_page_has_are_all_listed_each_once() {
    let site = Site::start().await;
    let room = tempfile::tempdir().unwrap();
    open_to_all(room.path());
    let socket = room.path().join("engine.sock");
    // A new one each time moves the others on between two pages.
    let newer = AtomicUsize::new(500);
    engine_with(&socket, move || newer.fetch_add(1, Ordering::Relaxed));
    let host = format!("unix://{}", socket.display());
    let _agent = site.agent("web-1", &[], &["--docker", "read", "--docker-host", &host]).await;

    let listed = site.run(&["containers", "web-1", "-o", "json"]).await.json();
    let found = Client::start(&site, &[]).data("list_containers", &json!({"server": "web-1", "search": "nginx"}));

    let mut names: Vec<&str> = listed.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names.last(), Some(&"nginx"), "the oldest");
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert!(count > 500 && names.len() == count, "{count} containers, {} names", names.len());
    assert_eq!(found["containers"].as_array().unwrap().len(), 1, "{found}");
}

/// A server whose containers can be controlled, the place of its engine, and what that is asked to do.
async fn controlled() -> (Site, Agent, TempDir, Arc<Mutex<Vec<String>>>) {
    let site = Site::start().await;
    let room = tempfile::tempdir().unwrap();
    open_to_all(room.path());
    let socket = room.path().join("engine.sock");
    let asked = engine(&socket);
    let host = format!("unix://{}", socket.display());
    let agent = site.agent("web-1", &[], &["--docker", "control", "--docker-host", &host]).await;
    (site, agent, room, asked)
}

#[tokio::test]
async fn all_have_their_turn_where_nobody_reads_the_output() {
    let (site, _agent, _room, asked) = controlled().await;

    let mut codes = Vec::new();
    for names in [&["nginx", "nginx"][..], &["nginx", "redis", "nginx"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = site.command(&[&["containers", "web-1", "stop"], names].concat());
        let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().unwrap();
        codes.push(eventually("it ends", async || child.try_wait().unwrap()).await.code());
    }

    assert_eq!(codes, [Some(0), Some(1)]);
    let asked = asked.lock();
    assert!(asked.len() == 4 && asked.iter().all(|line| line.contains("/nginx/stop")), "{asked:?}");
}

#[tokio::test]
async fn a_lost_answer_leaves_open_whether_a_container_is_still_stopping() {
    let (site, _agent, _room, _asked) = controlled().await;
    let relay = Relay::start(site.url.trim_start_matches("http://")).await;
    relay.lose_answer("POST /api/v1/docker/");

    let mut command = site.command(&["containers", "web-1", "stop", "nginx", "--timeout", "120"]);
    command.env("SIGNALBOX_URL", relay.url());
    let outcome = Running::start(command).outcome().await;

    assert!(relay.has_lost_answer());
    outcome.refused(1, "; nginx may still be stopping\n");
}

#[tokio::test]
async fn an_agent_that_only_reads_says_what_to_run() {
    let site = Site::start().await;
    let _reads = site.agent("web-1", &[], &["--docker", "read"]).await;
    let _none = site.agent("web-2", &[], &["--docker", "off"]).await;

    let control = site.run(&["containers", "web-1", "restart", "nginx"]).await;
    let list = site.run(&["containers", "web-2"]).await;

    control.refused(1, "sudo sh -s -- --docker control");
    list.refused(1, "sudo sh -s -- --docker read");
}
