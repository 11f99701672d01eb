//! The state directory: its owner, its readers, and a disk under it that hangs.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use signalbox_agent::{BufferLimits, Config, Exit};
use signalbox_protocol::agent::ServiceMessage;
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::agent::{AT_ONCE, Agent, KEY, PATIENCE, config, numbers, state_dir};
use crate::commands::execute;
use crate::program::{agent, end, line_with, program};
use crate::requests::request;
use crate::service::{Peer, Service, accepted};

/// A disk that hangs: a process that opens this file waits until a test opens it from the other side.
struct Hang(PathBuf);

impl Hang {
    fn new(path: PathBuf) -> Self {
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self(path)
    }

    /// Releases a process that waits to read: the file is empty.
    fn end_reading(self) {
        drop(File::options().write(true).open(&self.0).unwrap());
    }

    /// Releases a process that waits to write.
    fn end_writing(self) {
        let _reader = File::open(&self.0).unwrap();
        // The agent may have been faster.
        _ = fs::remove_file(&self.0);
    }
}

fn willing(service: &Service, state: &Path) -> Child {
    let arguments = ["--url", &service.url(), "--key", KEY, "--interval", "0.5", "--commands", "on", "--state-dir"];
    program(&arguments).arg(state).env("PATH", "/usr/bin:/bin").spawn().unwrap()
}

/// The next connection, and the commands that the agent reports.
async fn connected(service: &Service) -> (Peer<TcpStream>, Option<Vec<Uuid>>) {
    let mut peer = service.accept().await;
    let auth = peer.auth().await;
    peer.send(&accepted(None)).await;
    (peer, auth.commands)
}

fn record(state: &Path, command: u128) -> PathBuf {
    state.join("commands").join(Uuid::from_u128(command).to_string())
}

/// Waits until the journal says how a command ended.
async fn is_recorded(state: &Path, command: u128) {
    let recorded = async {
        let path = record(state, command);
        while !fs::read(&path).unwrap_or_default().windows(5).any(|bytes| bytes == b"Ended") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, recorded).await.expect("the journal is written");
}

/// Every file and directory below, with its mode.
fn modes(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = vec![(directory.to_owned(), fs::metadata(directory).unwrap().permissions().mode() & 0o777)];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(modes(&path));
        } else {
            found.push((path, metadata.permissions().mode() & 0o777));
        }
    }
    found
}

#[tokio::test]
async fn a_state_directory_in_use_is_named_with_the_process_that_uses_it() {
    let (service, state) = (Service::start().await, state_dir());
    let first = agent(&service, state.path());
    let _connected = service.accept_authenticated().await;

    let (code, log) = end(agent(&service, state.path())).await;

    let expected = format!(
        "signalbox-agent: another agent, process {}, uses the state directory {}; give each its own --state-dir\n",
        first.id().unwrap(),
        state.path().display()
    );
    assert_eq!((code, log.ends_with(&expected)), (Some(2), true), "{log}");
}

#[tokio::test]
async fn a_state_directory_that_is_a_file_is_refused() {
    let (service, dir) = (Service::start().await, state_dir());
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();

    let (code, log) = end(agent(&service, &file)).await;

    let expected = format!("signalbox-agent: --state-dir: {} is not a directory\n", file.display());
    assert_eq!((code, log.ends_with(&expected)), (Some(2), true), "{log}");
}

#[tokio::test]
async fn nobody_else_can_read_the_state_whatever_the_umask_and_earlier_modes() {
    let (service, dir) = (Service::start().await, state_dir());
    let state = dir.path().join("of/an/agent");
    let start = || {
        let arguments = ["-c", "umask 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_signalbox-agent"), "--commands", "on"];
        let mut shell = tokio::process::Command::new("/bin/sh");
        shell.args(arguments).args(["--url", &service.url(), "--key", KEY, "--interval", "0.5", "--state-dir"]);
        shell.arg(&state).env_clear().env("PATH", "/usr/bin:/bin").kill_on_drop(true).spawn().unwrap()
    };
    let mut child = start();
    let (mut peer, _) = connected(&service).await;
    peer.metrics().await;
    peer.execute(execute(1, "umask")).await;
    let told = peer.told(1).await;
    is_recorded(&state, 1).await;
    let fresh = modes(&state);
    child.kill().await.unwrap();
    // As an older version left the lock, and a restored copy the rest.
    for (path, _) in fresh.iter().skip(1) {
        fs::set_permissions(path, Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 })).unwrap();
    }
    let _child = start();
    let (_peer, held) = connected(&service).await;

    assert_eq!(held, Some(vec![Uuid::from_u128(1)]));
    let owner_only =
        |modes: &[(PathBuf, u32)]| modes.iter().all(|(path, mode)| *mode == if path.is_dir() { 0o700 } else { 0o600 });
    assert!(fresh.len() >= 5 && owner_only(&fresh), "{fresh:?}");
    assert!(owner_only(&modes(&state)), "{:?}", modes(&state));
    assert_eq!(told.text(), "0000\n", "what it runs has the umask that it was started with");
}

