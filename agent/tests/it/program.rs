//! The program as it is installed: exit codes, signals, messages.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use crate::agent::{AT_ONCE, KEY, PATIENCE, numbers, state_dir};
use crate::service::{Service, accepted, refused};

/// The program with these arguments and none of this process's environment.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox-agent"));
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

/// An agent that is about to connect to `service`.
pub fn agent(service: &Service, state: &Path) -> Child {
    let url = service.url();
    let arguments = ["--url", &url, "--key", KEY, "--interval", "0.5", "--log", "trace", "--state-dir"];
    program(&arguments).arg(state).spawn().unwrap()
}

pub fn send_signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().unwrap())).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits for the end. Returns the exit code and standard error.
pub async fn end(mut child: Child) -> (Option<i32>, String) {
    let mut log = String::new();
    let status = timeout(PATIENCE, async {
        child.stderr.take().unwrap().read_to_string(&mut log).await.unwrap();
        child.wait().await.unwrap()
    });
    (status.await.expect("the program ends").code(), log)
}

/// Waits for the line of its log that contains this.
pub async fn line_with(child: &mut Child, part: &str) -> String {
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let found = timeout(PATIENCE, async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the program continues");
            if line.contains(part) {
                return line;
            }
        }
    });
    found.await.expect("it says so")
}

#[tokio::test]
async fn a_refused_key_ends_it_with_3_and_a_replaced_agent_stays() {
    let state = state_dir();

    let service = Service::start().await;
    let wrong_key = agent(&service, state.path());
    let mut peer = service.accept().await;
    peer.auth().await;
    peer.send(&refused("unauthorized", "no such key")).await;
    let (code, log) = end(wrong_key).await;
    assert_eq!(code, Some(3));
    assert!(log.contains("the service refused the key: no such key"), "{log}");

    let mut replaced = agent(&service, state.path());
    service.accept_authenticated().await.close(4409, "replaced").await;
    let said = line_with(&mut replaced, "took over").await;
    assert!(said.contains("give each machine a server and a key of its own"), "{said}");
    send_signal(&replaced, Signal::TERM);
    let (code, _) = end(replaced).await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn sigterm_and_sigint_end_it_with_0_and_a_close_frame() {
    for signal in [Signal::TERM, Signal::INT] {
        let (service, state) = (Service::start().await, state_dir());
        let child = agent(&service, state.path());
        let mut peer = service.accept_authenticated().await;
        peer.metrics().await;

        let began = Instant::now();
        send_signal(&child, signal);
        peer.gone().await;
        let (code, _) = end(child).await;

        assert_eq!(code, Some(0));
        assert!(began.elapsed() < AT_ONCE);
    }
}

#[tokio::test]
async fn the_key_never_reaches_the_log() {
    let (service, state) = (Service::start().await, state_dir());
    let child = agent(&service, state.path());
    let mut peer = service.accept_authenticated().await;
    peer.metrics().await;

    send_signal(&child, Signal::TERM);
    peer.gone().await;
    let (_, log) = end(child).await;

    assert!(log.contains("connected to ws://127.0.0.1"), "{log}");
    assert!(!log.contains(KEY));
}

#[tokio::test]
async fn real_samples_arrive_at_once_and_survive_a_kill() {
    let (service, state) = (Service::start().await, state_dir());
    let began = Instant::now();
    let mut child = agent(&service, state.path());
    let mut peer = service.accept_authenticated().await;
    let first = peer.metrics().await;
    let took = began.elapsed();
    let second = peer.metrics().await;

    child.kill().await.unwrap();
    drop(peer);
    let _restarted = agent(&service, state.path());
    let mut peer = service.accept_authenticated().await;
    let again = peer.metrics().await;

    assert_eq!(first.samples[0].validate(), Ok(()));
    assert!(first.samples[0].memory_total > 0 && first.samples[0].uptime_seconds > 0);
    assert!(took < AT_ONCE, "{took:?}");
    let lost = [numbers(&first), numbers(&second)].concat();
    assert_eq!(numbers(&again).get(..lost.len()), Some(lost.as_slice()));
}

#[tokio::test]
async fn the_greediest_processes_come_with_one_of_the_first_samples() {
    let (service, state) = (Service::start().await, state_dir());
    let child = agent(&service, state.path());
    let mut peer = service.accept_authenticated().await;

    let sample = loop {
        let metrics = peer.metrics().await;
        peer.ack(metrics.seq).await;
        if let Some(sample) = metrics.samples.into_iter().find(|sample| sample.processes.is_some()) {
            break sample;
        }
    };

    assert_eq!(sample.validate(), Ok(()));
    let processes = sample.processes.unwrap();
    assert!(processes.by_cpu.len() <= 5 && (1..=5).contains(&processes.by_memory.len()), "{processes:?}");
    assert!(processes.by_cpu.iter().all(|row| row.cpu_percent > 0.0), "{processes:?}");
    assert!(processes.by_memory.iter().all(|row| row.memory_bytes > 0 && !row.name.is_empty() && !row.user.is_empty()));
    drop(child);
}

#[tokio::test]
async fn an_agent_that_may_not_name_processes_sends_none() {
    let (service, state) = (Service::start().await, state_dir());
    let policy = state.path().join("policy.toml");
    std::fs::write(&policy, "processes = \"off\"\n").unwrap();
    let by_policy = ["--policy", policy.to_str().unwrap()];

    for setting in [&["--processes", "off"], &by_policy] {
        let url = service.url();
        let child = program(&["--url", &url, "--key", KEY, "--interval", "0.5"])
            .args(setting)
            .arg("--state-dir")
            .arg(state.path().join("state"))
            .spawn()
            .unwrap();
        let mut peer = service.accept().await;
        let auth = peer.auth().await;
        peer.send(&accepted(None)).await;

        assert_eq!(auth.agent.capabilities, ["metrics", "docker"]);
        // With processes they would be in the fourth sample at the latest.
        let mut samples = 0;
        while samples < 6 {
            let metrics = peer.metrics().await;
            peer.ack(metrics.seq).await;
            samples += metrics.samples.len();
            assert!(metrics.samples.iter().all(|sample| sample.processes.is_none()));
        }
        send_signal(&child, Signal::TERM);
        peer.gone().await;
        assert_eq!(end(child).await.0, Some(0));
    }
}
