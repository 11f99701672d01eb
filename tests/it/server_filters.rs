//! `GET /servers`: order, pages and filters.

use serde_json::{Value, json};

use crate::support::site::Site;
use crate::support::{Account, Answer, TestService, text_of};

async fn list(service: &TestService, account: &Account, query: &[(&str, &str)]) -> Answer {
    service.client.get("/servers").bearer(&account.token).query(query).expect_answer(200).await
}

fn names(answer: &Answer) -> Vec<String> {
    answer.json().as_array().unwrap().iter().map(|server| text_of(&server["name"])).collect()
}

/// An account with these servers, each with a name and its tags.
async fn fleet(service: &TestService, servers: &[(&str, &[&str])]) -> Account {
    let account = service.register("alice").await;
    for (name, tags) in servers {
        let body = json!({"name": name, "host": "192.0.2.10", "tags": tags});
        service.client.post("/servers").bearer(&account.token).json(body).expect(201).await;
    }
    account
}

#[actix_web::test]
async fn servers_are_listed_by_name() {
    let service = TestService::start().await;
    let account = fleet(&service, &[("web-2", &[]), ("db-1", &[]), ("web-1", &[])]).await;

    let answer = list(&service, &account, &[]).await;

    assert_eq!(names(&answer), ["db-1", "web-1", "web-2"]);
    assert_eq!(answer.header("X-Total-Count"), "3");
}

#[actix_web::test]
async fn an_empty_list_is_a_list() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let answer = list(&service, &account, &[]).await;

    assert_eq!(answer.json(), json!([]));
    assert_eq!(answer.header("X-Total-Count"), "0");
}

#[actix_web::test]
async fn pages_join_to_the_whole_list() {
    let service = TestService::start().await;
    let account = fleet(&service, &[("e", &[]), ("d", &[]), ("c", &[]), ("b", &[]), ("a", &[])]).await;
    let mut joined = Vec::new();

    for offset in ["0", "2", "4", "6"] {
        let page = list(&service, &account, &[("limit", "2"), ("offset", offset)]).await;
        assert_eq!(page.header("X-Total-Count"), "5");
        joined.extend(names(&page));
    }

    assert_eq!(joined, ["a", "b", "c", "d", "e"]);
}

#[actix_web::test]
async fn a_page_has_a_hundred_entries_by_default() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    for number in 0..101 {
        service.server(&account, &format!("web-{number:03}")).await;
    }

    let by_default = list(&service, &account, &[]).await;
    let rest = list(&service, &account, &[("offset", "100")]).await;
    let all = list(&service, &account, &[("limit", "500")]).await;

    assert_eq!((names(&by_default).len(), by_default.header("X-Total-Count")), (100, "101"));
    assert_eq!(names(&rest), ["web-100"]);
    assert_eq!(names(&all).len(), 101);
}

#[actix_web::test]
async fn pages_have_limits() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let faults = async |query: &[(&str, &str)], faults: &[(&str, &str, &str)]| {
        service.client.get("/servers").bearer(&account.token).query(query).expect_faults(422, faults).await
    };

    faults(&[("limit", "0")], &[("query", "limit", "value_error.*")]).await;
    faults(&[("limit", "501")], &[("query", "limit", "value_error.*")]).await;
    faults(&[("limit", "many")], &[("query", "limit", "type_error.integer")]).await;
    faults(&[("limit", "1.5")], &[("query", "limit", "type_error.integer")]).await;
    faults(&[("offset", "-1")], &[("query", "offset", "value_error.*")]).await;
    faults(&[("offset", "x")], &[("query", "offset", "type_error.integer")]).await;
    let both = [("query", "limit", "value_error.*"), ("query", "offset", "type_error.integer")];
    faults(&[("limit", "0"), ("offset", "x")], &both).await;
    list(&service, &account, &[("limit", "1"), ("offset", "9000000000")]).await;
    list(&service, &account, &[("unknown", "parameter")]).await;
}

