//! `GET /audit`: each change has one entry, whatever its actor is, and only its owner reads it.

mod bounds;
mod orders;
mod passkeys;
mod query;
mod verify;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::tokens::claims_of;
use crate::support::{Account, PASSWORD, TestService, assert_timestamp, eventually, keys_of, text_of};

/// The entries that an account reads, oldest first.
async fn entries(service: &TestService, account: &Account) -> Vec<Value> {
    let list = service.client.get("/audit").bearer(&account.token).expect(200).await;
    list.as_array().unwrap().iter().rev().cloned().collect()
}

/// Entries as `action outcome`.
fn told(entries: &[Value]) -> Vec<String> {
    entries.iter().map(|entry| format!("{} {}", text_of(&entry["action"]), text_of(&entry["outcome"]))).collect()
}

/// The last entry, of which there must be `count`.
async fn last(service: &TestService, account: &Account, count: usize) -> Value {
    let entries = entries(service, account).await;
    assert_eq!(entries.len(), count, "{:?}", told(&entries));
    entries[count - 1].clone()
}

fn login_of(account: &Account) -> Value {
    claims_of(&account.token)["sid"].clone()
}

#[track_caller]
fn assert_by(entry: &Value, account: &Account) {
    assert_eq!(entry["owner_id"], json!(account.id), "{entry}");
    assert_eq!(entry["user_id"], json!(account.id), "{entry}");
    assert_eq!(entry["username"], json!(account.username), "{entry}");
    assert_eq!(entry["login_id"], login_of(account), "{entry}");
    assert_eq!(entry["address"], "127.0.0.1", "{entry}");
    assert_eq!(entry["outcome"], "ok", "{entry}");
    assert_timestamp(&entry["at"]);
}

#[actix_web::test]
async fn an_entry_has_these_fields() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let entry = last(&service, &account, 2).await;

    let fields = [
        "action",
        "address",
        "at",
        "detail",
        "hash",
        "login_id",
        "outcome",
        "owner_id",
        "seq",
        "server_id",
        "server_name",
        "target",
        "token",
        "user_id",
        "username",
    ];
    assert_eq!(keys_of(&entry), fields);
    assert_eq!(entry["seq"], 2);
    assert_eq!(text_of(&entry["hash"]).len(), 64);
}

#[actix_web::test]
async fn registering_is_an_account_and_a_sign_in() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let entries = entries(&service, &account).await;

    assert_eq!(told(&entries), ["user.register ok", "login ok"]);
    assert_eq!(entries[0]["user_id"], json!(account.id));
    assert_eq!(entries[0]["address"], "127.0.0.1");
    assert_eq!(entries[0]["login_id"], Value::Null);
    assert_by(&entries[1], &account);
}

#[actix_web::test]
async fn each_change_of_a_server_is_one_entry_and_outlives_it() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let id = service.server(&account, "web-1").await;
    let path = format!("/servers/{id}");
    let patch = json!({"name": "web-2", "port": 22, "tags": ["a"]});
    service.client.put(&path).bearer(&account.token).json(patch).expect(200).await;
    service.client.delete(&path).bearer(&account.token).expect(200).await;
    service.client.delete(&path).bearer(&account.token).expect(404).await;

    let entries = entries(&service, &account).await;

    assert_eq!(told(&entries[2..]), ["server.create ok", "server.update ok", "server.delete ok"]);
    for (entry, name) in entries[2..].iter().zip(["web-1", "web-2", "web-2"]) {
        assert_by(entry, &account);
        assert_eq!(entry["server_id"], json!(id));
        assert_eq!(entry["server_name"], name);
    }
    assert_eq!(entries[2]["detail"], json!({"host": "192.0.2.10", "port": 22}));
    let changes = json!({"name": {"from": "web-1", "to": "web-2"}, "tags": {"to": ["a"]}});
    assert_eq!(entries[3]["detail"], changes);
}

