//! Sockets of somebody who is not the owner, and their end when the right ends.

use serde_json::{Value, json};

use super::Shared;
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::dashboard::{Dashboard, Pass, metrics_path};
use crate::support::{Account, uuid_of};

impl Shared {
    async fn open(&self, account: &Account, path: &str) -> Result<Dashboard, u16> {
        let path = format!("/api/v1{path}");
        Dashboard::open(self.site.service.address, &path, Pass::Header(&account.token), &[]).await
    }
}

#[actix_web::test]
async fn each_socket_needs_its_right() {
    let shared = Shared::start().await;
    let _agent: FakeAgent = shared.site.agent().await;
    let id = shared.site.server_id;
    let (metrics, logs, terminal) =
        (format!("/ws/metrics/{id}"), format!("/ws/logs/{id}"), format!("/ws/terminal/{id}"));
    for path in [&metrics, &logs, &terminal] {
        assert_eq!(shared.open(&shared.guest, path).await.unwrap_err(), 404, "{path}");
    }

    shared.grant_server("viewer", json!([])).await;

    shared.open(&shared.guest, &metrics).await.unwrap().expect("status").await;
    for path in [&logs, &terminal] {
        assert_eq!(shared.open(&shared.guest, path).await.unwrap_err(), 403, "{path}");
    }
    shared.grant_server("operator", json!(["logs"])).await;
    shared.open(&shared.guest, &logs).await.unwrap();
    assert_eq!(shared.open(&shared.guest, &terminal).await.unwrap_err(), 403);
}

#[actix_web::test]
async fn sockets_close_when_their_right_ends_and_others_stay() {
    let shared = Shared::start().await;
    let id = shared.site.server_id;
    let view = shared.grant_server("viewer", json!([])).await;
    let read = shared.grant_server("operator", json!(["logs"])).await;
    let mut metrics = shared.open(&shared.guest, &format!("/ws/metrics/{id}")).await.unwrap();
    let mut owner =
        Dashboard::open(shared.site.service.address, &metrics_path(id), Pass::Header(&shared.site.owner.token), &[])
            .await
            .unwrap();
    let mut logs = shared.open(&shared.guest, &format!("/ws/logs/{id}")).await.unwrap();
    metrics.expect("status").await;
    owner.expect("status").await;

    shared.end(&read).await;
    logs.expect_close(4403).await;
    shared.end(&view).await;
    metrics.expect_close(4404).await;

    let _agent = shared.site.agent().await;
    assert_eq!(owner.expect("status").await, json!({"status": "online"}));
}

#[actix_web::test]
async fn a_socket_closes_when_its_server_loses_the_tag() {
    let shared = Shared::start().await;
    let path = shared.path("/servers", "");
    shared.by_owner("PUT", &path).json(json!({"tags": ["db"]})).expect(200).await;
    shared.grant(json!({"tag": "db"}), "viewer", json!([])).await;
    let mut metrics = shared.open(&shared.guest, &shared.path("/ws/metrics", "")).await.unwrap();
    metrics.expect("status").await;

    shared.by_owner("PUT", &path).json(json!({"tags": []})).expect(200).await;

    metrics.expect_close(4404).await;
}

#[actix_web::test]
async fn the_overview_follows_what_is_shared() {
    let shared = Shared::start().await;
    let mut wall = shared.open(&shared.guest, "/ws/fleet").await.unwrap();
    assert_eq!(wall.expect("fleet").await, json!({"servers": []}));

    let grant = shared.grant(json!({"all": true}), "viewer", json!([])).await;
    wall.until("servers").await;
    let shown = |data: &Value| (uuid_of(&data["servers"][0]["server_id"]), data["servers"][0]["status"].clone());
    assert_eq!(shown(&wall.until("fleet").await), (shared.site.server_id, json!("pending")));

    // The agents of the other owner are followed from now on.
    let mut agent = shared.site.agent().await;
    assert_eq!(shown(&wall.until("fleet").await), (shared.site.server_id, json!("online")));
    shared.end(&grant).await;
    wall.until("servers").await;
    assert_eq!(shared.by_guest("GET", "/servers").expect(200).await, json!([]));

    // Nothing more comes of that server, while the sample of another one does.
    let (other, key) = shared.site.other_server().await;
    shared.grant(json!({"server_id": other}), "viewer", json!([])).await;
    let mut its_agent = FakeAgent::online(shared.site.service.address, &key).await;
    agent.store(1, vec![sample_aged(0)]).await;
    its_agent.store(1, vec![sample_aged(0)]).await;
    loop {
        let told = wall.until("fleet").await;
        let servers = told["servers"].as_array().unwrap();
        assert!(servers.iter().all(|server| server["server_id"] == json!(other)), "{told}");
        if servers.iter().any(|server| server["cpu_percent"].is_number()) {
            break;
        }
    }
}
