//! The list of servers changes while a dashboard watches.

use std::time::Duration;

use serde_json::{Value, json};
use signalbox::audit::Actor;
use signalbox::store::ServerPatch;
use signalbox_protocol::Timestamp;

use super::Wall;
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::site::Site;
use crate::support::text_of;

/// The message that says that the list has changed.
fn notice() -> Value {
    json!({"type": "servers", "data": {}})
}

#[actix_web::test]
async fn a_new_server_is_announced_and_shown() {
    let site = Site::start().await;
    let elsewhere = site.service.sign_in(&site.owner).await;
    let mut wall = Wall::of(&site, &site.owner).await;

    let (id, key) = site.service.server_with_key(&elsewhere, "web-2").await;
    assert_eq!(wall.dashboard.next().await, notice());
    assert_eq!(wall.next().await, [id]);
    assert_eq!(wall.servers[&id]["status"], "pending");

    let mut agent = FakeAgent::online(site.service.address, &key).await;
    let sample = sample_aged(1);
    agent.store(1, vec![sample.clone()]).await;
    wall.until_sample(id, &sample).await;
}

#[actix_web::test]
async fn the_first_server_of_somebody_is_shown_as_it_becomes_live() {
    let site = Site::start().await;
    let newcomer = site.service.register("newcomer").await;
    let mut wall = Wall::of(&site, &newcomer).await;
    assert!(wall.servers.is_empty());

    let (id, key) = site.service.server_with_key(&newcomer, "first").await;
    let mut agent = FakeAgent::online(site.service.address, &key).await;
    let sample = sample_aged(1);
    agent.store(1, vec![sample.clone()]).await;

    assert_eq!(wall.until_sample(id, &sample).await["status"], "online");
}

#[actix_web::test]
async fn changes_of_a_server_are_announced() {
    let site = Site::start().await;
    let mut wall = Wall::of(&site, &site.owner).await;

    for body in [json!({"name": "renamed"}), json!({"tags": ["production"]}), json!({"tags": null})] {
        let call = site.service.client.put(format!("/servers/{}", site.server_id)).bearer(&site.owner.token);
        call.json(body.clone()).expect(200).await;

        assert_eq!(wall.dashboard.next().await, notice(), "{body}");
    }
}

#[actix_web::test]
async fn a_deleted_server_is_announced_and_no_longer_shown() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(5)]).await;
    let mut wall = Wall::of(&site, &site.owner).await;

    site.delete_server().await;
    wall.dashboard.until("servers").await;
    // The list was read again when the next created server is shown.
    let (next_id, _) = site.service.server_with_key(&site.owner, "web-3").await;
    wall.until_status(next_id, "pending").await;
    wall.servers.clear();
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let sample = sample_aged(1);
    other.store(1, vec![sample.clone()]).await;
    wall.until_sample(other_id, &sample).await;

    assert_eq!(wall.servers.keys().collect::<Vec<_>>(), [&other_id]);
}

#[actix_web::test]
async fn rapid_changes_are_announced_together() {
    let day = Duration::from_secs(24 * 3_600);
    let site = Site::start_with(|config| (config.timing.list_news, config.timing.server_list) = (day, day)).await;
    let mut wall = Wall::of(&site, &site.owner).await;

    let (id, key) = site.service.server_with_key(&site.owner, "web-2").await;
    assert_eq!(wall.dashboard.next().await, notice());
    assert_eq!(wall.next().await, [id]);
    for number in 3..=20 {
        site.service.server(&site.owner, &format!("web-{number}")).await;
    }
    // The next message is no change of the list, nor a consequence of one.
    let _agent = FakeAgent::online(site.service.address, &key).await;

    assert_eq!(wall.next().await, [id]);
    assert_eq!(wall.servers[&id]["status"], "online");
}

#[actix_web::test]
async fn other_users_lists_are_not_announced() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let mut wall = Wall::of(&site, &stranger).await;

    site.other_server().await;
    site.delete_server().await;
    let (id, _) = site.service.server_with_key(&stranger, "theirs").await;

    assert_eq!(wall.dashboard.next().await, notice());
    assert_eq!(wall.next().await, [id]);
    assert_eq!(wall.servers.keys().collect::<Vec<_>>(), [&id]);
}

#[actix_web::test]
async fn what_another_instance_did_is_found() {
    let site = Site::start_with(|config| config.timing.server_list = Duration::from_millis(200)).await;
    let mut wall = Wall::of(&site, &site.owner).await;

    // Directly in the store, like a change at another instance.
    let patch = ServerPatch { name: Some("renamed elsewhere".to_owned()), ..ServerPatch::default() };
    let store = &site.service.state.store;
    store.update_server(site.owner.id, site.server_id, patch, Actor::command_line(), Timestamp::now()).await.unwrap();
    assert_eq!(wall.dashboard.next().await, notice());

    store.delete_server(site.owner.id, site.server_id, Actor::command_line()).await.unwrap();
    assert_eq!(wall.dashboard.next().await, notice());
    assert_eq!(text_of(&site.read("/servers").await.to_string().into()), "[]");
}
