//! Keys that open nothing, and first messages that are no key.

use serde_json::json;
use signalbox_protocol::agent::AuthResponse;
use signalbox_protocol::close::UNAUTHORIZED;
use signalbox_protocol::{Encoding, PROTOCOL_VERSION, Timestamp};

use crate::support::agent::{FakeAgent, agent_info, sample_aged};
use crate::support::eventually;
use crate::support::site::Site;

/// Asserts that the answer is a refusal with the fields of one, and that the socket closes with 4401.
async fn assert_refused(agent: &mut FakeAgent, answer: AuthResponse) {
    let code = answer.code.clone().unwrap_or_default();
    let detail = answer.detail.clone().unwrap_or_default();
    assert!(!code.is_empty() && !detail.is_empty(), "{answer:?}");
    assert_eq!(answer, AuthResponse::refused(&code, &detail));
    agent.expect_close(UNAUTHORIZED).await;
}

/// Other keys of the same shape, and things that are no key at all.
fn bad_keys(key: &str) -> Vec<String> {
    let last = if key.ends_with('a') { 'b' } else { 'a' };
    let wrong_secret = format!("{}{last}", &key[..key.len() - 1]);
    let first = if key.starts_with("sbk_a") { 'b' } else { 'a' };
    let unknown = format!("sbk_{first}{}", &key[5..]);
    let cut = key[..key.len() - 1].to_owned();
    let longer = format!("{key}a");
    let others = ["", "sbk_", "garbage", "sbk_\u{0}\u{0}", "' OR 1=1 --", "ключ"].map(str::to_owned);
    let long = "sbk_".to_owned() + &"x".repeat(8_000);
    [vec![wrong_secret, unknown, cut, longer, key.to_uppercase(), format!(" {key}"), long], others.to_vec()].concat()
}

#[actix_web::test]
async fn a_wrong_or_unknown_key_is_refused_in_both_encodings() {
    let site = Site::start().await;

    for key in bad_keys(&site.key) {
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            let mut agent = FakeAgent::connect(site.service.address, encoding).await;
            let answer = agent.authenticate(&key).await;

            assert!(!answer.success, "{key:?} was taken");
            assert_refused(&mut agent, answer).await;
        }
    }

    assert_eq!(site.server().await["status"], "pending");
}

#[actix_web::test]
async fn an_expired_key_is_refused() {
    let site = Site::start().await;
    let (key, expires_at) = site.short_key().await;

    let (mut agent, answer) = eventually("the key has expired", || async {
        let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
        let answer = agent.authenticate(&key).await;
        // For a moment only one clock says so: "come back later".
        let is_for_good = !answer.success && answer.code.as_deref() != Some("overloaded");
        is_for_good.then_some((agent, answer))
    })
    .await;

    assert!(Timestamp::now() >= expires_at, "refused before its time");
    assert_refused(&mut agent, answer).await;
}

#[actix_web::test]
async fn a_revoked_key_is_refused() {
    let site = Site::start().await;
    site.revoke_key().await;
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;

    let answer = agent.authenticate(&site.key).await;

    assert_refused(&mut agent, answer).await;
}

#[actix_web::test]
async fn the_key_of_a_deleted_server_is_refused() {
    let site = Site::start().await;
    site.delete_server().await;
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;

    let answer = agent.authenticate(&site.key).await;

    assert!(!answer.success, "{answer:?}");
    let code = agent.socket.close_code().await;
    assert!([4401, 4404].contains(&code), "closed with {code}");
}

#[actix_web::test]
async fn a_users_token_is_no_key() {
    let site = Site::start().await;

    for token in [&site.owner.token, &site.owner.refresh_token] {
        let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
        let answer = agent.authenticate(token).await;

        assert_refused(&mut agent, answer).await;
    }
}

#[actix_web::test]
async fn a_key_is_no_token_of_the_rest_api() {
    let site = Site::start().await;
    let metrics = format!("/metrics/{}", site.server_id);

    for path in ["/servers", "/auth/me", "/api-keys/me", metrics.as_str()] {
        site.service.client.get(path).bearer(&site.key).expect_refusal(401).await;
    }
}

#[actix_web::test]
async fn a_first_message_that_is_no_auth_closes_and_stores_nothing() {
    let site = Site::start().await;
    let metrics = json!({"type": "metrics", "data": {"seq": 1, "samples": [sample_aged(1)]}});
    let response = json!({"type": "response", "data": {"request_id": site.server_id, "ok": true, "result": {}}});

    for message in [metrics, response] {
        let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
        agent.send_value(&message).await;

        let code = agent.socket.close_code().await;
        assert!([4400, 4401].contains(&code), "{message} closed with {code}");
    }

    site.expect_no_metrics().await;
    assert_eq!(site.server().await["status"], "pending");
}

#[actix_web::test]
async fn an_unsupported_protocol_version_is_refused_with_a_code() {
    let site = Site::start().await;

    for version in [0, PROTOCOL_VERSION + 1, u32::MAX] {
        let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
        let data = json!({"api_key": site.key, "protocol": version, "agent": agent_info()});
        agent.send_value(&json!({"type": "auth", "data": data})).await;
        let answer = agent.next_value().await;

        assert_eq!(answer["type"], "auth_response", "{answer}");
        assert_eq!(answer["data"]["success"], false, "{answer}");
        assert!(answer["data"]["code"].as_str().is_some_and(|code| code.contains("protocol")), "{answer}");
        let code = agent.socket.close_code().await;
        assert!((4400..4500).contains(&code), "closed with {code}");
    }

    assert_eq!(site.server().await["status"], "pending");
}
