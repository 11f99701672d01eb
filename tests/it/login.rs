//! `POST /auth/login`.

use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::support::{PASSWORD, TestService, keys_of, registration, text_of};

#[actix_web::test]
async fn a_user_name_and_an_email_both_sign_in() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    for name in [&account.username, &account.email] {
        let form = [("username", name.as_str()), ("password", PASSWORD)];
        let tokens = service.client.post("/auth/login").form(&form).expect(200).await;

        assert_eq!(keys_of(&tokens), ["access_token", "refresh_token", "token_type"]);
        assert_eq!(tokens["token_type"], "bearer");
        let me = service.client.get("/auth/me").bearer(&text_of(&tokens["access_token"])).expect(200).await;
        assert_eq!(me["id"], account.id.to_string());
    }
}

#[actix_web::test]
async fn a_wrong_name_and_a_wrong_password_get_the_very_same_answer() {
    let service = TestService::start().await;
    service.register("alice").await;
    let refused = async |name: &str, password: &str| {
        let form = [("username", name), ("password", password)];
        service.client.post("/auth/login").form(&form).expect_error(401, "invalid_credentials").await
    };

    let wrong_password = refused("alice", "not the password").await;

    assert_eq!(refused("nobody", PASSWORD).await, wrong_password);
    assert_eq!(refused("nobody@example.com", PASSWORD).await, wrong_password);
    assert_eq!(refused("' OR 1=1 --", PASSWORD).await, wrong_password);
}

/// Enough that one of them is undisturbed, on a machine that has much else to do.
const MAX_TRIES: usize = 40;

/// What this process, and the service in it, has had of the processors: that others wait for them makes it no longer.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap()
}

#[actix_web::test]
async fn a_wrong_name_takes_as_long_as_a_wrong_password() {
    // Expensive enough that skipping the hash would be visible.
    let service = TestService::start_with(|config| config.password_iterations = 200_000).await;
    service.register("alice").await;

    // Company makes single attempts more expensive, never cheaper, so the minimum of enough attempts is the true cost.
    let [mut known, mut unknown] = [Duration::MAX; 2];
    let mut tries = 0;
    while tries < 4 || (tries < MAX_TRIES && !are_alike(known, unknown)) {
        known = known.min(cost_of_refusal(&service, "alice").await);
        unknown = unknown.min(cost_of_refusal(&service, "nobody").await);
        tries += 1;
    }

    assert!(are_alike(known, unknown), "known name {known:?}, unknown name {unknown:?}");
}

/// Whether neither takes half as long again as the other.
fn are_alike(left: Duration, right: Duration) -> bool {
    left < right * 3 / 2 && right < left * 3 / 2
}

async fn cost_of_refusal(service: &TestService, name: &str) -> Duration {
    let form = [("username", name), ("password", "not the password")];
    let before = processor_time();
    service.client.post("/auth/login").form(&form).expect_error(401, "invalid_credentials").await;
    processor_time() - before
}

#[actix_web::test]
async fn every_character_of_a_password_counts() {
    let service = TestService::start().await;
    let password = "a+b &=%41 ä\u{1F511}";
    let mut body = registration("alice");
    body["password"] = password.into();
    body["password_confirm"] = password.into();
    service.client.post("/auth/register").json(body).expect(201).await;

    service.client.post("/auth/login").form(&[("username", "alice"), ("password", password)]).expect(200).await;

    for wrong in ["a b &=%41 ä\u{1F511}", "a+b &=A ä\u{1F511}", "A+b &=%41 ä\u{1F511}", "a+b &=%41 ä"] {
        let form = [("username", "alice"), ("password", wrong)];
        service.client.post("/auth/login").form(&form).expect_error(401, "invalid_credentials").await;
    }
}

#[actix_web::test]
async fn fields_of_an_oauth_form_are_ignored() {
    let service = TestService::start().await;
    service.register("alice").await;
    let form = [
        ("grant_type", "password"),
        ("username", "alice"),
        ("password", PASSWORD),
        ("scope", ""),
        ("client_id", "docs"),
        ("client_secret", ""),
    ];

    service.client.post("/auth/login").form(&form).expect(200).await;
}

#[actix_web::test]
async fn a_content_type_may_name_its_charset() {
    let service = TestService::start().await;
    service.register("alice").await;
    let body = "username=alice&password=correct%20horse+battery";

    let call = service.client.post("/auth/login").raw("application/x-www-form-urlencoded; charset=UTF-8", body);

    call.expect(200).await;
}

#[actix_web::test]
async fn missing_fields_are_all_named() {
    let service = TestService::start().await;
    let both = [("body", "username", "value_error.missing"), ("body", "password", "value_error.missing")];

    service.client.post("/auth/login").form(&[("scope", "x")]).expect_faults(422, &both).await;
    service.client.post("/auth/login").form(&[("username", "alice")]).expect_faults(422, &both[1..]).await;
    service.client.post("/auth/login").form(&[]).expect_faults(422, &both).await;
}

#[actix_web::test]
async fn without_a_form_the_body_is_missing() {
    let service = TestService::start().await;
    let login = || service.client.post("/auth/login");

    for call in [login(), login().raw("application/json", "")] {
        call.expect_faults(422, &[("body", "", "value_error.missing")]).await;
    }
}

#[actix_web::test]
async fn a_json_body_is_not_the_documented_form() {
    let service = TestService::start().await;
    service.register("alice").await;

    let body = json!({"username": "alice", "password": PASSWORD});

    let answer = service.client.post("/auth/login").json(body).expect(422).await;
    assert_eq!(answer["status_code"], 422);
    assert!(answer["detail"].is_array(), "{answer}");
}

#[actix_web::test]
async fn passwords_stay_valid_when_the_cost_of_a_hash_rises() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let storage = service.stop().await;

    let dearer = TestService::start_on(storage, |config| config.password_iterations = 5_000).await;

    // The first signs in by the old hash, the second by the new one.
    dearer.sign_in(&account).await;
    dearer.sign_in(&account).await;
}

#[actix_web::test]
async fn a_burst_of_logins_holds_nobody_else_up() {
    // One worker thread: if it hashed itself, all others would wait for the whole burst.
    let service = TestService::start_with(|config| config.password_iterations = 1_000_000).await;
    service.register("alice").await;
    let form = [("username", "alice"), ("password", PASSWORD)];
    let burst = join_all((0..8).map(|_| service.client.post("/auth/login").form(&form).send()));
    let others = async {
        for _ in 0..5 {
            service.root.get("/healthz").expect_answer(200).await;
        }
    };

    let first = select(Box::pin(burst), Box::pin(others)).await;

    let Either::Right((_, burst)) = first else { panic!("the burst went first") };
    for answer in burst.await {
        assert_eq!(answer.status, 200, "{answer}");
    }
}

#[actix_web::test]
async fn nobody_on_the_way_keeps_an_answer() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let login = [("username", "alice"), ("password", PASSWORD)];
    let refresh = json!({"refresh_token": account.refresh_token});
    let answers = [
        service.client.post("/auth/login").form(&login).send().await,
        service.client.post("/auth/refresh").json(refresh).send().await,
        service.client.get("/auth/me").bearer(&account.token).send().await,
        service.client.get("/servers").bearer(&account.token).send().await,
        service.client.get("/servers").send().await,
        service.client.get("/nothing").send().await,
    ];

    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 200, 200, 200, 401, 404]);
    for answer in answers {
        assert_eq!(answer.header("Cache-Control"), "no-store", "{answer}");
    }
}
