//! People who sign commands, and agents that ask for their signatures.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Auth, ServiceMessage, SigningInfo};
use signalbox_protocol::{Encoding, Timestamp};
use uuid::Uuid;

use super::agent::{FakeAgent, agent_info, auth};
use super::keygen::{self, Keygen};

/// Signers with a key each.
pub struct Signers {
    keygen: Keygen,
    /// The lines of allowed signers, of all but the last.
    pub lines: String,
}

impl Signers {
    /// Ada, Ben and Cleo; and Eve, with two keys, whom no server knows.
    pub fn new() -> Self {
        let keygen = Keygen::new();
        let line = |name: &str| format!("{name}@example.org {}\n", keygen.generate(name, "ed25519", ""));
        let lines = ["ada", "ben", "cleo"].map(line).concat();
        for name in ["eve", "eve-again"] {
            keygen.generate(name, "ed25519", "");
        }
        Self { keygen, lines }
    }

    /// The file with somebody's private key.
    pub fn key_file(&self, name: &str) -> PathBuf {
        self.keygen.path(name)
    }

    /// Writes a policy of `web-1` that asks for signatures of commands by those of [`Self::lines`], with further lines, into a
    /// directory. Returns the path of its file.
    pub fn write_policy(&self, directory: &Path, further: &str) -> PathBuf {
        // The agent is another user, who may read the owner's files.
        fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
        let (signers, policy) = (directory.join("allowed_signers"), directory.join("policy.toml"));
        fs::write(&signers, &self.lines).unwrap();
        let signers = signers.display();
        let text = format!("commands = \"signed\"\nname = \"web-1\"\nsigners = \"{signers}\"\n{further}");
        fs::write(&policy, text).unwrap();
        policy
    }

    /// A payload of a command for `web-1` that holds for some milliseconds from now on, with other fields.
    pub fn payload(&self, command: &str, holds_ms: i64, fields: &Value) -> Vec<u8> {
        let now = Timestamp::now();
        let mut payload = json!({
            "v": 1, "servers": ["web-1"], "kind": "command", "command": command, "timeout_seconds": 60,
            "nonce": Uuid::now_v7().simple().to_string(), "not_before": now, "expires_at": now.plus_millis(holds_ms),
        });
        for (name, value) in fields.as_object().unwrap() {
            payload[name] = value.clone();
        }
        payload.to_string().into_bytes()
    }

    pub fn signature(&self, name: &str, payload: &[u8]) -> Value {
        json!({ "type": "sshsig", "signature": self.keygen.sign(name, "signalbox-command-v1", payload) })
    }

    /// `signed` of a request.
    pub fn signed(&self, names: &[&str], payload: &[u8]) -> Value {
        let signatures: Vec<Value> = names.iter().map(|name| self.signature(name, payload)).collect();
        json!({ "payload": keygen::base64(payload), "signatures": signatures })
    }
}

/// An agent that asks for signatures of this many people, and calls itself so.
pub async fn signing_agent(address: SocketAddr, key: &str, name: &str, approvals: u32) -> FakeAgent {
    let about = AgentInfo {
        capabilities: ["metrics", "commands", "commands_signed"].map(str::to_owned).to_vec(),
        signing: Some(Box::new(SigningInfo { name: name.to_owned(), approvals, ..SigningInfo::default() })),
        ..agent_info()
    };
    let mut agent = FakeAgent::connect(address, Encoding::Json).await;
    let AgentMessage::Auth(first) = auth(key) else { unreachable!() };
    agent.send(&AgentMessage::Auth(Auth { agent: about, ..first })).await;
    let answer = agent.next().await;
    assert!(matches!(&answer, ServiceMessage::AuthResponse(answer) if answer.success), "{answer:?}");
    agent
}
