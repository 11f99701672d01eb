//! Terminals: a shell, as a user at a keyboard has it.

use serde_json::json;
use signalbox_agent::policy::{Policy, Switch};
use signalbox_agent::{Config, Exit};
use signalbox_protocol::agent::{AgentMessage, RequestError, Response, ServiceMessage, TerminalSize, TerminalStart};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::agent::{AT_ONCE, Agent, PATIENCE, config};
use crate::commands::is_gone;
use crate::service::{Peer, Service};

const ID: Uuid = Uuid::from_u128(1);

fn willing(url: &str) -> Config {
    Config { policy: Policy { terminal: Switch::On.into(), ..Policy::default() }, ..config(url) }
}

/// An agent whose user's shell is sh, without rc files.
async fn connected() -> (Service, Agent, Peer<TcpStream>, tempfile::TempDir) {
    let (service, etc) = (Service::start().await, tempfile::tempdir().unwrap());
    let uid = rustix::process::getuid().as_raw();
    std::fs::write(etc.path().join("passwd"), format!("ada:x:{uid}:{uid}::/:/bin/sh\n")).unwrap();
    let mut config = willing(&service.url());
    config.roots.etc = etc.path().to_owned();
    let agent = Agent::start(config);
    let peer = service.accept_authenticated().await;
    (service, agent, peer, etc)
}

fn start(stream_id: Uuid, credit: Option<u64>) -> ServiceMessage {
    let size = TerminalSize { columns: 100, rows: 30 };
    ServiceMessage::TerminalStart(TerminalStart {
        stream_id,
        size,
        credit,
        by: Some("ada (::1)".into()),
        asker: None,
        signed: None,
    })
}

async fn type_in(peer: &mut Peer<TcpStream>, data: &str) {
    peer.send(&ServiceMessage::TerminalInput { stream_id: ID, data: data.into() }).await;
}

/// The output up to this text.
async fn shown(peer: &mut Peer<TcpStream>, until: &str) -> String {
    let mut text = String::new();
    while !text.contains(until) {
        match peer.next().await {
            AgentMessage::TerminalOutput(output) => text.push_str(&output.data),
            other => panic!("output with {until:?}, not {other:?} after {text:?}"),
        }
    }
    text
}

/// The end, after any remaining output.
async fn ended(peer: &mut Peer<TcpStream>) -> Response {
    loop {
        match peer.next().await {
            AgentMessage::TerminalOutput(_) => {}
            AgentMessage::Response(response) => return response,
            other => panic!("{other:?}"),
        }
    }
}

/// The process that prints its number after `pid=`.
async fn shown_pid(peer: &mut Peer<TcpStream>) -> i32 {
    let text = shown(peer, "\r\n.\r\n").await;
    let digits = text.rsplit("pid=").next().unwrap().lines().next().unwrap();
    digits.parse().unwrap_or_else(|_| panic!("{text:?}"))
}

