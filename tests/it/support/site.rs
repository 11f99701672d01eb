//! The usual scene: a service where one account has one server, with a key for its agent.

use serde_json::{Value, json};
use signalbox::config::Config;
use signalbox_protocol::{Encoding, Timestamp};
use uuid::Uuid;

use super::agent::FakeAgent;
use super::dashboard::{Dashboard, Pass};
use super::{Account, Storage, TestService, eventually, text_of};

pub struct Site {
    pub service: TestService,
    pub owner: Account,
    pub server_id: Uuid,
    pub key: String,
}

impl Site {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        let service = TestService::start_with(adjust).await;
        let owner = service.register("owner").await;
        let (server_id, key) = service.server_with_key(&owner, "web-1").await;
        Self { service, owner, server_id, key }
    }

    /// The same site after a graceful restart of its service.
    pub async fn restart(self) -> Self {
        self.restart_with(|_| {}).await
    }

    pub async fn restart_with(self, adjust: impl FnOnce(&mut Config)) -> Self {
        let storage = self.service.stop().await;
        Self { service: TestService::start_on(storage, adjust).await, ..self }
    }

    /// The same, and these statements change its database while it is stopped.
    pub async fn restart_after(self, statements: &[&str]) -> Self {
        let storage = self.service.stop().await;
        storage.execute(statements).await;
        Self { service: TestService::start_on(storage, |_| {}).await, ..self }
    }

    /// Stops the service. Returns its stored data.
    pub async fn stop(self) -> Storage {
        self.service.stop().await
    }

    /// The server's agent, authenticated, in JSON.
    pub async fn agent(&self) -> FakeAgent {
        FakeAgent::online(self.service.address, &self.key).await
    }

    pub async fn agent_in(&self, encoding: Encoding) -> FakeAgent {
        FakeAgent::online_in(self.service.address, &self.key, encoding).await
    }

    /// The owner's dashboard of the server.
    pub async fn dashboard(&self) -> Dashboard {
        Dashboard::watch(self.service.address, self.server_id, &self.owner.token).await
    }

    /// Another server of the owner, and the key of its agent.
    pub async fn other_server(&self) -> (Uuid, String) {
        self.service.server_with_key(&self.owner, "web-2").await
    }

    /// The owner's answer of a path below `/api/v1`.
    pub async fn read(&self, path: &str) -> Value {
        self.service.client.get(path).bearer(&self.owner.token).expect(200).await
    }

    /// The latest snapshot.
    pub async fn latest(&self) -> Value {
        self.read(&format!("/metrics/{}", self.server_id)).await
    }

    pub async fn expect_no_metrics(&self) {
        let path = format!("/metrics/{}", self.server_id);
        self.service.client.get(path).bearer(&self.owner.token).expect_error(404, "no_metrics").await;
    }

    /// The history of a query such as `resolution=raw`.
    pub async fn history(&self, query: &str) -> Vec<Value> {
        let history = self.read(&format!("/metrics/{}/history?{query}", self.server_id)).await;
        history.as_array().unwrap_or_else(|| panic!("not a list: {history}")).clone()
    }

    /// The timestamps of the last hour's raw history.
    pub async fn raw_timestamps(&self) -> Vec<String> {
        self.history("resolution=raw").await.iter().map(|sample| text_of(&sample["timestamp"])).collect()
    }

    /// The server's record.
    pub async fn server(&self) -> Value {
        self.read(&format!("/servers/{}", self.server_id)).await
    }

    /// Waits until the server's record says so.
    pub async fn until_status(&self, status: &str) -> Value {
        eventually(status, || async {
            let server = self.server().await;
            (server["status"] == status).then_some(server)
        })
        .await
    }

    /// The listed record of the only key.
    pub async fn key_record(&self) -> Value {
        self.read("/api-keys/me").await[0].clone()
    }

    pub async fn revoke_key(&self) {
        let id = text_of(&self.key_record().await["id"]);
        self.service.client.delete(format!("/api-keys/{id}")).bearer(&self.owner.token).expect(200).await;
    }

    pub async fn delete_server(&self) {
        let path = format!("/servers/{}", self.server_id);
        self.service.client.delete(path).bearer(&self.owner.token).expect(200).await;
    }

    /// A key of the server that works for five seconds, and the time when it expires.
    pub async fn short_key(&self) -> (String, Timestamp) {
        // Where the machine pauses, one may expire before it is created.
        eventually("a key is created before it expires", async || {
            let expires_at = Timestamp::now().plus_millis(5_000);
            let body = json!({"server_id": self.server_id, "name": "short", "expires_at": expires_at});
            let answer = self.service.client.post("/api-keys").bearer(&self.owner.token).json(body).send().await;
            assert!([201, 400].contains(&answer.status), "{answer}");
            (answer.status == 201).then(|| (text_of(&answer.json()["key"]), expires_at))
        })
        .await
    }

    /// Checks that these paths refuse to upgrade without a user's access token, and for pages of other sites.
    pub async fn refuses_who_may_not_watch(&self, paths: &[&str]) {
        let outcome = async |path: &str, pass: Pass<'_>, headers: &[(&str, &str)]| {
            Dashboard::open(self.service.address, path, pass, headers).await.err()
        };
        for path in paths {
            assert_eq!(outcome(path, Pass::Nothing, &[]).await, Some(401), "{path}");
            for pass in ["garbage", &self.owner.refresh_token, &self.key].into_iter().flat_map(Pass::three_ways) {
                assert_eq!(outcome(path, pass, &[]).await, Some(401), "{path} {pass:?}");
            }
            let evil = [("Origin", "https://evil.example")];
            assert_eq!(outcome(path, Pass::Header(&self.owner.token), &evil).await, Some(403), "{path}");
        }
    }
}
