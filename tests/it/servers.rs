//! `/servers`: making, reading, changing and deleting one. Lists and filters are in `server_filters`.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{TestService, assert_timestamp, keys_of, text_of, uuid_of};

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut body = json!({"name": "web-1", "host": "192.0.2.10", "port": 22});
    body[field] = value.into();
    body
}

#[actix_web::test]
async fn a_new_server_is_pending_and_whole() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let body = json!({"name": "web-1", "host": "192.0.2.10", "port": 2222});

    let server = service.client.post("/servers").bearer(&account.token).json(body).expect(201).await;

    let fields = "agent created_at description host id last_seen_at name owner port rights role series_dropped status tags \
                  updated_at";
    assert_eq!(keys_of(&server), fields.split(' ').collect::<Vec<_>>());
    assert_eq!(uuid_of(&server["id"]).get_version_num(), 7);
    assert_eq!((&server["name"], &server["host"]), (&json!("web-1"), &json!("192.0.2.10")));
    assert_eq!(server["port"], 2222);
    assert_eq!(server["status"], "pending");
    assert_eq!(server["tags"], json!([]));
    assert_eq!((&server["last_seen_at"], &server["agent"]), (&Value::Null, &Value::Null));
    assert_timestamp(&server["created_at"]);
    assert_timestamp(&server["updated_at"]);
    let path = format!("/servers/{}", text_of(&server["id"]));
    assert_eq!(service.client.get(path).bearer(&account.token).expect(200).await, server);
    assert_eq!(service.client.get("/servers").bearer(&account.token).expect(200).await, json!([server]));
}

#[actix_web::test]
async fn the_port_is_22_by_default() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let body = json!({"name": "web-1", "host": "192.0.2.10"});

    let server = service.client.post("/servers").bearer(&account.token).json(body).expect(201).await;

    assert_eq!(server["port"], 22);
}

#[actix_web::test]
async fn values_at_their_limits_are_kept_as_they_are() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let tags: Vec<String> = (0..20).map(|number| format!("tag-{number:02}")).collect();
    let mut cases = vec![
        ("name", json!("n")),
        ("name", json!("n".repeat(100))),
        ("name", json!("ä".repeat(100))),
        ("port", json!(1)),
        ("port", json!(65_535)),
        ("tags", json!([])),
        ("tags", json!(tags)),
        ("description", json!("Rack 4, über dem Switch \u{1F5A5}")),
    ];
    let longest = format!("{}.{}.{}.{}", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61));
    let hosts = ["localhost", "web-1.example.com", "10.0.0.1", "::1", "2001:db8::1", "xn--bcher-kva.example", &longest];
    cases.extend(hosts.map(|host| ("host", json!(host))));

    for (field, value) in cases {
        let body = with(field, value.clone());
        let server = service.client.post("/servers").bearer(&account.token).json(body).expect(201).await;
        assert_eq!(server[field], value);
    }
}

#[actix_web::test]
async fn a_value_beyond_its_limits_is_the_one_fault() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let existing = service.server(&account, "web-1").await;
    let tags: Vec<String> = (0..21).map(|number| format!("tag-{number}")).collect();
    let mut cases = vec![
        ("name", json!(""), "value_error.*"),
        ("name", json!("n".repeat(101)), "value_error.*"),
        ("port", json!(0), "value_error.*"),
        ("port", json!(-1), "value_error.*"),
        ("port", json!(65_536), "value_error.*"),
        ("port", json!(22.5), "type_error.integer"),
        ("port", json!("ssh"), "type_error.integer"),
        ("port", json!([22]), "type_error.integer"),
        ("name", json!(1), "type_error.*"),
        ("host", json!({}), "type_error.*"),
        ("tags", json!("web"), "type_error.*"),
        ("tags", json!(tags), "value_error.*"),
        ("description", json!(1), "type_error.*"),
    ];
    let label_too_long = format!("{}.example.com", "a".repeat(64));
    let too_long = format!("{}a", "abc.".repeat(64));
    let hosts =
        ["", "exa mple.com", "http://example.com", "a..b", "-a.example.com", "10.0.0.1:22", "2001:db8::g", "host/path"];
    cases.extend(hosts.map(|host| ("host", json!(host), "value_error.*")));
    cases.extend([label_too_long, too_long].map(|host| ("host", json!(host), "value_error.*")));

    for (field, value, kind) in cases {
        let create = service.client.post("/servers").bearer(&account.token).json(with(field, value.clone()));
        create.expect_faults(422, &[("body", field, kind)]).await;
        let change = service.client.put(format!("/servers/{existing}")).bearer(&account.token);
        change.json(json!({field: value})).expect_faults(422, &[("body", field, kind)]).await;
    }
}

#[actix_web::test]
async fn a_port_beyond_64_bits_is_out_of_its_limits() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    for (port, kind) in
        [("18446744073709551616", "value_error.number.not_le"), ("-9223372036854775809", "value_error.number.not_ge")]
    {
        let body = format!(r#"{{"name": "web-1", "host": "192.0.2.10", "port": {port}}}"#);
        let call = service.client.post("/servers").bearer(&account.token).raw("application/json", body);
        call.expect_faults(422, &[("body", "port", kind)]).await;
    }
}

#[actix_web::test]
async fn a_fault_inside_a_list_names_its_index() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let call = service.client.post("/servers").bearer(&account.token).json(with("tags", json!(["web", 7, "db", {}])));

    call.expect_faults(422, &[("body", "tags.1", "type_error.*"), ("body", "tags.3", "type_error.*")]).await;
}

#[actix_web::test]
async fn a_tag_is_short() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let body = with("tags", json!(["t".repeat(1_000)]));

    service.client.post("/servers").bearer(&account.token).json(body).expect(422).await;
}

