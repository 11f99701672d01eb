//! Streams from an agent to dashboards at other instances: logs and terminals.

use serde_json::{Value, json};
use signalbox_protocol::agent::{
    AgentMessage, LogLine, LogLines, LogsStart, RequestError, Response, ServiceMessage, TerminalOutput, TerminalSize,
};
use uuid::Uuid;

use super::{A, B, C, Scene};
use crate::support::agent::FakeAgent;
use crate::support::dashboard::Dashboard;
use crate::support::machine::Machine;
use crate::support::terminal::Client;
use crate::support::{registration, text_of};

async fn follow(scene: &Scene, instance: usize, query: &str) -> Dashboard {
    scene.open(instance, &format!("/api/v1/ws/logs/{}?{query}", scene.server_id())).await
}

async fn expect_start(agent: &mut FakeAgent) -> LogsStart {
    loop {
        match agent.next().await {
            ServiceMessage::LogsStart(start) => return start,
            ServiceMessage::Credit { .. } => {}
            other => panic!("expected logs_start, got {other:?}"),
        }
    }
}

/// The next message that is not about credit.
async fn next_of(agent: &mut FakeAgent) -> ServiceMessage {
    loop {
        match agent.next().await {
            ServiceMessage::Credit { .. } => {}
            other => return other,
        }
    }
}

async fn send_lines(agent: &mut FakeAgent, stream_id: Uuid, messages: &[&str]) {
    let line = |message: &&str| LogLine { timestamp: None, stream: None, message: (*message).to_owned() };
    let lines = messages.iter().map(line).collect();
    agent.send(&AgentMessage::LogLines(LogLines { stream_id, lines, dropped: 0 })).await;
}

async fn message(dashboard: &mut Dashboard) -> Value {
    dashboard.expect("log").await["message"].take()
}

#[actix_web::test]
async fn watchers_at_two_instances_share_one_stream_of_the_agent() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let mut first = follow(&scene, A, "tail=3").await;
    let start = expect_start(&mut agent).await;
    send_lines(&mut agent, start.stream_id, &["one", "two", "three"]).await;
    for expected in ["one", "two", "three"] {
        assert_eq!(message(&mut first).await, expected);
    }

    let mut second = follow(&scene, C, "tail=2").await;
    for expected in ["two", "three"] {
        assert_eq!(message(&mut second).await, expected);
    }
    send_lines(&mut agent, start.stream_id, &["four"]).await;
    assert_eq!(message(&mut first).await, "four");
    assert_eq!(message(&mut second).await, "four");
    first.socket.close().await;
    send_lines(&mut agent, start.stream_id, &["five"]).await;
    assert_eq!(message(&mut second).await, "five");
    second.socket.close().await;

    assert_eq!(next_of(&mut agent).await, ServiceMessage::LogsStop { stream_id: start.stream_id });
}

#[actix_web::test]
async fn a_watcher_at_another_instance_for_whose_stream_the_agent_has_no_place_shares_another_one() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let mut few = follow(&scene, C, "tail=1").await;
    let of_few = expect_start(&mut agent).await;
    send_lines(&mut agent, of_few.stream_id, &["one"]).await;
    assert_eq!(message(&mut few).await, "one");
    let mut many = follow(&scene, A, "tail=3").await;
    let of_many = expect_start(&mut agent).await;

    let refusal = RequestError::new("agent_busy", "the agent has too many streams already");
    agent.send(&AgentMessage::Response(Response::new(of_many.stream_id, Err(refusal)))).await;

    assert_eq!(message(&mut many).await, "one");
    send_lines(&mut agent, of_few.stream_id, &["two"]).await;
    assert_eq!(message(&mut few).await, "two");
    assert_eq!(message(&mut many).await, "two");
}

#[actix_web::test]
async fn a_refused_log_is_reported_and_closes_the_socket() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let mut dashboard = follow(&scene, A, "source=file&path=/etc/shadow").await;
    let start = expect_start(&mut agent).await;

    let refusal = RequestError::new("path_not_allowed", "the path is not among those");
    agent.send(&AgentMessage::Response(Response::new(start.stream_id, Err(refusal)))).await;

    let error = json!({"code": "path_not_allowed", "detail": "the path is not among those"});
    assert_eq!(dashboard.next().await, json!({"type": "error", "data": error}));
    dashboard.expect_close(1000).await;
}

#[actix_web::test]
async fn a_long_log_arrives_whole_and_in_order() {
    const LINES: usize = 3_000;
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let mut dashboard = follow(&scene, A, "").await;
    let start = expect_start(&mut agent).await;
    let mut credit = start.credit.expect("a stream has a bound");

    let text = |number: usize| format!("{number} {}", "x".repeat(500));
    let mut shown = 0;
    for number in 0..LINES {
        let line = LogLine { timestamp: None, stream: None, message: text(number) };
        while credit < line.cost() {
            // A stream without credit waits, while the dashboards read.
            while shown < number {
                assert_eq!(message(&mut dashboard).await, text(shown));
                shown += 1;
            }
            match agent.next().await {
                ServiceMessage::Credit { bytes, .. } => credit += bytes,
                other => panic!("expected credit, got {other:?}"),
            }
        }
        credit -= line.cost();
        let lines = LogLines { stream_id: start.stream_id, lines: vec![line], dropped: 0 };
        agent.send(&AgentMessage::LogLines(lines)).await;
    }

    for number in shown..LINES {
        assert_eq!(message(&mut dashboard).await, text(number));
    }
}

