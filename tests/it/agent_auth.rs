//! How an agent authenticates, and what the service does with a wrong key.

mod conflict;
mod refused;
mod sessions;

use std::time::{Duration, Instant};

use serde_json::json;
use signalbox_protocol::agent::{AuthResponse, ServiceMessage};
use signalbox_protocol::close::{AUTH_TIMEOUT, RESTARTING};
use signalbox_protocol::{Encoding, Timestamp};

use crate::support::agent::{FakeAgent, agent_info, auth, sample_aged};
use crate::support::raw::RawSocket;
use crate::support::site::Site;
use crate::support::{assert_timestamp, eventually, keys_of, text_of};

#[actix_web::test]
async fn a_key_opens_a_session() {
    let site = Site::start().await;
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;

    let answer = agent.authenticate(&site.key).await;

    let session_id = answer.session_id.expect("a session");
    let interval = answer.sample_interval_seconds.expect("an interval");
    assert!(interval > 0.0, "{interval}");
    let expected = AuthResponse { clock_offset_ms: answer.clock_offset_ms, ..accepted(&site, session_id, interval) };
    assert_eq!(answer, expected);
}

#[actix_web::test]
async fn the_interval_that_the_agents_owner_chose_is_kept() {
    let site = Site::start().await;
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
    let data = json!({"api_key": site.key, "protocol": 1, "agent": agent_info(), "sample_interval_seconds": 2.5});

    agent.send_value(&json!({"type": "auth", "data": data})).await;

    assert_eq!(agent.next_value().await["data"]["sample_interval_seconds"], 2.5);
}

fn accepted(site: &Site, session_id: uuid::Uuid, interval: f64) -> AuthResponse {
    AuthResponse::accepted(site.server_id, session_id, interval, 0)
}

#[actix_web::test]
async fn the_answer_on_the_wire_is_the_documented_envelope() {
    let site = Site::start().await;
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
    agent.send(&auth(&site.key)).await;

    let answer = agent.next_value().await;

    assert_eq!(answer["type"], "auth_response");
    assert_eq!(answer["data"]["success"], true);
    assert_eq!(answer["data"]["server_id"], json!(site.server_id));
    for field in ["session_id", "sample_interval_seconds", "ack_seq"] {
        assert!(!answer["data"][field].is_null(), "{field}: {answer}");
    }
    assert!(answer["data"]["code"].is_null() && answer["data"]["detail"].is_null(), "{answer}");
}

#[actix_web::test]
async fn the_service_answers_in_the_agents_encoding_on_both_paths() {
    let site = Site::start().await;

    for path in ["/agents/ws", "/api/v1/agents/ws"] {
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            let mut agent = FakeAgent::connect_at(site.service.address, path, encoding).await;

            let answer = agent.authenticate(&site.key).await;
            agent.store(1, vec![sample_aged(1)]).await;

            assert!(answer.success, "{path} {encoding:?}: {answer:?}");
        }
    }
}

#[actix_web::test]
async fn a_later_message_may_come_in_the_other_encoding() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let text = json!({"type": "metrics", "data": {"seq": 1, "samples": [sample_aged(1)]}}).to_string();

    agent.socket.send(tokio_tungstenite::tungstenite::Message::text(text)).await;

    agent.expect_ack(1).await;
}

#[actix_web::test]
async fn unknown_fields_and_types_of_a_newer_agent_are_ignored() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = FakeAgent::connect(site.service.address, encoding).await;
        let data = json!({
            "api_key": site.key,
            "protocol": 1,
            "agent": {"version": "9.0.0", "mood": "fine", "capabilities": ["metrics", "teleport"]},
            "nonce": [1, {"deep": null}],
        });

        agent.send_value(&json!({"type": "auth", "data": data, "trace": "abc"})).await;
        let answer = agent.next().await;
        agent.send_value(&json!({"type": "teleport", "data": {"to": [1, 2, {"x": null}]}})).await;
        agent.send_value(&json!({"type": "teleport"})).await;
        agent.store(1, vec![sample_aged(1)]).await;

        assert!(matches!(answer, ServiceMessage::AuthResponse(AuthResponse { success: true, .. })), "{answer:?}");
    }
}

