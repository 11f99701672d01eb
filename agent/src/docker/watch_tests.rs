use serde_json::{Value, json};
use signalbox_protocol::agent::Event;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::*;
use crate::events::Connected;
use crate::policy::Policy;
use crate::signed::Gate;

/// An engine without containers that reports these events, and none after them.
async fn play(listener: UnixListener, events: String) {
    let mut open = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let request = String::from_utf8(request).unwrap();
        let answer = if request.contains("/_ping") {
            "Api-Version: 1.41\r\nContent-Length: 0\r\n\r\n".to_owned()
        } else if request.contains("/events") {
            format!("\r\n{events}")
        } else {
            "Content-Length: 2\r\n\r\n[]".to_owned()
        };
        stream.write_all(format!("HTTP/1.1 200 OK\r\n{answer}").as_bytes()).await.unwrap();
        open.push(stream);
    }
}

/// The line of a container's start, so many seconds ago.
fn start_of(name: &str, seconds_ago: i64) -> String {
    let at = Timestamp::now().as_millis() - seconds_ago * 1_000;
    let actor = json!({"ID": name, "Attributes": {"name": name}});
    format!("{}\n", json!({"Type": "container", "Action": "start", "Actor": actor, "timeNano": at * 1_000_000}))
}

/// The next event of a container; the states of all are no such event.
async fn next(connected: &Connected) -> Event {
    loop {
        let event = connected.next().await;
        if event.kind == "container" {
            return event;
        }
    }
}

/// The names in the first two events that the agent reports of these.
async fn reported(events: [String; 3]) -> [Value; 2] {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("engine.sock");
    tokio::spawn(play(UnixListener::bind(&path).unwrap(), events.concat()));
    let docker_host = Some(format!("unix://{}", path.display()));
    let policy = Policy { docker: DockerAccess::Read.into(), docker_host, ..Policy::default() };
    let docker = Docker::new(&policy, Gate::default());
    let (events, running) = (Events::default(), RunningContainers::default());
    let connected = events.connect();

    let reported = tokio::select! {
        () = docker.watch(&events, &running) => None,
        reported = async { [next(&connected).await, next(&connected).await] } => Some(reported),
    };

    reported.unwrap().map(|event| event.fields["name"].clone())
}

#[tokio::test]
async fn old_events_that_an_engine_repeats_are_not_reported() {
    let events = [start_of("recent", 20), start_of("old", 90), start_of("new", 0)];

    assert_eq!(reported(events).await, ["recent", "new"]);
}

#[tokio::test]
async fn events_of_an_engine_whose_clock_is_behind_are_reported() {
    let events = [start_of("first", 3_600), start_of("second", 3_599), start_of("third", 3_598)];

    assert_eq!(reported(events).await, ["first", "second"]);
}
