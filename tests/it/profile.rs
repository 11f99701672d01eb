//! `GET` and `PUT /auth/me`.

use serde_json::json;

use crate::support::{PASSWORD, TestService, assert_timestamp, keys_of};

#[actix_web::test]
async fn the_profile_is_the_whole_user_without_the_password() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let me = service.client.get("/auth/me").bearer(&account.token).expect(200).await;

    let keys = ["created_at", "email", "full_name", "id", "is_admin", "second_factor", "updated_at", "username"];
    assert_eq!(keys_of(&me), keys);
    assert_eq!(me["second_factor"], serde_json::json!({"totp": false, "passkeys": 0, "recovery_codes_left": 0}));
    assert_eq!(me["id"], account.id.to_string());
    assert_eq!(me["email"], "alice@example.com");
    assert_eq!(me["username"], "alice");
    assert_eq!(me["full_name"], "Test Person");
    assert_timestamp(&me["created_at"]);
    assert_timestamp(&me["updated_at"]);
}

#[actix_web::test]
async fn a_change_touches_what_it_names() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let me = || service.client.get("/auth/me").bearer(&account.token);
    let before = me().expect(200).await;

    for (field, value) in [("email", "new@example.org"), ("username", "alice-2"), ("full_name", "")] {
        let mut expected = me().expect(200).await;
        expected[field] = value.into();

        let mut changed =
            service.client.put("/auth/me").bearer(&account.token).json(json!({field: value})).expect(200).await;

        assert_eq!(changed, me().expect(200).await);
        assert_timestamp(&changed["updated_at"]);
        changed["updated_at"] = expected["updated_at"].clone();
        assert_eq!(changed, expected);
    }
    let after = me().expect(200).await;
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str(), "{before} {after}");
}

#[actix_web::test]
async fn an_empty_change_changes_nothing() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let mut before = service.client.get("/auth/me").bearer(&account.token).expect(200).await;

    let after = service.client.put("/auth/me").bearer(&account.token).json(json!({})).expect(200).await;

    before["updated_at"] = after["updated_at"].clone();
    assert_eq!(after, before);
}

#[actix_web::test]
async fn fields_that_are_not_ones_own_to_change_are_ignored() {
    let service = TestService::start().await;
    let _administrator = service.register("alice").await;
    let bob = service.register("bob").await;
    let body = json!({"is_admin": true, "id": "0199c1f0-0000-7000-8000-000000000000", "full_name": "Bob"});

    let me = service.client.put("/auth/me").bearer(&bob.token).json(body).expect(200).await;

    assert_eq!(me["is_admin"], false);
    assert_eq!(me["id"], bob.id.to_string());
    assert_eq!(me["full_name"], "Bob");
}

#[actix_web::test]
async fn a_new_name_signs_in_and_the_old_one_is_free() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let body = json!({"username": "alicia", "email": "alicia@example.com"});

    service.client.put("/auth/me").bearer(&account.token).json(body).expect(200).await;

    for name in ["alicia", "alicia@example.com"] {
        service.client.post("/auth/login").form(&[("username", name), ("password", PASSWORD)]).expect(200).await;
    }
    for name in ["alice", "alice@example.com"] {
        let form = [("username", name), ("password", PASSWORD)];
        service.client.post("/auth/login").form(&form).expect_error(401, "invalid_credentials").await;
    }
    service.register("alice").await;
}

#[actix_web::test]
async fn names_stay_unique_without_regard_to_case() {
    let service = TestService::start().await;
    let alice = service.register("alice").await;
    service.register("bob").await;
    let change = |body| service.client.put("/auth/me").bearer(&alice.token).json(body);

    change(json!({"username": "BOB"})).expect_error(400, "username_taken").await;
    change(json!({"email": "Bob@Example.com"})).expect_error(400, "email_taken").await;

    let own = change(json!({"username": "ALICE", "email": "ALICE@example.com"})).expect(200).await;
    assert_eq!(own["username"], "ALICE");
}

#[actix_web::test]
async fn all_faults_of_a_change_come_in_one_answer() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let change = |body| service.client.put("/auth/me").bearer(&account.token).json(body);
    let before = service.client.get("/auth/me").bearer(&account.token).expect(200).await;

    let faults = [
        ("body", "email", "value_error.email"),
        ("body", "username", "value_error.*"),
        ("body", "full_name", "value_error.*"),
    ];
    change(json!({"email": "plain", "username": "a b", "full_name": "n".repeat(201)}))
        .expect_faults(422, &faults)
        .await;
    let wrong_types = ["email", "username", "full_name"].map(|field| ("body", field, "type_error.*"));
    change(json!({"email": 1, "username": [], "full_name": true})).expect_faults(422, &wrong_types).await;

    assert_eq!(service.client.get("/auth/me").bearer(&account.token).expect(200).await, before);
}
