//! `/api-keys`. That a key opens the agents' socket, and a revoked one closes it, is in `agent_auth`.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Account, PASSWORD, TestService, assert_timestamp, keys_of, text_of, uuid_of};

async fn create(service: &TestService, account: &Account, body: Value) -> Value {
    service.client.post("/api-keys").bearer(&account.token).json(body).expect(201).await
}

async fn listed(service: &TestService, account: &Account) -> Vec<Value> {
    let keys = service.client.get("/api-keys/me").bearer(&account.token).expect(200).await;
    keys.as_array().unwrap().clone()
}

#[actix_web::test]
async fn a_key_is_shown_at_its_creation_and_never_again() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let server_id = service.server(&account, "web-1").await;

    let created = create(&service, &account, json!({"server_id": server_id, "name": "agent"})).await;

    let fields = "created_at expires_at id key last_used_at name prefix server_id";
    assert_eq!(keys_of(&created), fields.split(' ').collect::<Vec<_>>());
    assert_eq!(uuid_of(&created["id"]).get_version_num(), 7);
    assert_eq!((&created["name"], &created["server_id"]), (&json!("agent"), &json!(server_id)));
    assert_eq!((&created["last_used_at"], &created["expires_at"]), (&Value::Null, &Value::Null));
    assert_timestamp(&created["created_at"]);
    let key = text_of(&created["key"]);
    assert!(key.starts_with("sbk_"), "{key}");
    assert!(key.starts_with(&text_of(&created["prefix"])), "{created}");
    let mut without_key = created;
    without_key.as_object_mut().unwrap().remove("key");
    let answer = service.client.get("/api-keys/me").bearer(&account.token).expect_answer(200).await;
    assert_eq!(answer.json(), json!([without_key]));
    assert!(!answer.text.contains(&key), "{answer}");
}

#[actix_web::test]
async fn keys_are_long_and_never_alike() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let body = json!({"server_id": service.server(&account, "web-1").await, "name": "agent"});

    let first = text_of(&create(&service, &account, body.clone()).await["key"]);
    let second = text_of(&create(&service, &account, body).await["key"]);

    assert_ne!(first, second);
    for key in [&first, &second] {
        // 256 bits are 43 characters of 6 bits.
        assert!(key.len() >= "sbk_".len() + 43, "{key}");
        assert!(key.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter)), "{key}");
    }
}

#[actix_web::test]
async fn an_expiry_takes_any_offset() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let server_id = service.server(&account, "web-1").await;
    let body = json!({"server_id": server_id, "name": "agent", "expires_at": "2099-01-01T02:00:00+02:00"});

    let created = create(&service, &account, body).await;

    assert_eq!(created["expires_at"], "2099-01-01T00:00:00.000Z");
    assert_eq!(listed(&service, &account).await[0]["expires_at"], created["expires_at"]);
}

#[actix_web::test]
async fn all_faults_of_a_key_come_in_one_answer() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let create = |body: Value| service.client.post("/api-keys").bearer(&account.token).json(body);

    let missing = [("body", "server_id", "value_error.missing"), ("body", "name", "value_error.missing")];
    create(json!({})).expect_faults(422, &missing).await;
    let wrong =
        [("body", "server_id", "type_error.uuid"), ("body", "name", "type_error.*"), ("body", "expires_at", "*")];
    create(json!({"server_id": "web-1", "name": 1, "expires_at": "soon"})).expect_faults(422, &wrong).await;
    create(json!({"server_id": 7, "name": [], "expires_at": {}})).expect_faults(422, &wrong.map(any_type)).await;
    assert_eq!(listed(&service, &account).await, [Value::Null; 0]);
}

/// The same place, whatever is wrong there.
fn any_type<'a>((place, field, _): (&'a str, &'a str, &'a str)) -> (&'a str, &'a str, &'a str) {
    (place, field, "*")
}

#[actix_web::test]
async fn another_users_server_gets_no_key() {
    let service = TestService::start().await;
    let alice = service.register("alice").await;
    let bob = service.register("bob").await;
    let server_id = service.server(&alice, "web-1").await;
    let create =
        |id: Uuid| service.client.post("/api-keys").bearer(&bob.token).json(json!({"server_id": id, "name": "mine"}));

    let foreign = create(server_id).expect_error(404, "not_found").await;

    assert_eq!(create(Uuid::now_v7()).expect_error(404, "not_found").await, foreign);
    assert_eq!(listed(&service, &alice).await, [Value::Null; 0]);
}

