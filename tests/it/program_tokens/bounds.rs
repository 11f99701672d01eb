//! When a token does not count: from other networks, when it has expired or was revoked, and without its owner.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::json;
use signalbox::auth::factors::SecondFactorPolicy;
use signalbox_protocol::Timestamp;

use super::Scene;
use crate::support::rest::Client;
use crate::support::{PASSWORD, TestService, eventually, text_of};

#[actix_web::test]
async fn a_token_is_refused_from_another_network() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"all": true}, "networks": ["127.0.0.9", "10.0.0.0/8"]})).await;
    let base = format!("http://{}/api/v1", scene.service.address);
    let from = |last| Client::from_address(base.clone(), Ipv4Addr::new(127, 0, 0, last));

    from(9).get("/servers").bearer(&token.text).expect(200).await;
    let refused = from(8).get("/servers").bearer(&token.text).expect_answer(401).await;

    assert_eq!(refused.json()["code"], "token_invalid");
    assert_eq!(refused.header("WWW-Authenticate"), "Bearer");
    assert!(!refused.text.contains(&token.text), "{refused}");
}

#[actix_web::test]
async fn a_token_expires() {
    let scene = Scene::start().await;
    // Where the machine pauses for longer, another token has to be used in time.
    let token = eventually("a token is used before it expires", async || {
        let token = scene.short_token().await?;
        let answer = token.get("/servers").send().await;
        assert!(answer.status == 200 || answer.json()["code"] == "token_expired", "{answer}");
        (answer.status == 200).then_some(token.text)
    })
    .await;

    eventually("the token has expired", async || {
        let answer = scene.service.client.get("/servers").bearer(&token).send().await;
        (answer.status == 401).then(|| assert_eq!(answer.json()["code"], "token_expired"))
    })
    .await;
}

#[actix_web::test]
async fn a_revoked_token_and_text_that_is_none_are_refused() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"all": true}})).await;
    token.get("/servers").expect(200).await;

    token.revoke().await;

    token.get("/servers").expect_error(401, "token_revoked").await;
    let get = |text: &str| scene.service.client.get("/servers").bearer(text);
    let (prefix, secret) = token.text.split_at("sbt_".len() + 16);
    get(prefix).expect_error(401, "token_invalid").await;
    get(&format!("sbt_{}{secret}", "0".repeat(16))).expect_error(401, "token_revoked").await;
}

#[actix_web::test]
async fn the_public_part_with_another_secret_is_refused() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"all": true}})).await;
    let (prefix, _) = token.text.split_at("sbt_".len() + 16);

    let forged = format!("{prefix}_{}", "A".repeat(43));

    scene.service.client.get("/servers").bearer(&forged).expect_error(401, "token_revoked").await;
    token.get("/servers").expect(200).await;
}

#[actix_web::test]
async fn tokens_end_for_good_when_their_owner_is_disabled() {
    let service = TestService::start().await;
    let administrator = service.register("administrator").await;
    let owner = service.register("owner").await;
    let body = json!({"name": "program", "scope": {"all": true}});
    let made = service.client.post("/tokens").bearer(&owner.token).json(body).expect(201).await;
    let get = || service.client.get("/servers").bearer(made["token"].as_str().unwrap());
    get().expect(200).await;
    let set = |disabled: bool| {
        let path = format!("/users/{}", owner.id);
        service.client.put(path).bearer(&administrator.token).json(json!({"disabled": disabled})).expect(200)
    };

    set(true).await;

    get().expect_error(401, "token_revoked").await;
    set(false).await;
    get().expect_error(401, "token_revoked").await;
}

#[actix_web::test]
async fn tokens_end_with_their_owners_account() {
    let service = TestService::start().await;
    service.register("administrator").await;
    let owner = service.register("owner").await;
    let body = json!({"name": "program", "scope": {"all": true}});
    let made = service.client.post("/tokens").bearer(&owner.token).json(body).expect(201).await;
    let get = || service.client.get("/servers").bearer(made["token"].as_str().unwrap());
    get().expect(200).await;

    let delete = service.client.delete("/auth/me").bearer(&owner.token).json(json!({"password": PASSWORD}));
    delete.expect(200).await;

    get().expect_error(401, "token_revoked").await;
}

