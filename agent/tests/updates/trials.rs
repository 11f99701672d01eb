//! When a trial begins, and what ends it besides the build.

use rustix::process::{Pid, Signal, kill_process};
use signalbox_protocol::agent::{AgentMessage, Execute, ServiceMessage};
use tokio::time::timeout;
use uuid::Uuid;

use crate::agent::PATIENCE;
use crate::host::{Host, INSTALLED, eventually, failure, is_alive, sha256};
use crate::programs;

pub fn command(number: u128, command: &str) -> ServiceMessage {
    let command_id = Uuid::from_u128(1_000_000 + number);
    let command = command.to_owned();
    ServiceMessage::Execute(Execute {
        command_id,
        command,
        stdin: None,
        timeout_seconds: 600,
        by: None,
        asker: None,
        signed: None,
    })
}

impl Host {
    /// Runs the agent as if this process tried it, and waits until it ends in an orderly way. Returns its log.
    async fn trial(&self, tried_by: u32) -> String {
        let mut command = self.command();
        command.args(["--url", &self.service.url, "--key", "sbk_test"]);
        command.arg("--state-dir").arg(self.path("state")).arg("--policy").arg(self.path("policy.toml"));
        command.env("SIGNALBOX_BUILD", format!("trial 99.0.0 {tried_by}"));
        let output = timeout(PATIENCE, command.output()).await.expect("it ends").unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{log}");
        log
    }
}

#[tokio::test]
async fn a_trial_waits_for_a_command_and_runs_none_itself() {
    let mut host = Host::with("commands = \"on\"\n").await;
    let program = programs::agent();
    let (go, build) = (host.path("go"), host.updates().join(sha256(&program)));
    let offer = host.genuine("99.0.0", &program);
    host.send(&command(1, &format!("until test -e {}; do sleep 0.05; done", go.display()))).await;

    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    eventually("the build", || build.exists().then_some(())).await;
    std::fs::write(&go, "").unwrap();
    let status = loop {
        if let AgentMessage::CommandResult(result) = host.message().await {
            break result.status;
        }
    };
    host.disconnected().await;
    let trial = host.connected().await;
    host.send(&command(2, "true")).await;
    let refusal = loop {
        if let AgentMessage::Response(response) = host.message().await {
            break response.into_outcome().unwrap_err();
        }
    };

    assert_eq!(status, "succeeded", "it was not cut off");
    assert_eq!((trial.agent.version.as_str(), refusal.code.as_str()), ("99.0.0", "agent_busy"));
    host.disconnected().await;
    assert_eq!(host.connected().await.agent.version, "99.0.0");
    host.send(&command(3, "true")).await;
    let status = loop {
        match host.message().await {
            AgentMessage::CommandResult(result) if result.command_id == Uuid::from_u128(1_000_003) => {
                break result.status;
            }
            _ => {}
        }
    };
    assert_eq!(status, "succeeded");
}

/// Otherwise a service that is away would make a good build fail.
#[tokio::test]
async fn a_trial_waits_for_a_service_that_is_away() {
    let mut host = Host::with("commands = \"on\"\n").await;
    let program = programs::agent();
    let (go, done, build) = (host.path("go"), host.path("done"), host.updates().join(sha256(&program)));
    let offer = host.genuine("99.0.0", &program);
    let script = format!("until test -e {}; do sleep 0.05; done; touch {}", go.display(), done.display());
    host.send(&command(1, &script)).await;
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    eventually("the build", || build.exists().then_some(())).await;

    host.service.hang_up(true);
    host.hang_up();
    std::fs::write(&go, "").unwrap();
    eventually("the end of the command", || done.exists().then_some(())).await;
    let attempts = |host: &Host| host.log().matches("not connected").count();
    let before = attempts(&host);
    eventually("attempts to connect", || (attempts(&host) >= before + 4).then_some(())).await;
    host.service.hang_up(false);

    assert_eq!(host.connected().await.agent.version, INSTALLED);
    host.disconnected().await;
    assert_eq!(host.connected().await.agent.version, "99.0.0");
}

#[tokio::test]
async fn a_stop_ends_a_trial_and_is_no_failure_of_the_build() {
    let mut host = Host::start().await;
    let offer = host.genuine("99.0.0", &programs::hangs());
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    let child = eventually("a trial", || host.children().first().copied()).await;

    host.stop().await;

    assert!(!is_alive(child));
    let auth = host.run().await;
    assert_eq!((auth.agent.version.as_str(), failure(&auth)), (INSTALLED, None));
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()), "it may be tried again");
}

#[tokio::test]
async fn a_crash_in_a_trial_counts_as_one_of_three_tries() {
    let mut host = Host::start().await;
    let offer = host.genuine("99.0.0", &programs::agent());
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    host.service.hang_up(true);
    let child = eventually("a trial", || host.children().first().copied()).await;
    // Once it knows its parent.
    eventually("an agent", || {
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).ok()?;
        status.starts_with("Name:\tsignalbox-agent\n").then_some(())
    })
    .await;

    host.signal(Signal::KILL);
    host.ended().await;

    eventually("the end of the trial", || (!is_alive(child)).then_some(())).await;
    host.service.hang_up(false);
    let auth = host.run().await;
    assert_eq!((auth.agent.version.as_str(), failure(&auth)), (INSTALLED, None));
    let failed = host.read_record()["failed"][0].clone();
    assert_eq!(failed["reason"], "the agent or the machine ended while it was tried");
    assert_eq!(failed["tries"], 1);
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()), "it may be tried again");
}

#[tokio::test]
async fn a_build_whose_trial_nobody_awaits_ends() {
    let host = Host::stopped("updates = \"signed\"\n").await;

    // Its parent is this test.
    let log = host.trial(1).await;

    assert!(log.contains("the program that tries it has ended"), "{log}");
}

/// The service hangs up on it for longer than a trial lasts.
#[tokio::test]
async fn a_build_on_trial_that_hangs_with_its_parent_ends_itself() {
    let host = Host::stopped("updates = \"signed\"\n").await;
    host.service.hang_up(true);

    let log = host.trial(std::process::id()).await;

    assert!(log.contains("not connected") && !log.contains("the program that tries it has ended"), "{log}");
}

#[tokio::test]
async fn a_build_that_is_killed_in_its_trial_does_not_work() {
    let mut host = Host::start().await;
    let offer = host.genuine("99.0.0", &programs::hangs());
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
    host.disconnected().await;
    let child = eventually("a trial", || host.children().first().copied()).await;

    kill_process(Pid::from_raw(i32::try_from(child).unwrap()).unwrap(), Signal::SEGV).unwrap();

    let auth = host.connected().await;
    assert_eq!(failure(&auth).unwrap().reason, "it ended by the signal 11");
}
