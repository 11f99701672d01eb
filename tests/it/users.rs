//! What administrators do to accounts: list, disable, promote and delete them.

use serde_json::{Value, json};
use signalbox::audit::Actor;
use signalbox::store::{AccountDeletion, AccountPatch, StoreError};
use signalbox_protocol::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

use crate::support::dashboard::{Dashboard, Pass};
use crate::support::rest::Call;
use crate::support::{Account, PASSWORD, TestService, assert_timestamp, eventually, in_time, keys_of, text_of};

fn change(service: &TestService, by: &Account, id: Uuid, body: Value) -> Call {
    service.client.put(format!("/users/{id}")).bearer(&by.token).json(body)
}

fn login(service: &TestService, username: &str, password: &str) -> Call {
    service.client.post("/auth/login").form(&[("username", username), ("password", password)])
}

async fn users(service: &TestService, by: &Account, query: &str) -> Vec<Value> {
    let listed = service.client.get(format!("/users{query}")).bearer(&by.token).expect(200).await;
    listed.as_array().unwrap().clone()
}

fn names(users: &[Value]) -> Vec<String> {
    users.iter().map(|user| text_of(&user["username"])).collect()
}

/// The actions of the whole audit log that begin so, newest first, each with its outcome.
async fn told(service: &TestService, by: &Account, action: &str) -> Vec<String> {
    let path = format!("/audit?all=true&action={action}");
    let entries = service.client.get(path).bearer(&by.token).expect(200).await;
    let told = |entry: &Value| format!("{} {}", text_of(&entry["action"]), text_of(&entry["outcome"]));
    entries.as_array().unwrap().iter().map(told).collect()
}

#[actix_web::test]
async fn an_administrator_sees_every_account() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);
    service.sign_in(&bob).await;
    service.server(&bob, "web-1").await;

    let listed = users(&service, &admin, "").await;

    assert_eq!(names(&listed), ["bob", "admin"]);
    let mut found = listed[0].clone();
    for field in ["created_at", "last_login_at"] {
        assert_timestamp(&found[field].take());
    }
    let expected = json!({
        "id": bob.id, "email": "bob@example.com", "username": "bob", "full_name": "Test Person", "is_admin": false,
        "disabled": false, "created_at": null, "last_login_at": null, "servers": 1, "sessions": 2,
        "second_factor": {"totp": false, "passkeys": 0},
    });
    assert_eq!(found, expected);
    assert_eq!((&listed[1]["is_admin"], &listed[1]["servers"]), (&json!(true), &json!(0)));
}

#[actix_web::test]
async fn the_list_has_pages_and_is_searched_without_regard_to_case() {
    let service = TestService::start().await;
    let admin = service.register("admin").await;
    for name in ["bob", "carol", "under_score"] {
        service.register(name).await;
    }

    let page = service.client.get("/users?limit=2&offset=1").bearer(&admin.token).expect_answer(200).await;

    assert_eq!(page.header("X-Total-Count"), "4");
    assert_eq!(names(page.json().as_array().unwrap()), ["carol", "bob"]);
    assert_eq!(names(&users(&service, &admin, "?q=CAROL%40EX").await), ["carol"]);
    assert_eq!(names(&users(&service, &admin, "?q=r_s").await), ["under_score"]);
    assert_eq!(users(&service, &admin, "?q=test%20person").await.len(), 4);
    assert_eq!(users(&service, &admin, "?q=%25").await.len(), 0);
}

#[actix_web::test]
async fn accounts_are_for_administrators_alone() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);
    let calls = |id: Uuid| {
        [
            service.client.get("/users"),
            service.client.put(format!("/users/{id}")).json(json!({"is_admin": true})),
            service.client.delete(format!("/users/{id}")),
            service.client.get("/users/invitations"),
            service.client.post("/users/invitations").json(json!({})),
            service.client.delete(format!("/users/invitations/{id}")),
        ]
    };

    for call in calls(admin.id) {
        call.expect_error(401, "not_authenticated").await;
    }
    // Whether the id exists makes no difference.
    for call in calls(admin.id).into_iter().chain(calls(Uuid::now_v7())) {
        call.bearer(&bob.token).expect_error(403, "forbidden").await;
    }

    change(&service, &admin, Uuid::now_v7(), json!({"disabled": true})).expect_error(404, "not_found").await;
    let unknown = format!("/users/{}", Uuid::now_v7());
    service.client.delete(unknown).bearer(&admin.token).expect_error(404, "not_found").await;
    change(&service, &admin, bob.id, json!({"disabled": "yes", "is_admin": 1}))
        .expect_some_faults(422, &[("body.disabled", "type_error.bool"), ("body.is_admin", "type_error.bool")])
        .await;
    service.client.get("/users?limit=0").bearer(&admin.token).expect(422).await;
}

