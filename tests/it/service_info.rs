//! `GET /service`: public information.

use serde_json::json;
use signalbox::config::Registration;

use crate::support::{TestService, keys_of, registration};

#[actix_web::test]
async fn a_fresh_service_waits_for_its_first_account() {
    let service = TestService::start().await;

    let fresh = service.client.get("/service").expect(200).await;
    service.register("alice").await;
    let with_one = service.client.get("/service").expect(200).await;
    service.register("bob").await;
    let with_two = service.client.get("/service").expect(200).await;

    let mut expected = json!({
        "version": env!("CARGO_PKG_VERSION"), "needs_setup": true, "setup_code_required": false, "registration": "open",
        "public_url": null, "password_login": "on", "oidc": null, "email": false,
        "push_key": service.state.notifier.push_key().unwrap(), "started_at": service.state.started_at.to_string(),
    });
    assert_eq!(fresh, expected);
    expected["needs_setup"] = false.into();
    assert_eq!(with_one, expected);
    assert_eq!(with_two, expected);
}

#[actix_web::test]
async fn closed_registration_is_shown_and_the_first_account_can_still_be_created() {
    let service = TestService::start_with(|config| config.registration = Registration::Closed).await;

    let fresh = service.client.get("/service").expect(200).await;
    service.register("alice").await;
    let closed = service.client.get("/service").expect(200).await;

    assert_eq!((&fresh["registration"], &fresh["needs_setup"]), (&json!("closed"), &json!(true)));
    assert_eq!((&closed["registration"], &closed["needs_setup"]), (&json!("closed"), &json!(false)));
    service.client.post("/auth/register").json(registration("bob")).expect_error(403, "registration_closed").await;
}

#[actix_web::test]
async fn a_registration_that_is_refused_sets_nothing_up() {
    let service = TestService::start().await;
    let mut body = registration("alice");
    body["password"] = "short".into();

    service.client.post("/auth/register").json(body).expect(422).await;

    assert_eq!(service.client.get("/service").expect(200).await["needs_setup"], true);
}

#[actix_web::test]
async fn accounts_are_known_after_a_restart() {
    let service = TestService::start().await;
    service.register("alice").await;

    let restarted = TestService::start_on(service.stop().await, |_| {}).await;

    assert_eq!(restarted.client.get("/service").expect(200).await["needs_setup"], false);
}

#[actix_web::test]
async fn the_operators_settings_are_shown_without_secrets() {
    let service = TestService::start_with(|config| {
        config.public_url = Some("https://box.example.com".to_owned());
        config.smtp_url = Some("smtp://mailer:open-sesame@127.0.0.1:2525".into());
        config.smtp_from = Some("signalbox@example.com".to_owned());
    })
    .await;

    let answer = service.client.get("/service").expect_answer(200).await;

    assert_eq!(
        keys_of(&answer.json()),
        [
            "email",
            "needs_setup",
            "oidc",
            "password_login",
            "public_url",
            "registration",
            "setup_code_required",
            "started_at",
            "version"
        ]
    );
    assert_eq!(answer.json()["public_url"], "https://box.example.com");
    assert_eq!(answer.json()["email"], true);
    for secret in ["open-sesame", "mailer", "signalbox@example.com"] {
        assert!(!answer.text.contains(secret), "{answer}");
    }
}

#[actix_web::test]
async fn it_needs_no_token_and_looks_at_none() {
    let service = TestService::start().await;

    service.client.get("/service").bearer("no.such.token").expect(200).await;
    service.client.post("/service").expect_refusal(405).await;
}

#[actix_web::test]
async fn the_database_is_not_asked_once_there_is_an_account() {
    let service = TestService::start().await;
    let fresh = TestService::start().await;
    service.register("alice").await;
    let known = service.client.get("/service").expect(200).await;

    for service in [&service, &fresh] {
        service.state.store.clone().close().await;
        service.root.get("/readyz").expect(503).await;
    }

    assert_eq!(service.client.get("/service").expect(200).await, known);
    let asking = fresh.client.get("/service").send().await;
    assert!([500, 503].contains(&asking.status), "{asking}");
}
