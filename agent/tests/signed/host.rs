//! A server with its files, its agent, and the service that talks to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{
    AgentMessage, Execute, Request, RequestError, Response, ServiceMessage, TerminalSize, TerminalStart,
};
use signalbox_protocol::container::ContainerParams;
use signalbox_protocol::signed::{Signature, Signed};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::agent::PATIENCE;
use crate::clock::TestClock;
use crate::keygen::Keygen;
use crate::mount::may_mount;
use crate::service::{Peer, Service};

/// After this long a terminal has shown what was typed.
const SILENCE: Duration = Duration::from_millis(20);

/// What the agent made of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Ran,
    /// With the reason, or with the detail where there is none.
    Refused(String),
}

/// A server that asks for signatures.
pub struct Host {
    pub directory: TempDir,
    pub keygen: Keygen,
    pub service: Service,
    child: Option<Child>,
    peer: Option<Peer<TcpStream>>,
    next: u128,
    /// What the agent goes by in place of the machine's clock.
    pub clock: Option<TestClock>,
    /// Whether the state directory is on a small disk in memory, which only the agent sees and which ends with it.
    pub small_disk: bool,
    /// How many orders the service has sent.
    pub tries: usize,
}

impl Host {
    /// Ada may sign alone.
    pub async fn start() -> Self {
        Self::with("commands = \"signed\"\nterminal = \"signed\"\ndocker = \"signed\"\n").await
    }

    /// With more lines in its policy. Signers are Ada, who has two keys, and Ben.
    pub async fn with(policy: &str) -> Self {
        let mut host = Self::stopped(policy).await;
        host.run().await;
        host
    }

    pub async fn stopped(policy: &str) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        assert!(is_root, "the files of a server that asks for signatures belong to root: run these tests as root");
        // In memory: on a disk under load a call may take the agent as long as on one that hangs.
        let (directory, keygen) = (tempfile::tempdir_in("/dev/shm").unwrap(), Keygen::new());
        let ada = [keygen.generate("ada", "ed25519", ""), keygen.generate("ada-2", "ecdsa", "256")];
        let ben = keygen.generate("ben", "ed25519", "");
        keygen.generate("eve", "ed25519", "");
        let signers = directory.path().join("allowed_signers");
        fs::write(&signers, format!("ada {}\nada {}\nben {ben}\n", ada[0], ada[1])).unwrap();
        let text = format!("name = \"web-1\"\nsigners = \"{}\"\n{policy}", signers.display());
        fs::write(directory.path().join("policy.toml"), text).unwrap();
        fs::write(directory.path().join("passwd"), "root:x:0:0:root:/:/bin/sh\n").unwrap();
        let service = Service::start().await;
        Self { directory, keygen, service, child: None, peer: None, next: 1, clock: None, small_disk: false, tries: 0 }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A path as the agent sees it, which has its own view of the disks.
    pub fn path_inside(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        Path::new(&format!("/proc/{}/root", self.pid())).join(path.strip_prefix("/").unwrap())
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().and_then(Child::id).unwrap()
    }

