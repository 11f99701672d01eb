//! A server with its files, its agent, and the service that offers builds to it.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use signalbox_protocol::agent::{
    AgentMessage, Auth, Event, FailedUpdate, OFFER_UPDATE, RELEASE_NAMESPACE, Request, RequestError, ServiceMessage,
    UpdateOffer,
};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::agent::PATIENCE;
use crate::keygen::Keygen;
use crate::offering::{Offering, Sending, Session};

/// The agent's version as it is installed.
pub const INSTALLED: &str = env!("CARGO_PKG_VERSION");

/// This machine's build.
pub fn program() -> String {
    format!("signalbox-agent-linux-{}", std::env::consts::ARCH)
}

pub fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server whose agent takes the builds of one key.
pub struct Host {
    pub directory: TempDir,
    pub keygen: Keygen,
    pub service: Offering,
    child: Option<Child>,
    session: Option<Session>,
    next: u128,
    /// How many offers the service has made.
    pub tries: usize,
}

impl Host {
    pub async fn start() -> Self {
        Self::with("").await
    }

    /// With more lines in its policy.
    pub async fn with(policy: &str) -> Self {
        let mut host = Self::stopped(&format!("updates = \"signed\"\n{policy}")).await;
        host.run().await;
        host
    }

    /// With this policy. The key that may sign releases is `release`.
    pub async fn stopped(policy: &str) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        assert!(is_root, "the files of a server that pins keys belong to root: run these tests as root");
        let (directory, keygen) = (tempfile::tempdir().unwrap(), Keygen::new());
        let key = keygen.generate("release", "ed25519", "");
        for other in ["eve", "old"] {
            keygen.generate(other, "ed25519", "");
        }
        let service = Offering::start().await;
        let host = Self { directory, keygen, service, child: None, session: None, next: 1, tries: 0 };
        host.pin(&format!("release {key}\n"));
        host.decide(policy);
        host
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory of builds.
    pub fn updates(&self) -> PathBuf {
        self.path("state/updates")
    }

    /// The names in it.
    pub fn kept(&self) -> Vec<String> {
        let entries: Vec<fs::DirEntry> =
            fs::read_dir(self.updates()).map(|entries| entries.flatten().collect()).unwrap_or_default();
        let mut names: Vec<String> = entries.iter().map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Replaces the pinned keys.
    pub fn pin(&self, lines: &str) {
        fs::write(self.path("release_signers"), lines).unwrap();
    }

    /// Replaces the policy.
    pub fn decide(&self, policy: &str) {
        let line = format!("release_signers = \"{}\"\n", self.path("release_signers").display());
        let line = if policy.contains("updates = \"signed\"") { line } else { String::new() };
        fs::write(self.path("policy.toml"), format!("{policy}{line}")).unwrap();
    }

    /// The agent's program.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox-agent"));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    fn spawn(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = self.command();
        command.args(["--url", &self.service.url, "--key", "sbk_test", "--interval", "3600"]).stderr(log);
        command.arg("--state-dir").arg(self.path("state")).arg("--policy").arg(self.path("policy.toml"));
        self.child = Some(command.spawn().unwrap());
    }

    /// Starts the installed program, and returns what connects.
    pub async fn run(&mut self) -> Auth {
        self.spawn();
        self.connected().await
    }

    /// Starts the installed program, and waits until it ends.
    pub async fn run_to_the_end(&mut self) -> ExitStatus {
        self.spawn();
        self.ended().await
    }

