//! A real NATS server of a test's own.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;

use super::command_line::Launched;
use super::eventually;

/// How often another port is tried: somebody else may take it between the question and the start.
const ATTEMPTS: usize = 5;

pub struct Nats {
    pub address: SocketAddr,
    program: Option<Launched>,
    config: TempDir,
}

impl Nats {
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// With these lines in its configuration too.
    pub async fn start_with(settings: &str) -> Self {
        for _ in 0..ATTEMPTS {
            let address = free_address();
            let config = TempDir::new().unwrap();
            let lines = format!("listen: {address}\n{settings}\n");
            fs::write(config.path().join("nats.conf"), lines).unwrap();
            let mut nats = Self { address, program: None, config };
            if nats.begin().await {
                return nats;
            }
        }
        panic!("nats-server did not start in {ATTEMPTS} attempts");
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
        assert!(self.begin().await, "nats-server did not start again at {}", self.address);
    }

    /// Whether it serves; otherwise it has ended.
    async fn begin(&mut self) -> bool {
        let mut command = Command::new(program());
        command.env_clear().arg("-c").arg(self.config.path().join("nats.conf"));
        let program = std::sync::Mutex::new(Launched::start(command));
        let serves = eventually("nats-server serves or ends", async || {
            if program.lock().unwrap().has_ended() {
                return Some(false);
            }
            greets(self.address).await.then_some(true)
        })
        .await;
        let program = program.into_inner().unwrap();
        if !serves {
            eprintln!("{}", program.stderr());
        }
        self.program = serves.then_some(program);
        serves
    }
}

/// What a client is told to connect to.
pub fn url_of(address: SocketAddr) -> String {
    format!("nats://{address}")
}

/// A port that nobody listens on at the moment.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn program() -> &'static str {
    // Debian's lies where only root looks for programs.
    let places = ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"];
    places.into_iter().find(|place| fs::exists(place).unwrap()).expect("nats-server: run scripts/test-setup first")
}

/// The server speaks first.
async fn greets(address: SocketAddr) -> bool {
    let Ok(stream) = TcpStream::connect(address).await else { return false };
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.is_ok() && line.starts_with("INFO ")
}
