//! The program as it is installed: flags, exit codes, signals.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use crate::agent::{KEY, PATIENCE, numbers};
use crate::service::{Peer, Service, accepted, refused};
use crate::tls::Authority;

/// The program with these arguments and none of this process's environment.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox-agent"));
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

/// Exit code, standard output, standard error.
async fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = timeout(PATIENCE, command.output()).await.expect("the program ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// An agent that is about to connect to `service`.
fn agent(service: &Service, state: &Path) -> Child {
    let url = service.url();
    let arguments = ["--url", &url, "--key", KEY, "--interval", "0.5", "--log", "trace", "--state-dir"];
    program(&arguments).arg(state).spawn().unwrap()
}

pub fn send_signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().unwrap())).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits for the end; gives the exit code and what went to standard error.
pub async fn end(mut child: Child) -> (Option<i32>, String) {
    let mut log = String::new();
    let status = timeout(PATIENCE, async {
        child.stderr.take().unwrap().read_to_string(&mut log).await.unwrap();
        child.wait().await.unwrap()
    });
    (status.await.expect("the program ends").code(), log)
}

#[tokio::test]
async fn help_explains_every_flag_and_never_shows_the_key() {
    let (code, help, _) = run(program(&["--help"]).env("SIGNALBOX_AGENT_KEY", KEY)).await;

    assert_eq!(code, Some(0));
    assert!(!help.contains(KEY));
    let flags = [
        "url",
        "key",
        "key-file",
        "interval",
        "state-dir",
        "ca-file",
        "policy",
        "processes",
        "commands",
        "docker",
        "docker-host",
        "logs",
        "log-path",
        "terminal",
        "log",
        "log-format",
    ];
    for flag in flags {
        let variable = format!("SIGNALBOX_AGENT_{}", flag.to_uppercase().replace('-', "_"));
        assert!(help.contains(&format!("--{flag} <")) && help.contains(&variable), "{flag}");
    }
}