    /// Waits until the program ends.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        self.session = None;
        timeout(PATIENCE, child.wait()).await.expect("the program ends").unwrap()
    }

    /// Waits for the next connection.
    pub async fn connected(&mut self) -> Auth {
        // The connection before is held until then: the agent closes it.
        let session = self.service.session().await;
        let auth = session.auth.clone();
        self.session = Some(session);
        auth
    }

    /// Waits until the agent has closed its connection.
    pub async fn disconnected(&mut self) {
        self.session.as_mut().unwrap().peer.gone().await;
    }

    /// Closes the connection.
    pub fn hang_up(&mut self) {
        self.session = None;
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().and_then(Child::id).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Ends the agent in an orderly way.
    pub async fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert_eq!((status.code(), status.signal()), (Some(0), None), "{}", self.log());
    }

    /// Ends the agent in an orderly way, and starts the installed program. Returns what connects.
    pub async fn restart(&mut self) -> Auth {
        self.stop().await;
        self.run().await
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The processes that the agent has started and that live.
    pub fn children(&self) -> Vec<u32> {
        let agent = self.pid().to_string();
        let of_agent = |entry: &fs::DirEntry| {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let rest: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            let is_child = rest.len() > 1 && rest[0] != "Z" && rest[1] == agent;
            is_child.then(|| entry.file_name().to_str()?.parse().ok()).flatten()
        };
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| of_agent(&entry)).collect()
    }

    /// A release of this program for this machine.
    pub fn release(&self, version: &str, program_bytes: &[u8]) -> Vec<u8> {
        self.release_for(&program(), version, program_bytes)
    }

    pub fn release_for(&self, name: &str, version: &str, program_bytes: &[u8]) -> Vec<u8> {
        let program = json!({"bytes": program_bytes.len(), "sha256": sha256(program_bytes)});
        json!({"v": 1, "version": version, "programs": {name: program}}).to_string().into_bytes()
    }

    /// A release with its signature by this key.
    pub fn signed(&self, release: &[u8], key: &str) -> UpdateOffer {
        self.signed_as(RELEASE_NAMESPACE, release, key)
    }

    pub fn signed_as(&self, namespace: &str, release: &[u8], key: &str) -> UpdateOffer {
        let signature = self.keygen.sign(key, namespace, release);
        UpdateOffer { release: BASE64_STANDARD.encode(release), signature }
    }

    /// Makes the service have a genuine build of this program. Returns its offer.
    pub fn genuine(&self, version: &str, program_bytes: &[u8]) -> UpdateOffer {
        self.service.send_programs_as(Sending::Whole(Arc::new(program_bytes.to_vec())));
        self.signed(&self.release(version, program_bytes), "release")
    }

    /// Offers it. Returns the version that the agent takes, or why it takes none.
    pub async fn offer(&mut self, offer: &UpdateOffer) -> Result<String, String> {
        self.tries += 1;
        let params = serde_json::to_value(offer).unwrap();
        match self.request(OFFER_UPDATE, params).await {
            Ok(taken) => Ok(taken["version"].as_str().unwrap().to_owned()),
            Err(error) => {
                assert_eq!(error.code, "agent_refused", "{error:?}");
                Err(error.reason.unwrap())
            }
        }
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, RequestError> {
        self.next += 1;
        let request_id = Uuid::from_u128(self.next);
        let request = Request { request_id, method: method.to_owned(), params, timeout_ms: None, by: None };
        self.send(&ServiceMessage::Request(request)).await;
        loop {
            match self.message().await {
                AgentMessage::Response(response) if response.request_id == request_id => {
                    return response.into_outcome();
                }
                _ => {}
            }
        }
    }

    pub async fn send(&mut self, message: &ServiceMessage) {
        self.session.as_mut().unwrap().peer.send(message).await;
    }

    pub async fn message(&mut self) -> AgentMessage {
        self.session.as_mut().unwrap().peer.next().await
    }

    /// The next event about a build.
    pub async fn event(&mut self) -> Event {
        loop {
            match self.message().await {
                AgentMessage::Event(event) if event.kind == "update" => return event,
                _ => {}
            }
        }
    }

    /// Offers a genuine build that works, and waits until it has taken the place of the one before.
    pub async fn update(&mut self, version: &str, program_bytes: &[u8]) -> Auth {
        let offer = self.genuine(version, program_bytes);
        assert_eq!(self.offer(&offer).await, Ok(version.to_owned()));
        self.disconnected().await;
        let trial = self.connected().await;
        assert_eq!(trial.agent.version, version, "on trial");
        self.disconnected().await;
        self.connected().await
    }

    /// Prints how many offers the service has made, for the sum of all tests, and checks that they are not fewer than these.
    pub fn expect_tries(&self, floor: usize) {
        println!("{} tries", self.tries);
        assert!(self.tries >= floor, "{} tries are fewer than {floor}", self.tries);
    }
}

/// The failure that an agent reports.
pub fn failure(auth: &Auth) -> Option<FailedUpdate> {
    auth.agent.failed_update.as_deref().cloned()
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

/// Whether any thread of a process lives. Its first one looks dead while others still close their files.
pub fn is_alive(pid: u32) -> bool {
    let lives = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
    };
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.flatten().any(lives))
}
