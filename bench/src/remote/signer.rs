//! Signatures of commands by OpenSSH's own program, as an operator without ours makes them.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use uuid::Uuid;

const NAMESPACE: &str = "signalbox-command-v1";
const VALID_FOR_MS: i64 = 600_000;

/// Somebody with a key.
#[derive(Debug, Clone)]
pub struct Signer {
    /// The private key, in OpenSSH's format and without a passphrase.
    pub key: PathBuf,
    /// What signers call the server.
    pub server: String,
}

impl Signer {
    /// A command as the API takes it in `signed`: for this server, from now on, once.
    pub async fn sign(&self, command: &str) -> anyhow::Result<Value> {
        let now = Timestamp::now();
        let payload = json!({
            "v": 1, "servers": [self.server], "kind": "command", "command": command, "timeout_seconds": 60,
            "not_before": now, "expires_at": now.plus_millis(VALID_FOR_MS), "nonce": Uuid::new_v4().simple().to_string(),
        });
        let payload = payload.to_string();
        let signature = self.signature(payload.as_bytes()).await?;
        Ok(json!({
            "payload": BASE64_STANDARD.encode(&payload),
            "signatures": [{ "type": "sshsig", "signature": signature }],
        }))
    }

    async fn signature(&self, payload: &[u8]) -> anyhow::Result<String> {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-Y", "sign", "-n", NAMESPACE, "-f"]).arg(&self.key);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot run ssh-keygen; it is in openssh-client")?;
        let mut stdin = child.stdin.take().context("ssh-keygen has no standard input")?;
        stdin.write_all(payload).await?;
        drop(stdin);
        let output = child.wait_with_output().await?;
        anyhow::ensure!(output.status.success(), "ssh-keygen: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}