#[tokio::test]
async fn a_shell_has_a_terminal_of_the_right_size_and_ends_with_its_code() {
    let (_service, agent, mut peer, _etc) = connected().await;

    peer.send(&start(ID, None)).await;
    type_in(&mut peer, "tty; stty size; echo $0 $TERM $USER $HOME; env | grep -c SIGNALBOX; echo grüße\n").await;
    let text = shown(&mut peer, "\r\ngrüße").await;
    type_in(&mut peer, "exit 7\n").await;
    let response = ended(&mut peer).await;

    assert!(text.contains("/dev/pts/"), "{text:?}");
    assert!(text.contains("30 100\r\n") && text.contains("-sh xterm-256color ada /\r\n0\r\n"), "{text:?}");
    assert_eq!(response, Response::new(ID, Ok(json!({"exit_code": 7}))));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_key_interrupts_the_foreground_and_the_program_learns_of_a_resize() {
    let (_service, agent, mut peer, _etc) = connected().await;

    peer.send(&start(ID, None)).await;
    type_in(&mut peer, "trap 'echo wide=$(stty size)' WINCH; echo rea''dy\n").await;
    shown(&mut peer, "ready").await;
    peer.send(&ServiceMessage::TerminalResize { stream_id: ID, size: TerminalSize { columns: 132, rows: 43 } }).await;
    // sh runs a trap between two commands.
    type_in(&mut peer, "\n").await;
    let resized = shown(&mut peer, "wide=43").await;
    let program = "sh -c 'trap \"exit 9\" INT; echo run$((1+1)); while :; do sleep 0.1; done'; echo code=$?.\n";
    type_in(&mut peer, program).await;
    shown(&mut peer, "run2").await;
    type_in(&mut peer, "\u{3}").await;
    shown(&mut peer, "code=9.").await;

    assert!(resized.contains("wide=43 132"), "{resized:?}");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_flood_waits_for_credit_and_delays_no_sample() {
    let (_service, agent, mut peer, _etc) = connected().await;

    peer.send(&start(ID, Some(10_000))).await;
    type_in(&mut peer, "cat /dev/zero\n").await;
    let (mut bytes, mut samples) = (0, 0);
    while samples < 50 {
        match peer.message().await {
            AgentMessage::TerminalOutput(output) => bytes += output.data.len(),
            AgentMessage::Metrics(metrics) => {
                samples += metrics.samples.len();
                peer.ack(metrics.seq).await;
            }
            other => panic!("{other:?}"),
        }
    }
    // One message may be larger than the rest of the credit, up to all of the first.
    assert!(bytes <= 2 * 16 * 1024, "{bytes}");
    peer.send(&ServiceMessage::Credit { stream_id: ID, bytes: 50_000 }).await;
    let mut more = 0;
    while more < 30_000 {
        match peer.next().await {
            AgentMessage::TerminalOutput(output) => more += output.data.len(),
            other => panic!("{other:?}"),
        }
    }

    let began = Instant::now();
    peer.send(&ServiceMessage::TerminalStop { stream_id: ID }).await;
    peer.send(&start(Uuid::from_u128(2), None)).await;
    peer.send(&ServiceMessage::TerminalInput { stream_id: Uuid::from_u128(2), data: "exit\n".into() }).await;
    assert_eq!(ended(&mut peer).await.request_id, Uuid::from_u128(2), "who stopped it gets no answer");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_stopped_terminal_ends_even_programs_that_ignore_the_hang_up() {
    let (_service, agent, mut peer, _etc) = connected().await;
    peer.send(&start(ID, None)).await;
    type_in(&mut peer, "echo pid=$$; echo .\n").await;
    let shell = shown_pid(&mut peer).await;
    type_in(&mut peer, "sh -c 'trap \"\" HUP TERM; echo pid=$$; echo .; sleep 100; sleep 100'\n").await;
    let program = shown_pid(&mut peer).await;
    assert_ne!(shell, program);

    peer.send(&ServiceMessage::TerminalStop { stream_id: ID }).await;

    is_gone(shell).await;
    is_gone(program).await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_lost_connection_hangs_up() {
    let (service, agent, mut peer, _etc) = connected().await;
    peer.send(&start(ID, None)).await;
    type_in(&mut peer, "echo pid=$$; echo .\n").await;
    let shell = shown_pid(&mut peer).await;

    drop(peer);
    let _peer = service.accept_authenticated().await;

    is_gone(shell).await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_program_that_reads_nothing_loses_its_terminal() {
    let (_service, agent, mut peer, _etc) = connected().await;
    peer.send(&start(ID, None)).await;
    type_in(&mut peer, "stty raw -echo; echo rea''dy; sleep 100\n").await;
    shown(&mut peer, "ready").await;

    let line = "x".repeat(64 * 1024);
    for _ in 0..20 {
        type_in(&mut peer, &line).await;
    }
    let response = ended(&mut peer).await;

    let error = RequestError::new("input_overflow", "the program does not read what is typed");
    assert_eq!(response, Response::new(ID, Err(error)));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_paste_reaches_a_program_that_reads() {
    let (_service, agent, mut peer, _etc) = connected().await;
    peer.send(&start(ID, None)).await;
    type_in(&mut peer, "stty raw -echo; echo rea''dy; head -c 500000 | wc -c; exit\n").await;
    shown(&mut peer, "ready").await;

    type_in(&mut peer, &"0123456789".repeat(50_000)).await;
    let text = shown(&mut peer, "500000").await;

    assert!(text.contains("500000"));
    assert_eq!(ended(&mut peer).await, Response::new(ID, Ok(json!({"exit_code": 0}))));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn terminals_are_refused_by_policy_and_beyond_the_fourth() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));
    let mut peer = service.accept_authenticated().await;
    peer.send(&start(ID, None)).await;
    let refused = peer.response().await;
    assert_eq!(agent.stop().await, Exit::Stopped);

    let (_service, agent, mut peer, _etc) = connected().await;
    for number in 1..=5 {
        peer.send(&start(Uuid::from_u128(number), Some(0))).await;
    }
    let busy = timeout(PATIENCE, ended(&mut peer)).await.unwrap();

    let error = RequestError::new("agent_refused", "this agent opens no terminals");
    assert_eq!(refused, Response::new(ID, Err(error)));
    let error = RequestError::new("agent_busy", "the agent has as many terminals open as it may");
    assert_eq!(busy, Response::new(Uuid::from_u128(5), Err(error)));
    assert_eq!(agent.stop().await, Exit::Stopped);
}
