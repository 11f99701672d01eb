//! Commands: what runs, what comes back, and what is left of it.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use signalbox_agent::policy::{Policy, Switch};
use signalbox_agent::{Config, Exit};
use signalbox_protocol::agent::{
    AgentMessage, CommandOutput, CommandResult, Execute, RequestError, Response, ServiceMessage, Stream,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::agent::{AT_ONCE, Agent, PATIENCE, config};
use crate::service::{Peer, Service, accepted};

/// An agent whose owner permits commands.
pub fn willing(url: &str) -> Config {
    Config { policy: Policy { commands: Switch::On.into(), ..Policy::default() }, ..config(url) }
}

pub fn execute(number: u128, command: &str) -> Execute {
    let command_id = Uuid::from_u128(number);
    Execute {
        command_id,
        command: command.into(),
        stdin: None,
        timeout_seconds: 100,
        by: Some("ada (::1)".into()),
        asker: None,
        signed: None,
    }
}

/// What a service learns about a command.
#[derive(Debug)]
pub struct Reported {
    pub pieces: Vec<CommandOutput>,
    pub result: CommandResult,
}

impl Reported {
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.data.as_str()).collect()
    }

    fn of(&self, stream: Stream) -> String {
        self.pieces.iter().filter(|piece| piece.stream == stream).map(|piece| piece.data.as_str()).collect()
    }

    /// Status and exit code.
    pub fn end(&self) -> (&str, Option<i32>) {
        (&self.result.status, self.result.exit_code)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub async fn execute(&mut self, execute: Execute) {
        self.send(&ServiceMessage::Execute(execute)).await;
    }

    /// All messages about one command, up to its result.
    pub async fn told(&mut self, number: u128) -> Reported {
        let mut pieces = Vec::new();
        loop {
            match self.next().await {
                AgentMessage::CommandOutput(piece) if piece.command_id == Uuid::from_u128(number) => pieces.push(piece),
                AgentMessage::CommandResult(result) if result.command_id == Uuid::from_u128(number) => {
                    return Reported { pieces, result };
                }
                AgentMessage::CommandOutput(_) | AgentMessage::CommandResult(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The command's next piece of output.
    pub async fn output(&mut self) -> CommandOutput {
        match self.next().await {
            AgentMessage::CommandOutput(piece) => piece,
            other => panic!("output, not {other:?}"),
        }
    }

    async fn run(&mut self, execute: Execute) -> Reported {
        let number = execute.command_id.as_u128();
        self.execute(execute).await;
        self.told(number).await
    }
}

async fn connected() -> (Service, Agent, Peer<tokio::net::TcpStream>) {
    let service = Service::start().await;
    let agent = Agent::start(willing(&service.url()));
    let peer = service.accept_authenticated().await;
    (service, agent, peer)
}

/// Whether the process group has no live process; one that was killed but not reaped does not count.
pub async fn is_gone(group: i32) {
    let lives = || {
        let mut pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.any(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let rest: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            rest.len() > 3 && rest[0] != "Z" && rest[2] == group.to_string()
        })
    };
    let gone = async {
        while lives() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("nothing is left of the group");
}

/// The process group that a command printed first.
pub fn group(text: &str) -> i32 {
    text.lines().next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_command_returns_its_output_and_its_exit_code() {
    let (_service, agent, mut peer) = connected().await;

    let nothing = peer.run(execute(1, "true")).await;
    // Two streams have no order but that in which they are read.
    let (dir, mut pieces) = (tempfile::tempdir().unwrap(), Vec::new());
    let until = |step: &str| format!("until [ -e {} ]; do sleep 0.01; done", dir.path().join(step).display());
    let steps = format!("echo out; {}; echo err >&2; {}; sleep 0.1; echo again; exit 3", until("one"), until("two"));
    peer.execute(execute(2, &steps)).await;
    for step in ["one", "two"] {
        pieces.push(peer.output().await);
        std::fs::write(dir.path().join(step), "").unwrap();
    }
    let failure = peer.told(2).await;
    pieces.extend(failure.pieces.iter().cloned());
    let killed = peer.run(execute(3, "kill -9 $$")).await;

    assert_eq!((nothing.end(), nothing.text().as_str()), (("succeeded", Some(0)), ""));
    let pieces: Vec<_> = pieces.iter().map(|piece| (piece.offset, piece.stream, piece.data.as_str())).collect();
    let expected =
        [(Some(0), Stream::Stdout, "out\n"), (Some(4), Stream::Stderr, "err\n"), (Some(8), Stream::Stdout, "again\n")];
    assert_eq!(pieces, expected);
    assert_eq!(failure.end(), ("failed", Some(3)));
    assert!(!failure.result.truncated && failure.result.duration_ms >= 100);
    assert_eq!(killed.end(), ("failed", Some(137)));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_command_reads_its_input_and_invalid_text_is_replaced() {
    let (_service, agent, mut peer) = connected().await;

    let with_input = Execute { stdin: Some("grüße\n".into()), ..execute(1, "cat; printf 'a\\377b\\342\\202'") };
    let told = peer.run(with_input).await;
    let without = peer.run(execute(2, "cat; echo end >&2")).await;

    assert_eq!(told.text(), "grüße\na\u{fffd}b\u{fffd}");
    assert_eq!((without.of(Stream::Stdout), without.of(Stream::Stderr)), (String::new(), "end\n".to_owned()));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_timeout_ends_the_whole_group_even_where_sigterm_is_ignored() {
    let (_service, agent, mut peer) = connected().await;
    let stubborn = "echo $$; (trap '' TERM; (sleep 100; sleep 100) & while :; do sleep 100; done) & wait";

    let began = Instant::now();
    let told = peer.run(Execute { timeout_seconds: 5, ..execute(1, stubborn) }).await;

    assert_eq!(told.end(), ("timed_out", Some(124)));
    let took = began.elapsed();
    assert!((Duration::from_secs(7)..2 * AT_ONCE).contains(&took), "five seconds, two of grace: {took:?}");
    is_gone(group(&told.text())).await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_cancelled_command_ends_at_once() {
    let (_service, agent, mut peer) = connected().await;

    peer.execute(execute(1, "echo $$; sleep 100 & sleep 100")).await;
    let first = peer.output().await;
    let began = Instant::now();
    peer.send(&ServiceMessage::Cancel { command_id: Uuid::from_u128(1) }).await;
    let told = peer.told(1).await;

    assert_eq!(told.end(), ("cancelled", Some(143)));
    assert!(began.elapsed() < AT_ONCE);
    is_gone(group(&first.data)).await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn background_processes_of_a_command_continue_and_are_not_waited_for() {
    let (_service, agent, mut peer) = connected().await;

    let told = peer.run(execute(1, "echo $$; sleep 100 & exit 0")).await;

    assert_eq!(told.end(), ("succeeded", Some(0)));
    assert!(told.result.duration_ms < 50_000);
    let background = Pid::from_raw(group(&told.text())).unwrap();
    kill_process_group(background, Signal::KILL).expect("it runs on");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn the_same_command_twice_runs_once_before_its_end_after_it_and_after_its_acknowledgement() {
    let (_service, agent, mut peer) = connected().await;
    let dir = tempfile::tempdir().unwrap();
    let command = execute(1, &format!("echo x >> {}/runs; sleep 0.1", dir.path().display()));

    peer.execute(command.clone()).await;
    peer.execute(command.clone()).await;
    let told = peer.told(1).await;
    peer.execute(command.clone()).await;
    peer.send(&ServiceMessage::ResultAck { command_id: Uuid::from_u128(1) }).await;
    peer.execute(command).await;
    let other = peer.run(execute(2, "true")).await;

    assert_eq!((told.end(), other.end()), (("succeeded", Some(0)), ("succeeded", Some(0))));
    assert_eq!(std::fs::read_to_string(dir.path().join("runs")).unwrap(), "x\n");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_agent_whose_owner_allows_no_commands_runs_none() {
    let (service, dir) = (Service::start().await, tempfile::tempdir().unwrap());
    let agent = Agent::start(config(&service.url()));
    let mut peer = service.accept_authenticated().await;
    let marker = dir.path().join("marker");

    peer.execute(execute(1, &format!("touch {}", marker.display()))).await;
    let refusal = peer.response().await;
    peer.execute(execute(2, &format!("touch {}", marker.display()))).await;
    peer.response().await;

    let expected = RequestError::new("agent_refused", "this agent runs no commands");
    assert_eq!(refusal, Response::new(Uuid::from_u128(1), Err(expected)));
    assert_eq!(agent.stop().await, Exit::Stopped);
    assert!(!marker.exists());
}

#[tokio::test]
async fn one_command_too_many_at_once_is_refused_and_runs_when_there_is_room() {
    let (_service, agent, mut peer) = connected().await;
    for number in 0..200 {
        peer.execute(execute(number, "sleep 100")).await;
    }

    peer.execute(execute(200, "true")).await;
    let refusal = peer.response().await;
    peer.send(&ServiceMessage::Cancel { command_id: Uuid::from_u128(3) }).await;
    peer.told(3).await;
    let told = peer.run(execute(200, "true")).await;

    assert_eq!(refusal.into_outcome().unwrap_err().code, "agent_busy");
    assert_eq!(told.end(), ("succeeded", Some(0)));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_refused_with_the_reason() {
    let (_service, agent, mut peer) = connected().await;

    peer.execute(execute(1, "echo \0")).await;
    let refusal = peer.response().await;

    let detail = "cannot start the shell: nul byte found in provided data";
    assert_eq!(refusal, Response::new(Uuid::from_u128(1), Err(RequestError::new("agent_error", detail))));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_command_survives_a_reconnect_and_is_sent_again_from_its_beginning() {
    let (service, agent, mut peer) = connected().await;
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");

    peer.execute(execute(1, &format!("echo one; while [ ! -e {} ]; do sleep 0.01; done; echo two", go.display())))
        .await;
    assert_eq!(peer.output().await.data, "one\n");
    drop(peer);
    let mut peer = service.accept().await;
    let auth = peer.auth().await;
    peer.send(&accepted(None)).await;
    std::fs::write(go, "").unwrap();
    let told = peer.told(1).await;

    assert_eq!(auth.commands, Some(vec![Uuid::from_u128(1)]));
    assert_eq!((told.text().as_str(), told.end()), ("one\ntwo\n", ("succeeded", Some(0))));
    assert_eq!(told.pieces[0].offset, Some(0));

    drop(peer);
    let mut peer = service.accept().await;
    assert_eq!(peer.auth().await.commands, Some(vec![Uuid::from_u128(1)]), "not acknowledged yet");
    peer.send(&accepted(None)).await;
    assert_eq!(peer.told(1).await.text(), "one\ntwo\n");
    peer.send(&ServiceMessage::ResultAck { command_id: Uuid::from_u128(1) }).await;
    peer.run(execute(2, "true")).await;
    drop(peer);
    let mut peer = service.accept().await;
    assert_eq!(peer.auth().await.commands, Some(vec![Uuid::from_u128(2)]));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn the_middle_of_a_long_output_is_omitted_and_its_end_is_whole() {
    let (_service, agent, mut peer) = connected().await;

    let told = peer.run(execute(1, "seq -f 'line %09.0f' 300000")).await;

    let whole: String = (1..=300_000).map(|number| format!("line {number:09}\n")).collect();
    assert!(told.result.truncated);
    assert_eq!(told.end(), ("succeeded", Some(0)));
    let mut end = 0;
    for piece in &told.pieces {
        let offset = usize::try_from(piece.offset.unwrap()).unwrap();
        assert!(offset >= end && piece.data.len() <= 64 * 1024);
        end = offset + piece.data.len();
        assert_eq!(piece.data, whole[offset..end]);
    }
    assert_eq!(end, whole.len());
    let last_half: usize = told
        .pieces
        .iter()
        .filter(|piece| piece.offset.unwrap() as usize >= whole.len() - (512 << 10))
        .map(|piece| piece.data.len())
        .sum();
    assert!(last_half >= (512 << 10) - 64 * 1024, "{last_half}");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_flood_fills_no_line_and_delays_neither_samples_nor_its_cancellation() {
    let (_service, agent, mut peer) = connected().await;

    peer.execute(execute(1, "cat /dev/zero")).await;
    let (began, mut bytes, mut samples) = (Instant::now(), 0, 0);
    while samples < 50 || bytes < 256 << 10 {
        match peer.message().await {
            AgentMessage::CommandOutput(piece) => bytes += piece.data.len(),
            AgentMessage::Metrics(metrics) => {
                samples += metrics.samples.len();
                peer.ack(metrics.seq).await;
            }
            other => panic!("{other:?}"),
        }
    }
    let paced = began.elapsed().as_secs_f64() * 256.0 * 1024.0;
    peer.send(&ServiceMessage::Cancel { command_id: Uuid::from_u128(1) }).await;
    let told = peer.told(1).await;

    assert_eq!(told.end(), ("cancelled", Some(143)));
    assert!(told.result.truncated);
    let most = (512 << 10) + (64 << 10) + paced as usize;
    assert!(bytes < most, "the beginning and then a quarter of a mebibyte a second: {bytes}");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_command() {
    let (_service, agent, mut peer) = connected().await;
    let bomb = "echo $$; bomb() { [ $1 -gt 0 ] && { bomb $(($1-1)) & bomb $(($1-1)) & wait; }; sleep 100; }; bomb 6";

    let told = peer.run(Execute { timeout_seconds: 5, ..execute(1, bomb) }).await;

    assert_eq!(told.end(), ("timed_out", Some(124)));
    is_gone(group(&told.text())).await;
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_stopped_agent_ends_what_it_runs() {
    let (_service, agent, mut peer) = connected().await;
    peer.execute(execute(1, "trap '' TERM; echo $$; sleep 100; sleep 100")).await;
    let group = group(&peer.output().await.data);

    let began = Instant::now();
    assert_eq!(agent.stop().await, Exit::Stopped);

    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    is_gone(group).await;
}