#[actix_web::test]
async fn a_tag_selects_its_servers() {
    let service = TestService::start().await;
    let account = fleet(&service, &[("a", &["web", "eu"]), ("b", &["web-old"]), ("c", &["eu"]), ("d", &[])]).await;

    let web = list(&service, &account, &[("tag", "web")]).await;

    assert_eq!(names(&web), ["a"]);
    assert_eq!(web.header("X-Total-Count"), "1");
    assert_eq!(names(&list(&service, &account, &[("tag", "eu")]).await), ["a", "c"]);
    assert_eq!(names(&list(&service, &account, &[("tag", "none")]).await), [""; 0]);
    assert_eq!(names(&list(&service, &account, &[("tag", "w\"b")]).await), [""; 0]);
    assert_eq!(names(&list(&service, &account, &[("tag", "w%b")]).await), [""; 0]);
}

#[actix_web::test]
async fn a_query_finds_a_part_of_a_name() {
    let service = TestService::start().await;
    let account = fleet(&service, &[("web-1", &[]), ("web-2", &[]), ("db_1", &[]), ("50%", &[])]).await;

    let web = list(&service, &account, &[("q", "web")]).await;

    assert_eq!(names(&web), ["web-1", "web-2"]);
    assert_eq!(web.header("X-Total-Count"), "2");
    assert_eq!(names(&list(&service, &account, &[("q", "%")]).await), ["50%"]);
    assert_eq!(names(&list(&service, &account, &[("q", "b_1")]).await), ["db_1"]);
    assert_eq!(names(&list(&service, &account, &[("q", "' OR 1=1 --")]).await), [""; 0]);
}

#[actix_web::test]
async fn a_query_finds_letters_of_any_language() {
    let service = TestService::start().await;
    let account = fleet(&service, &[("Überwachung", &["Büro"]), ("ÉCOLE", &[]), ("web-1", &[])]).await;

    assert_eq!(names(&list(&service, &account, &[("q", "Über")]).await), ["Überwachung"]);
    assert_eq!(names(&list(&service, &account, &[("q", "ÉCO")]).await), ["ÉCOLE"]);
    assert_eq!(names(&list(&service, &account, &[("tag", "Büro")]).await), ["Überwachung"]);
}

#[actix_web::test]
async fn a_status_selects_its_servers() {
    let service = TestService::start().await;
    let account = fleet(&service, &[("web-1", &[]), ("web-2", &[])]).await;
    let with_status = async |status| list(&service, &account, &[("status", status)]).await;

    assert_eq!(names(&with_status("pending").await), ["web-1", "web-2"]);
    assert_eq!(with_status("online").await.json(), json!([]));
    assert_eq!(with_status("offline").await.header("X-Total-Count"), "0");
    let wrong = service.client.get("/servers").bearer(&account.token).query(&[("status", "broken")]);
    wrong.expect_faults(422, &[("query", "status", "*")]).await;
}

#[actix_web::test]
async fn a_status_filter_follows_the_agent() {
    let site = Site::start().await;
    site.other_server().await;
    let with_status = async |status| names(&list(&site.service, &site.owner, &[("status", status)]).await);

    let agent = site.agent().await;
    site.until_status("online").await;

    assert_eq!(with_status("online").await, ["web-1"]);
    assert_eq!(with_status("pending").await, ["web-2"]);
    drop(agent);
    site.until_status("offline").await;
    assert_eq!(with_status("online").await, [""; 0]);
    assert_eq!(with_status("offline").await, ["web-1"]);
}

#[actix_web::test]
async fn filters_and_pages_combine() {
    let service = TestService::start().await;
    let account = fleet(&service, &[("web-1", &["eu"]), ("web-2", &["eu"]), ("web-3", &["us"]), ("db", &["eu"])]).await;
    let query = [("q", "web"), ("tag", "eu"), ("status", "pending"), ("limit", "1"), ("offset", "1")];

    let answer = list(&service, &account, &query).await;

    assert_eq!(names(&answer), ["web-2"]);
    assert_eq!(answer.header("X-Total-Count"), "2");
}

#[actix_web::test]
async fn a_list_entry_is_the_whole_server() {
    let service = TestService::start().await;
    let account = fleet(&service, &[("web-1", &["eu"])]).await;

    let listed: Value = list(&service, &account, &[]).await.json()[0].clone();

    let path = format!("/servers/{}", text_of(&listed["id"]));
    assert_eq!(service.client.get(path).bearer(&account.token).expect(200).await, listed);
}