#[actix_web::test]
async fn all_faults_of_body_and_path_come_in_one_answer() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let body = json!({"name": "", "host": "a b", "port": 0, "tags": 1});
    let faults = [
        ("body", "name", "value_error.*"),
        ("body", "host", "value_error.*"),
        ("body", "port", "value_error.*"),
        ("body", "tags", "type_error.*"),
        ("path", "id", "type_error.uuid"),
    ];

    service.client.post("/servers").bearer(&account.token).json(body.clone()).expect_faults(422, &faults[..4]).await;
    service.client.put("/servers/nonsense").bearer(&account.token).json(body).expect_faults(422, &faults).await;
    let missing = [("body", "name", "value_error.missing"), ("body", "host", "value_error.missing")];
    service.client.post("/servers").bearer(&account.token).json(json!({})).expect_faults(422, &missing).await;
}

#[actix_web::test]
async fn a_change_touches_what_it_names() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let path = format!("/servers/{}", service.server(&account, "web-1").await);
    let changes = [
        ("name", json!("web-2")),
        ("host", json!("web-2.example.com")),
        ("port", json!(2222)),
        ("description", json!("the second")),
        ("tags", json!(["web", "eu"])),
        ("tags", json!([])),
    ];

    for (field, value) in changes {
        let before = service.client.get(&path).bearer(&account.token).expect(200).await;
        let body = json!({field: value});
        let changed = service.client.put(&path).bearer(&account.token).json(body).expect(200).await;

        let mut expected = before.clone();
        expected[field] = value;
        expected["updated_at"] = changed["updated_at"].clone();
        assert_eq!(changed, expected);
        assert!(changed["updated_at"].as_str() >= before["updated_at"].as_str());
        assert_eq!(service.client.get(&path).bearer(&account.token).expect(200).await, changed);
    }
}

#[actix_web::test]
async fn what_the_service_decides_cannot_be_changed() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let path = format!("/servers/{}", service.server(&account, "web-1").await);
    let mut before = service.client.get(&path).bearer(&account.token).expect(200).await;
    let body = json!({
        "id": Uuid::now_v7(),
        "status": "online",
        "owner_id": Uuid::now_v7(),
        "created_at": "2001-01-01T00:00:00Z",
        "last_seen_at": "2001-01-01T00:00:00Z",
        "agent": {"version": "9"},
    });

    let after = service.client.put(&path).bearer(&account.token).json(body).expect(200).await;

    before["updated_at"] = after["updated_at"].clone();
    assert_eq!(after, before);
}

#[actix_web::test]
async fn null_clears_a_description_and_silence_keeps_it() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let path = format!("/servers/{}", service.server(&account, "web-1").await);
    let change = |body: Value| service.client.put(&path).bearer(&account.token).json(body);
    let never_described = service.client.get(&path).bearer(&account.token).expect(200).await["description"].clone();

    assert_eq!(change(json!({"description": "db host"})).expect(200).await["description"], "db host");
    assert_eq!(change(json!({"port": 2222})).expect(200).await["description"], "db host");
    assert_eq!(change(json!({"description": null})).expect(200).await["description"], never_described);
}

#[actix_web::test]
async fn a_deleted_server_is_gone_with_its_keys() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let (doomed, _) = service.server_with_key(&account, "web-1").await;
    let (kept, _) = service.server_with_key(&account, "web-2").await;
    let path = format!("/servers/{doomed}");

    let answer = service.client.delete(&path).bearer(&account.token).expect(200).await;

    assert_eq!(answer["data"], Value::Null);
    assert_eq!(answer["message"], "Server deleted");
    service.client.get(&path).bearer(&account.token).expect_error(404, "not_found").await;
    service.client.delete(&path).bearer(&account.token).expect_error(404, "not_found").await;
    let keys = service.client.get("/api-keys/me").bearer(&account.token).expect(200).await;
    let servers = service.client.get("/servers").bearer(&account.token).expect(200).await;
    assert_eq!(keys.as_array().unwrap().len(), 1);
    assert_eq!(keys[0]["server_id"], kept.to_string());
    assert_eq!(servers.as_array().unwrap().len(), 1);
    assert_eq!(servers[0]["id"], kept.to_string());
}

#[actix_web::test]
async fn another_users_server_does_not_exist() {
    let service = TestService::start().await;
    let alice = service.register("alice").await;
    let bob = service.register("bob").await;
    let server_id = service.server(&alice, "web-1").await;
    let path = format!("/servers/{server_id}");
    let before = service.client.get(&path).bearer(&alice.token).expect(200).await;

    let foreign = service.client.get(&path).bearer(&bob.token).expect_error(404, "not_found").await;
    service.client.put(&path).bearer(&bob.token).json(json!({"name": "mine"})).expect_error(404, "not_found").await;
    service.client.delete(&path).bearer(&bob.token).expect_error(404, "not_found").await;

    let unknown = format!("/servers/{}", Uuid::now_v7());
    assert_eq!(service.client.get(unknown).bearer(&bob.token).expect_error(404, "not_found").await, foreign);
    assert_eq!(service.client.get("/servers").bearer(&bob.token).expect(200).await, json!([]));
    assert_eq!(service.client.get(&path).bearer(&alice.token).expect(200).await, before);
}

#[actix_web::test]
async fn an_id_that_is_none_is_a_fault_of_the_path() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let fault = [("path", "id", "type_error.uuid")];

    service.client.get("/servers/1").bearer(&account.token).expect_faults(422, &fault).await;
    service.client.delete("/servers/1").bearer(&account.token).expect_faults(422, &fault).await;
    service.client.put("/servers/1").bearer(&account.token).json(json!({})).expect_faults(422, &fault).await;
}
