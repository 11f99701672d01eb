//! The few REST calls that a scenario needs.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

/// Longer than any answer may take, also while the service is busy with something else.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const USERNAME: &str = "bench";
const PASSWORD: &str = "correct horse battery";

/// One signed-in user. Connections are kept alive and shared by clones.
#[derive(Debug, Clone)]
pub struct Rest {
    client: Client,
    base: String,
    token: String,
}

#[derive(Deserialize)]
struct Tokens {
    access_token: String,
}

#[derive(Deserialize)]
struct Id {
    id: Uuid,
}

#[derive(Deserialize)]
struct Key {
    key: String,
}

/// What is looked at of a snapshot.
#[derive(Deserialize)]
pub struct SnapshotTime {
    pub timestamp: Timestamp,
}

impl Rest {
    /// Registers the first user of a fresh service.
    pub async fn register(address: SocketAddr) -> anyhow::Result<Self> {
        let client = Client::builder().timeout(REQUEST_TIMEOUT).build()?;
        let base = format!("http://{address}/api/v1");
        let user = json!({
            "email": "bench@example.com", "username": USERNAME, "full_name": "",
            "password": PASSWORD, "password_confirm": PASSWORD,
        });
        let request = client.post(format!("{base}/auth/register")).json(&user);
        let tokens: Tokens = answer(request, StatusCode::CREATED).await?;
        Ok(Self { client, base, token: tokens.access_token })
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// The address of a path below the API's base.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub async fn login(&self) -> anyhow::Result<()> {
        let form = [("username", USERNAME), ("password", PASSWORD)];
        let request = self.client.post(self.url("/auth/login")).form(&form);
        answer::<Tokens>(request, StatusCode::OK).await.map(|_| ())
    }

    pub async fn create_server(&self, name: &str) -> anyhow::Result<Uuid> {
        let server = json!({ "name": name, "host": "127.0.0.1", "port": 22 });
        let request = self.client.post(self.url("/servers")).bearer_auth(&self.token).json(&server);
        Ok(answer::<Id>(request, StatusCode::CREATED).await?.id)
    }

    pub async fn create_key(&self, server_id: Uuid) -> anyhow::Result<String> {
        let key = json!({ "server_id": server_id, "name": "bench" });
        let request = self.client.post(self.url("/api-keys")).bearer_auth(&self.token).json(&key);
        Ok(answer::<Key>(request, StatusCode::CREATED).await?.key)
    }

    /// The first page of servers; how many there are on it.
    pub async fn servers(&self) -> anyhow::Result<usize> {
        Ok(self.read::<Vec<Id>>("/servers", &[]).await?.len())
    }

    pub async fn latest(&self, server_id: Uuid) -> anyhow::Result<SnapshotTime> {
        self.read(&format!("/metrics/{server_id}"), &[]).await
    }

    /// The raw samples from `start` to `end`, oldest first; at most 20,000, which is what one answer may hold.
    pub async fn raw_history(
        &self,
        server_id: Uuid,
        start: Timestamp,
        end: Timestamp,
    ) -> anyhow::Result<Vec<SnapshotTime>> {
        let query = [
            ("start", start.to_string()),
            ("end", end.to_string()),
            ("resolution", "raw".to_owned()),
            ("max_points", "20000".to_owned()),
        ];
        self.read(&format!("/metrics/{server_id}/history"), &query).await
    }

    async fn read<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<T> {
        let request = self.client.get(self.url(path)).query(query).bearer_auth(&self.token);
        answer(request, StatusCode::OK).await
    }
}

async fn answer<T: DeserializeOwned>(request: RequestBuilder, expected: StatusCode) -> anyhow::Result<T> {
    let response = request.send().await?;
    let status = response.status();
    let path = response.url().path().to_owned();
    let body = response.bytes().await?;
    if status != expected {
        anyhow::bail!("{path} answered {status} instead of {expected}: {}", String::from_utf8_lossy(&body));
    }
    serde_json::from_slice(&body).with_context(|| format!("{path} answered another shape"))
}
