//! Who may watch and search, and what a request must contain.

use serde_json::json;
use signalbox_protocol::close::{RESTARTING, SERVER_DELETED, UNAUTHORIZED};
use uuid::Uuid;

use super::watch;
use crate::support::agent::sample_aged;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;

/// The status of a refused upgrade, 101 for one that was granted.
async fn outcome(site: &Site, path: &str, pass: Pass<'_>) -> u16 {
    Dashboard::open(site.service.address, path, pass, &[]).await.map_or_else(|status| status, |_| 101)
}

#[actix_web::test]
async fn the_token_is_taken_in_three_ways_on_both_paths() {
    let site = Site::start().await;
    let token = &site.owner.token;

    for path in [format!("/ws/logs/{}", site.server_id), format!("/api/v1/ws/logs/{}", site.server_id)] {
        for pass in Pass::three_ways(token) {
            assert_eq!(outcome(&site, &path, pass).await, 101, "{path} {pass:?}");
        }
        assert_eq!(outcome(&site, &path, Pass::Nothing).await, 401);
        assert_eq!(outcome(&site, &path, Pass::Query("garbage")).await, 401);
    }
}

#[actix_web::test]
async fn a_strangers_server_is_not_found() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;

    for server_id in [site.server_id, Uuid::now_v7()] {
        let path = format!("/ws/logs/{server_id}");
        assert_eq!(outcome(&site, &path, Pass::Header(&stranger.token)).await, 404);
        let search = site.service.client.get(format!("/logs/{server_id}")).bearer(&stranger.token);
        search.expect_error(404, "not_found").await;
    }
    assert_eq!(site.service.state.logs.streams(), 0);
}

#[actix_web::test]
async fn a_request_that_does_not_say_which_log_is_refused_before_the_upgrade() {
    let site = Site::start().await;
    let cases = [
        ("source=mail", "source", "type_error.enum"),
        ("source=file", "path", "value_error.missing"),
        ("source=file&path=var/log/syslog", "path", "value_error.path"),
        ("source=container", "container_id", "value_error.missing"),
        ("source=container&container_id=a/b", "container_id", "value_error.str.regex"),
        ("tail=10001", "tail", "value_error.number.not_le"),
        ("tail=x", "tail", "type_error.integer"),
    ];

    for (query, field, kind) in cases {
        let path = format!("/ws/logs/{}?{query}", site.server_id);
        assert_eq!(outcome(&site, &path, Pass::Header(&site.owner.token)).await, 422, "{query}");
        for path in [format!("/logs/{}?{query}", site.server_id), format!("/ws/logs/{}?{query}", site.server_id)] {
            let answer = site.service.client.get(path).bearer(&site.owner.token).send().await;
            assert_eq!(answer.status, 422, "{query}");
            let fault = &answer.json()["detail"][0];
            assert_eq!((&fault["loc"], &fault["type"]), (&json!(["query", field]), &json!(kind)), "{query}");
        }
    }
}

#[actix_web::test]
async fn a_plain_request_is_no_upgrade() {
    let site = Site::start().await;

    let answer = site.service.client.get(format!("/ws/logs/{}", site.server_id)).bearer(&site.owner.token).send().await;

    assert_eq!(answer.status, 400, "{answer}");
    assert_eq!(site.service.state.logs.streams(), 0);
}

#[actix_web::test]
async fn another_sites_page_may_not_watch() {
    let site = Site::start().await;
    let path = format!("/ws/logs/{}", site.server_id);
    let origin = [("Origin", "https://evil.example")];

    let opened = Dashboard::open(site.service.address, &path, Pass::Query(&site.owner.token), &origin).await;

    assert_eq!(opened.err(), Some(403));
}

#[actix_web::test]
async fn the_end_of_the_login_the_server_or_the_service_closes_the_socket() {
    let site = Site::start().await;
    let elsewhere = site.service.sign_in(&site.owner).await;
    let path = format!("/ws/logs/{}", site.server_id);
    let pass = Pass::Header(&elsewhere.token);
    let mut other_login = Dashboard::open(site.service.address, &path, pass, &[]).await.unwrap();
    let mut of_server = watch(&site, "").await;

    site.service.client.post("/auth/logout").bearer(&elsewhere.token).expect(200).await;
    other_login.expect_close(UNAUTHORIZED).await;
    site.delete_server().await;
    of_server.expect_close(SERVER_DELETED).await;

    let (server_id, _) = site.other_server().await;
    let path = format!("/ws/logs/{server_id}");
    let pass = Pass::Header(&site.owner.token);
    let mut last = Dashboard::open(site.service.address, &path, pass, &[]).await.unwrap();
    futures_util::future::join(site.stop(), last.expect_close(RESTARTING)).await;
}

#[actix_web::test]
async fn a_log_socket_hears_nothing_but_its_log() {
    let site = Site::start().await;
    let mut dashboard = watch(&site, "").await;
    dashboard.expect("error").await;

    let mut agent = site.agent().await;
    let start = super::expect_start(&mut agent).await;
    agent.store(1, vec![sample_aged(1)]).await;
    super::send_lines(&mut agent, start.stream_id, &["line"]).await;

    assert_eq!(super::message(&mut dashboard).await, "line");
}
