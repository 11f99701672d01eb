//! A dashboard outlives its token only by showing a new one.

use std::time::Duration;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::close::UNAUTHORIZED;

use crate::support::dashboard::Dashboard;
use crate::support::site::Site;
use crate::support::tokens::claims_of;
use crate::support::{Account, TestService};

/// Tokens that live for 16 s and are announced to end 8 s before: time enough for another one on a machine under load.
async fn site_with_short_tokens() -> Site {
    Site::start_with(|config| {
        config.timing.access_token = Duration::from_secs(16);
        config.timing.expiry_notice = Duration::from_secs(8);
    })
    .await
}

/// A dashboard with a token as fresh as can be, past its first message.
async fn fresh_dashboard(site: &Site) -> (Account, Dashboard) {
    let login = site.service.sign_in(&site.owner).await;
    let mut dashboard = Dashboard::watch(site.service.address, site.server_id, &login.token).await;
    dashboard.expect("status").await;
    (login, dashboard)
}

fn seconds_to_expiry(token: &str) -> f64 {
    let expiry = claims_of(token)["exp"].as_i64().unwrap();
    expiry as f64 - Timestamp::now().as_millis() as f64 / 1000.0
}

async fn expect_notice(dashboard: &mut Dashboard) {
    let message = dashboard.next().await;
    assert_eq!(message["type"], "token_expiring", "{message}");
}

async fn renewed(service: &TestService, login: &Account) -> Value {
    let body = json!({"refresh_token": login.refresh_token});
    service.client.post("/auth/refresh").json(body).expect(200).await
}

#[actix_web::test]
async fn an_expired_token_is_announced_and_then_closes_the_socket() {
    let site = site_with_short_tokens().await;
    let (login, mut dashboard) = fresh_dashboard(&site).await;

    expect_notice(&mut dashboard).await;
    let at_notice = seconds_to_expiry(&login.token);
    dashboard.expect_close(UNAUTHORIZED).await;
    let at_close = seconds_to_expiry(&login.token);

    assert!(at_notice > 0.0 && at_notice < 9.5, "announced {at_notice} s before the end");
    assert!(at_close < 0.5, "closed {at_close} s before the end");
}

#[actix_web::test]
async fn a_new_token_keeps_the_socket_open() {
    let site = site_with_short_tokens().await;
    let (login, mut dashboard) = fresh_dashboard(&site).await;
    expect_notice(&mut dashboard).await;

    let tokens = renewed(&site.service, &login).await;
    dashboard.send(json!({"type": "auth", "token": tokens["access_token"]})).await;

    // The next notice is for the new token, at a time when the first is over.
    expect_notice(&mut dashboard).await;
    assert!(seconds_to_expiry(&login.token) < 0.5, "the notice was for the old token");
    let _agent = site.agent().await;
    assert_eq!(dashboard.next().await, json!({"type": "status", "data": {"status": "online"}}));
}

#[actix_web::test]
async fn a_bad_token_closes_the_socket() {
    let site = Site::start().await;
    let garbage = "garbage".to_owned();
    let stranger = site.service.register("stranger").await.token;
    let refresh = site.owner.refresh_token.clone();

    for token in [garbage, stranger, refresh, site.key.clone()] {
        let mut dashboard = site.dashboard().await;
        dashboard.expect("status").await;
        dashboard.send(json!({"type": "auth", "token": token})).await;

        assert_eq!(dashboard.socket.close_code().await, UNAUTHORIZED, "{token}");
    }
}

#[actix_web::test]
async fn a_revoked_token_does_not_renew() {
    let site = Site::start().await;
    let revoked = site.service.sign_in(&site.owner).await;
    site.service.client.post("/auth/logout").bearer(&revoked.token).expect(200).await;
    let mut dashboard = site.dashboard().await;
    dashboard.expect("status").await;

    dashboard.send(json!({"type": "auth", "token": revoked.token})).await;

    dashboard.expect_close(UNAUTHORIZED).await;
}

#[actix_web::test]
async fn after_renewal_the_new_login_is_the_one_that_counts() {
    let site = Site::start().await;
    let newer = site.service.sign_in(&site.owner).await;
    let mut dashboard = site.dashboard().await;
    dashboard.expect("status").await;
    dashboard.send(json!({"type": "auth", "token": newer.token})).await;

    site.service.client.post("/auth/logout").bearer(&newer.token).expect(200).await;

    dashboard.expect_close(UNAUTHORIZED).await;
}