#[tokio::test]
async fn a_disk_that_hangs_at_the_start_delays_no_live_samples_and_loses_no_backlog() {
    let (service, state) = (Service::start().await, state_dir());
    let mut child = agent(&service, state.path());
    let mut peer = service.accept_authenticated().await;
    let past = numbers(&peer.metrics().await);
    child.kill().await.unwrap();
    drop(peer);
    let hang = Hang::new(state.path().join("00000000000000000001.samples"));

    let began = Instant::now();
    let mut child = agent(&service, state.path());
    let mut peer = service.accept_authenticated().await;
    let present = peer.metrics().await;
    let waited = began.elapsed();
    let said = line_with(&mut child, "hangs").await;
    peer.ack(present.seq).await;
    hang.end_reading();
    let found = async {
        loop {
            let metrics = peer.metrics().await;
            peer.ack(metrics.seq).await;
            if numbers(&metrics).starts_with(&past) {
                return;
            }
        }
    };
    timeout(PATIENCE, found).await.expect("what was on the disk comes");

    assert!(waited < AT_ONCE, "{waited:?}");
    assert!(numbers(&present)[0] > past[0]);
    assert!(said.contains("samples are kept in memory until it is back"), "{said}");
}

#[tokio::test]
async fn a_state_directory_that_can_be_used_later_delays_what_an_earlier_run_left_and_loses_nothing() {
    let (service, state) = (Service::start().await, state_dir());
    let limits = BufferLimits { open_again_after: Duration::from_millis(10), ..BufferLimits::default() };
    let keeping = || Config { state_dir: Some(state.path().into()), limits, ..config(&service.url()) };
    let mut earlier = Agent::start(keeping());
    let away = service.accept_tcp().await;
    earlier.has_taken(6).await;
    assert_eq!(earlier.stop().await, Exit::Stopped);
    drop(away);
    let lock = state.path().join("lock");
    fs::remove_file(&lock).unwrap();
    // Nobody can write to a directory.
    fs::create_dir(&lock).unwrap();

    let agent = Agent::start_at(keeping(), 100_000);
    let mut peer = service.accept_authenticated().await;
    let mut received = BTreeSet::new();
    while received.len() < 20 {
        let metrics = peer.metrics().await;
        received.extend(numbers(&metrics));
        peer.ack(metrics.seq).await;
    }
    let first = received.first().copied();
    fs::remove_dir(&lock).unwrap();
    let is_whole = |received: &BTreeSet<i64>| {
        let newest = received.last().copied().unwrap_or_default();
        (1..=5).chain(100_001..=newest).all(|number| received.contains(&number))
    };
    let left = async {
        while !is_whole(&received) {
            let metrics = peer.metrics().await;
            received.extend(numbers(&metrics));
            peer.ack(metrics.seq).await;
        }
    };
    timeout(PATIENCE, left).await.expect("what both runs took comes");

    assert!(first > Some(100_000), "{first:?} came before the directory could be used");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_journal_that_hangs_at_the_start_stops_no_command_and_is_read_when_it_is_back() {
    let (service, dir) = (Service::start().await, state_dir());
    let state = dir.path();
    let mut child = willing(&service, state);
    let (mut peer, _) = connected(&service).await;
    peer.execute(execute(1, "echo one")).await;
    peer.told(1).await;
    child.kill().await.unwrap();
    drop(peer);
    // Read first, because files are read in the order of their ids.
    let hang = Hang::new(record(state, 0));

    let began = Instant::now();
    let _child = willing(&service, state);
    let (mut peer, held) = connected(&service).await;
    peer.execute(execute(2, "echo two")).await;
    let two = peer.told(2).await;
    let waited = began.elapsed();
    hang.end_reading();
    let one = peer.told(1).await;
    is_recorded(state, 2).await;

    assert_eq!(held, None, "nobody knows yet");
    assert!(waited < AT_ONCE, "{waited:?}");
    assert_eq!((two.end(), two.text().as_str()), (("succeeded", Some(0)), "two\n"));
    assert_eq!((one.end(), one.text().as_str()), (("succeeded", Some(0)), "one\n"));
    assert!(!record(state, 0).exists(), "it said nothing");
}

#[tokio::test]
async fn a_disk_that_hangs_under_a_command_stops_neither_it_nor_the_agent() {
    let (service, dir) = (Service::start().await, state_dir());
    let state = dir.path();
    let _child = willing(&service, state);
    let (mut peer, _) = connected(&service).await;
    peer.metrics().await;
    let hang = Hang::new(record(state, 1));

    let began = Instant::now();
    peer.execute(execute(1, "echo one")).await;
    let one = peer.told(1).await;
    peer.execute(execute(2, "echo two")).await;
    let two = peer.told(2).await;
    let before = peer.metrics().await;
    let waited = began.elapsed();
    peer.send(&ServiceMessage::ResultAck { command_id: Uuid::from_u128(1) }).await;
    peer.ack(before.seq).await;
    peer.metrics().await;
    // A later request is answered later.
    peer.send(&request(3, "agent.info")).await;
    peer.response().await;
    hang.end_writing();
    is_recorded(state, 2).await;

    assert!(waited < AT_ONCE, "{waited:?}");
    assert_eq!((one.end(), one.text().as_str()), (("succeeded", Some(0)), "one\n"));
    assert_eq!((two.end(), two.text().as_str()), (("succeeded", Some(0)), "two\n"));
    assert!(!record(state, 1).exists(), "it was acknowledged");
}
