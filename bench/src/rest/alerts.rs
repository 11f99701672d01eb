//! Thresholds, channels, and how many alerts there are.

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Id, Rest, answer};

#[derive(Deserialize)]
struct Summary {
    total: u64,
}

impl Rest {
    /// Makes a threshold of the fields that the API takes.
    pub async fn create_threshold(&self, threshold: &Value) -> anyhow::Result<Uuid> {
        let request = self.client.post(self.url("/alerts/thresholds")).bearer_auth(&self.token).json(threshold);
        Ok(answer::<Id>(request, StatusCode::CREATED).await?.id)
    }

    pub async fn delete_threshold(&self, id: Uuid) -> anyhow::Result<()> {
        let url = self.url(&format!("/alerts/thresholds/{id}"));
        let status = self.client.delete(url).bearer_auth(&self.token).send().await?.status();
        anyhow::ensure!(status.is_success(), "a threshold could not be deleted: {status}");
        Ok(())
    }

    /// Creates a channel to a webhook for alerts, without recoveries, of servers with `tag`.
    pub async fn create_webhook(&self, name: &str, url: &str, tag: &str) -> anyhow::Result<()> {
        let channel = json!({
            "name": name, "type": "webhook", "settings": { "url": url }, "tags": [tag], "notify_recovery": false,
        });
        let request = self.client.post(self.url("/notifications/channels")).bearer_auth(&self.token).json(&channel);
        answer::<Id>(request, StatusCode::CREATED).await?;
        Ok(())
    }

    /// How many alerts there ever were.
    pub async fn alert_count(&self) -> anyhow::Result<u64> {
        Ok(self.read::<Summary>("/alerts/summary", &[]).await?.total)
    }
}
