//! Commands across the end of the agent: the program itself, with a state directory.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use signalbox_protocol::agent::{Execute, RequestError, Response, ServiceMessage};
use tokio::net::TcpStream;
use tokio::process::Child;
use uuid::Uuid;

use crate::agent::{AT_ONCE, KEY, state_dir};
use crate::commands::{execute, group, is_gone};
use crate::program::{end, program, send_signal};
use crate::requests::request;
use crate::service::{Peer, Service, accepted};

const ID: Uuid = Uuid::from_u128(1);

fn start(service: &Service, state: &Path) -> Child {
    let arguments = ["--url", &service.url(), "--key", KEY, "--interval", "0.5", "--commands", "on", "--state-dir"];
    program(&arguments).arg(state).env("SIGNALBOX_AGENT_LOG", "info").env("PATH", "/usr/bin:/bin").spawn().unwrap()
}

/// The next connection, and the commands that the agent reports.
async fn reconnected(service: &Service) -> (Peer<TcpStream>, Vec<Uuid>) {
    let mut peer = service.accept().await;
    let auth = peer.auth().await;
    peer.send(&accepted(None)).await;
    (peer, auth.commands.unwrap())
}

fn journal(state: &Path) -> usize {
    std::fs::read_dir(state.join("commands")).unwrap().count()
}

#[tokio::test]
async fn a_command_whose_agent_was_killed_is_ended_reported_as_lost_and_not_run_again() {
    let (service, dir) = (Service::start().await, state_dir());
    let state = dir.path().join("state");
    let mut child = start(&service, &state);
    let (mut peer, none) = reconnected(&service).await;
    let command = execute(1, &format!("echo x >> {}/runs; echo $$; sleep 100 & sleep 100", dir.path().display()));
    peer.execute(command.clone()).await;
    let group = group(&peer.output().await.data);

    child.kill().await.unwrap();
    drop(peer);
    let child = start(&service, &state);
    let (mut peer, held) = reconnected(&service).await;
    peer.execute(command).await;
    let told = peer.told(1).await;

    assert_eq!((none, held), (vec![], vec![ID]));
    assert_eq!((told.end(), told.text().as_str()), (("lost", None), ""));
    is_gone(group).await;
    assert_eq!(std::fs::read_to_string(dir.path().join("runs")).unwrap(), "x\n");
    peer.send(&ServiceMessage::ResultAck { command_id: ID }).await;
    peer.send(&request(2, "agent.info")).await;
    peer.response().await;
    send_signal(&child, Signal::TERM);
    peer.gone().await;
    assert_eq!(end(child).await.0, Some(0));
    assert_eq!(journal(&state), 0);
}

#[tokio::test]
async fn a_result_from_while_the_service_was_away_survives_the_agents_restart() {
    let (service, dir) = (Service::start().await, state_dir());
    let (state, go) = (dir.path().join("state"), dir.path().join("go"));
    let mut child = start(&service, &state);
    let (mut peer, _) = reconnected(&service).await;
    let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
    peer.execute(execute(1, &format!("echo before; {wait}; echo after >&2; touch {}.done; exit 7", go.display())))
        .await;
    assert_eq!(peer.output().await.data, "before\n");

    drop(peer);
    let peer = service.accept_tcp().await;
    std::fs::write(&go, "").unwrap();
    // The file exists a moment before the result does; only the result makes the journal longer than its beginning.
    let ended = async {
        let path = state.join("commands").join(ID.to_string());
        while !std::fs::read(&path).unwrap().windows(5).any(|bytes| bytes == b"Ended") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::agent::PATIENCE, ended).await.expect("the command ends");
    child.kill().await.unwrap();
    drop(peer);
    let child = start(&service, &state);
    let (mut peer, held) = reconnected(&service).await;
    let told = peer.told(1).await;

    assert_eq!(held, vec![ID]);
    assert_eq!((told.end(), told.text().as_str()), (("failed", Some(7)), "before\nafter\n"));
    assert!(told.result.duration_ms > 0);
    drop(child);
}

#[tokio::test]
async fn a_command_that_the_agents_stop_ended_is_reported_at_the_next_start() {
    let mut told = Vec::new();
    // The agent gives it 400 ms, which may be too short on a machine under load.
    while told.len() < 3 && told.last() != Some(&Some(143)) {
        told.push(exit_code_after_a_stop().await);
    }
    assert_eq!(told.last(), Some(&Some(143)), "{told:?}");
}

