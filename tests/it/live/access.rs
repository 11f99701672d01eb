//! Who may watch: the token in three forms, the server, and the page's origin.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use crate::support::dashboard::{Dashboard, Pass, metrics_path};
use crate::support::eventually;
use crate::support::site::Site;

/// The status of a refused upgrade, 101 for one that was granted.
async fn outcome(site: &Site, path: &str, pass: Pass<'_>, headers: &[(&str, &str)]) -> u16 {
    match Dashboard::open(site.service.address, path, pass, headers).await {
        Ok(mut dashboard) => {
            dashboard.expect("status").await;
            101
        }
        Err(status) => status,
    }
}

fn both_paths(server_id: Uuid) -> [String; 2] {
    [format!("/ws/metrics/{server_id}"), format!("/api/v1/ws/metrics/{server_id}")]
}

#[actix_web::test]
async fn the_token_is_taken_in_three_ways_on_both_paths() {
    let site = Site::start().await;

    for path in both_paths(site.server_id) {
        for pass in Pass::three_ways(&site.owner.token) {
            assert_eq!(outcome(&site, &path, pass, &[]).await, 101, "{path} {pass:?}");
        }
    }
}

#[actix_web::test]
async fn the_subprotocol_is_answered_without_the_token() {
    let site = Site::start().await;
    let pass = Pass::Subprotocol(&site.owner.token);

    let dashboard = Dashboard::open(site.service.address, &metrics_path(site.server_id), pass, &[]).await;

    let headers = dashboard.expect("a dashboard").socket.headers;
    assert_eq!(headers.get("Sec-WebSocket-Protocol").unwrap(), "bearer");
}

#[actix_web::test]
async fn the_subprotocols_may_come_on_lines_of_their_own() {
    let site = Site::start().await;
    let lines = [("Sec-WebSocket-Protocol", "bearer"), ("Sec-WebSocket-Protocol", site.owner.token.as_str())];

    let dashboard = Dashboard::open(site.service.address, &metrics_path(site.server_id), Pass::Nothing, &lines).await;

    let headers = dashboard.expect("a dashboard").socket.headers;
    assert_eq!(headers.get("Sec-WebSocket-Protocol").unwrap(), "bearer");
}

#[actix_web::test]
async fn without_a_good_token_there_is_no_upgrade() {
    let site = Site::start().await;
    let forged = format!("{}x", &site.owner.token[..site.owner.token.len() - 1]);
    let bad = ["garbage", forged.as_str(), site.owner.refresh_token.as_str(), site.key.as_str()];

    for path in both_paths(site.server_id) {
        assert_eq!(outcome(&site, &path, Pass::Nothing, &[]).await, 401, "{path}");
        for pass in bad.into_iter().flat_map(Pass::three_ways) {
            assert_eq!(outcome(&site, &path, pass, &[]).await, 401, "{path} {pass:?}");
        }
    }
}

#[actix_web::test]
async fn a_revoked_token_opens_nothing() {
    let site = Site::start().await;
    site.service.client.post("/auth/logout").bearer(&site.owner.token).expect(200).await;

    for pass in Pass::three_ways(&site.owner.token) {
        assert_eq!(outcome(&site, &metrics_path(site.server_id), pass, &[]).await, 401, "{pass:?}");
    }
}

#[actix_web::test]
async fn an_expired_token_opens_nothing() {
    let site = Site::start().await;
    // The owner's own token is older, and lasts.
    let site = site.restart_with(|config| config.timing.access_token = Duration::from_secs(1)).await;
    let login = site.service.sign_in(&site.owner).await;
    eventually("the token has expired", || async {
        let answer = site.service.client.get("/auth/me").bearer(&login.token).send().await;
        (answer.status == 401).then_some(())
    })
    .await;

    for pass in Pass::three_ways(&login.token) {
        assert_eq!(outcome(&site, &metrics_path(site.server_id), pass, &[]).await, 401, "{pass:?}");
    }
}

#[actix_web::test]
async fn an_unknown_and_a_strangers_server_are_both_not_found() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;

    for pass in Pass::three_ways(&stranger.token) {
        for server_id in [site.server_id, Uuid::now_v7(), Uuid::nil()] {
            assert_eq!(outcome(&site, &metrics_path(server_id), pass, &[]).await, 404, "{server_id}");
        }
    }
}

#[actix_web::test]
async fn without_a_token_an_unknown_server_is_not_revealed() {
    let site = Site::start().await;

    assert_eq!(outcome(&site, &metrics_path(Uuid::now_v7()), Pass::Nothing, &[]).await, 401);
}

#[actix_web::test]
async fn another_sites_page_may_not_watch() {
    let site = Site::start().await;
    let near_misses = [
        "https://evil.example".to_owned(),
        "null".to_owned(),
        format!("http://{}.evil.example", site.service.address.ip()),
        format!("http://{}:1", site.service.address.ip()),
        "http://localhost.evil.example".to_owned(),
    ];

    for origin in &near_misses {
        for pass in Pass::three_ways(&site.owner.token) {
            let status = outcome(&site, &metrics_path(site.server_id), pass, &[("Origin", origin)]).await;
            assert_eq!(status, 403, "{origin} {pass:?}");
        }
    }
}

#[actix_web::test]
async fn the_services_own_page_may_watch() {
    let site = Site::start().await;
    let origin = format!("http://{}", site.service.address);

    let path = metrics_path(site.server_id);
    assert_eq!(outcome(&site, &path, Pass::Query(&site.owner.token), &[("Origin", &origin)]).await, 101);
}

#[actix_web::test]
async fn the_page_of_an_allowed_origin_may_watch_and_no_other() {
    let site = Site::start_with(|config| config.allowed_origins = vec!["https://ops.example".to_owned()]).await;
    let path = metrics_path(site.server_id);
    let pass = Pass::Subprotocol(&site.owner.token);

    assert_eq!(outcome(&site, &path, pass, &[("Origin", "https://ops.example")]).await, 101);
    for origin in ["http://ops.example", "https://ops.example.evil.example", "https://ops.example:8443"] {
        assert_eq!(outcome(&site, &path, pass, &[("Origin", origin)]).await, 403, "{origin}");
    }
}

#[actix_web::test]
async fn the_page_at_the_public_address_may_watch() {
    let site = Site::start_with(|config| config.public_url = Some("https://signalbox.example".to_owned())).await;
    let path = metrics_path(site.server_id);
    let pass = Pass::Query(&site.owner.token);

    assert_eq!(outcome(&site, &path, pass, &[("Origin", "https://signalbox.example")]).await, 101);
}

#[actix_web::test]
async fn a_plain_request_is_no_upgrade_and_no_server_error() {
    let site = Site::start().await;
    let path = format!("/ws/metrics/{}", site.server_id);

    let answer = site.service.client.get(&path).bearer(&site.owner.token).send().await;

    assert!((400..500).contains(&answer.status), "{answer}");
    assert_eq!(answer.json()["status_code"], json!(answer.status));
}
