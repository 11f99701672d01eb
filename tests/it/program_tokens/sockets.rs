//! Sockets of programs: what they show, and when they end.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::{Scene, Token};
use crate::support::TestService;
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::{eventually, text_of, uuid_of};

impl Token<'_> {
    async fn open(&self, path: &str) -> Result<Dashboard, u16> {
        Dashboard::open(self.scene.service.address, &format!("/api/v1{path}"), Pass::Header(&self.text), &[]).await
    }
}

impl Scene {
    /// An agent of a server, and its threshold.
    async fn probe(&self, server_id: Uuid) -> (Probe, Uuid) {
        let alarms = Alarms::of(&self.service, &self.owner, server_id);
        let threshold = alarms.add(Threshold::cpu(90.0)).await;
        let body = json!({"server_id": server_id, "name": "agent"});
        let key = self.service.client.post("/api-keys").bearer(&self.owner.token).json(body).expect(201).await;
        (alarms.probe(&text_of(&key["key"])).await, threshold)
    }
}

#[actix_web::test]
async fn a_token_opens_sockets_in_each_of_the_three_ways() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"server_ids": [scene.db]}})).await;
    let path = |id: Uuid| format!("/api/v1/ws/metrics/{id}");

    for pass in Pass::three_ways(&token.text) {
        let opened = Dashboard::open(scene.service.address, &path(scene.db), pass, &[]).await;
        opened.unwrap().expect("status").await;
        assert_eq!(Dashboard::open(scene.service.address, &path(scene.web), pass, &[]).await.unwrap_err(), 404);
    }
    assert_eq!(token.open(&format!("/ws/logs/{}", scene.db)).await.unwrap_err(), 403);
    assert_eq!(token.open(&format!("/ws/terminal/{}", scene.db)).await.unwrap_err(), 403);
}

#[actix_web::test]
async fn open_sockets_close_when_the_token_is_revoked() {
    // No socket looks on its own whether its token still holds.
    let service = TestService::start_with(|config| config.timing.ping_interval = Duration::from_secs(600)).await;
    let scene = Scene::on(service).await;
    let token = scene.token(json!({"scope": {"all": true}})).await;
    let other = scene.token(json!({"scope": {"all": true}})).await;
    let metrics = format!("/ws/metrics/{}", scene.db);
    let mut open = Vec::new();
    for path in [metrics.as_str(), "/ws/fleet", "/ws/alerts"] {
        open.push(token.open(path).await.unwrap());
    }
    let mut kept = other.open(&metrics).await.unwrap();
    kept.expect("status").await;

    token.revoke().await;

    for socket in &mut open {
        while !matches!(socket.socket.receive().await, crate::support::socket::Received::Closed(4401)) {}
    }
    assert_eq!(token.open(&metrics).await.unwrap_err(), 401);
    let (_probe, _) = scene.probe(scene.db).await;
    assert_eq!(kept.expect("status").await, json!({"status": "online"}));
}

#[actix_web::test]
async fn a_socket_ends_when_its_token_expires() {
    let scene = Scene::start().await;
    let path = format!("/ws/metrics/{}", scene.db);
    // Where the machine pauses for longer, another token has to open it.
    let mut metrics = eventually("a socket is open before its token expires", async || {
        let opened = scene.short_token().await?.open(&path).await;
        opened.map_err(|status| assert_eq!(status, 401)).ok()
    })
    .await;

    metrics.expect("status").await;
    metrics.until("token_expiring").await;
    metrics.expect_close(4401).await;
}

