//! `POST /auth/change-password`.

use serde_json::{Value, json};

use crate::support::{PASSWORD, TestService, text_of};

const NEW_PASSWORD: &str = "an even better one";

async fn assert_signs_in(service: &TestService, password: &str) {
    let form = [("username", "alice"), ("password", password)];
    service.client.post("/auth/login").form(&form).expect(200).await;
}

async fn assert_refused(service: &TestService, password: &str) {
    let form = [("username", "alice"), ("password", password)];
    service.client.post("/auth/login").form(&form).expect_error(401, "invalid_credentials").await;
}

#[actix_web::test]
async fn the_new_password_replaces_the_old_one() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let body =
        json!({"current_password": PASSWORD, "new_password": NEW_PASSWORD, "new_password_confirm": NEW_PASSWORD});

    let answer = service.client.post("/auth/change-password").bearer(&account.token).json(body).expect(200).await;

    assert_eq!(answer["data"], Value::Null);
    assert!(!text_of(&answer["message"]).is_empty());
    assert_signs_in(&service, NEW_PASSWORD).await;
    assert_refused(&service, PASSWORD).await;
}

#[actix_web::test]
async fn old_password_is_another_name_and_the_confirmation_optional() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let change = |body| service.client.post("/auth/change-password").bearer(&account.token).json(body);

    change(json!({"old_password": PASSWORD, "new_password": NEW_PASSWORD})).expect(200).await;
    assert_signs_in(&service, NEW_PASSWORD).await;

    change(json!({"current_password": NEW_PASSWORD, "new_password": PASSWORD})).expect(200).await;
    assert_signs_in(&service, PASSWORD).await;
}

#[actix_web::test]
async fn a_change_revokes_every_other_session() {
    let service = TestService::start().await;
    let own = service.register("alice").await;
    let other = service.sign_in(&own).await;
    let stranger = service.register("bob").await;
    let body = json!({"current_password": PASSWORD, "new_password": NEW_PASSWORD});

    service.client.post("/auth/change-password").bearer(&own.token).json(body).expect(200).await;

    let refresh = |token: &str| service.client.post("/auth/refresh").json(json!({"refresh_token": token}));
    service.client.get("/auth/me").bearer(&other.token).expect_refusal(401).await;
    refresh(&other.refresh_token).expect_refusal(401).await;
    for living in [own, stranger] {
        service.client.get("/auth/me").bearer(&living.token).expect(200).await;
        refresh(&living.refresh_token).expect(200).await;
    }
}

#[actix_web::test]
async fn a_wrong_current_password_changes_nothing() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let other = service.sign_in(&account).await;
    let body = json!({"current_password": "not the password", "new_password": NEW_PASSWORD});

    let call = service.client.post("/auth/change-password").bearer(&account.token).json(body);
    call.expect_error(400, "invalid_credentials").await;

    assert_signs_in(&service, PASSWORD).await;
    assert_refused(&service, NEW_PASSWORD).await;
    service.client.get("/auth/me").bearer(&other.token).expect(200).await;
}

#[actix_web::test]
async fn a_new_password_keeps_to_the_limits_of_registration() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let change = |new: String| {
        let body = json!({"current_password": PASSWORD, "new_password": new});
        service.client.post("/auth/change-password").bearer(&account.token).json(body)
    };

    for new in ["1234567".to_owned(), "p".repeat(129), "ä".repeat(7)] {
        change(new).expect_faults(422, &[("body", "new_password", "value_error.*")]).await;
    }
    assert_signs_in(&service, PASSWORD).await;
    change("ä".repeat(128)).expect(200).await;
    assert_signs_in(&service, &"ä".repeat(128)).await;
}

#[actix_web::test]
async fn all_faults_of_a_change_come_in_one_answer() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let change = |body| service.client.post("/auth/change-password").bearer(&account.token).json(body);

    let missing =
        [("body", "current_password", "value_error.missing"), ("body", "new_password", "value_error.missing")];
    change(json!({})).expect_faults(422, &missing).await;
    let wrong_types = [("body", "current_password", "type_error.*"), ("body", "new_password", "type_error.*")];
    change(json!({"current_password": 1, "new_password": []})).expect_faults(422, &wrong_types).await;
    let unequal = [("body", "new_password_confirm", "value_error.*")];
    let body =
        json!({"current_password": PASSWORD, "new_password": NEW_PASSWORD, "new_password_confirm": "another one"});
    change(body).expect_faults(422, &unequal).await;
    let both = [
        ("body", "current_password", "value_error.missing"),
        ("body", "new_password_confirm", "value_error.password_mismatch"),
    ];
    let body = json!({"new_password": NEW_PASSWORD, "new_password_confirm": "another one"});
    change(body).expect_faults(422, &both).await;

    assert_signs_in(&service, PASSWORD).await;
}