#[actix_web::test]
async fn a_disabled_account_is_out_at_once_and_cannot_come_back() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);
    let mut socket = Dashboard::open(service.address, "/api/v1/ws/fleet", Pass::Header(&bob.token), &[]).await.unwrap();

    let answer = change(&service, &admin, bob.id, json!({"disabled": true})).expect(200).await;

    assert_eq!((&answer["disabled"], &answer["sessions"]), (&json!(true), &json!(0)));
    in_time("the socket closes", socket.expect_close(4401)).await;
    service.client.get("/auth/me").bearer(&bob.token).expect_error(401, "token_revoked").await;
    let refresh = json!({"refresh_token": bob.refresh_token});
    service.client.post("/auth/refresh").json(refresh).expect_error(401, "token_revoked").await;
    let right = login(&service, "bob", PASSWORD).expect_error(401, "invalid_credentials").await;
    let wrong = login(&service, "bob", "a wrong password").expect_error(401, "invalid_credentials").await;
    assert_eq!(right, wrong);

    change(&service, &admin, bob.id, json!({"disabled": false})).expect(200).await;

    login(&service, "bob", PASSWORD).expect(200).await;
    assert_eq!(told(&service, &admin, "user.d").await, ["user.disable ok"]);
    assert_eq!(told(&service, &admin, "user.e").await, ["user.enable ok"]);
}

#[actix_web::test]
async fn a_role_counts_at_the_next_request() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);
    service.client.get("/users").bearer(&bob.token).expect_error(403, "forbidden").await;

    change(&service, &admin, bob.id, json!({"is_admin": true})).expect(200).await;
    assert_eq!(users(&service, &bob, "").await.len(), 2);
    change(&service, &bob, admin.id, json!({"is_admin": false})).expect(200).await;

    service.client.get("/users").bearer(&admin.token).expect_error(403, "forbidden").await;
    change(&service, &bob, bob.id, json!({})).expect(200).await;
    assert_eq!(told(&service, &bob, "user.").await[..2], ["user.demote ok", "user.promote ok"]);
}

#[actix_web::test]
async fn somebody_can_always_administer_the_service() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);
    let alone = [json!({"is_admin": false}), json!({"disabled": true}), json!({"is_admin": false, "disabled": true})];

    for body in alone {
        change(&service, &admin, admin.id, body).expect_error(400, "last_admin").await;
    }
    let me = service.client.delete(format!("/users/{}", admin.id)).bearer(&admin.token);
    me.expect_error(400, "last_admin").await;
    let own = service.client.delete("/auth/me").bearer(&admin.token).json(json!({"password": PASSWORD}));
    own.expect_error(400, "last_admin").await;

    // A disabled administrator is none.
    change(&service, &admin, bob.id, json!({"is_admin": true, "disabled": true})).expect(200).await;
    change(&service, &admin, admin.id, json!({"is_admin": false})).expect_error(400, "last_admin").await;
    change(&service, &admin, bob.id, json!({"disabled": false})).expect(200).await;
    change(&service, &admin, admin.id, json!({"is_admin": false})).expect(200).await;
}

#[actix_web::test]
async fn an_administrator_of_the_provider_is_no_substitute_for_one_with_a_password() {
    let service = TestService::start().await;
    let (admin, bob, cy) =
        (service.register("admin").await, service.register("bob").await, service.register("cyd").await);
    change(&service, &admin, bob.id, json!({"is_admin": true})).expect(200).await;
    let storage = service.stop().await;
    storage.execute(&["UPDATE users SET password_hash = '' WHERE username = 'bob'"]).await;
    let service = TestService::start_on(storage, |_| {}).await;

    for body in [json!({"is_admin": false}), json!({"disabled": true})] {
        change(&service, &admin, admin.id, body).expect_error(400, "last_admin").await;
    }
    let deleted = service.client.delete(format!("/users/{}", admin.id)).bearer(&admin.token);
    deleted.expect_error(400, "last_admin").await;

    // The one of the provider can go, and with another password the first one can, too.
    change(&service, &admin, bob.id, json!({"is_admin": false})).expect(200).await;
    change(&service, &admin, cy.id, json!({"is_admin": true})).expect(200).await;
    change(&service, &admin, admin.id, json!({"is_admin": false})).expect(200).await;
}