#[actix_web::test]
async fn a_socket_continues_with_a_new_token_of_the_same_account_and_its_scope() {
    let scene = Scene::start().await;
    let all = scene.token(json!({"scope": {"all": true}})).await;
    let of_db = json!({"scope": {"server_ids": [scene.db]}});
    let (narrow, other) = (scene.token(of_db.clone()).await, scene.token(of_db).await);
    let mut db = all.open(&format!("/ws/metrics/{}", scene.db)).await.unwrap();
    let mut web = all.open(&format!("/ws/metrics/{}", scene.web)).await.unwrap();

    db.expect("status").await;
    db.send(json!({"type": "auth", "token": narrow.text})).await;
    web.expect("status").await;
    web.send(json!({"type": "auth", "token": other.text})).await;

    web.expect_close(4404).await;
    // Of two sockets none knows what the other has read: without this, the first token may end before its socket has another.
    eventually("the first socket has its new token", async || {
        let listed = scene.listed().await;
        let token = listed.as_array().unwrap().iter().find(|token| uuid_of(&token["id"]) == narrow.id).unwrap();
        (!token["last_used_at"].is_null()).then_some(())
    })
    .await;
    all.revoke().await;
    let (_probe, _) = scene.probe(scene.db).await;
    assert_eq!(db.expect("status").await, json!({"status": "online"}));
    narrow.revoke().await;
    while !matches!(db.socket.receive().await, crate::support::socket::Received::Closed(4401)) {}
}

#[actix_web::test]
async fn a_socket_of_a_server_closes_when_the_server_leaves_the_scope() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"tag": "db"}})).await;
    let mut metrics = token.open(&format!("/ws/metrics/{}", scene.db)).await.unwrap();
    metrics.expect("status").await;

    scene.tag(scene.db, &[]).await;

    metrics.expect_close(4404).await;
}

#[actix_web::test]
async fn the_overview_has_the_servers_of_the_scope() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"tag": "db"}})).await;
    let mut wall = token.open("/ws/fleet").await.unwrap();
    let shown = wall.expect("fleet").await;
    assert_eq!(shown["servers"].as_array().unwrap().len(), 1);
    assert_eq!(uuid_of(&shown["servers"][0]["server_id"]), scene.db);

    let _other = scene.probe(scene.web).await;
    let _own = scene.probe(scene.db).await;

    loop {
        let shown = wall.until("fleet").await;
        assert!(!shown.to_string().contains(&scene.web.to_string()), "{shown}");
        if shown["servers"][0]["status"] == "online" {
            break;
        }
    }
}

#[actix_web::test]
async fn alerts_come_for_the_servers_of_the_scope_as_they_are_tagged() {
    let scene = Scene::start().await;
    let (mut web, of_web) = scene.probe(scene.web).await;
    let (mut db, of_db) = scene.probe(scene.db).await;
    let token = scene.token(json!({"scope": {"tag": "db"}})).await;
    let mut alerts = token.open("/ws/alerts").await.unwrap();

    // The one of the other server comes first, and is not shown.
    web.cpu(99.0).await;
    Alarms::of(&scene.service, &scene.owner, scene.web).until(of_web, "active").await;
    db.cpu(99.0).await;
    assert_eq!(alerts.until("alert").await["threshold_id"], json!(of_db));

    scene.tag(scene.web, &["db"]).await;
    alerts.until("alerts").await;
    let mut shown =
        [uuid_of(&alerts.expect("alert").await["server_id"]), uuid_of(&alerts.expect("alert").await["server_id"])];
    shown.sort_unstable();
    let mut both = [scene.web, scene.db];
    both.sort_unstable();
    assert_eq!(shown, both);
    web.cpu(1.0).await;
    assert_eq!(alerts.until("alert").await["status"], "resolved");

    scene.tag(scene.web, &[]).await;
    alerts.until("alerts").await;
    assert_eq!(uuid_of(&alerts.expect("alert").await["server_id"]), scene.db);
    web.cpu(99.0).await;
    Alarms::of(&scene.service, &scene.owner, scene.web).until(of_web, "active").await;
    db.cpu(1.0).await;
    let last = alerts.until("alert").await;
    assert_eq!((uuid_of(&last["server_id"]), &last["status"]), (scene.db, &json!("resolved")));
}