#[tokio::test]
async fn a_bad_value_ends_the_program_with_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (empty, policy, missing) = (path("empty"), path("policy.toml"), path("missing"));
    std::fs::write(&empty, "\n").unwrap();
    std::fs::write(&policy, "comands = \"on\"\n").unwrap();
    let state = path("state");
    let base = ["--url", "http://localhost:1", "--state-dir", &state];
    let cases: Vec<(Vec<&str>, String)> = vec![
        (vec!["--key", "k", "--interval", "0.1"], "--interval: 0.1 is not between 0.5 and 3600 seconds".into()),
        (
            vec!["--key", "k", "--interval", "x"],
            "invalid value 'x' for '--interval <SECONDS>': invalid float literal".into(),
        ),
        (
            vec!["--key", "k", "--commands", "maybe"],
            "invalid value 'maybe' for '--commands <off|on>' [possible values: off, on]".into(),
        ),
        (vec!["--key", "k", "--colour"], "unexpected argument '--colour' found".into()),
        (vec![], "no key is given: use --key-file or --key".into()),
        (vec!["--key", ""], "the agent's key is empty".into()),
        (vec!["--key-file", &empty], "the agent's key is empty".into()),
        (vec!["--key-file", &missing], format!("--key-file {missing}: No such file or directory (os error 2)")),
        (
            vec!["--key", "k", "--key-file", &empty],
            "the argument '--key <KEY>' cannot be used with '--key-file <FILE>'".into(),
        ),
        (vec!["--key", "k", "--log-path", "app.log"], "--log-path: `app.log` is not an absolute path".into()),
        (
            vec!["--key", "k", "--policy", &missing],
            format!("policy file {missing}: No such file or directory (os error 2)"),
        ),
        (
            vec!["--key", "k", "--policy", &policy],
            format!(
                "policy file {policy}: line 1: unknown field `comands`, expected one of `processes`, `commands`, \
                 `docker`, `docker_host`, `logs`, `log_paths`, `terminal`"
            ),
        ),
        (
            vec!["--key", "k", "--policy", &policy, "--logs", "on"],
            "the argument '--policy <FILE>' cannot be used with '--logs <off|on>'".into(),
        ),
        (
            vec!["--key", "k", "--log", "loud"],
            "invalid value 'loud' for '--log <LEVEL>' [possible values: error, warn, info, debug, trace]".into(),
        ),
    ];

    for (arguments, expected) in cases {
        let (code, out, err) = run(program(&base).args(&arguments)).await;

        assert_eq!((code, out.as_str(), err), (Some(2), "", format!("signalbox-agent: {expected}\n")), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_bad_address_is_named() {
    let (code, _, err) = run(&mut program(&["--url", "box:8000", "--key", "k"])).await;

    let expected = "signalbox-agent: invalid value 'box:8000' for '--url <URL>': \
                    `box:8000` must start with http://, https://, ws:// or wss://\n";
    assert_eq!((code, err.as_str()), (Some(2), expected));
}

#[tokio::test]
async fn a_state_directory_in_use_is_named() {
    let (service, state) = (Service::start().await, tempfile::tempdir().unwrap());
    let first = agent(&service, state.path());
    let _connected = service.accept_authenticated().await;

    let (code, log) = end(agent(&service, state.path())).await;

    assert_eq!(code, Some(2));
    assert!(log.contains("another agent uses the state directory"), "{log}");
    drop(first);
}

#[tokio::test]
async fn environment_variables_say_the_same_as_flags() {
    let (service, state) = (Service::start().await, tempfile::tempdir().unwrap());
    let key_file = state.path().join("key");
    std::fs::write(&key_file, format!("{KEY}\n")).unwrap();

    let child = program(&[])
        .env("SIGNALBOX_AGENT_URL", service.url())
        .env("SIGNALBOX_AGENT_KEY_FILE", key_file)
        .env("STATE_DIRECTORY", state.path())
        .spawn()
        .unwrap();
    let auth = service.accept().await.auth().await;

    assert_eq!(auth.api_key, KEY);
    assert_eq!(auth.agent.capabilities, ["metrics", "processes", "docker"]);
    assert!(state.path().join("lock").exists(), "systemd's directory is used");
    drop(child);
}

#[tokio::test]
async fn a_refused_key_ends_with_3_and_a_replaced_agent_with_4() {
    let state = tempfile::tempdir().unwrap();

    let service = Service::start().await;
    let wrong_key = agent(&service, state.path());
    let mut peer = service.accept().await;
    peer.auth().await;
    peer.send(&refused("unauthorized", "no such key")).await;
    let (code, log) = end(wrong_key).await;
    assert_eq!(code, Some(3));
    assert!(log.contains("the service refused the key: no such key"), "{log}");

    let replaced = agent(&service, state.path());
    service.accept_authenticated().await.close(4409, "replaced").await;
    let (code, log) = end(replaced).await;
    assert_eq!(code, Some(4));
    assert!(log.contains("took over"), "{log}");
}

#[tokio::test]
async fn sigterm_and_sigint_end_it_with_0_and_a_close_frame_within_two_seconds() {
    for signal in [Signal::TERM, Signal::INT] {
        let (service, state) = (Service::start().await, tempfile::tempdir().unwrap());
        let child = agent(&service, state.path());
        let mut peer = service.accept_authenticated().await;
        peer.metrics().await;

        let began = Instant::now();
        send_signal(&child, signal);
        peer.gone().await;
        let (code, _) = end(child).await;

        assert_eq!(code, Some(0));
        assert!(began.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn the_key_never_reaches_the_log() {
    let (service, state) = (Service::start().await, tempfile::tempdir().unwrap());
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
async fn real_samples_arrive_within_a_second_and_survive_a_kill() {
    let (service, state) = (Service::start().await, tempfile::tempdir().unwrap());
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
    assert!(took < Duration::from_secs(2), "{took:?}");
    let lost = [numbers(&first), numbers(&second)].concat();
    assert_eq!(numbers(&again).get(..lost.len()), Some(lost.as_slice()));
}

#[tokio::test]
async fn the_greediest_processes_come_with_one_of_the_first_samples() {
    let (service, state) = (Service::start().await, tempfile::tempdir().unwrap());
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
async fn an_agent_whose_owner_keeps_processes_to_themselves_sends_none() {
    let (service, state) = (Service::start().await, tempfile::tempdir().unwrap());
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

#[tokio::test]
async fn the_program_speaks_tls_without_any_preparation() {
    let (service, authority, state) = (Service::start().await, Authority::new(), tempfile::tempdir().unwrap());
    let url = format!("wss://localhost:{}", service.port());
    let child = program(&["--url", &url, "--key", KEY])
        .args([Path::new("--ca-file"), &authority.file(), Path::new("--state-dir"), state.path()])
        .spawn()
        .unwrap();

    let stream = authority.acceptor("localhost").accept(service.accept_tcp().await).await.unwrap();
    let mut peer = Peer::upgrade(stream).await;
    peer.auth().await;
    peer.send(&accepted(None)).await;

    assert!(!peer.metrics().await.samples.is_empty());
    drop(child);
}