#[actix_web::test]
async fn making_and_revoking_a_key_is_an_entry_each() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let id = service.server(&account, "web-1").await;
    let body = json!({"server_id": id, "name": "agent"});
    let key = service.client.post("/api-keys").bearer(&account.token).json(body).expect(201).await;
    let path = format!("/api-keys/{}", text_of(&key["id"]));
    service.client.delete(&path).bearer(&account.token).expect(200).await;
    service.client.delete(&path).bearer(&account.token).expect(404).await;

    let entries = entries(&service, &account).await;

    assert_eq!(told(&entries[3..]), ["api_key.create ok", "api_key.revoke ok"]);
    for entry in &entries[3..] {
        assert_by(entry, &account);
        assert_eq!(entry["target"], key["id"]);
        assert_eq!(entry["server_id"], json!(id));
        assert_eq!(entry["server_name"], "web-1");
        assert_eq!(entry["detail"], json!({"name": "agent", "prefix": key["prefix"], "expires_at": null}));
    }
}

#[actix_web::test]
async fn a_change_of_the_profile_is_recorded_with_the_old_name_and_the_next_with_the_new() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let patch = json!({"username": "alicia", "full_name": "Test Person"});
    service.client.put("/auth/me").bearer(&account.token).json(patch).expect(200).await;

    let entry = last(&service, &account, 3).await;
    assert_by(&entry, &account);
    assert_eq!(entry["action"], "profile.update");
    assert_eq!(entry["detail"], json!({"username": {"from": "alice", "to": "alicia"}}));

    service.server(&account, "web-1").await;
    assert_eq!(last(&service, &account, 4).await["username"], "alicia");
}

#[actix_web::test]
async fn a_new_password_is_an_entry_and_a_wrong_one_too() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    service.sign_in(&account).await;
    let change = |current: &str| {
        let body = json!({"current_password": current, "new_password": "a new password"});
        service.client.post("/auth/change-password").bearer(&account.token).json(body)
    };
    change("not this one").expect_error(400, "invalid_credentials").await;
    let told_of = eventually("the refusal is recorded", || async {
        let entries = entries(&service, &account).await;
        (entries.len() == 4).then(|| entries[3].clone())
    });
    assert_eq!(told(&[told_of.await]), ["password.change refused"]);

    change(PASSWORD).expect(200).await;

    let entry = last(&service, &account, 5).await;
    assert_by(&entry, &account);
    assert_eq!(entry["action"], "password.change");
    assert_eq!(entry["detail"], json!({"ended_sessions": 1}));
}

#[actix_web::test]
async fn ending_sessions_is_an_entry_each() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let (second, third) = (service.sign_in(&account).await, service.sign_in(&account).await);
    let path = format!("/auth/sessions/{}", text_of(&login_of(&second)));
    service.client.delete(&path).bearer(&account.token).expect(200).await;
    service.client.delete(&path).bearer(&account.token).expect(404).await;
    let body = json!({"refresh_token": third.refresh_token});
    service.client.post("/auth/logout").bearer(&third.token).json(body).expect(200).await;

    let entries = entries(&service, &account).await;

    assert_eq!(told(&entries[4..]), ["session.end ok", "logout ok"]);
    assert_by(&entries[4], &account);
    assert_eq!(entries[4]["target"], login_of(&second));
    assert_by(&entries[5], &third);
    assert_eq!(entries[5]["target"], login_of(&third));
}

#[actix_web::test]
async fn a_refresh_is_no_change_and_a_spent_token_ends_its_session() {
    let service = TestService::start_with(|config| config.timing.refresh_grace = std::time::Duration::ZERO).await;
    let account = service.register("alice").await;
    let other = service.sign_in(&account).await;
    let refresh = || {
        let body = json!({"refresh_token": other.refresh_token});
        service.client.post("/auth/refresh").json(body)
    };
    let fresh = refresh().expect(200).await;
    assert_eq!(entries(&service, &account).await.len(), 3);
    let body = json!({"refresh_token": fresh["refresh_token"]});
    service.client.post("/auth/refresh").json(body).expect(200).await;

    refresh().expect_error(401, "token_reused").await;

    let entry = last(&service, &account, 4).await;
    assert_eq!(entry["action"], "session.end");
    assert_eq!(entry["target"], login_of(&other));
    assert_eq!(entry["user_id"], Value::Null);
    assert_eq!(entry["username"], "the service");
    assert_eq!(entry["address"], "127.0.0.1");
    assert_eq!(entry["detail"], json!({"reason": "token_reused"}));
}

