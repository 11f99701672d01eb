//! `POST /auth/refresh` and `/auth/logout`: which tokens are valid, and until when.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::tokens::claims_of;
use crate::support::{Account, Answer, TestService, eventually, keys_of, text_of};

async fn refresh(service: &TestService, token: &str) -> Answer {
    service.client.post("/auth/refresh").json(json!({"refresh_token": token})).send().await
}

/// Refreshes, and returns the new tokens of the same session.
async fn refreshed(service: &TestService, account: &Account) -> Account {
    let answer = refresh(service, &account.refresh_token).await;
    assert_eq!(answer.status, 200, "{answer}");
    let tokens = answer.json();
    Account {
        token: text_of(&tokens["access_token"]),
        refresh_token: text_of(&tokens["refresh_token"]),
        ..account.clone()
    }
}

async fn assert_alive(service: &TestService, account: &Account) {
    service.client.get("/auth/me").bearer(&account.token).expect(200).await;
    refreshed(service, account).await;
}

/// Asserts that neither token of the session is good for anything.
async fn assert_dead(service: &TestService, account: &Account) {
    service.client.get("/auth/me").bearer(&account.token).expect_refusal(401).await;
    let body = json!({"refresh_token": account.refresh_token});
    service.client.post("/auth/refresh").json(body).expect_refusal(401).await;
}

#[actix_web::test]
async fn a_refresh_gives_a_new_pair_of_the_same_session() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let tokens = refresh(&service, &account.refresh_token).await.json();

    assert_eq!(keys_of(&tokens), ["access_token", "refresh_token", "token_type"]);
    assert_eq!(tokens["token_type"], "bearer");
    assert_ne!(tokens["refresh_token"], account.refresh_token);
    assert_ne!(tokens["access_token"], account.token);
    let (old, new) = (claims_of(&account.token), claims_of(&text_of(&tokens["access_token"])));
    assert_eq!((&old["sub"], &old["sid"]), (&new["sub"], &new["sid"]));
    service.client.get("/auth/me").bearer(&text_of(&tokens["access_token"])).expect(200).await;
}

#[actix_web::test]
async fn a_session_can_be_refreshed_many_times() {
    let service = TestService::start().await;
    let mut account = service.register("alice").await;

    for _ in 0..5 {
        account = refreshed(&service, &account).await;
    }

    assert_alive(&service, &account).await;
}

#[actix_web::test]
async fn a_spent_token_kills_its_whole_session_and_no_other() {
    let service = TestService::start_with(|config| config.timing.refresh_grace = Duration::ZERO).await;
    let first = service.register("alice").await;
    let other_session = service.sign_in(&first).await;
    let second = refreshed(&service, &first).await;
    let third = refreshed(&service, &second).await;

    let body = json!({"refresh_token": first.refresh_token});
    service.client.post("/auth/refresh").json(body).expect_error(401, "token_reused").await;

    for dead in [&first, &second, &third] {
        assert_dead(&service, dead).await;
    }
    assert_alive(&service, &other_session).await;
}

#[actix_web::test]
async fn a_repeat_within_the_grace_gets_an_answer_again() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    refreshed(&service, &account).await;
    let repeated = refreshed(&service, &account).await;

    service.client.get("/auth/me").bearer(&repeated.token).expect(200).await;
    assert_alive(&service, &repeated).await;
}

#[actix_web::test]
async fn a_repeat_after_the_grace_is_a_reuse() {
    let service = TestService::start_with(|config| config.timing.refresh_grace = Duration::from_millis(300)).await;
    let account = service.register("alice").await;
    refreshed(&service, &account).await;

    let reused = eventually("the grace ends", async || {
        let answer = refresh(&service, &account.refresh_token).await;
        (answer.status != 200).then_some(answer)
    })
    .await;

    assert_eq!(reused.status, 401, "{reused}");
    assert_eq!(reused.json()["code"], "token_reused");
    assert_dead(&service, &account).await;
}

#[actix_web::test]
async fn many_refreshes_at_once_never_fork_the_session() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let answers = futures_util::future::join_all((0..8).map(|_| refresh(&service, &account.refresh_token))).await;

    // All but one are repeats within the grace period, so all get the same successor.
    let successors: BTreeSet<String> =
        answers.iter().map(|answer| text_of(&claims_of(&text_of(&answer.json()["refresh_token"]))["jti"])).collect();
    assert_eq!(successors.len(), 1);
    let successor = Account { refresh_token: text_of(&answers[0].json()["refresh_token"]), ..account };
    assert_alive(&service, &successor).await;
}

