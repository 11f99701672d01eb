//! `/ws/metrics/{server_id}`: the messages of a dashboard.

mod access;
mod expiry;
mod fast;

use serde_json::{Value, json};
use signalbox_protocol::Encoding;
use signalbox_protocol::close::{RESTARTING, SERVER_DELETED, UNAUTHORIZED};

use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;
use crate::support::{PASSWORD, keys_of};

fn status(status: &str) -> Value {
    json!({"type": "status", "data": {"status": status}})
}

#[actix_web::test]
async fn before_any_agent_it_says_pending_and_nothing_else() {
    let site = Site::start().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.next().await, status("pending"));

    let _agent = site.agent().await;

    // Its next message is about the agent, so there was no metrics message.
    assert_eq!(dashboard.next().await, status("online"));
}

#[actix_web::test]
async fn it_begins_with_the_status_and_the_latest_metrics() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(5), sample_aged(2)]).await;

    let mut dashboard = site.dashboard().await;

    assert_eq!(dashboard.next().await, status("online"));
    assert_eq!(dashboard.next().await, json!({"type": "metrics", "data": site.latest().await}));
}

#[actix_web::test]
async fn the_latest_metrics_are_shown_while_the_agent_is_away() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(2)]).await;
    agent.socket.close().await;
    site.until_status("offline").await;

    let mut dashboard = site.dashboard().await;

    assert_eq!(dashboard.next().await, status("offline"));
    assert_eq!(dashboard.next().await, json!({"type": "metrics", "data": site.latest().await}));
}

#[actix_web::test]
async fn every_sample_arrives_as_the_snapshot_that_rest_gives() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut dashboard = site.dashboard().await;
        let mut agent = site.agent_in(encoding).await;
        assert_eq!(dashboard.next().await, status("pending"));
        assert_eq!(dashboard.next().await, status("online"));

        for seq in 1..=5 {
            agent.store(seq, vec![sample_aged(10 - seq as i64)]).await;

            let message = dashboard.next().await;
            assert_eq!(keys_of(&message), ["data", "type"]);
            assert_eq!(message, json!({"type": "metrics", "data": site.latest().await}));
        }
    }
}

#[actix_web::test]
async fn samples_of_an_outage_that_follow_live_ones_are_stored_and_not_shown() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.next().await, status("online"));

    agent.store(1, vec![sample_aged(10)]).await;
    agent.store(2, vec![sample_aged(600), sample_aged(595)]).await;
    agent.store(3, vec![sample_aged(5)]).await;

    let shown = [dashboard.expect("metrics").await, dashboard.expect("metrics").await];
    let kept = site.raw_timestamps().await;
    assert_eq!(kept.len(), 4);
    assert_eq!(shown.map(|metrics| metrics["timestamp"].clone()).to_vec(), kept[2..]);
}

#[actix_web::test]
async fn an_agent_whose_clock_was_ahead_and_was_put_right_is_shown_at_once() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.next().await, status("online"));
    agent.store(1, vec![sample_aged(-3600)]).await;
    dashboard.expect("metrics").await;

    let right = sample_aged(1);
    agent.store(2, vec![right.clone()]).await;

    assert_eq!(dashboard.expect("metrics").await["timestamp"], right.timestamp.to_string());
}

#[actix_web::test]
async fn the_status_follows_the_agent() {
    let site = Site::start().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.next().await, status("pending"));

    for _ in 0..3 {
        let agent = site.agent().await;
        assert_eq!(dashboard.next().await, status("online"));
        agent.socket.abort();
        assert_eq!(dashboard.next().await, status("offline"));
    }
}

#[actix_web::test]
async fn a_replaced_session_is_no_change_of_status() {
    let site = Site::start().await;
    let mut first = site.agent().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.next().await, status("online"));

    let mut second = site.agent().await;
    first.expect_close(4409).await;
    second.store(1, vec![sample_aged(1)]).await;

    loop {
        let message = dashboard.next().await;
        assert_ne!(message, status("offline"));
        if message["type"] == "metrics" {
            break;
        }
    }
}

#[actix_web::test]
async fn two_dashboards_receive_the_same() {
    let site = Site::start().await;
    let mut first = site.dashboard().await;
    let mut second = site.dashboard().await;
    let mut agent = site.agent().await;

    for seq in 1..=5 {
        agent.store(seq, vec![sample_aged(10 - seq as i64)]).await;
    }
    agent.socket.close().await;

    for _ in 0..2 + 5 + 1 {
        assert_eq!(first.next().await, second.next().await);
    }
}

#[actix_web::test]
async fn a_dashboard_hears_of_its_own_server_only() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.next().await, status("pending"));

    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    other.store(1, vec![sample_aged(1)]).await;
    let _agent = site.agent().await;

    assert_eq!(dashboard.next().await, status("online"));
}

#[actix_web::test]
async fn logout_closes_the_dashboards_of_that_login_only() {
    let site = Site::start().await;
    let elsewhere = site.service.sign_in(&site.owner).await;
    let mut dashboard = site.dashboard().await;
    let mut other = Dashboard::watch(site.service.address, site.server_id, &elsewhere.token).await;
    other.expect("status").await;

    site.service.client.post("/auth/logout").bearer(&site.owner.token).expect(200).await;

    dashboard.expect_close(UNAUTHORIZED).await;
    let _agent = site.agent().await;
    assert_eq!(other.next().await, status("online"));
}

#[actix_web::test]
async fn a_changed_password_closes_the_dashboards_of_other_logins() {
    let site = Site::start().await;
    let elsewhere = site.service.sign_in(&site.owner).await;
    let mut dashboard = site.dashboard().await;
    dashboard.expect("status").await;
    let mut other = Dashboard::watch(site.service.address, site.server_id, &elsewhere.token).await;

    let body = json!({"current_password": PASSWORD, "new_password": "another good one"});
    site.service.client.post("/auth/change-password").bearer(&site.owner.token).json(body).expect(200).await;

    other.expect_close(UNAUTHORIZED).await;
    let _agent = site.agent().await;
    assert_eq!(dashboard.next().await, status("online"));
}

#[actix_web::test]
async fn an_ended_session_closes_its_dashboards() {
    let site = Site::start().await;
    let elsewhere = site.service.sign_in(&site.owner).await;
    let mut other = Dashboard::watch(site.service.address, site.server_id, &elsewhere.token).await;
    let sessions = site.read("/auth/sessions").await;
    let newest = sessions[0]["id"].as_str().unwrap();

    site.service.client.delete(format!("/auth/sessions/{newest}")).bearer(&site.owner.token).expect(200).await;

    other.expect_close(UNAUTHORIZED).await;
}

#[actix_web::test]
async fn a_deleted_server_closes_its_dashboards() {
    let site = Site::start().await;
    let mut dashboard = site.dashboard().await;
    dashboard.expect("status").await;

    site.delete_server().await;

    dashboard.expect_close(SERVER_DELETED).await;
}

#[actix_web::test]
async fn a_graceful_stop_tells_dashboards_to_come_back() {
    let site = Site::start().await;
    let mut header = site.dashboard().await;
    let path = format!("/ws/metrics/{}", site.server_id);
    let pass = Pass::Query(&site.owner.token);
    let mut query = Dashboard::open(site.service.address, &path, pass, &[]).await.expect("a dashboard");

    let stopping = site.stop();
    let closes = async {
        header.expect_close(RESTARTING).await;
        query.expect_close(RESTARTING).await;
    };

    futures_util::future::join(stopping, closes).await;
}
