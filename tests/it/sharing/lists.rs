//! Lists of servers that several accounts share: the same one function selects all of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use uuid::Uuid;

use super::Shared;
use crate::support::{Account, text_of, uuid_of};

/// Servers of two other owners and of the guest, of which the guest sees those whose names begin with "seen".
async fn scene() -> Shared {
    let shared = Shared::start().await;
    let service = &shared.site.service;
    let other = service.register("other").await;
    let make = async |account: &Account, name: &str, tags: &[&str]| {
        let body = json!({"name": name, "host": "192.0.2.10", "tags": tags});
        uuid_of(&service.client.post("/servers").bearer(&account.token).json(body).expect(201).await["id"])
    };
    make(&shared.site.owner, "seen-tag", &["db", "eu"]).await;
    make(&shared.site.owner, "hidden-tag", &["web"]).await;
    let single = make(&shared.site.owner, "seen-single", &[]).await;
    // By its tag and by itself: it is listed once.
    let both = make(&shared.site.owner, "seen-both", &["db"]).await;
    make(&other, "seen-all", &["web"]).await;
    make(&shared.guest, "seen-own", &["db"]).await;
    shared.grant(json!({"tag": "db"}), "viewer", json!([])).await;
    shared.grant(json!({"tag": "eu"}), "operator", json!(["commands"])).await;
    shared.grant(json!({"server_id": single}), "viewer", json!([])).await;
    shared.grant(json!({"server_id": both}), "viewer", json!([])).await;
    let body = json!({"subject": {"username": "guest"}, "scope": {"all": true}, "role": "viewer"});
    shared.by(&other, "POST", "/grants").json(body).expect(201).await;
    shared
}

const SEEN: [&str; 5] = ["seen-all", "seen-both", "seen-own", "seen-single", "seen-tag"];

fn names(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|server| text_of(&server["name"])).collect()
}

#[actix_web::test]
async fn a_list_has_what_is_shared_in_one_order_and_each_server_once() {
    let shared = scene().await;

    let all = shared.by_guest("GET", "/servers").expect_answer(200).await;
    assert_eq!((names(&all.json()), all.header("X-Total-Count")), (SEEN.map(str::to_owned).into(), "5"));
    for (offset, expected) in SEEN.chunks(2).enumerate() {
        let page = shared.by_guest("GET", &format!("/servers?limit=2&offset={}", 2 * offset)).expect_answer(200).await;
        assert_eq!(
            (names(&page.json()), page.header("X-Total-Count")),
            (expected.iter().map(|name| (*name).to_owned()).collect(), "5")
        );
    }
    assert_eq!(
        names(&shared.by_guest("GET", "/servers?tag=db").expect(200).await),
        ["seen-both", "seen-own", "seen-tag"]
    );
    assert_eq!(names(&shared.by_guest("GET", "/servers?q=single").expect(200).await), ["seen-single"]);
    assert_eq!(names(&shared.by_guest("GET", "/servers?role=owner").expect(200).await), ["seen-own"]);
    let roles: Vec<String> = all.json().as_array().unwrap().iter().map(|server| text_of(&server["role"])).collect();
    assert_eq!(roles, ["viewer", "viewer", "owner", "viewer", "operator"]);
}

#[actix_web::test]
async fn every_overview_is_of_the_same_servers() {
    let shared = scene().await;
    let list = shared.by_guest("GET", "/servers").expect(200).await;
    let seen: BTreeSet<Uuid> = list.as_array().unwrap().iter().map(|server| uuid_of(&server["id"])).collect();
    let ids = |list: &Value, field: &str| -> BTreeSet<Uuid> {
        list.as_array().unwrap().iter().map(|server| uuid_of(&server[field])).collect()
    };

    for path in ["/metrics/fleet", "/servers/availability"] {
        let overview = shared.by_guest("GET", path).expect(200).await;
        assert_eq!(ids(&overview, "server_id"), seen, "{path}");
    }
    let heat = shared.by_guest("GET", "/metrics/fleet/heat").expect(200).await;
    assert_eq!(ids(&heat["servers"], "server_id"), seen);
    let all = shared.by_owner("GET", "/servers").expect(200).await;
    let every = all.as_array().unwrap().iter().map(|server| text_of(&server["id"])).collect::<Vec<_>>().join(",");
    let bars = shared.by_guest("GET", &format!("/servers/availability?ids={every}")).expect(200).await;
    assert_eq!(bars.as_array().unwrap().len(), 3);
    let heat = shared.by_guest("GET", &format!("/metrics/fleet/heat?servers={every}")).expect(200).await;
    assert_eq!(heat["servers"].as_array().unwrap().len(), 3);
    let combined = shared.by_guest("GET", "/metrics/fleet/series").expect(200).await;
    assert_eq!(combined["server_count"], 5);
    let exposed = shared.by_guest("GET", "/metrics/prometheus").expect_answer(200).await;
    let up = exposed.text.lines().filter(|line| line.starts_with("signalbox_server_up{")).count();
    assert_eq!(up, 5);
}

#[actix_web::test]
async fn keys_are_listed_to_managers_alone() {
    let shared = Shared::start().await;
    let keys = shared.by_owner("GET", "/api-keys/me").expect(200).await;
    let key = format!("/api-keys/{}", text_of(&keys[0]["id"]));

    let grant = shared.grant_server("operator", json!(null)).await;
    assert_eq!(shared.by_guest("GET", "/api-keys/me").expect(200).await, json!([]));
    shared.by_guest("DELETE", &key).expect(404).await;
    shared.end(&grant).await;
    shared.grant_server("manager", json!([])).await;
    assert_eq!(shared.by_guest("GET", "/api-keys/me").expect(200).await, keys);
    shared.by_guest("DELETE", &key).expect(200).await;
}

#[actix_web::test]
async fn a_batch_runs_where_its_caller_may_run_commands_and_shows_no_more() {
    let shared = scene().await;
    let list = shared.by_guest("GET", "/servers").expect(200).await;
    let id_of = |name: &str| {
        let server = list.as_array().unwrap().iter().find(|server| server["name"] == name).unwrap();
        uuid_of(&server["id"])
    };

    let batch = shared.by_guest("POST", "/commands").json(json!({"tag": "db", "command": "true"})).expect(201).await;
    let servers = |batch: &Value| -> BTreeSet<Uuid> {
        batch["results"].as_array().unwrap().iter().map(|result| uuid_of(&result["server_id"])).collect()
    };
    assert_eq!(servers(&batch), [id_of("seen-tag"), id_of("seen-own")].into());
    let named = json!({"server_ids": [id_of("seen-single")], "command": "true"});
    shared.by_guest("POST", "/commands").json(named).expect_error(403, "forbidden").await;
    // The owner of a server sees what ran on it.
    let run =
        shared.by_owner("GET", &format!("/audit?action=batch.&server_id={}", id_of("seen-tag"))).expect(200).await;
    assert_eq!(run, json!([]));

    let grants = shared.by_owner("GET", "/grants").expect(200).await;
    let grant = grants.as_array().unwrap().iter().find(|grant| grant["scope"]["tag"] == "eu").unwrap().clone();
    shared.end(&grant).await;
    let batch = shared.by_guest("GET", &format!("/commands/batches/{}", text_of(&batch["id"]))).expect(200).await;
    assert_eq!(servers(&batch), [id_of("seen-own")].into());
}