#[actix_web::test]
async fn a_token_is_never_taken_for_the_other_kind() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let body = json!({"refresh_token": account.token});
    service.client.post("/auth/refresh").json(body).expect_refusal(401).await;
    service.client.get("/auth/me").bearer(&account.refresh_token).expect_refusal(401).await;
    service.client.post("/auth/logout").bearer(&account.refresh_token).expect_refusal(401).await;

    assert_alive(&service, &account).await;
}

#[actix_web::test]
async fn what_is_no_refresh_token_is_refused() {
    let service = TestService::start().await;
    let refused = |body: Value| service.client.post("/auth/refresh").json(body);

    refused(json!({"refresh_token": "no.such.token"})).expect_refusal(401).await;
    refused(json!({"refresh_token": "x".repeat(4_000)})).expect_refusal(401).await;
    refused(json!({})).expect_faults(422, &[("body", "refresh_token", "value_error.missing")]).await;
    refused(json!({"refresh_token": 7})).expect_faults(422, &[("body", "refresh_token", "type_error.*")]).await;
}

#[actix_web::test]
async fn expired_tokens_are_named_so() {
    let service = TestService::start_with(|config| {
        config.timing.access_token = Duration::from_secs(1);
        config.timing.refresh_token = Duration::from_secs(1);
    })
    .await;
    let account = service.register("alice").await;

    let refused = eventually("the access token expires", async || {
        let answer = service.client.get("/auth/me").bearer(&account.token).send().await;
        (answer.status != 200).then_some(answer)
    })
    .await;

    assert_eq!(refused.status, 401, "{refused}");
    assert_eq!(refused.json()["code"], "token_expired");
    // Of the same age, so it has expired, too.
    let body = json!({"refresh_token": account.refresh_token});
    service.client.post("/auth/refresh").json(body).expect_error(401, "token_expired").await;
}

#[actix_web::test]
async fn logout_kills_both_tokens_of_its_session_at_once() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let other_session = service.sign_in(&account).await;

    let answer = service.client.post("/auth/logout").bearer(&account.token).expect(200).await;

    assert_eq!(answer["data"], Value::Null);
    assert!(!text_of(&answer["message"]).is_empty());
    assert_dead(&service, &account).await;
    service.client.post("/auth/logout").bearer(&account.token).expect_refusal(401).await;
    assert_alive(&service, &other_session).await;
}

#[actix_web::test]
async fn logout_takes_a_refresh_token_and_needs_a_bearer() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let body = json!({"refresh_token": account.refresh_token});

    service.client.post("/auth/logout").json(body.clone()).expect_refusal(401).await;
    service.client.post("/auth/logout").bearer(&account.token).json(body).expect(200).await;

    assert_dead(&service, &account).await;
}

#[actix_web::test]
async fn logout_kills_what_was_refreshed_before() {
    let service = TestService::start().await;
    let first = service.register("alice").await;
    let second = refreshed(&service, &first).await;

    service.client.post("/auth/logout").bearer(&second.token).expect(200).await;

    assert_dead(&service, &first).await;
    assert_dead(&service, &second).await;
}

#[actix_web::test]
async fn sessions_live_and_stay_dead_across_a_restart() {
    let service = TestService::start().await;
    let living = service.register("alice").await;
    let logged_out = service.sign_in(&living).await;
    service.client.post("/auth/logout").bearer(&logged_out.token).expect(200).await;
    let storage = service.stop().await;

    let restarted = TestService::start_on(storage, |_| {}).await;

    assert_dead(&restarted, &logged_out).await;
    assert_alive(&restarted, &living).await;
}

#[actix_web::test]
async fn a_reuse_is_known_after_a_restart() {
    let no_grace = |config: &mut signalbox::config::Config| config.timing.refresh_grace = Duration::ZERO;
    let service = TestService::start_with(no_grace).await;
    let first = service.register("alice").await;
    let second = refreshed(&service, &first).await;
    let storage = service.stop().await;

    let restarted = TestService::start_on(storage, no_grace).await;

    let body = json!({"refresh_token": first.refresh_token});
    restarted.client.post("/auth/refresh").json(body).expect_error(401, "token_reused").await;
    assert_dead(&restarted, &second).await;
}