#[actix_web::test]
async fn the_end_of_a_logs_agent_is_reported() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let mut dashboard = follow(&scene, A, "").await;
    let start = expect_start(&mut agent).await;
    send_lines(&mut agent, start.stream_id, &["one"]).await;
    assert_eq!(message(&mut dashboard).await, "one");

    agent.socket.abort();

    assert_eq!(dashboard.expect("error").await["code"], "agent_offline");
}

#[actix_web::test]
async fn a_terminal_is_typed_into_resized_and_ends_with_its_code() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let path = format!("/api/v1/ws/terminal/{}?columns=100&rows=30", scene.server_id());
    let mut browser = scene.open(A, &path).await;
    let ServiceMessage::TerminalStart(start) = agent.next().await else { panic!("expected terminal_start") };
    assert_eq!(start.size, TerminalSize { columns: 100, rows: 30 });
    assert_eq!(start.asker.map(|asker| asker.user), Some("owner".to_owned()));
    let stream_id = start.stream_id;

    for number in 0..50 {
        browser.send(json!({"type": "input", "data": {"data": format!("{number}\n")}})).await;
    }
    let mut typed = String::new();
    while !typed.ends_with("49\n") {
        match next_of(&mut agent).await {
            ServiceMessage::TerminalInput { data, .. } => typed.push_str(&data),
            other => panic!("expected terminal_input, got {other:?}"),
        }
    }
    assert_eq!(typed, (0..50).map(|number| format!("{number}\n")).collect::<String>());
    browser.send(json!({"type": "resize", "data": {"columns": 132, "rows": 43}})).await;
    let size = TerminalSize { columns: 132, rows: 43 };
    assert_eq!(next_of(&mut agent).await, ServiceMessage::TerminalResize { stream_id, size });
    let mut shown = String::new();
    for number in 0..50 {
        let output = TerminalOutput { stream_id, data: format!("said {number}\r\n"), offset: None };
        agent.send(&AgentMessage::TerminalOutput(output)).await;
    }
    while !shown.ends_with("said 49\r\n") {
        shown.push_str(browser.expect("output").await["data"].as_str().unwrap());
    }
    assert_eq!(shown, (0..50).map(|number| format!("said {number}\r\n")).collect::<String>());
    agent.send(&AgentMessage::Response(Response::new(stream_id, Ok(json!({"exit_code": 7}))))).await;

    assert_eq!(browser.until("exit").await, json!({"exit_code": 7}));
    browser.expect_close(1000).await;
}

#[actix_web::test]
async fn a_terminal_that_is_closed_ends_at_the_agent() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let path = format!("/api/v1/ws/terminal/{}?columns=80&rows=24", scene.server_id());
    let browser = scene.open(C, &path).await;
    let ServiceMessage::TerminalStart(start) = agent.next().await else { panic!("expected terminal_start") };

    browser.socket.abort();

    assert_eq!(next_of(&mut agent).await, ServiceMessage::TerminalStop { stream_id: start.stream_id });
}

#[actix_web::test]
async fn a_terminal_is_resumed_through_another_instance() {
    let scene = Scene::start().await;
    let machine = Machine::new();
    let _agent = machine.agent(scene.cluster.address(B), &scene.prepared.key, &["--terminal", "on"]);
    scene.until_reached(A).await;
    let token = &scene.prepared.token;
    let mut client = Client::open(scene.cluster.address(A), token, scene.server_id()).await;
    client.type_in("echo o''ne\n").await;
    client.until("one\r\n").await;

    // The instance of the client does not know yet that it is lost, and the next one takes its terminal.
    let mut client = Client::resume(scene.cluster.address(C), token, client.lose()).await;
    client.type_in("echo tw''o\n").await;
    client.until("two\r\n").await;
    let mut client = Client::resume(scene.cluster.address(B), token, client.lose()).await;
    client.type_in("stty size; seq 100000; echo thr''ee\n").await;
    client.until("43 132\r\n").await;
    client.until("three\r\n").await;
    let ticket = client.lose();
    let mut client = Client::resume(scene.cluster.address(A), token, ticket).await;
    client.type_in(&format!("X={} sh -c 'echo fo''ur; sleep 1000; :'\n", machine.marker)).await;
    client.until("four\r\n").await;
    machine.until_processes(1).await;

    client.close(1000).await;

    machine.until_no_process().await;
}

#[actix_web::test]
async fn a_right_that_is_taken_away_ends_a_terminal_whose_output_flows_to_another_instance() {
    let scene = Scene::start().await;
    let machine = Machine::new();
    let _agent = machine.agent(scene.cluster.address(B), &scene.prepared.key, &["--terminal", "on"]);
    scene.until_reached(A).await;
    let guest = scene.client(A).post("/auth/register").json(registration("guest")).expect(201).await;
    let scope = json!({"server_id": scene.server_id()});
    let body = json!({"subject": {"username": "guest"}, "scope": scope, "role": "operator", "rights": ["terminal"]});
    let grant = text_of(&scene.post(A, "/grants").json(body).expect(201).await["id"]);
    let address = scene.cluster.address(A);
    let mut client = Client::open(address, &text_of(&guest["access_token"]), scene.server_id()).await;
    client.type_in(&format!("X={} yes\n", machine.marker)).await;
    client.until("y\r\ny\r\n").await;
    machine.until_processes(1).await;

    let end = scene.client(A).call("DELETE".parse().unwrap(), &format!("/grants/{grant}"));
    end.bearer(&scene.prepared.token).expect(200).await;

    client.socket.expect_close(4404).await;
    machine.until_no_process().await;
}
