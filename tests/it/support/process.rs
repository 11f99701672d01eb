//! The service as a process of its own, which can be killed and whose memory can be read.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use uuid::Uuid;

use super::agent::FakeAgent;
use super::command_line::{Launched, Outcome, signalbox};
use super::{Client, Storage, registration, text_of, uuid_of};

/// `signalbox serve` with default settings.
pub struct ServiceProcess {
    program: Launched,
    pub address: SocketAddr,
    pub client: Client,
}

impl ServiceProcess {
    /// On a free port of the loopback.
    pub async fn start(data_dir: &Path) -> Self {
        Self::start_at(data_dir, "127.0.0.1:0").await
    }

    pub async fn start_at(data_dir: &Path, listen: &str) -> Self {
        let mut command = signalbox(&["serve", "--listen", listen, "--data-dir"]);
        command.arg(data_dir);
        Self::launched(command).await
    }

    /// With a database of its own, such as the suite uses.
    pub async fn start_on(storage: &Storage, listen: &str) -> Self {
        let mut command = signalbox(&["serve", "--listen", listen, "--data-dir"]);
        command.arg(storage.path());
        storage.named_to(&mut command);
        Self::launched(command).await
    }

    /// By a command that becomes `signalbox serve`.
    pub async fn launched(command: Command) -> Self {
        let mut program = Launched::start(command);
        let address = program.address().await;
        Self { program, address, client: Client::new(format!("http://{address}/api/v1")) }
    }

    /// Makes the first account, with one server and a key for its agent.
    pub async fn prepare(&self) -> Prepared {
        let account = self.client.post("/auth/register").json(registration("owner")).expect(201).await;
        let token = text_of(&account["access_token"]);
        let body = json!({"name": "web-1", "host": "192.0.2.10"});
        let server = self.client.post("/servers").bearer(&token).json(body).expect(201).await;
        let server_id = uuid_of(&server["id"]);
        let body = json!({"server_id": server_id, "name": "agent"});
        let key = self.client.post("/api-keys").bearer(&token).json(body).expect(201).await;
        Prepared { token, server_id, key: text_of(&key["key"]), key_id: uuid_of(&key["id"]) }
    }

    pub async fn agent(&self, prepared: &Prepared) -> FakeAgent {
        FakeAgent::online(self.address, &prepared.key).await
    }

    /// The owner's answer of a path below `/api/v1`.
    pub async fn read(&self, prepared: &Prepared, path: &str) -> Value {
        self.client.get(path).bearer(&prepared.token).expect(200).await
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.program.stderr()
    }

    /// Sends a signal by its name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        self.program.signal(name);
    }

    /// Waits until it ends.
    pub async fn outcome(self) -> Outcome {
        self.program.outcome().await
    }

    /// Ends it as a crash does, with SIGKILL.
    pub async fn kill(self) {
        self.program.signal("KILL");
        self.program.outcome().await;
    }

    /// Ends it with SIGTERM.
    pub async fn terminate(self) -> Outcome {
        self.program.signal("TERM");
        self.program.outcome().await
    }

    /// Begins to watch how far its memory grows.
    pub fn watch_memory(&self) -> MemoryWatch<'_> {
        MemoryWatch { service: self, before: self.status_kibibytes("VmRSS") }
    }

    /// The most memory that it held so far.
    pub fn peak_mebibytes(&self) -> u64 {
        self.status_kibibytes("VmHWM") / 1024
    }

    /// A size in `/proc/PID/status`.
    fn status_kibibytes(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(&format!("{name}:"))).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

/// What a test needs to know about a service in another process.
pub struct Prepared {
    pub token: String,
    pub server_id: Uuid,
    pub key: String,
    pub key_id: Uuid,
}

pub struct MemoryWatch<'a> {
    service: &'a ServiceProcess,
    before: u64,
}

impl MemoryWatch<'_> {
    /// Asserts that the peak since the program's start is within this many MiB of what it held before.
    pub fn expect_growth_below(&self, mebibytes: u64) {
        let growth = self.service.status_kibibytes("VmHWM").saturating_sub(self.before) / 1024;
        assert!(growth < mebibytes, "its memory grew by {growth} MiB, from {} MiB", self.before / 1024);
    }
}