#[actix_web::test]
async fn of_two_administrators_who_demote_each_other_one_remains() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);

    for _ in 0..5 {
        let found = service.state.store.find_user_by_name("admin").await.unwrap().unwrap();
        let by = if found.is_admin { &admin } else { &bob };
        for id in [admin.id, bob.id] {
            change(&service, by, id, json!({"is_admin": true})).expect(200).await;
        }
        let demote = |by: &Account, of: &Account| change(&service, by, of.id, json!({"is_admin": false})).send();
        let answers = tokio::join!(demote(&admin, &bob), demote(&bob, &admin));

        let statuses = [answers.0.status, answers.1.status];
        assert!(statuses.contains(&200), "{statuses:?}");
        assert!(statuses.contains(&400) || statuses.contains(&403), "{statuses:?}");
        let page = signalbox::store::PageRequest { limit: 10, offset: 0 };
        let now = signalbox_protocol::Timestamp::now();
        let left = service.state.store.list_accounts(None, now, page).await.unwrap().items;
        assert_eq!(left.iter().filter(|account| account.user.is_admin).count(), 1);
    }
}

#[actix_web::test]
async fn an_account_is_deleted_with_everything_but_its_servers() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);
    let path = format!("/users/{}", bob.id);
    let id = service.server(&bob, "web-1").await;

    let delete = |query: String| service.client.delete(format!("{path}{query}")).bearer(&admin.token);
    delete(String::new()).expect_error(400, "owns_servers").await;
    delete(format!("?servers_to={}", Uuid::now_v7())).expect_error(404, "not_found").await;
    delete(format!("?servers_to={}", bob.id))
        .expect_some_faults(422, &[("query.servers_to", "value_error.same_user")])
        .await;
    service.client.get("/auth/me").bearer(&bob.token).expect(200).await;
    let grant = json!({"subject": {"user_id": admin.id}, "scope": {"all": true}, "role": "viewer"});
    let grant = service.client.post("/grants").bearer(&bob.token).json(grant).expect(201).await;
    let done = delete(format!("?servers_to={}", admin.id)).expect(200).await;

    assert_eq!(done, json!({"data": null, "message": "Account deleted"}));
    service.client.get("/auth/me").bearer(&bob.token).expect_error(401, "token_revoked").await;
    login(&service, "bob", PASSWORD).expect_error(401, "invalid_credentials").await;
    assert_eq!(names(&users(&service, &admin, "").await), ["admin"]);
    service.client.get(format!("/servers/{id}")).bearer(&admin.token).expect(200).await;
    delete(String::new()).expect_error(404, "not_found").await;
    // The audit log outlives it, and the name is free.
    let entries = service.client.get("/audit?all=true&action=user.delete").bearer(&admin.token).expect(200).await;
    let detail =
        json!({"username": "bob", "email": "bob@example.com", "servers": 1, "servers_to": admin.id, "batches": []});
    assert_eq!((&entries[0]["target"], &entries[0]["detail"]), (&json!(bob.id), &detail));
    let ended = service.client.get("/audit?all=true&action=grant.delete").bearer(&admin.token).expect(200).await;
    assert_eq!((&ended[0]["target"], ended.as_array().unwrap().len()), (&grant["id"], 1));
    let registered = service.client.get("/audit?all=true&action=user.register").bearer(&admin.token).expect(200).await;
    assert_eq!(registered.as_array().unwrap().len(), 2);
    service.register("bob").await;
}