#[actix_web::test]
async fn what_did_not_change_anything_leaves_no_entry() {
    let service = TestService::start().await;
    let (alice, bob) = (service.register("alice").await, service.register("bob").await);
    let id = service.server(&alice, "web-1").await;
    let path = format!("/servers/{id}");

    service.client.put("/auth/me").bearer(&bob.token).json(json!({"username": "alice"})).expect(400).await;
    service.client.put(&path).bearer(&bob.token).json(json!({"name": "x"})).expect(404).await;
    service.client.delete(&path).bearer(&bob.token).expect(404).await;
    let body = json!({"server_id": id, "name": "agent"});
    service.client.post("/api-keys").bearer(&bob.token).json(body).expect(404).await;
    service.client.put(&path).bearer(&alice.token).json(json!({"port": 0})).expect(422).await;
    service.client.get(&path).bearer(&alice.token).expect(200).await;

    assert_eq!(told(&entries(&service, &bob).await), ["user.register ok", "login ok"]);
    assert_eq!(told(&entries(&service, &alice).await), ["user.register ok", "login ok", "server.create ok"]);
}

#[actix_web::test]
async fn a_password_reset_by_the_operator_is_recorded_as_theirs() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    signalbox::admin::reset_password(&service.state.config, "alice").await.unwrap();
    let login = service.client.post("/auth/login").form(&[("username", "alice"), ("password", PASSWORD)]);
    login.expect_error(401, "invalid_credentials").await;

    let filter = signalbox::store::AuditFilter { action: Some("password.".to_owned()), ..Default::default() };
    let page = signalbox::store::PageRequest { limit: 10, offset: 0 };
    let found = service.state.store.list_audit(filter, page).await.unwrap().items;

    assert_eq!(found.len(), 1);
    assert_eq!((found[0].owner_id, found[0].user_id), (account.id, None));
    assert_eq!((found[0].action.as_str(), found[0].username.as_str()), ("password.reset", "command line"));
}

#[actix_web::test]
async fn no_secret_is_in_any_entry() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let (id, key) = service.server_with_key(&account, "web-1").await;
    let wrong = [("username", "alice"), ("password", "a wrong password")];
    service.client.post("/auth/login").form(&wrong).expect_error(401, "invalid_credentials").await;
    let body = json!({"current_password": PASSWORD, "new_password": "another password"});
    service.client.post("/auth/change-password").bearer(&account.token).json(body).expect(200).await;
    service.client.delete(format!("/servers/{id}")).bearer(&account.token).expect(200).await;
    eventually("the refusal is recorded", || async {
        told(&entries(&service, &account).await).contains(&"login refused".to_owned()).then_some(())
    })
    .await;

    let all = Value::from(entries(&service, &account).await).to_string();

    // The secret may contain underscores.
    let secret = key.splitn(3, '_').nth(2).unwrap();
    let hash = service.state.store.find_user(account.id).await.unwrap().unwrap().password_hash;
    let secrets =
        [PASSWORD, "a wrong password", "another password", secret, &account.token, &account.refresh_token, &hash];
    for secret in secrets {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

#[actix_web::test]
async fn anothers_entries_are_seen_by_administrators_alone() {
    let service = TestService::start().await;
    let (admin, bob) = (service.register("admin").await, service.register("bob").await);
    let id = service.server(&bob, "web-1").await;
    let path = format!("/audit?all=true&server_id={id}");

    assert_eq!(entries(&service, &admin).await.len(), 2);
    let of_bobs_server = service.client.get(format!("/audit?server_id={id}")).bearer(&admin.token).expect(200).await;
    assert_eq!(of_bobs_server, json!([]));
    let all = service.client.get(&path).bearer(&admin.token).expect(200).await;
    assert_eq!(all[0]["owner_id"], json!(bob.id));
    service.client.get(&path).bearer(&bob.token).expect_error(403, "forbidden").await;
    service.client.get("/audit").expect_error(401, "not_authenticated").await;
    let unknown = service.client.get(format!("/audit?server_id={}", Uuid::now_v7())).bearer(&bob.token);
    assert_eq!(unknown.expect(200).await, json!([]));
}
