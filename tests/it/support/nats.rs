//! A real NATS server of a test's own.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;

use super::command_line::Launched;
use super::eventually;
use super::port::Port;

pub struct Nats {
    pub address: SocketAddr,
    program: Option<Launched>,
    config: TempDir,
    _port: Port,
}

impl Nats {
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// With these lines in its configuration too.
    pub async fn start_with(settings: &str) -> Self {
        let (port, config) = (Port::reserve(), TempDir::new().unwrap());
        let address = port.address;
        let lines = format!("listen: {address}\n{settings}\n");
        fs::write(config.path().join("nats.conf"), lines).unwrap();
        let mut nats = Self { address, program: None, config, _port: port };
        nats.begin().await;
        nats
    }

    pub fn url(&self) -> String {
        url_of(self.address)
    }

    /// Ends it as a crash does.
    pub async fn kill(&mut self) {
        let program = self.program.take().expect("it runs");
        program.signal("KILL");
        program.outcome().await;
    }

    /// Starts it again where it was.
    pub async fn again(&mut self) {
        self.begin().await;
    }

    async fn begin(&mut self) {
        let mut command = Command::new(program());
        command.env_clear().arg("-c").arg(self.config.path().join("nats.conf"));
        let program = Mutex::new(Launched::start(command));
        eventually("nats-server serves", async || {
            let has_ended = program.lock().unwrap().has_ended();
            assert!(!has_ended, "nats-server ended: {}", program.lock().unwrap().stderr());
            greets(self.address).await.then_some(())
        })
        .await;
        self.program = Some(program.into_inner().unwrap());
    }
}

/// The URL for a client.
pub fn url_of(address: SocketAddr) -> String {
    format!("nats://{address}")
}

fn program() -> &'static str {
    // Debian installs it where only root's PATH leads.
    let places = ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"];
    places.into_iter().find(|place| fs::exists(place).unwrap()).expect("nats-server: run scripts/test-setup first")
}

/// The server speaks first.
async fn greets(address: SocketAddr) -> bool {
    let Ok(stream) = TcpStream::connect(address).await else { return false };
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.is_ok() && line.starts_with("INFO ")
}