#[actix_web::test]
async fn a_connection_that_shows_no_key_in_time_is_closed() {
    let site = Site::start_with(|config| config.timing.auth_deadline = Duration::from_millis(300)).await;
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;

    agent.expect_close(AUTH_TIMEOUT).await;
}

#[actix_web::test]
async fn the_deadline_of_the_key_does_not_end_a_session() {
    // Long enough for the agent that shows its key.
    let site = Site::start_with(|config| config.timing.auth_deadline = Duration::from_secs(6)).await;
    let mut agent = site.agent().await;
    let mut silent = FakeAgent::connect(site.service.address, Encoding::Json).await;
    silent.expect_close(AUTH_TIMEOUT).await;

    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn the_status_goes_from_pending_to_online_to_offline() {
    let site = Site::start().await;
    assert_eq!(site.server().await["status"], "pending");

    let agent = site.agent().await;
    site.until_status("online").await;
    agent.socket.close().await;

    site.until_status("offline").await;
}

#[actix_web::test]
async fn a_crashed_agent_is_offline_too() {
    let site = Site::start().await;
    let agent = site.agent().await;
    site.until_status("online").await;

    agent.socket.abort();

    site.until_status("offline").await;
}

#[actix_web::test]
async fn the_record_shows_the_agent_and_when_it_was_seen() {
    let site = Site::start().await;
    let before = site.server().await;
    assert!(before["agent"].is_null() && before["last_seen_at"].is_null(), "{before}");

    let _agent = site.agent().await;
    let server = site.until_status("online").await;

    let about = &server["agent"];
    let info = agent_info();
    assert_timestamp(&about["connected_at"]);
    let expected = json!({
        "version": info.version,
        "hostname": info.hostname,
        "os": info.os,
        "kernel": info.kernel,
        "arch": info.arch,
        "cpu_count": info.cpu_count,
        "capabilities": info.capabilities,
        "signing": null,
        "failed_update": null,
        "connected_at": about["connected_at"],
        "clock_offset_ms": about["clock_offset_ms"],
        "conflict": null,
    });
    assert_eq!(about, &expected);
    let offset = about["clock_offset_ms"].as_i64().unwrap();
    assert!(offset.abs() < 10_000, "one machine has one clock, but it is {offset} ms off");
    assert_timestamp(&server["last_seen_at"]);
}

#[actix_web::test]
async fn a_key_shows_when_it_was_last_used() {
    let site = Site::start().await;
    assert!(site.key_record().await["last_used_at"].is_null());

    let _agent = site.agent().await;

    let used = eventually("last_used_at", || async {
        let record = site.key_record().await;
        (!record["last_used_at"].is_null()).then_some(record)
    })
    .await;
    assert_timestamp(&used["last_used_at"]);
    assert!(!keys_of(&used).contains(&"key"), "a key is shown only once: {used}");
    let age = Timestamp::now().millis_since(Timestamp::parse(&text_of(&used["last_used_at"])).unwrap());
    assert!((0..60_000).contains(&age), "last used {age} ms ago");
}

#[actix_web::test]
async fn a_graceful_stop_tells_agents_to_come_back() {
    let site = Site::start().await;
    let mut json = site.agent().await;
    let (_, key) = site.other_server().await;
    let mut packed = FakeAgent::online_in(site.service.address, &key, Encoding::MessagePack).await;

    let stopping = site.stop();
    let closes = async {
        json.expect_close(RESTARTING).await;
        packed.expect_close(RESTARTING).await;
    };

    futures_util::future::join(stopping, closes).await;
}

#[actix_web::test]
async fn a_stop_does_not_wait_for_connections_that_show_no_key() {
    // None of them ends on its own in time.
    let site = Site::start_with(|config| config.timing.auth_deadline = Duration::from_secs(600)).await;
    let strangers = [RawSocket::agent(site.service.address).await, RawSocket::connect(site.service.address).await];
    let began = Instant::now();

    site.stop().await;

    assert!(began.elapsed() < Duration::from_secs(25), "it took {:?}", began.elapsed());
    for mut stranger in strangers {
        stranger.end().await;
    }
}
