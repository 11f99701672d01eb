//! `GET` and `PUT /auth/me`; and what else people keep for themselves: `/notes`.

use serde_json::json;
use signalbox::store::MAX_NOTES;
use uuid::Uuid;

use crate::support::{PASSWORD, TestService, assert_timestamp, keys_of, text_of};

#[actix_web::test]
async fn the_profile_is_the_whole_user_without_the_password() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let me = service.client.get("/auth/me").bearer(&account.token).expect(200).await;

    assert_eq!(keys_of(&me), ["created_at", "email", "full_name", "id", "is_admin", "updated_at", "username"]);
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

#[actix_web::test]
async fn notes_are_their_owners_alone() {
    let service = TestService::start().await;
    let (alice, bob) = (service.register("alice").await, service.register("bob").await);
    let add = |text: &str| service.client.post("/notes").bearer(&alice.token).json(json!({"text": text}));
    let get = |path: &str| service.client.get(path).bearer(&alice.token);

    let first = add("Disk 3 of web-1 is on order").expect(201).await;
    let second = add("one\n\ttwo").expect(201).await;

    assert_eq!(keys_of(&first), ["created_at", "id", "text"]);
    assert_eq!((&first["text"], &second["text"]), (&json!("Disk 3 of web-1 is on order"), &json!("one\n\ttwo")));
    assert_timestamp(&first["created_at"]);
    let list = get("/notes").expect_answer(200).await;
    assert_eq!((list.header("X-Total-Count"), list.json()), ("2", json!([second, first])));
    assert_eq!(get("/notes?limit=1&offset=1").expect(200).await, json!([first]));
    let (path, nowhere) = (format!("/notes/{}", text_of(&first["id"])), format!("/notes/{}", Uuid::now_v7()));
    assert_eq!(get(&path).expect(200).await, first);

    assert_eq!(service.client.get("/notes").bearer(&bob.token).expect(200).await, json!([]));
    for method in ["GET", "DELETE"] {
        let call = |path: &str| service.client.call(method.parse().unwrap(), path);
        call(&path).expect_error(401, "not_authenticated").await;
        call(&path).bearer(&bob.token).expect_error(404, "not_found").await;
        call(&nowhere).bearer(&alice.token).expect_error(404, "not_found").await;
        call("/notes/first").bearer(&alice.token).expect_faults(422, &[("path", "id", "type_error.uuid")]).await;
    }
    let deleted = service.client.delete(&path).bearer(&alice.token).expect(200).await;
    assert_eq!(deleted, json!({"data": null, "message": "Note deleted"}));
    service.client.delete(&path).bearer(&alice.token).expect_error(404, "not_found").await;
    get(&path).expect_error(404, "not_found").await;
    assert_eq!(get("/notes").expect(200).await, json!([second]));

    let told = get("/audit?action=note.").expect(200).await;
    let told: Vec<_> = told.as_array().unwrap().iter().map(|entry| (&entry["action"], &entry["target"])).collect();
    let (create, delete) = (json!("note.create"), json!("note.delete"));
    assert_eq!(told, [(&delete, &first["id"]), (&create, &second["id"]), (&create, &first["id"])]);
}

#[actix_web::test]
async fn notes_are_bounded_texts_and_not_many() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let add = |body| service.client.post("/notes").bearer(&account.token).json(body);

    for (text, kind) in [
        (json!(""), "value_error.any_str.min_length"),
        (json!("n".repeat(2_001)), "value_error.any_str.max_length"),
        (json!("a\u{1b}b"), "value_error.str.control"),
        (json!("a\u{202e}b"), "value_error.str.bidi"),
        (json!(null), "type_error.none.not_allowed"),
        (json!(7), "type_error.str"),
    ] {
        add(json!({"text": text})).expect_faults(422, &[("body", "text", kind)]).await;
    }
    add(json!({})).expect_faults(422, &[("body", "text", "value_error.missing")]).await;
    service.client.post("/notes").json(json!({"text": "a"})).expect_error(401, "not_authenticated").await;
    service.client.get("/notes").expect_error(401, "not_authenticated").await;

    for _ in 0..MAX_NOTES {
        add(json!({"text": "n".repeat(2_000)})).expect(201).await;
    }
    add(json!({"text": "a"})).expect_error(400, "quota_exceeded").await;
}
