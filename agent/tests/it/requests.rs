//! What the service may request, and what the agent refuses.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::SinkExt;
use serde_json::json;
use signalbox_agent::policy::{Policy, Switch};
use signalbox_agent::{Config, Exit, Interval, Timing};
use signalbox_protocol::agent::{Execute, LogsStart, Request, RequestError, Response, ServiceMessage};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use crate::agent::{Agent, config, info};
use crate::service::Service;

pub fn request(number: u128, method: &str) -> ServiceMessage {
    let request_id = Uuid::from_u128(number);
    ServiceMessage::Request(Request {
        request_id,
        method: method.into(),
        params: json!({}),
        timeout_ms: Some(60_000),
        by: None,
    })
}

#[tokio::test]
async fn an_agent_answers_what_it_is_and_what_it_allows() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));
    let mut peer = service.accept_authenticated().await;

    peer.send(&request(1, "agent.info")).await;
    let told_info = peer.response().await;
    peer.send(&request(2, "agent.policy")).await;
    let told_policy = peer.response().await;

    assert_eq!(told_info, Response::new(Uuid::from_u128(1), Ok(serde_json::to_value(info()).unwrap())));
    let policy = json!({
        "processes": "on", "commands": "off", "docker": "read", "docker_host": null, "logs": "off", "log_paths": [],
        "terminal": "off",
        "record": "off",
    });
    assert_eq!(told_policy, Response::new(Uuid::from_u128(2), Ok(policy)));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn commands_and_logs_are_refused_by_the_agent_itself() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));
    let mut peer = service.accept_authenticated().await;
    let refusal =
        |number, detail| Response::new(Uuid::from_u128(number), Err(RequestError::new("agent_refused", detail)));

    let command = Execute {
        command_id: Uuid::from_u128(1),
        command: "touch /tmp/owned".into(),
        stdin: None,
        timeout_seconds: 5,
        by: None,
        asker: None,
        signed: None,
    };
    peer.send(&ServiceMessage::Execute(command)).await;
    let to_command = peer.response().await;
    let stream_id = Uuid::from_u128(2);
    let logs = LogsStart {
        stream_id,
        source: "system".into(),
        container_id: None,
        path: None,
        tail: None,
        credit: None,
        by: None,
    };
    peer.send(&ServiceMessage::LogsStart(logs)).await;
    let to_logs = peer.response().await;
    peer.send(&request(3, "docker.exec")).await;
    let to_method = peer.response().await;

    assert_eq!(to_command, refusal(1, "this agent runs no commands"));
    assert_eq!(to_logs, refusal(2, "reading logs is switched off on this server"));
    let unknown = RequestError::new("unknown_method", "this agent does not know the method");
    assert_eq!(to_method, Response::new(Uuid::from_u128(3), Err(unknown)));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn unknown_types_and_garbage_are_ignored() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));
    let mut peer = service.accept_authenticated().await;

    let frames = [
        Message::Text(r#"{"type": "teleport", "data": {"to": "mars"}}"#.into()),
        Message::Text("{".into()),
        Message::Text(r#"{"type": "ack", "data": {"seq": "x"}}"#.into()),
        Message::Binary(vec![0xc1, 0xff, 0x00].into()),
        Message::Binary(vec![0x91; 10_000].into()),
        Message::Binary(Vec::new().into()),
    ];
    for frame in frames {
        peer.socket.send(frame).await.unwrap();
    }
    peer.send(&ServiceMessage::Cancel { command_id: Uuid::nil() }).await;
    peer.send(&ServiceMessage::ResultAck { command_id: Uuid::nil() }).await;
    peer.send(&ServiceMessage::LogsStop { stream_id: Uuid::nil() }).await;
    peer.ack(u64::MAX).await;
    peer.send(&request(1, "agent.info")).await;

    assert!(peer.response().await.ok);
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn large_answers_on_a_slow_line_and_the_samples_after_them_leave_room_for_further_answers() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("app.log");
    std::fs::write(&path, format!("{}\n", "x".repeat(60_000)).repeat(50)).unwrap();
    let service = Service::start().await;
    let config = config(&service.url());
    let policy = Policy { logs: Switch::On, log_paths: vec![dir.path().into()], ..Policy::default() };
    let timing = Timing { silence: Duration::from_secs(600), ..config.timing };
    let interval = Interval::of(Duration::from_millis(5));
    let mut agent = Agent::start(Config { policy, timing, interval, ..config });
    let mut peer = service.accept_authenticated().await;

    // More than the sockets store, so that the agent's writer waits.
    for number in 0..8 {
        let search = Request {
            request_id: Uuid::from_u128(number),
            method: "logs.query".into(),
            params: json!({"source": "file", "path": path}),
            timeout_ms: None,
            by: None,
        };
        peer.send(&ServiceMessage::Request(search)).await;
    }
    agent.has_taken(agent.taken() + 200).await;
    peer.send(&request(8, "agent.info")).await;
    agent.has_taken(agent.taken() + 100).await;
    let mut answered = BTreeSet::new();
    while answered.len() < 9 {
        let response = peer.response().await;
        assert!(response.ok, "{:?}", response.error);
        answered.insert(response.request_id);
    }

    assert_eq!(answered, (0..9).map(Uuid::from_u128).collect());
    assert_eq!(agent.stop().await, Exit::Stopped);
}
