//! Running commands.

use std::collections::HashMap;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Id, Rest, answer};

/// The part of a finished command that is read.
#[derive(Debug, Deserialize)]
pub struct CommandEnd {
    pub status: String,
    pub exit_code: Option<i32>,
    pub output: String,
}

/// The part of a batch that is read: how many of its commands have which status.
#[derive(Debug, Deserialize)]
pub struct BatchCounts {
    pub counts: HashMap<String, u64>,
}

/// A batch with its result on each server.
#[derive(Debug, Deserialize)]
pub struct BatchResults {
    pub results: Vec<BatchResult>,
}

#[derive(Debug, Deserialize)]
pub struct BatchResult {
    pub preview: String,
}

#[derive(Deserialize)]
struct Presence {
    status: String,
}

impl BatchCounts {
    pub fn succeeded(&self) -> u64 {
        self.counts.get("succeeded").copied().unwrap_or_default()
    }

    /// How many have not ended.
    pub fn open(&self) -> u64 {
        ["queued", "running"].into_iter().filter_map(|status| self.counts.get(status)).sum()
    }
}

impl Rest {
    /// Whether the agent of a server is connected.
    pub async fn is_online(&self, server_id: Uuid) -> anyhow::Result<bool> {
        Ok(self.read::<Presence>(&format!("/servers/{server_id}"), &[]).await?.status == "online")
    }

    /// Runs a command and waits for its end.
    pub async fn run_command(&self, server_id: Uuid, command: &str) -> anyhow::Result<CommandEnd> {
        self.run_signed(server_id, command, None).await
    }

    /// The same with what its signers have signed, where the server asks for that.
    pub async fn run_signed(
        &self,
        server_id: Uuid,
        command: &str,
        signed: Option<Value>,
    ) -> anyhow::Result<CommandEnd> {
        let url = self.url(&format!("/commands/{server_id}"));
        let body = json!({ "command": command, "signed": signed });
        answer(self.client.post(url).bearer_auth(&self.token).json(&body), StatusCode::OK).await
    }

    /// Starts a command on every server that has `tag`, on `concurrency` of them at a time.
    pub async fn start_batch(&self, tag: &str, command: &str, concurrency: u16) -> anyhow::Result<Uuid> {
        let batch = json!({ "tag": tag, "command": command, "concurrency": concurrency });
        let request = self.client.post(self.url("/commands")).bearer_auth(&self.token).json(&batch);
        Ok(answer::<Id>(request, StatusCode::CREATED).await?.id)
    }

    pub async fn batch_counts(&self, id: Uuid) -> anyhow::Result<BatchCounts> {
        self.read(&format!("/commands/batches/{id}"), &[]).await
    }

    pub async fn batch_results(&self, id: Uuid) -> anyhow::Result<BatchResults> {
        self.read(&format!("/commands/batches/{id}"), &[]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_and_what_runs_is_open() {
        let batch = r#"{"id": 1, "counts": {"queued": 2, "running": 3, "succeeded": 4, "failed": 1}, "results": []}"#;

        let batch: BatchCounts = serde_json::from_str(batch).unwrap();

        assert_eq!((batch.open(), batch.succeeded()), (5, 4));
    }
}