#[actix_web::test]
async fn tokens_survive_a_change_of_the_password_and_the_end_of_the_session() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"all": true}})).await;
    let body = json!({"current_password": PASSWORD, "new_password": "another horse battery"});
    scene.service.client.post("/auth/change-password").bearer(&scene.owner.token).json(body).expect(200).await;
    scene.service.client.post("/auth/logout").bearer(&scene.owner.token).json(json!({})).expect(200).await;

    token.get("/servers").expect(200).await;
}

#[actix_web::test]
async fn a_token_of_an_administrator_administers_nothing() {
    let scene = Scene::start().await;
    assert_eq!(
        scene.service.client.get("/auth/me").bearer(&scene.owner.token).expect(200).await["is_admin"],
        true,
        "the first account"
    );
    let token = scene.token(json!({"role": "manager", "scope": {"all": true}})).await;

    token.get("/audit?all=true").expect_error(403, "forbidden").await;
    token.get("/users").expect_error(403, "token_not_allowed").await;
    token.get("/audit").expect(200).await;
}

#[actix_web::test]
async fn with_step_up_a_token_is_made_by_somebody_who_has_proved_who_they_are() {
    let scene = Scene::start().await;
    let long_ago = Timestamp::now().plus_millis(-16 * 60_000).as_millis();
    let storage = scene.service.stop().await;
    storage.execute(&[&format!("UPDATE logins SET proved_at = {long_ago}")]).await;
    let create = async |service: &TestService, status: u16| {
        let body = json!({"name": "program", "scope": {"all": true}});
        let answer = service.client.post("/tokens").bearer(&scene.owner.token).json(body).send().await;
        assert_eq!(answer.status, status, "{answer}");
    };
    let service = TestService::start_on(storage, |_| {}).await;
    create(&service, 201).await;
    let step_up = Duration::from_secs(15 * 60);
    let service = TestService::start_on(service.stop().await, |config| config.step_up = Some(step_up)).await;

    create(&service, 403).await;

    let proof = service.client.post("/auth/step-up").bearer(&scene.owner.token).json(json!({"password": PASSWORD}));
    proof.expect(200).await;
    create(&service, 201).await;
}

#[actix_web::test]
async fn a_program_is_not_asked_to_prove_itself_again() {
    let step_up = Duration::from_secs(60);
    let service = TestService::start_with(|config| config.step_up = Some(step_up)).await;
    let owner = service.register("owner").await;
    let server_id = service.server(&owner, "web-1").await;
    let body = json!({"name": "deploys", "role": "manager", "scope": {"all": true}});
    let made = service.client.post("/tokens").bearer(&owner.token).json(body).expect(201).await;
    let storage = service.stop().await;
    storage.execute(&["UPDATE logins SET proved_at = 0", "UPDATE program_tokens SET created_at = 0"]).await;
    let service = TestService::start_on(storage, |config| config.step_up = Some(step_up)).await;
    let key = |token: &str| {
        let body = json!({"server_id": server_id, "name": "agent"});
        service.client.post("/api-keys").bearer(token).json(body)
    };

    key(&owner.token).expect_error(403, "step_up_required").await;

    key(&text_of(&made["token"])).expect(201).await;
}

#[actix_web::test]
async fn a_token_made_without_a_second_factor_is_refused_where_all_must_have_one() {
    let scene = Scene::start().await;
    let token = scene.token(json!({"scope": {"all": true}})).await;
    let text = token.text.clone();
    let storage = scene.service.stop().await;
    let service = TestService::start_on(storage, |config| config.second_factor = SecondFactorPolicy::All).await;

    service.client.get("/servers").bearer(&text).expect_error(403, "second_factor_required").await;
}
