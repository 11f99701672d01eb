//! Filters of the audit log.

use serde_json::Value;

use crate::support::{Account, Answer, TestService, text_of};

async fn ask(service: &TestService, account: &Account, pairs: &[(&str, &str)]) -> Answer {
    service.client.get("/audit").bearer(&account.token).query(pairs).expect_answer(200).await
}

fn actions(answer: &Answer) -> Vec<String> {
    answer.json().as_array().unwrap().iter().map(|entry| text_of(&entry["action"])).collect()
}

#[actix_web::test]
async fn the_newest_come_first_and_in_pages() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    service.server(&account, "web-1").await;

    let all = ask(&service, &account, &[]).await;
    let page = ask(&service, &account, &[("limit", "1"), ("offset", "1")]).await;

    assert_eq!(actions(&all), ["server.create", "login", "user.register"]);
    assert_eq!(all.header("X-Total-Count"), "3");
    assert_eq!(actions(&page), ["login"]);
    assert_eq!(page.header("X-Total-Count"), "3");
}

#[actix_web::test]
async fn entries_are_found_by_action_server_and_time() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let first = service.server(&account, "web-1").await;
    let (second, _) = service.server_with_key(&account, "web-2").await;
    let count = async |pairs: &[(&str, &str)]| ask(&service, &account, pairs).await.header("X-Total-Count").to_owned();

    assert_eq!(count(&[("action", "server.")]).await, "2");
    assert_eq!(count(&[("action", "Server.Create")]).await, "2");
    assert_eq!(count(&[("action", "create")]).await, "0");
    assert_eq!(count(&[("action", "%")]).await, "0");
    assert_eq!(count(&[("action", "api_key")]).await, "1");
    assert_eq!(count(&[("action", "api?key")]).await, "0");
    assert_eq!(count(&[("server_id", &first.to_string())]).await, "1");
    assert_eq!(count(&[("server_id", &second.to_string())]).await, "2");
    assert_eq!(count(&[("server_id", &second.to_string()), ("action", "server.")]).await, "1");
    assert_eq!(count(&[("since", "2100-01-01T00:00:00Z")]).await, "0");
    assert_eq!(count(&[("until", "2020-01-01T00:00:00Z")]).await, "0");
    let entries: Vec<Value> = ask(&service, &account, &[]).await.json().as_array().unwrap().clone();
    let at = text_of(&entries[0]["at"]);
    let (since, until) = (count(&[("since", &at)]).await, count(&[("until", &at)]).await);
    assert_eq!(since.parse::<usize>().unwrap() + until.parse::<usize>().unwrap(), entries.len());
    assert_ne!(since, "0");
}

#[actix_web::test]
async fn every_fault_of_a_query_is_reported() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let bad =
        [("server_id", "x"), ("since", "then"), ("until", "now"), ("all", "maybe"), ("limit", "0"), ("offset", "-1")];

    let call = service.client.get("/audit").bearer(&account.token).query(&bad);

    let faults = [
        ("query", "server_id", "type_error.uuid"),
        ("query", "since", "value_error.datetime"),
        ("query", "until", "value_error.datetime"),
        ("query", "all", "type_error.bool"),
        ("query", "limit", "value_error.number.not_ge"),
        ("query", "offset", "value_error.number.not_ge"),
    ];
    call.expect_faults(422, &faults).await;
    let backwards = [("since", "2026-01-02T00:00:00Z"), ("until", "2026-01-01T00:00:00Z")];
    let call = service.client.get("/audit").bearer(&account.token).query(&backwards);
    call.expect_faults(422, &[("query", "until", "value_error.range")]).await;
}