/// Stops an agent that runs a command. Returns the exit code that the next start reports of it, if it reports one.
async fn exit_code_after_a_stop() -> Option<i32> {
    let (service, dir) = (Service::start().await, state_dir());
    let child = start(&service, dir.path());
    let (mut peer, _) = reconnected(&service).await;
    peer.execute(execute(1, "echo $$; sleep 100")).await;
    let group = group(&peer.output().await.data);

    let began = tokio::time::Instant::now();
    send_signal(&child, Signal::TERM);
    peer.gone().await;
    let (code, log) = end(child).await;

    assert_eq!(code, Some(0));
    assert!(began.elapsed() < AT_ONCE);
    assert!(log.contains("runs a command") && log.contains("ada (::1)"), "{log}");
    is_gone(group).await;
    let child = start(&service, dir.path());
    let (mut peer, _) = reconnected(&service).await;
    let told = peer.told(1).await;
    let (status, exit_code) = told.end();
    if exit_code == Some(143) {
        assert_eq!((status, told.text()), ("cancelled", format!("{group}\n")));
        assert!(log.contains("a command has ended"), "{log}");
    }
    drop(child);
    exit_code
}

#[tokio::test]
async fn a_command_that_comes_after_the_agents_goodbye_never_begins_and_the_next_start_refuses_it_once() {
    let (service, dir) = (Service::start().await, state_dir());
    let (state, marker) = (dir.path().join("state"), dir.path().join("marker"));
    let child = start(&service, &state);
    let (mut peer, _) = reconnected(&service).await;
    // An agent that has not been accepted yet leaves without a goodbye.
    peer.metrics().await;

    send_signal(&child, Signal::TERM);
    peer.goodbye().await;
    peer.send_late(&ServiceMessage::Execute(execute(1, &format!("touch {}", marker.display())))).await;
    peer.gone().await;
    drop(peer);
    let (code, log) = end(child).await;
    let _child = start(&service, &state);
    let (mut peer, held) = reconnected(&service).await;
    let refusal = peer.response().await;
    drop(peer);
    let (_peer, held_later) = reconnected(&service).await;

    let busy = RequestError::new("agent_busy", "the agent was ending when the command came: send it again");
    assert_eq!(refusal, Response::new(ID, Err(busy)));
    assert_eq!((held, held_later), (vec![ID], vec![]));
    assert_eq!((code, journal(&state), marker.exists()), (Some(0), 0, false));
    assert!(log.contains("refused a command") && log.contains("ada (::1)"), "{log}");
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_leave_the_agent_small() {
    let (service, dir) = (Service::start().await, state_dir());
    let child = start(&service, dir.path());
    let (mut peer, _) = reconnected(&service).await;
    let status = format!("/proc/{}/status", child.id().unwrap());
    let most_kb = || -> u64 {
        let status = std::fs::read_to_string(&status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    peer.execute(execute(1, "true")).await;
    peer.told(1).await;
    let before = most_kb();

    peer.execute(Execute { timeout_seconds: 60, ..execute(2, "head -c 100000000 /dev/zero | tr '\\0' x") }).await;
    let told = peer.told(2).await;

    let last = told.pieces.last().unwrap();
    assert_eq!(last.offset.unwrap() + last.data.len() as u64, 100_000_000);
    assert_eq!((told.end(), told.result.truncated), (("succeeded", Some(0)), true));
    let grown = most_kb() - before;
    println!("VmHWM {before} kB before, {grown} kB more after");
    assert!(grown < 8 * 1024, "{grown} kB more");
    drop(child);
}

#[tokio::test]
async fn the_hosts_log_has_the_refusal_and_not_the_key() {
    let (service, dir) = (Service::start().await, state_dir());
    let url = service.url();
    let child =
        program(&["--url", &url, "--key", KEY, "--log", "trace", "--state-dir"]).arg(dir.path()).spawn().unwrap();
    let (mut peer, _) = reconnected(&service).await;

    peer.execute(execute(1, &format!("echo {}", "long ".repeat(100)))).await;
    peer.response().await;
    send_signal(&child, Signal::TERM);
    peer.gone().await;
    let (_, log) = end(child).await;

    let line = log.lines().find(|line| line.contains("refused a command")).unwrap();
    assert!(line.contains("WARN") && line.contains("ada (::1)") && line.contains(&ID.to_string()), "{line}");
    assert!(line.len() < 600 && !log.contains(KEY), "{line}");
}