    /// The agent's program. Where this machine permits it, root has no profile there: reading one can take a minute, and a shell
    /// that is hung up at that time can leave a lock behind, for which the next one waits.
    pub fn command(&self) -> Command {
        const PROGRAM: &str = env!("CARGO_BIN_EXE_signalbox-agent");
        const SCRIPT: &str = "mount --bind \"$1\" /etc/passwd
            if [ -n \"$2\" ]; then mount -t tmpfs -o size=1m,mode=700 tmpfs \"$2\"; fi
            shift 2
            exec \"$@\"";
        let mut command = match may_mount() {
            Ok(flags) => {
                let mut command = Command::new("unshare");
                command.args([flags, "--", "sh", "-ec", SCRIPT, "sh"]).arg(self.path("passwd"));
                command.arg(if self.small_disk { self.path("state") } else { PathBuf::new() }).arg(PROGRAM);
                command
            }
            Err(_) => Command::new(PROGRAM),
        };
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    /// Starts the agent, and accepts it.
    pub async fn run(&mut self) {
        let mut command = self.command();
        command.args(["--url", &self.service.url(), "--key", "sbk_test", "--interval", "3600"]).stderr(Stdio::null());
        command.arg("--state-dir").arg(self.path("state")).arg("--policy").arg(self.path("policy.toml"));
        if let Some(clock) = &self.clock {
            clock.rule(command.as_std_mut());
        }
        self.child = Some(command.spawn().unwrap());
        self.peer = Some(self.service.accept_authenticated().await);
        // Answered once the agent has taken in what an earlier run left.
        self.is_alive().await;
    }

    /// Waits until the agent has noticed that its machine seems to have slept, and accepts its next connection.
    pub async fn until_connected_again(&mut self) {
        // Any message makes it look at its clocks.
        let request = Request {
            request_id: Uuid::nil(),
            method: "agent.info".to_owned(),
            params: Value::Null,
            timeout_ms: None,
            by: None,
        };
        self.peer().send(&ServiceMessage::Request(request)).await;
        self.peer().gone().await;
        self.peer = Some(self.service.accept_authenticated().await);
        self.is_alive().await;
    }

    /// Ends the agent, and starts it again.
    pub async fn restart(&mut self, signal: Signal) {
        self.stop(signal).await;
        self.run().await;
    }

    pub async fn stop(&mut self, signal: Signal) {
        let mut child = self.child.take().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        child.wait().await.unwrap();
        self.peer = None;
    }

    /// Prints how many orders the service has sent, for the sum of all tests, and checks that they are not fewer than these.
    pub fn expect_tries(&self, floor: usize) {
        println!("{} tries", self.tries);
        assert!(self.tries >= floor, "{} tries are fewer than {floor}", self.tries);
    }

    /// The processes that the agent has started and that live.
    pub fn children(&self) -> usize {
        let agent = self.pid().to_string();
        let of_agent = |entry: &fs::DirEntry| {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let rest: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            rest.len() > 1 && rest[0] != "Z" && rest[1] == agent
        };
        fs::read_dir("/proc").unwrap().flatten().filter(of_agent).count()
    }

    /// How often the command of [`Host::payload`] has run.
    pub fn runs(&self) -> usize {
        fs::read_to_string(self.path("ran")).unwrap_or_default().lines().count()
    }

    /// A command that leaves a trace.
    pub fn trace(&self) -> String {
        format!("echo ran >> {}", self.path("ran").display())
    }

    /// A payload that holds now, with these changes; null removes a field.
    pub fn payload(&self, changes: &[(&str, Value)]) -> Vec<u8> {
        let now = Timestamp::now();
        let mut value = json!({
            "v": 1,
            "servers": ["web-1"],
            "kind": "command",
            "command": self.trace(),
            "timeout_seconds": 60,
            "not_before": now,
            "expires_at": now.plus_millis(600_000),
            "nonce": Uuid::now_v7().simple().to_string(),
        });
        for (name, change) in changes {
            match change {
                Value::Null => _ = value.as_object_mut().unwrap().remove(*name),
                other => value[*name] = other.clone(),
            }
        }
        value.to_string().into_bytes()
    }

    pub fn sign(&self, payload: &[u8], keys: &[&str]) -> Signed {
        let sign = |key: &&str| Signature::Sshsig { signature: self.keygen.sign(key, "signalbox-command-v1", payload) };
        Signed { payload: BASE64_STANDARD.encode(payload), signatures: keys.iter().map(sign).collect() }
    }

    /// An order with an id of its own, for the command that leaves a trace.
    pub fn order(&mut self, signed: Option<Signed>) -> Execute {
        self.next += 1;
        let command_id = Uuid::from_u128(self.next);
        Execute { command_id, command: self.trace(), stdin: None, timeout_seconds: 60, by: None, asker: None, signed }
    }

    /// Sends an order and waits for what becomes of it.
    pub async fn ask(&mut self, execute: Execute) -> Outcome {
        self.tries += 1;
        let command_id = execute.command_id;
        let peer = self.peer.as_mut().unwrap();
        peer.send(&ServiceMessage::Execute(execute)).await;
        loop {
            match peer.next().await {
                AgentMessage::Response(response) if response.request_id == command_id => {
                    return refused(response.error.unwrap());
                }
                AgentMessage::CommandResult(result) if result.command_id == command_id => {
                    assert_eq!(result.status, "succeeded", "{result:?}");
                    peer.send(&ServiceMessage::ResultAck { command_id }).await;
                    // Until the agent has forgotten the order, so that nothing but its record can refuse it.
                    self.is_alive().await;
                    return Outcome::Ran;
                }
                _ => {}
            }
        }
    }

    /// Sends an order with the id of one that this run of the agent knows: it has no answer.
    pub async fn ask_again(&mut self, execute: Execute) {
        self.tries += 1;
        self.peer.as_mut().unwrap().send(&ServiceMessage::Execute(execute)).await;
        self.is_alive().await;
    }

    /// Opens a terminal, or says why not.
    pub async fn open_terminal(&mut self, signed: Option<Signed>) -> Outcome {
        let stream_id = self.start_terminal(signed).await;
        // The terminal itself echoes it, whatever the shell does.
        self.type_in(stream_id, "#\n").await;
        loop {
            match self.peer().next().await {
                AgentMessage::Response(response) if response.request_id == stream_id => {
                    return refused(response.error.unwrap());
                }
                // A terminal that was stopped before may still show its prompt.
                AgentMessage::TerminalOutput(output) if output.stream_id == stream_id => {
                    self.stop_terminal(stream_id).await;
                    return Outcome::Ran;
                }
                _ => {}
            }
        }
    }

    /// Types in a terminal whenever it is silent, and returns how the agent ends it.
    pub async fn type_to_the_end(&mut self, stream_id: Uuid) -> RequestError {
        loop {
            match timeout(SILENCE, self.peer().next()).await {
                Ok(AgentMessage::Response(response)) if response.request_id == stream_id => {
                    return response.error.unwrap();
                }
                Ok(_) => {}
                Err(_) => self.type_in(stream_id, "#\n").await,
            }
        }
    }

    /// Asks for a terminal. Returns its stream.
    pub async fn start_terminal(&mut self, signed: Option<Signed>) -> Uuid {
        self.tries += 1;
        self.next += 1;
        let stream_id = Uuid::from_u128(self.next);
        let size = TerminalSize { columns: 80, rows: 24 };
        let start = TerminalStart { stream_id, size, credit: None, by: None, asker: None, signed };
        self.peer().send(&ServiceMessage::TerminalStart(start)).await;
        stream_id
    }

    pub async fn type_in(&mut self, stream_id: Uuid, text: &str) {
        self.peer().send(&ServiceMessage::TerminalInput { stream_id, data: text.to_owned() }).await;
    }

    pub async fn stop_terminal(&mut self, stream_id: Uuid) {
        self.peer().send(&ServiceMessage::TerminalStop { stream_id }).await;
    }

    fn peer(&mut self) -> &mut Peer<TcpStream> {
        self.peer.as_mut().unwrap()
    }

    /// Asks for a change of a container. Its error, which is the engine's if the agent permits it.
    pub async fn change_container(&mut self, verb: &str, container: &str, signed: Option<Signed>) -> RequestError {
        self.tries += 1;
        let params = ContainerParams { signed, ..ContainerParams::of(container.to_owned()) };
        let response = self.request(&format!("docker.{verb}"), serde_json::to_value(params).unwrap()).await;
        response.into_outcome().unwrap_err()
    }

    async fn is_alive(&mut self) {
        self.request("agent.info", Value::Null).await;
    }

    async fn request(&mut self, method: &str, params: Value) -> Response {
        self.next += 1;
        let request_id = Uuid::from_u128(self.next);
        let request = Request { request_id, method: method.to_owned(), params, timeout_ms: None, by: None };
        let peer = self.peer.as_mut().unwrap();
        peer.send(&ServiceMessage::Request(request)).await;
        loop {
            match peer.next().await {
                AgentMessage::Response(response) if response.request_id == request_id => return response,
                _ => {}
            }
        }
    }
}

/// Waits until there is such a thing.
pub async fn eventually<T>(what: &str, probe: impl Fn() -> Option<T>) -> T {
    let there = async {
        loop {
            match probe() {
                Some(found) => return found,
                None => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    timeout(PATIENCE, there).await.expect(what)
}

fn refused(error: RequestError) -> Outcome {
    assert_eq!(error.code, "agent_refused", "{error:?}");
    Outcome::Refused(error.reason.unwrap_or(error.detail))
}

/// A refusal with this reason.
pub fn refusal(reason: &str) -> Outcome {
    Outcome::Refused(reason.to_owned())
}
