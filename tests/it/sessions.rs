//! `GET /auth/sessions` and `DELETE /auth/sessions/{id}`.

use serde_json::{Value, json};
use signalbox::config::Config;
use uuid::Uuid;

use crate::support::tokens::claims_of;
use crate::support::{Account, PASSWORD, TestService, text_of};

/// The ids of an account's sessions, as they are listed.
async fn listed(service: &TestService, account: &Account) -> Vec<String> {
    let sessions = service.client.get("/auth/sessions").bearer(&account.token).expect(200).await;
    sessions.as_array().unwrap().iter().map(|session| text_of(&session["id"])).collect()
}

fn session_of(account: &Account) -> String {
    text_of(&claims_of(&account.token)["sid"])
}

#[actix_web::test]
async fn the_list_shows_where_one_is_signed_in() {
    let service = TestService::start().await;
    service.register("alice").await;
    let form = [("username", "alice"), ("password", PASSWORD)];
    let login = service.client.post("/auth/login").form(&form).header("User-Agent", "lighthouse-browser/4.2");
    let token = text_of(&login.expect(200).await["access_token"]);

    let answer = service.client.get("/auth/sessions").bearer(&token).expect_answer(200).await;

    let sessions = answer.json();
    assert_eq!(answer.header("X-Total-Count"), "2");
    assert_eq!(sessions.as_array().unwrap().len(), 2);
    let newest = &sessions[0];
    assert_eq!(newest["id"], claims_of(&token)["sid"]);
    assert!(newest.to_string().contains("lighthouse-browser/4.2"), "{newest}");
    assert!(newest.to_string().contains("127.0.0.1"), "{newest}");
    assert!(!answer.text.contains(&token), "{answer}");
}

#[actix_web::test]
async fn a_refresh_opens_no_further_session() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    service.client.post("/auth/refresh").json(json!({"refresh_token": account.refresh_token})).expect(200).await;

    assert_eq!(listed(&service, &account).await, [session_of(&account)]);
}

#[actix_web::test]
async fn sessions_are_listed_newest_first_and_in_pages() {
    let service = TestService::start().await;
    let first = service.register("alice").await;
    let second = service.sign_in(&first).await;
    let third = service.sign_in(&first).await;

    assert_eq!(listed(&service, &first).await, [&third, &second, &first].map(session_of));

    let call = service.client.get("/auth/sessions").bearer(&first.token).query(&[("limit", "1"), ("offset", "1")]);
    let page = call.expect_answer(200).await;
    assert_eq!(page.json().as_array().unwrap().len(), 1);
    assert_eq!(page.json()[0]["id"], session_of(&second));
    assert_eq!(page.header("X-Total-Count"), "3");
}

#[actix_web::test]
async fn a_deleted_session_is_dead_at_once() {
    let service = TestService::start().await;
    let own = service.register("alice").await;
    let other = service.sign_in(&own).await;

    let path = format!("/auth/sessions/{}", session_of(&other));
    let answer = service.client.delete(&path).bearer(&own.token).expect(200).await;

    assert_eq!(answer["data"], Value::Null);
    assert!(!text_of(&answer["message"]).is_empty());
    service.client.get("/auth/me").bearer(&other.token).expect_refusal(401).await;
    let body = json!({"refresh_token": other.refresh_token});
    service.client.post("/auth/refresh").json(body).expect_refusal(401).await;
    assert_eq!(listed(&service, &own).await, [session_of(&own)]);
    service.client.delete(&path).bearer(&own.token).expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn deleting_ones_own_session_is_a_logout() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let path = format!("/auth/sessions/{}", session_of(&account));
    service.client.delete(path).bearer(&account.token).expect(200).await;

    service.client.get("/auth/me").bearer(&account.token).expect_refusal(401).await;
}

#[actix_web::test]
async fn a_logged_out_session_leaves_the_list() {
    let service = TestService::start().await;
    let own = service.register("alice").await;
    let other = service.sign_in(&own).await;

    service.client.post("/auth/logout").bearer(&other.token).expect(200).await;

    assert_eq!(listed(&service, &own).await, [session_of(&own)]);
}

#[actix_web::test]
async fn another_users_session_does_not_exist() {
    let service = TestService::start().await;
    let alice = service.register("alice").await;
    let bob = service.register("bob").await;

    assert_eq!(listed(&service, &bob).await, [session_of(&bob)]);
    let path = format!("/auth/sessions/{}", session_of(&alice));
    service.client.delete(path).bearer(&bob.token).expect_error(404, "not_found").await;

    service.client.get("/auth/me").bearer(&alice.token).expect(200).await;
}

#[actix_web::test]
async fn an_unknown_or_malformed_id_is_refused() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let delete = |id: &str| service.client.delete(format!("/auth/sessions/{id}")).bearer(&account.token);

    delete(&Uuid::now_v7().to_string()).expect_error(404, "not_found").await;
    delete("nonsense").expect_faults(422, &[("path", "id", "type_error.uuid")]).await;
}

/// The addresses of a sign-in with this `X-Forwarded-For`, in the list of sessions and in the audit log.
async fn told_addresses(service: &TestService, forwarded_for: &str) -> [String; 2] {
    let form = [("username", "alice"), ("password", PASSWORD)];
    let login = service.client.post("/auth/login").form(&form).header("X-Forwarded-For", forwarded_for);
    let token = text_of(&login.expect(200).await["access_token"]);
    let sessions = service.client.get("/auth/sessions").bearer(&token).expect(200).await;
    let entries = service.client.get("/audit?action=login").bearer(&token).expect(200).await;
    [text_of(&sessions[0]["address"]), text_of(&entries[0]["address"])]
}

#[actix_web::test]
async fn behind_a_trusted_proxy_the_address_is_the_one_that_it_names() {
    let trust = |config: &mut Config| config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let service = TestService::start_with(trust).await;
    service.register("alice").await;

    assert_eq!(told_addresses(&service, "192.0.2.1, 2001:db8::9, 127.0.0.3").await, ["2001:db8::9"; 2]);
    assert_eq!(told_addresses(&service, "192.0.2.1, nonsense").await, ["127.0.0.1"; 2]);
}

#[actix_web::test]
async fn what_anybody_else_says_of_an_address_is_not_believed() {
    let service = TestService::start().await;
    service.register("alice").await;

    assert_eq!(told_addresses(&service, "192.0.2.1").await, ["127.0.0.1"; 2]);
}