#[actix_web::test]
async fn a_revoked_key_leaves_the_list() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let server_id = service.server(&account, "web-1").await;
    let doomed = create(&service, &account, json!({"server_id": server_id, "name": "doomed"})).await;
    let kept = create(&service, &account, json!({"server_id": server_id, "name": "kept"})).await;
    let path = format!("/api-keys/{}", text_of(&doomed["id"]));

    let answer = service.client.delete(&path).bearer(&account.token).expect(200).await;

    assert_eq!(answer["data"], Value::Null);
    assert!(!text_of(&answer["message"]).is_empty());
    let left = listed(&service, &account).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["id"], kept["id"]);
    service.client.delete(&path).bearer(&account.token).expect_error(404, "not_found").await;
    let fault = [("path", "id", "type_error.uuid")];
    service.client.delete("/api-keys/nonsense").bearer(&account.token).expect_faults(422, &fault).await;
}

#[actix_web::test]
async fn another_users_key_does_not_exist() {
    let service = TestService::start().await;
    let alice = service.register("alice").await;
    let bob = service.register("bob").await;
    service.server_with_key(&alice, "web-1").await;
    let key = listed(&service, &alice).await[0].clone();

    assert_eq!(listed(&service, &bob).await, [Value::Null; 0]);
    let path = format!("/api-keys/{}", text_of(&key["id"]));
    service.client.delete(path).bearer(&bob.token).expect_error(404, "not_found").await;

    assert_eq!(listed(&service, &alice).await, [key]);
}

#[actix_web::test]
async fn keys_are_listed_newest_first_and_in_pages() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let server_id = service.server(&account, "web-1").await;
    for name in ["first", "second", "third"] {
        create(&service, &account, json!({"server_id": server_id, "name": name})).await;
    }

    let names: Vec<String> = listed(&service, &account).await.iter().map(|key| text_of(&key["name"])).collect();
    let call = service.client.get("/api-keys/me").bearer(&account.token).query(&[("limit", "1"), ("offset", "1")]);
    let page = call.expect_answer(200).await;

    assert_eq!(names, ["third", "second", "first"]);
    assert_eq!(page.json()[0]["name"], "second");
    assert_eq!(page.json().as_array().unwrap().len(), 1);
    assert_eq!(page.header("X-Total-Count"), "3");
}

#[actix_web::test]
async fn keys_are_found_by_their_server() {
    let service = TestService::start().await;
    let (alice, bob) = (service.register("alice").await, service.register("bob").await);
    let web = service.server(&alice, "web-1").await;
    let database = service.server(&alice, "db-1").await;
    for (server_id, name) in [(web, "first"), (database, "other"), (web, "second")] {
        create(&service, &alice, json!({"server_id": server_id, "name": name})).await;
    }
    let found = async |account: &Account, query: &str| {
        let call = service.client.get(format!("/api-keys/me?{query}")).bearer(&account.token);
        let answer = call.expect_answer(200).await;
        let names: Vec<String> = answer.json().as_array().unwrap().iter().map(|key| text_of(&key["name"])).collect();
        (names.join(" "), answer.header("X-Total-Count").to_owned())
    };
    let of = |names: &str, total: &str| (names.to_owned(), total.to_owned());

    assert_eq!(found(&alice, "").await, of("second other first", "3"));
    assert_eq!(found(&alice, &format!("server_id={web}")).await, of("second first", "2"));
    assert_eq!(found(&alice, &format!("server_id={web}&limit=1&offset=1")).await, of("first", "2"));
    assert_eq!(found(&alice, &format!("server_id={database}")).await, of("other", "1"));
    assert_eq!(found(&alice, &format!("server_id={}", Uuid::now_v7())).await, of("", "0"));
    assert_eq!(found(&bob, &format!("server_id={web}")).await, of("", "0"));
    let fault = [("query", "server_id", "type_error.uuid")];
    service.client.get("/api-keys/me?server_id=web-1").bearer(&alice.token).expect_faults(422, &fault).await;
}

#[actix_web::test]
async fn a_key_opens_nothing_of_the_rest_api() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let (server_id, key) = service.server_with_key(&account, "web-1").await;

    for path in ["/auth/me", "/servers", "/api-keys/me", &format!("/metrics/{server_id}")] {
        service.client.get(path).bearer(&key).expect_refusal(401).await;
    }
    service.client.post("/auth/refresh").json(json!({"refresh_token": key})).expect_refusal(401).await;
}

#[actix_web::test]
async fn no_secret_is_stored_as_it_is() {
    // Always on SQLite, where stored data can be read.
    let service = TestService::start_with(|config| config.database_url = None).await;
    let account = service.register("alice").await;
    let (_, key) = service.server_with_key(&account, "web-1").await;
    let prefix = text_of(&listed(&service, &account).await[0]["prefix"]);
    let secret_part = key.strip_prefix(&prefix).unwrap().as_bytes();

    let storage = service.stop().await;

    let files = std::fs::read_dir(storage.path()).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let stored = files.collect::<Vec<_>>().concat();
    let is_stored = |text: &[u8]| stored.windows(text.len()).any(|window| window == text);
    assert!(is_stored(account.email.as_bytes()));
    for secret in [secret_part, PASSWORD.as_bytes(), account.refresh_token.as_bytes()] {
        assert!(!is_stored(secret));
    }
}
