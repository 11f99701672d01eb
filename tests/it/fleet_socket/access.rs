//! Who may watch all of their servers, and for how long.

use std::time::Duration;

use serde_json::json;
use signalbox::feeds::Topic;

use super::{PATHS, Wall};
use crate::support::agent::sample_aged;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::eventually;
use crate::support::site::Site;

#[actix_web::test]
async fn the_token_is_taken_in_three_ways_on_both_paths() {
    let site = Site::start().await;

    for path in PATHS {
        for pass in Pass::three_ways(&site.owner.token) {
            let mut dashboard = Dashboard::open(site.service.address, path, pass, &[]).await.unwrap();
            let servers = dashboard.expect("fleet").await["servers"].take();
            assert_eq!(servers[0]["server_id"], json!(site.server_id), "{path} {pass:?}");
        }
    }
}

#[actix_web::test]
async fn without_a_good_token_there_is_no_upgrade() {
    Site::start().await.refuses_who_may_not_watch(&PATHS).await;
}

#[actix_web::test]
async fn a_plain_request_is_no_upgrade() {
    let site = Site::start().await;

    let call = site.service.client.get("/ws/fleet").bearer(&site.owner.token);

    call.expect_error(400, "bad_request").await;
}

#[actix_web::test]
async fn it_ends_with_the_login_and_not_with_a_server() {
    let site = Site::start().await;
    let mut wall = Wall::of(&site, &site.owner).await;

    site.delete_server().await;
    wall.dashboard.until("servers").await;

    site.service.client.post("/auth/logout").bearer(&site.owner.token).expect(200).await;
    wall.dashboard.expect_close(4401).await;
    let topic = Topic::Presence(site.owner.id);
    eventually("nobody watches", || async { (!site.service.state.feeds.is_watched(topic)).then_some(()) }).await;
}

#[actix_web::test]
async fn it_closes_when_the_service_stops() {
    let site = Site::start().await;
    let mut wall = Wall::of(&site, &site.owner).await;

    let stopped = actix_web::rt::spawn(site.stop());
    wall.dashboard.expect_close(1012).await;
    stopped.await.unwrap();
}

#[actix_web::test]
async fn a_new_token_keeps_it_going() {
    let site = Site::start_with(|config| {
        // Between the notice and the end all that follows has its time on a machine under load.
        config.timing.access_token = Duration::from_secs(16);
        config.timing.expiry_notice = Duration::from_secs(8);
    })
    .await;
    let mut agent = site.agent().await;
    let login = site.service.sign_in(&site.owner).await;
    let mut wall = Wall::of(&site, &login).await;
    wall.dashboard.until("token_expiring").await;

    let body = json!({"refresh_token": login.refresh_token});
    let tokens = site.service.client.post("/auth/refresh").json(body).expect(200).await;
    wall.dashboard.send(json!({"type": "auth", "token": tokens["access_token"]})).await;
    // The next notice is for the new token, at a time when the first is over.
    wall.dashboard.until("token_expiring").await;

    let sample = sample_aged(1);
    agent.store(1, vec![sample.clone()]).await;
    wall.until_sample(site.server_id, &sample).await;
    drop(agent);
    wall.until_status(site.server_id, "offline").await;
}