#[actix_web::test]
async fn one_deletes_ones_own_account_with_the_password() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);
    let other = service.sign_in(&bob).await;
    let delete = |body: Value| service.client.delete("/auth/me").bearer(&bob.token).json(body);
    let id = service.server(&bob, "web-1").await;

    service.client.delete("/auth/me").json(json!({"password": PASSWORD})).expect_error(401, "not_authenticated").await;
    delete(json!({})).expect_some_faults(422, &[("body.password", "value_error.missing")]).await;
    delete(json!({"password": "a wrong password"})).expect_error(400, "invalid_credentials").await;
    delete(json!({"password": PASSWORD})).expect_error(400, "owns_servers").await;
    service.client.delete(format!("/servers/{id}")).bearer(&bob.token).expect(200).await;
    delete(json!({"password": PASSWORD})).expect(200).await;

    for token in [&bob.token, &other.token] {
        service.client.get("/auth/me").bearer(token).expect_error(401, "token_revoked").await;
    }
    login(&service, "bob", PASSWORD).expect_error(401, "invalid_credentials").await;
    eventually("the wrong password is recorded", || async {
        let told = told(&service, &admin, "user.delete").await;
        (told == ["user.delete ok", "user.delete refused"] || told == ["user.delete refused", "user.delete ok"])
            .then_some(())
    })
    .await;
}

#[actix_web::test]
async fn an_account_shows_nothing_secret() {
    let service = TestService::start().await;
    let admin = service.register("admin").await;

    let listed = users(&service, &admin, "").await;

    let fields = [
        "created_at",
        "disabled",
        "email",
        "full_name",
        "id",
        "is_admin",
        "last_login_at",
        "second_factor",
        "servers",
        "sessions",
        "username",
    ];
    assert_eq!(keys_of(&listed[0]), fields);
}

/// Sends all but the last byte of an administrator's request that would undo what happens to them.
async fn held(service: &TestService, by: &Account) -> tokio::net::TcpStream {
    let body = r#"{"disabled":false,"is_admin":true}"#;
    let head = format!(
        "PUT /api/v1/users/{} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        by.id,
        service.address,
        by.token,
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(service.address).await.unwrap();
    stream.write_all(format!("{head}{}", &body[..body.len() - 1]).as_bytes()).await.unwrap();
    stream
}

#[actix_web::test]
async fn a_request_that_was_held_back_is_that_of_the_caller_as_they_are_at_its_end() {
    for (change_to, expected) in
        [(json!({"disabled": true}), "HTTP/1.1 401"), (json!({"is_admin": false}), "HTTP/1.1 403")]
    {
        let service = TestService::start().await;
        let (admin, eve) = (service.register("admin").await, service.register("eve").await);
        change(&service, &admin, eve.id, json!({"is_admin": true})).expect(200).await;
        let mut request = held(&service, &eve).await;
        // The service has read what was sent when a later request on another connection is answered.
        service.client.get("/users").bearer(&eve.token).expect(200).await;

        change(&service, &admin, eve.id, change_to.clone()).expect(200).await;
        request.write_all(b"}").await.unwrap();

        let mut answer = [0; 12];
        in_time("the answer", request.read_exact(&mut answer)).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), expected, "{change_to}");
        let found = users(&service, &admin, "?search=eve").await;
        assert!(found[0]["disabled"] == true || found[0]["is_admin"] == false, "{found:?}");
    }
}

#[actix_web::test]
async fn a_transaction_of_somebody_who_is_no_administrator_any_more_changes_nothing() {
    let service = TestService::start().await;
    let (admin, eve) = (service.register("admin").await, service.register("eve").await);
    let store = &service.state.store;
    let actor = |account: &Account| Actor {
        user_id: Some(account.id),
        username: account.username.as_str().into(),
        login_id: None,
        token: None,
        address: String::new(),
    };
    let (promote, now) = (AccountPatch { is_admin: Some(true), is_disabled: None }, Timestamp::now());

    let changed = store.change_account(eve.id, promote, actor(&eve)).await;
    let deletion = AccountDeletion { user_id: admin.id, servers_to: None, verified_hash: None, now };
    let deleted = store.delete_account(deletion, actor(&eve)).await;
    let own = AccountDeletion { user_id: eve.id, servers_to: None, verified_hash: None, now };

    assert!(matches!(changed, Err(StoreError::NotAdministrator)), "{changed:?}");
    assert!(matches!(deleted, Err(StoreError::NotAdministrator)), "{deleted:?}");
    assert!(store.delete_account(own, actor(&eve)).await.unwrap().is_some());
    let promoted = store.change_account(admin.id, promote, Actor::command_line()).await.unwrap();
    assert!(promoted.is_some_and(|user| user.is_admin));
}
