//! Logs that are hotter than their readers, and agents that send more than they may.

use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, LogLine, LogLines, ServiceMessage};
use signalbox_protocol::{Encoding, close};
use uuid::Uuid;

use super::{expect_start, watch};
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::dashboard::Dashboard;
use crate::support::site::Site;
use crate::support::socket::Received;

const LINE_BYTES: usize = 1_000;
const LINES_A_MESSAGE: u64 = 50;

/// Lines that begin with their number.
fn batch(stream_id: Uuid, first: u64) -> LogLines {
    let line = |number: u64| LogLine { timestamp: None, stream: None, message: format!("{number:<LINE_BYTES$}") };
    LogLines { stream_id, lines: (first..first + LINES_A_MESSAGE).map(line).collect(), dropped: 0 }
}

fn number(line: &Value) -> u64 {
    line["message"].as_str().unwrap().trim_end().parse().unwrap()
}

/// Sends messages until this many lines are sent, each when there is credit for it.
async fn send_as_allowed(agent: &mut FakeAgent, stream_id: Uuid, credit: &mut u64, lines: std::ops::Range<u64>) {
    let mut next = lines.start;
    while next < lines.end {
        let message = batch(stream_id, next);
        let cost: u64 = message.lines.iter().map(LogLine::cost).sum();
        while *credit < cost {
            match agent.next().await {
                ServiceMessage::Credit { bytes, .. } => *credit += bytes,
                other => panic!("credit, not {other:?}"),
            }
        }
        *credit -= cost;
        agent.send(&AgentMessage::LogLines(message)).await;
        next += LINES_A_MESSAGE;
    }
}

/// Reads until this line. Returns how many lines came and how many were reported as missing. Panics where the two do not add up
/// to the numbers of the lines.
async fn read_to(dashboard: &mut Dashboard, last: u64) -> (u64, u64) {
    let (mut read, mut dropped) = (0, 0);
    loop {
        let mut message = dashboard.next().await;
        match message["type"].as_str() {
            Some("dropped") => dropped += message["data"]["count"].as_u64().unwrap(),
            Some("log") => {
                let number = number(&message["data"].take());
                assert_eq!(number, read + dropped, "lines come in order and none is missing untold");
                read += 1;
                if number == last {
                    return (read, dropped);
                }
            }
            _ => panic!("a line, not {message}"),
        }
    }
}

#[actix_web::test]
async fn a_slow_reader_learns_what_it_missed_and_delays_no_other() {
    const LINES: u64 = 30_000;
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let mut fast = watch(&site, "").await;
    let start = expect_start(&mut agent).await;
    let mut slow = watch(&site, "").await;

    let mut credit = start.credit.unwrap();
    let sent = send_as_allowed(&mut agent, start.stream_id, &mut credit, 0..LINES);
    let ((), of_fast) = futures_util::future::join(sent, read_to(&mut fast, LINES - 1)).await;
    let of_slow = read_to(&mut slow, LINES - 1).await;

    assert_eq!(of_fast.0 + of_fast.1, LINES);
    assert!(of_slow.1 > 0, "what a socket holds is less than was sent");
    assert_eq!(of_slow.0 + of_slow.1, LINES);
}

#[actix_web::test]
async fn a_log_that_nobody_reads_waits_on_its_own_host() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let stuck = watch(&site, "").await;
    let start = expect_start(&mut agent).await;
    let mut credit = start.credit.unwrap();

    // More than the buffers on the way: at some point no more credit comes, and samples still arrive. However long all of it
    // would take to send, each message alone takes far less.
    let mut is_held_back = false;
    let mut next = 0;
    while next < 200_000 && !is_held_back {
        let piece = next..next + LINES_A_MESSAGE;
        let hot = send_as_allowed(&mut agent, start.stream_id, &mut credit, piece);
        is_held_back = tokio::time::timeout(std::time::Duration::from_secs(3), hot).await.is_err();
        next += LINES_A_MESSAGE;
    }

    assert!(is_held_back, "200 MB went to a reader that reads nothing");
    let mut seen = Vec::new();
    agent.send_metrics(1, vec![sample_aged(1)]).await;
    while !seen.contains(&ServiceMessage::Ack { seq: 1 }) {
        seen.push(agent.next().await);
    }
    drop(stuck);
}

#[actix_web::test]
async fn an_agent_that_sends_more_than_it_may_loses_the_stream_and_nothing_else() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let mut dashboard = watch(&site, "").await;
    let start = expect_start(&mut agent).await;

    // However much of it was read: far more at once than any credit.
    let line = LogLine { timestamp: None, stream: None, message: "x".repeat(1_000_000) };
    let flood = LogLines { stream_id: start.stream_id, lines: vec![line; 3], dropped: u64::MAX };
    for _ in 0..20 {
        agent.send(&AgentMessage::LogLines(flood.clone())).await;
    }
    agent.send_metrics(1, vec![sample_aged(1)]).await;

    let mut seen = Vec::new();
    while !seen.contains(&ServiceMessage::Ack { seq: 1 }) {
        seen.push(agent.next().await);
    }
    assert!(seen.contains(&ServiceMessage::LogsStop { stream_id: start.stream_id }), "{seen:?}");
    assert_eq!(dashboard.until("error").await["code"], "stream_overrun");
    dashboard.expect_close(1000).await;
}

#[actix_web::test]
async fn lines_for_no_stream_and_of_another_kind_are_ignored() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = watch(&site, "").await;
    let start = expect_start(&mut agent).await;

    agent.send(&AgentMessage::LogLines(batch(Uuid::now_v7(), 100))).await;
    let output =
        signalbox_protocol::agent::TerminalOutput { stream_id: start.stream_id, data: "$ ".into(), offset: None };
    agent.send(&AgentMessage::TerminalOutput(output)).await;
    agent.send(&AgentMessage::LogLines(batch(start.stream_id, 0))).await;

    assert_eq!(number(&dashboard.expect("log").await), 0);
}

#[actix_web::test]
async fn what_a_watcher_says_is_ignored_unless_it_is_no_message() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = watch(&site, "").await;
    let start = expect_start(&mut agent).await;

    dashboard.send(serde_json::json!({"type": "pause", "data": {}})).await;
    agent.send(&AgentMessage::LogLines(batch(start.stream_id, 0))).await;
    assert_eq!(number(&dashboard.expect("log").await), 0);
    dashboard.send(serde_json::json!(["no", "message"])).await;

    loop {
        match dashboard.socket.receive().await {
            Received::Message(_) => {}
            Received::Closed(code) => return assert_eq!(code, close::MALFORMED),
            Received::Broken => panic!("no close frame"),
        }
    }
}
