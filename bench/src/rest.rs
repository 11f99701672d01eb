//! The few REST calls that a scenario needs.

mod alerts;
mod commands;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

/// Longer than any answer may take, also while the service is busy with something else.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Every server has it, so that a batch can name all of them.
pub const TAG: &str = "bench";
pub const USERNAME: &str = "bench";
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

/// The part of a snapshot that is read.
#[derive(Deserialize)]
pub struct Latest {
    pub timestamp: Timestamp,
    #[serde(default)]
    pub containers: Vec<IgnoredAny>,
}

/// Columns over one list of times, in seconds.
#[derive(Debug, Deserialize)]
pub struct Series {
    pub timestamps: Vec<i64>,
    pub series: HashMap<String, Column>,
}

/// The values of one series; none where there is nothing.
#[derive(Debug, Default, Deserialize)]
pub struct Column {
    pub avg: Vec<Option<f64>>,
    pub min: Vec<Option<f64>>,
    pub max: Vec<Option<f64>>,
}

impl Rest {
    /// Registers the first user of a fresh service.
    pub async fn register(address: SocketAddr) -> anyhow::Result<Self> {
        Self::register_as(address, USERNAME).await
    }

    /// Registers a user of this name.
    pub async fn register_as(address: SocketAddr, username: &str) -> anyhow::Result<Self> {
        let client = Client::builder().timeout(REQUEST_TIMEOUT).build()?;
        let base = format!("http://{address}/api/v1");
        let user = json!({
            "email": format!("{username}@example.com"), "username": username, "full_name": "",
            "password": PASSWORD, "password_confirm": PASSWORD,
        });
        let request = client.post(format!("{base}/auth/register")).json(&user);
        let tokens: Tokens = answer(request, StatusCode::CREATED).await?;
        Ok(Self { client, base, token: tokens.access_token })
    }

    /// The same user at another instance.
    pub fn at(&self, address: SocketAddr) -> Self {
        Self { base: format!("http://{address}/api/v1"), ..self.clone() }
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where the service is.
    pub fn root(&self) -> &str {
        self.base.strip_suffix("/api/v1").unwrap_or(&self.base)
    }

    /// The address of a path below the API's base.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub async fn login(&self) -> anyhow::Result<()> {
        self.tokens().await.map(|_| ())
    }

    /// Signs in again, so that the token lasts another half of an hour.
    pub async fn renew(&mut self) -> anyhow::Result<()> {
        self.token = self.tokens().await?.access_token;
        Ok(())
    }

    async fn tokens(&self) -> anyhow::Result<Tokens> {
        let form = [("username", USERNAME), ("password", PASSWORD)];
        answer(self.client.post(self.url("/auth/login")).form(&form), StatusCode::OK).await
    }

    /// A request for something below the API's base, signed in.
    pub fn request(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path)).bearer_auth(&self.token)
    }

    pub async fn create_server(&self, name: &str, tags: &[String]) -> anyhow::Result<Uuid> {
        let server = json!({ "name": name, "host": "127.0.0.1", "port": 22, "tags": tags });
        let request = self.client.post(self.url("/servers")).bearer_auth(&self.token).json(&server);
        Ok(answer::<Id>(request, StatusCode::CREATED).await?.id)
    }

    pub async fn create_key(&self, server_id: Uuid) -> anyhow::Result<String> {
        let key = json!({ "server_id": server_id, "name": "bench" });
        let request = self.client.post(self.url("/api-keys")).bearer_auth(&self.token).json(&key);
        Ok(answer::<Key>(request, StatusCode::CREATED).await?.key)
    }

    /// Lets a user see the servers of a scope: `{"tag"}` or `{"server_id"}`.
    pub async fn grant(&self, username: &str, scope: &Value) -> anyhow::Result<()> {
        let grant = json!({ "subject": { "username": username }, "scope": scope, "role": "viewer" });
        let request = self.client.post(self.url("/grants")).bearer_auth(&self.token).json(&grant);
        answer::<Id>(request, StatusCode::CREATED).await.map(|_| ())
    }

    /// The first page of servers; how many there are on it.
    pub async fn servers(&self) -> anyhow::Result<usize> {
        Ok(self.read::<Vec<Id>>("/servers", &[]).await?.len())
    }

    pub async fn latest(&self, server_id: Uuid) -> anyhow::Result<Latest> {
        self.read(&format!("/metrics/{server_id}"), &[]).await
    }

    /// The raw samples from `start` to `end`, oldest first; at most 20,000, the limit of one answer.
    pub async fn raw_history(&self, server_id: Uuid, start: Timestamp, end: Timestamp) -> anyhow::Result<Vec<Sample>> {
        let query = range_query(start, end, "raw");
        self.read(&format!("/metrics/{server_id}/history"), &query).await
    }

    /// Some series from `start` to `end` at a named resolution; at most 20,000 points.
    pub async fn series(
        &self,
        server_id: Uuid,
        start: Timestamp,
        end: Timestamp,
        resolution: &str,
        names: &str,
    ) -> anyhow::Result<Series> {
        let mut query = range_query(start, end, resolution);
        query.push(("names", names.to_owned()));
        self.read(&format!("/metrics/{server_id}/series"), &query).await
    }

    /// How many containers the agent of a server says there are at this moment; at most 500, the limit of one answer.
    pub async fn containers(&self, server_id: Uuid) -> anyhow::Result<usize> {
        let query = [("limit", "500".to_owned())];
        Ok(self.read::<Vec<IgnoredAny>>(&format!("/docker/{server_id}/containers"), &query).await?.len())
    }

    /// One of the service's own metrics that have no labels; none where it does not know the name.
    pub async fn own_metric(&self, name: &str) -> anyhow::Result<Option<f64>> {
        let text = self.client.get(format!("{}/metrics", self.root())).send().await?.error_for_status()?.text().await?;
        Ok(text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok()))
    }

    async fn read<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<T> {
        answer(self.request(path).query(query), StatusCode::OK).await
    }
}

fn range_query(start: Timestamp, end: Timestamp, resolution: &str) -> Vec<(&'static str, String)> {
    vec![
        ("start", start.to_string()),
        ("end", end.to_string()),
        ("resolution", resolution.to_owned()),
        ("max_points", "20000".to_owned()),
    ]
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
