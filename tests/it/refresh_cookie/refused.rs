//! Cookies that are good for nothing, and faults of the request. No refusal touches a cookie: its answer may come after
//! that of a sign-in in another tab.

use std::time::Duration;

use serde_json::json;

use super::{alice, assert_alive, assert_dead, assert_untouched, name_of, refresh, refreshed};
use crate::support::{Account, PASSWORD, TestService, eventually, registration};

#[actix_web::test]
async fn a_spent_cookie_ends_its_session() {
    let service = TestService::start_with(|config| config.timing.refresh_grace = Duration::ZERO).await;
    let first = alice(&service).await;
    let second = refreshed(&service, &first).await;
    let third = refreshed(&service, &second).await;

    let reused = refresh(&service, &first.refresh_token).expect_answer(401).await;
    let ended = refresh(&service, &third.refresh_token).expect_answer(401).await;

    assert_eq!((&reused.json()["code"], &ended.json()["code"]), (&json!("token_reused"), &json!("token_revoked")));
    assert_untouched(&reused);
    assert_untouched(&ended);
    assert_dead(&service, &third).await;
}

#[actix_web::test]
async fn a_cookie_that_is_no_refresh_token_is_refused() {
    let service = TestService::start().await;
    let account = alice(&service).await;

    for bad in ["", "no.such.token", "%00%ff", &account.token, &"x".repeat(4_000)] {
        let answer = refresh(&service, bad).expect_answer(401).await;
        assert_eq!(answer.json()["code"], "token_invalid", "{bad}");
        assert_untouched(&answer);
    }

    assert_alive(&service, &account).await;
}

#[actix_web::test]
async fn a_missing_cookie_is_a_bad_token() {
    let service = TestService::start().await;
    let refresh = || service.client.post("/auth/refresh").header("X-Refresh-Cookie", "1");

    refresh().expect_error(401, "token_invalid").await;
    refresh().json(json!({})).expect_error(401, "token_invalid").await;
    refresh().header("Cookie", "theme=dark").expect_error(401, "token_invalid").await;
}

#[actix_web::test]
async fn a_page_that_does_not_know_gets_no_error_for_a_missing_cookie() {
    let service = TestService::start().await;
    let account = alice(&service).await;
    let refresh = || service.client.post("/auth/refresh").header("X-Refresh-Cookie", "if-any");
    let name = name_of(&service);

    let answer = refresh().header("Cookie", "theme=dark").expect_answer(200).await;
    assert_eq!(answer.json(), json!({"data": null, "message": "The browser has no cookie"}));
    assert_untouched(&answer);

    refresh().json(json!({"refresh_token": "no.such.token"})).expect_error(401, "token_invalid").await;
    refresh().cookie(&name, "no.such.token").expect_error(401, "token_invalid").await;
    let refreshed = refresh().cookie(&name, &account.refresh_token).expect_answer(200).await;
    assert_eq!(refreshed.json()["refresh_token"], "");
}

#[actix_web::test]
async fn an_expired_cookie_is_refused() {
    let service = TestService::start_with(|config| {
        config.timing.access_token = Duration::from_secs(1);
        config.timing.refresh_token = Duration::from_secs(1);
    })
    .await;
    let account = alice(&service).await;
    // Of the same age.
    eventually("the access token expires", async || {
        let answer = service.client.get("/auth/me").bearer(&account.token).send().await;
        (answer.status != 200).then_some(())
    })
    .await;

    let answer = refresh(&service, &account.refresh_token).expect_answer(401).await;

    assert_eq!(answer.json()["code"], "token_expired");
    assert_untouched(&answer);
}

#[actix_web::test]
async fn a_bad_token_in_the_body_is_no_fault_of_the_cookie() {
    let service = TestService::start().await;
    let account = alice(&service).await;

    for bad in ["", "no.such.token"] {
        let call = refresh(&service, &account.refresh_token).json(json!({"refresh_token": bad}));
        let answer = call.expect_answer(401).await;
        assert_eq!(answer.json()["code"], "token_invalid");
        assert_untouched(&answer);
    }

    assert_alive(&service, &account).await;
}

#[actix_web::test]
async fn a_database_that_is_away_costs_nobody_their_cookie() {
    let service = TestService::start().await;
    let account = alice(&service).await;
    service.state.store.clone().close().await;

    let answer = refresh(&service, &account.refresh_token).send().await;

    assert!([500, 503].contains(&answer.status), "{answer}");
    assert_untouched(&answer);
    let restarted = TestService::start_on(service.stop().await, |_| {}).await;
    assert_alive(&restarted, &account).await;
}

#[actix_web::test]
async fn without_the_header_a_cookie_is_not_looked_at() {
    let service = TestService::start().await;
    let account = alice(&service).await;
    let refresh = || service.client.post("/auth/refresh").cookie(&name_of(&service), &account.refresh_token);
    let fault_of_the_token = |kind| [("body", "refresh_token", kind)];

    refresh().expect_faults(422, &[("body", "", "value_error.missing")]).await;
    refresh().json(json!({})).expect_faults(422, &fault_of_the_token("value_error.missing")).await;
    let null = json!({"refresh_token": null});
    refresh().json(null).expect_faults(422, &fault_of_the_token("type_error.none.not_allowed")).await;
    let bad = refresh().json(json!({"refresh_token": "no.such.token"})).expect_answer(401).await;

    assert_untouched(&bad);
    assert_alive(&service, &account).await;
}

#[actix_web::test]
async fn faults_of_the_header_come_with_all_others() {
    let service = TestService::start().await;
    let account: Account = alice(&service).await;
    let fault = ("header", "X-Refresh-Cookie", "type_error.enum");

    for value in ["", "0", "true", "11"] {
        let with = |path: &str| service.client.post(path).header("X-Refresh-Cookie", value);
        let login = with("/auth/login").form(&[("username", "alice"), ("password", PASSWORD)]);
        login.expect_faults(422, &[fault]).await;
        with("/auth/register").json(registration("bob")).expect_faults(422, &[fault]).await;
        let missing = ("body", "password", "value_error.missing");
        with("/auth/login").form(&[("username", "alice")]).expect_faults(422, &[fault, missing]).await;
        let wrong = ("body", "refresh_token", "type_error.str");
        with("/auth/refresh").cookie(&name_of(&service), &account.refresh_token).expect_faults(422, &[fault]).await;
        with("/auth/refresh").json(json!({"refresh_token": 7})).expect_faults(422, &[fault, wrong]).await;
        with("/auth/logout").bearer(&account.token).expect_faults(422, &[fault]).await;
    }
    let wrong = json!({"refresh_token": 7});
    let call = refresh(&service, &account.refresh_token).json(wrong);
    call.expect_faults(422, &[("body", "refresh_token", "type_error.str")]).await;

    assert_alive(&service, &account).await;
}
