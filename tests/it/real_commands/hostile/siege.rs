//! The scene of a siege.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use actix_web::rt;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{Execute, ServiceMessage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use uuid::Uuid;

use crate::support::command_line::Launched;
use crate::support::hostile::{Captive, Hostile};
use crate::support::machine::{Machine, has_had_child};

pub const ENCODINGS: [Encoding; 2] = [Encoding::Json, Encoding::MessagePack];

/// An agent without any flag on a hostile service, and a container engine that records its requests.
pub struct Siege {
    pub hostile: Hostile,
    pub captive: Captive,
    pub capabilities: Vec<String>,
    pub machine: Machine,
    pub agent: Launched,
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Siege {
    pub async fn start() -> Self {
        let (hostile, machine) = (Hostile::start().await, Machine::new());
        let asked = engine(&machine);
        let engine = format!("unix://{}", machine.path("engine.sock").display());
        let agent = machine.agent(hostile.address(), "any-key", &["--docker-host", &engine]);
        let (captive, auth) = hostile.accept().await;
        Self { hostile, captive, capabilities: auth.agent.capabilities, machine, agent, asked }
    }

    /// A command that leaves a file.
    pub fn touch(&self) -> String {
        format!("touch {}", self.machine.path("ran").display())
    }

    pub fn execute(&self, command_id: Uuid) -> ServiceMessage {
        let stdin = Some(self.touch());
        let by = Some("the owner (127.0.0.1)".to_owned());
        ServiceMessage::Execute(Execute {
            command_id,
            command: self.touch(),
            stdin,
            timeout_seconds: 60,
            by,
            asker: None,
            signed: None,
        })
    }

    /// Asserts that this is refused in both encodings, the second time as the first.
    pub async fn expect_refusal(&mut self, code: &str, message: impl Fn(Uuid) -> ServiceMessage) {
        for encoding in ENCODINGS {
            let id = Uuid::now_v7();
            for _ in 0..2 {
                let answer = self.captive.ask(encoding, &message(id), id).await;
                let refusal = answer.expect_err("nothing is done for this service");
                assert_eq!(refusal.code, code, "{:?}: {refusal:?}", message(id));
            }
        }
    }

    /// Asserts that the machine is unchanged, and the agent works.
    pub async fn expect_no_harm(mut self) {
        for _ in 0..2 {
            self.captive.sample().await;
        }
        assert!(!has_had_child(self.agent.id()), "it started a program");
        assert!(!self.machine.path("ran").exists(), "it ran");
        let asked = self.asked.lock().unwrap().clone();
        assert!(asked.iter().all(|line| line.starts_with("GET ") || line.starts_with("HEAD ")), "{asked:?}");
    }
}

/// An engine without containers, at `engine.sock`. Returns the first line of each request.
fn engine(machine: &Machine) -> Arc<Mutex<Vec<String>>> {
    let path = machine.path("engine.sock");
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let lines = asked.clone();
    rt::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 16 * 1024];
            let length = stream.read(&mut request).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&request[..length]).into_owned();
            lines.lock().unwrap().push(text.lines().next().unwrap_or_default().to_owned());
            // The agent may have hung up.
            let _ = stream.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
        }
    });
    asked
}
