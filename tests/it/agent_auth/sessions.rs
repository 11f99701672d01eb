//! Sessions that end while they stream, and which of two sessions of a server wins.

use std::sync::Arc;

use actix::{Actor, Context, Handler};
use serde_json::json;
use signalbox::registry::{Heartbeat, Join, Order, Question};
use signalbox_protocol::Encoding;
use signalbox_protocol::close::{OVERLOADED, REPLACED, SERVER_DELETED, UNAUTHORIZED};
use uuid::Uuid;

use crate::support::PATIENCE;
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::raw::RawSocket;
use crate::support::site::Site;

#[actix_web::test]
async fn revoking_the_key_closes_its_session_at_once() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(1)]).await;

    site.revoke_key().await;

    agent.expect_close(UNAUTHORIZED).await;
    site.until_status("offline").await;
}

#[actix_web::test]
async fn revoking_another_key_of_the_server_leaves_the_session_alone() {
    let site = Site::start().await;
    let body = json!({"server_id": site.server_id, "name": "spare"});
    let spare = site.service.client.post("/api-keys").bearer(&site.owner.token).json(body).expect(201).await;
    let mut agent = site.agent().await;

    let path = format!("/api-keys/{}", spare["id"].as_str().unwrap());
    site.service.client.delete(path).bearer(&site.owner.token).expect(200).await;

    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn deleting_the_server_closes_its_session() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    agent.store(1, vec![sample_aged(1)]).await;

    site.delete_server().await;

    agent.expect_close(SERVER_DELETED).await;
}

#[actix_web::test]
async fn deleting_a_server_leaves_the_agent_of_another_alone() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let mut agent = site.agent().await;

    site.delete_server().await;
    agent.expect_close(SERVER_DELETED).await;

    other.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn the_newest_session_replaces_the_one_before() {
    let site = Site::start().await;
    let mut first = site.agent().await;
    first.store(1, vec![sample_aged(2)]).await;

    let mut second = site.agent_in(Encoding::MessagePack).await;

    first.expect_close(REPLACED).await;
    second.store(1, vec![sample_aged(1)]).await;
    assert_eq!(site.raw_timestamps().await.len(), 2);
}

#[actix_web::test]
async fn a_second_key_of_the_same_server_replaces_too() {
    let site = Site::start().await;
    let body = json!({"server_id": site.server_id, "name": "second"});
    let second = site.service.client.post("/api-keys").bearer(&site.owner.token).json(body).expect(201).await;
    let mut first = site.agent().await;

    let mut agent = FakeAgent::online(site.service.address, second["key"].as_str().unwrap()).await;

    first.expect_close(REPLACED).await;
    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn the_agents_of_two_servers_do_not_replace_each_other() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut first = site.agent().await;

    let mut second = FakeAgent::online(site.service.address, &other_key).await;

    second.store(1, vec![sample_aged(1)]).await;
    first.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn a_refused_key_replaces_nobody() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut stranger = FakeAgent::connect(site.service.address, Encoding::Json).await;
    let wrong = format!("{}x", &site.key[..site.key.len() - 1]);

    let answer = stranger.authenticate(&wrong).await;
    stranger.expect_close(UNAUTHORIZED).await;

    assert!(!answer.success);
    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn late_disconnect_keeps_the_new_session() {
    let site = Site::start().await;
    // By hand, so that it does not answer the close frame and its connection stays open until the end of the test.
    let first = RawSocket::authenticated_agent(site.service.address, &site.key).await;
    let mut second = site.agent().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.expect("status").await, json!({"status": "online"}));

    drop(first);
    for seq in 1..=20 {
        second.store(seq, vec![sample_aged(60 - seq as i64)]).await;
        let data = dashboard.next().await;
        assert_eq!(data["type"], "metrics", "{data}");
    }

    assert_eq!(site.server().await["status"], "online");
    let question = Question { method: "docker.list", params: json!({}), deadline: PATIENCE, by: None };
    let call = site.service.state.registry.call(site.server_id, question);
    let answering = async {
        let request = second.expect_request().await;
        second.answer(&request, Ok(json!("here"))).await;
    };
    assert_eq!(tokio::join!(call, answering).0, Ok(json!("here")), "calls reach the new session");
}

#[actix_web::test]
async fn an_agent_that_comes_back_is_online_again() {
    let site = Site::start().await;
    let first = site.agent().await;
    first.socket.abort();
    site.until_status("offline").await;

    let mut second = site.agent().await;

    site.until_status("online").await;
    second.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn a_key_writes_its_own_server_only() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let mut sample = json!(sample_aged(1));
    sample["server_id"] = json!(site.server_id);

    let data = json!({"seq": 1, "samples": [sample], "server_id": site.server_id});
    other.send_value(&json!({"type": "metrics", "data": data, "server_id": site.server_id})).await;
    other.expect_ack(1).await;

    site.expect_no_metrics().await;
    assert_eq!(site.server().await["status"], "pending");
    let latest = site.read(&format!("/metrics/{other_id}")).await;
    assert_eq!(latest["server_id"], json!(other_id));
}

/// A session that ignores everything.
struct Deaf;

impl Actor for Deaf {
    type Context = Context<Self>;
}

impl Handler<Order> for Deaf {
    type Result = ();

    fn handle(&mut self, _: Order, _: &mut Self::Context) {}
}

/// A handshake that has taken the server, and that the database does not know yet.
async fn half_a_handshake(site: &Site) -> Uuid {
    let session_id = Uuid::now_v7();
    let join = Join {
        server_id: site.server_id,
        owner_id: Uuid::nil(),
        session_id,
        key_id: Uuid::nil(),
        key_expires_at: None,
        orders: Deaf.start().recipient(),
        heartbeat: Arc::new(Heartbeat::default()),
    };
    site.service.state.registry.join(join).await.unwrap();
    session_id
}

#[actix_web::test]
async fn a_server_whose_handshakes_end_half_way_in_a_row_is_offline() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let first = half_a_handshake(&site).await;
    let second = half_a_handshake(&site).await;

    agent.expect_close(REPLACED).await;
    site.service.state.registry.leave(site.server_id, first);
    site.service.state.registry.leave(site.server_id, second);

    site.until_status("offline").await;
}

#[actix_web::test]
async fn sessions_that_only_take_over_from_each_other_come_to_an_end() {
    let site = Site::start().await;

    for _ in 0..65 {
        half_a_handshake(&site).await;
    }

    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
    assert!(!agent.authenticate(&site.key).await.success);
    agent.expect_close(OVERLOADED).await;
}
