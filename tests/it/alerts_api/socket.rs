//! `WS /ws/alerts`: who may watch, and what is sent at once.

use std::collections::HashSet;

use serde_json::json;
use signalbox::feeds::{FeedFrame, Topic};

use super::alerts::{open_alert, recover};
use super::of_server;
use crate::support::agent::sample_aged;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;
use crate::support::{Account, eventually};

const PATHS: [&str; 2] = ["/ws/alerts", "/api/v1/ws/alerts"];

async fn watch(site: &Site, account: &Account) -> Dashboard {
    let dashboard = Dashboard::open(site.service.address, PATHS[1], Pass::Header(&account.token), &[]).await;
    dashboard.expect("the dashboard was refused")
}

/// Waits until a dashboard watches the account's alerts.
async fn until_watched(site: &Site, account: &Account) {
    let topic = Topic::Alerts(account.id);
    eventually("the socket watches", || async { site.service.state.feeds.is_watched(topic).then_some(()) }).await;
}

/// Sends something to the dashboards that watch the owner's alerts.
fn publish(site: &Site, text: &'static str) {
    site.service.state.feeds.publish(Topic::Alerts(site.owner.id), FeedFrame::Event(text.into()));
}

#[actix_web::test]
async fn the_token_is_taken_in_three_ways_on_both_paths() {
    let site = Site::start().await;
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    let alert = open_alert(&site, &threshold, "warning").await;

    for path in PATHS {
        for pass in Pass::three_ways(&site.owner.token) {
            let mut dashboard = Dashboard::open(site.service.address, path, pass, &[]).await.unwrap();
            assert_eq!(dashboard.expect("alert").await["id"], json!(alert.id), "{path} {pass:?}");
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

    site.get("/ws/alerts").expect_error(400, "bad_request").await;
}

#[actix_web::test]
async fn unresolved_alerts_are_sent_at_once_and_others_as_they_come() {
    let site = Site::start().await;
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    let resolved = open_alert(&site, &threshold, "warning").await;
    site.post(format!("/alerts/{}/resolve", resolved.id)).expect(200).await;
    recover(&site, resolved.id).await;
    let active = open_alert(&site, &threshold, "warning").await;
    let cpu = site.new_threshold(site.cpu_threshold()).await;
    let acknowledged = open_alert(&site, &cpu, "critical").await;
    site.post(format!("/alerts/{}/acknowledge", acknowledged.id)).expect(200).await;

    let mut dashboard = watch(&site, &site.owner).await;
    dashboard.send(json!({"type": "ping"})).await;
    let first = dashboard.expect("alert").await;
    let second = dashboard.expect("alert").await;
    // The end of what was open before.
    dashboard.expect("pong").await;
    publish(&site, r#"{"type":"alert","data":{"id":"later"}}"#);
    let third = dashboard.until("alert").await;

    let listed = site.read("/alerts").await;
    assert_eq!((&first["id"], &second["id"]), (&json!(active.id), &json!(acknowledged.id)));
    assert_eq!((&first, &second), (&listed[1], &listed[0]));
    assert_eq!(third["id"], "later");
}

#[actix_web::test]
async fn a_burst_of_alerts_arrives_whole() {
    const ALERTS: usize = 90;
    let site = Site::start().await;
    for limit in 1..=ALERTS {
        let threshold =
            json!({"server_id": site.server_id, "metric_type": "cpu", "threshold_value": limit, "comparison": "gt"});
        site.post("/alerts/thresholds").json(threshold).expect(201).await;
    }
    let mut dashboard = watch(&site, &site.owner).await;
    until_watched(&site, &site.owner).await;

    let mut agent = site.agent().await;
    let mut sample = sample_aged(0);
    sample.cpu_percent = 99.0;
    agent.store(1, vec![sample]).await;
    let mut limits = HashSet::new();
    for _ in 0..ALERTS {
        limits.insert(dashboard.expect("alert").await["threshold_value"].to_string());
    }

    assert_eq!(limits.len(), ALERTS);
}

#[actix_web::test]
async fn users_receive_only_their_own() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    open_alert(&site, &threshold, "warning").await;

    let mut theirs = watch(&site, &stranger).await;
    until_watched(&site, &stranger).await;
    publish(&site, r#"{"type":"alert","data":{"id":"not theirs"}}"#);
    let message = r#"{"type":"alert","data":{"id":"theirs"}}"#;
    let topic = Topic::Alerts(stranger.id);
    site.service.state.feeds.publish(topic, FeedFrame::Event(message.into()));

    assert_eq!(theirs.expect("alert").await["id"], "theirs");
}

#[actix_web::test]
async fn it_ends_with_the_login_and_not_with_a_server() {
    let site = Site::start().await;
    let mut dashboard = watch(&site, &site.owner).await;
    until_watched(&site, &site.owner).await;

    site.delete_server().await;
    publish(&site, r#"{"type":"alert","data":{"id":"still there"}}"#);
    assert_eq!(dashboard.expect("alert").await["id"], "still there");

    site.service.client.post("/auth/logout").bearer(&site.owner.token).expect(200).await;
    dashboard.expect_close(4401).await;
}

#[actix_web::test]
async fn it_closes_when_the_service_stops() {
    let site = Site::start().await;
    let mut dashboard = watch(&site, &site.owner).await;
    until_watched(&site, &site.owner).await;

    let stopped = actix_web::rt::spawn(site.stop());
    dashboard.expect_close(1012).await;
    stopped.await.unwrap();
}
