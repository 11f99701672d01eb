//! `/ws/logs/{server_id}` and `/logs/{server_id}`: a server's logs, watched and searched.

mod access;
mod outage;
mod real;
mod search;
mod sharing;
mod slow;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{AgentMessage, LogLine, LogLines, LogsStart, RequestError, Response, ServiceMessage};
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;

/// A dashboard that watches a log, with a query such as `source=system&tail=5`.
async fn watch(site: &Site, query: &str) -> Dashboard {
    let path = format!("/api/v1/ws/logs/{}?{query}", site.server_id);
    let opened = Dashboard::open(site.service.address, &path, Pass::Header(&site.owner.token), &[]).await;
    opened.unwrap_or_else(|status| panic!("the dashboard was refused: {status}"))
}

/// The next message of the service, which must open a stream.
async fn expect_start(agent: &mut FakeAgent) -> LogsStart {
    match agent.next().await {
        ServiceMessage::LogsStart(start) => start,
        other => panic!("expected logs_start, got {other:?}"),
    }
}

async fn send_lines(agent: &mut FakeAgent, stream_id: Uuid, messages: &[&str]) {
    send_behind(agent, stream_id, 0, messages).await;
}

/// Sends lines after this many that were lost.
async fn send_behind(agent: &mut FakeAgent, stream_id: Uuid, dropped: u64, messages: &[&str]) {
    let line = |message: &&str| LogLine { timestamp: None, stream: None, message: (*message).to_owned() };
    let lines = messages.iter().map(line).collect();
    agent.send(&AgentMessage::LogLines(LogLines { stream_id, lines, dropped })).await;
}

/// Ends a stream with an error.
async fn fail(agent: &mut FakeAgent, stream_id: Uuid, code: &str, detail: &str) {
    let refusal = Response::new(stream_id, Err(RequestError::new(code, detail)));
    agent.send(&AgentMessage::Response(refusal)).await;
}

/// The text of the next message, which must be a line.
async fn message(dashboard: &mut Dashboard) -> Value {
    dashboard.expect("log").await["message"].take()
}

#[actix_web::test]
async fn a_line_arrives_as_its_message() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = watch(&site, "source=container&container_id=web&tail=5").await;
    let start = expect_start(&mut agent).await;

    let timestamp = Timestamp::parse("2026-11-20T09:30:00.123Z");
    let line = LogLine { timestamp, stream: Some("stderr".into()), message: "it\nbroke \u{1b}[31m".into() };
    let lines = LogLines { stream_id: start.stream_id, lines: vec![line], dropped: 0 };
    agent.send(&AgentMessage::LogLines(lines)).await;
    send_lines(&mut agent, start.stream_id, &["plain"]).await;

    let first = json!({
        "source": "container", "timestamp": "2026-11-20T09:30:00.123Z", "stream": "stderr",
        "message": "it\nbroke \u{1b}[31m",
    });
    assert_eq!(dashboard.next().await, json!({"type": "log", "data": first}));
    let second = json!({"source": "container", "timestamp": null, "stream": null, "message": "plain"});
    assert_eq!(dashboard.next().await, json!({"type": "log", "data": second}));
}

#[actix_web::test]
async fn the_agent_learns_what_is_requested_and_who_asks() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    let _system = watch(&site, "").await;
    let system = expect_start(&mut agent).await;
    let _container = watch(&site, "source=container&container_id=web&tail=0").await;
    let container = expect_start(&mut agent).await;
    let _file = watch(&site, "source=file&path=/var/log/a%20b.log&tail=10000").await;
    let file = expect_start(&mut agent).await;

    let asked = |start: &LogsStart| {
        (start.source.clone(), start.container_id.clone(), start.path.clone(), start.tail, start.by.clone())
    };
    let by = Some("owner from 127.0.0.1".to_owned());
    assert_eq!(asked(&system), ("system".into(), None, None, Some(100), by.clone()));
    assert_eq!(asked(&container), ("container".into(), Some("web".into()), None, Some(0), by.clone()));
    assert_eq!(asked(&file), ("file".into(), None, Some("/var/log/a b.log".into()), Some(10_000), by));
    assert!(file.credit.is_some_and(|credit| credit > 0));
}

#[actix_web::test]
async fn lines_that_the_agent_lost_are_reported_where_they_are_missing() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = watch(&site, "").await;
    let start = expect_start(&mut agent).await;

    send_lines(&mut agent, start.stream_id, &["one"]).await;
    send_behind(&mut agent, start.stream_id, 17, &["nineteen"]).await;

    assert_eq!(message(&mut dashboard).await, "one");
    assert_eq!(dashboard.next().await, json!({"type": "dropped", "data": {"count": 17}}));
    assert_eq!(message(&mut dashboard).await, "nineteen");
}

#[actix_web::test]
async fn a_refusal_is_reported_and_closes_the_socket() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = watch(&site, "source=file&path=/etc/shadow").await;
    let start = expect_start(&mut agent).await;

    fail(&mut agent, start.stream_id, "path_not_allowed", "the path is not among those").await;

    let error = json!({"code": "path_not_allowed", "detail": "the path is not among those"});
    assert_eq!(dashboard.next().await, json!({"type": "error", "data": error}));
    dashboard.expect_close(1000).await;
}

#[actix_web::test]
async fn the_end_of_a_log_is_reported_after_its_last_line() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = watch(&site, "source=container&container_id=web").await;
    let start = expect_start(&mut agent).await;

    send_lines(&mut agent, start.stream_id, &["goodbye"]).await;
    agent.send(&AgentMessage::Response(Response::new(start.stream_id, Ok(json!({}))))).await;

    assert_eq!(message(&mut dashboard).await, "goodbye");
    assert_eq!(dashboard.expect("error").await["code"], "log_ended");
    dashboard.expect_close(1000).await;
}
