//! Channels as users manage them. `alerts` tests that alerts lead to deliveries.

use serde_json::{Value, json};
use signalbox::config::Config;
use uuid::Uuid;

use crate::support::{Account, Call, TestService, assert_timestamp, keys_of, text_of, uuid_of};

/// Nothing is there: the name never resolves (RFC 2606).
const URL: &str = "https://hooks.invalid/services/T000/very-secret-path";

fn webhook() -> Value {
    json!({"name": "ops", "type": "webhook", "settings": {"url": URL}})
}

pub(super) fn path_of(id: &Value) -> String {
    format!("/notifications/channels/{}", text_of(id))
}

impl TestService {
    pub(super) fn new_channel(&self, account: &Account, body: Value) -> Call {
        self.client.post("/notifications/channels").bearer(&account.token).json(body)
    }

    async fn channels(&self, account: &Account) -> Value {
        self.client.get("/notifications/channels").bearer(&account.token).expect(200).await
    }

    fn change(&self, account: &Account, id: &Value, body: Value) -> Call {
        self.client.put(path_of(id)).bearer(&account.token).json(body)
    }
}

fn with_smtp(config: &mut Config) {
    config.smtp_url = Some("smtp://mail.invalid:587".to_owned().into());
    config.smtp_from = Some("signalbox@example.com".to_owned());
}

#[actix_web::test]
async fn a_channel_has_these_fields_and_a_secret_only_when_it_is_made() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    let mut made = service.new_channel(&account, webhook()).expect(201).await;

    let fields = "created_at destination enabled id name notify_recovery problem repeat_minutes secret severities tags \
                  type updated_at";
    assert_eq!(keys_of(&made), fields.split_whitespace().collect::<Vec<_>>());
    assert_eq!(uuid_of(&made["id"]).get_version_num(), 7);
    assert_timestamp(&made["created_at"]);
    assert_eq!(made["updated_at"], made["created_at"]);
    let expected = json!({"name": "ops", "type": "webhook", "enabled": true, "destination": "hooks.invalid",
        "severities": ["info", "warning", "critical"], "tags": [], "repeat_minutes": 0, "notify_recovery": true,
        "problem": null});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&made[field], value, "{field}");
    }
    let secret = text_of(&made.as_object_mut().unwrap().remove("secret").unwrap());
    assert_eq!((secret.len(), secret.chars().all(|c| c.is_ascii_hexdigit())), (64, true));
    let path = path_of(&made["id"]);
    assert_eq!(service.client.get(&path).bearer(&account.token).expect(200).await, made);
    let list = service.client.get("/notifications/channels").bearer(&account.token).expect_answer(200).await;
    assert_eq!((list.json(), list.header("X-Total-Count")), (json!([made]), "1"));
    let again = service.new_channel(&account, webhook()).expect(201).await;
    assert_ne!(again["secret"], json!(secret));
}

#[actix_web::test]
async fn each_kind_shows_where_it_leads_and_no_more() {
    let service = TestService::start_with(with_smtp).await;
    let account = service.register("alice").await;
    let kinds = [
        ("webhook", json!({"url": URL, "secret": "a secret of mine"}), "hooks.invalid"),
        ("slack", json!({"url": URL}), "hooks.invalid"),
        ("discord", json!({"url": URL}), "hooks.invalid"),
        ("teams", json!({"url": URL}), "hooks.invalid"),
        ("telegram", json!({"bot_token": "123:very-secret", "chat_id": -100_123}), "-100123"),
        ("ntfy", json!({"url": "https://ntfy.invalid:8443/very-secret", "token": "very-secret"}), "ntfy.invalid:8443"),
        ("gotify", json!({"url": "https://gotify.invalid", "token": "very-secret"}), "gotify.invalid"),
        ("email", json!({"to": ["a@example.com", "b@example.com", "a@example.com"]}), "a@example.com, b@example.com"),
    ];

    for (kind, settings, destination) in kinds {
        let settings = if kind == "webhook" { json!({"url": URL, "secret": "a-very-secret-key"}) } else { settings };
        let body = json!({"name": kind, "type": kind, "settings": settings});
        let answer = service.new_channel(&account, body).expect_answer(201).await;
        let made = answer.json();
        assert_eq!((&made["type"], &made["destination"]), (&json!(kind), &json!(destination)));
        assert_eq!((&made["secret"], &made["problem"]), (&Value::Null, &Value::Null));
        assert!(!answer.text.contains("very-secret"), "{answer}");
    }
    let list = service.client.get("/notifications/channels").bearer(&account.token).expect_answer(200).await;
    assert!(!list.text.contains("very-secret"), "{list}");
    let names: Vec<String> = list.json().as_array().unwrap().iter().map(|channel| text_of(&channel["name"])).collect();
    assert_eq!(names, ["email", "gotify", "ntfy", "telegram", "teams", "discord", "slack", "webhook"]);
}

#[actix_web::test]
async fn all_faults_of_a_channel_come_in_one_answer() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let create = |body: Value| service.new_channel(&account, body);

    let missing = ["name", "type", "settings"].map(|field| ("body", field, "value_error.missing"));
    create(json!({})).expect_faults(422, &missing).await;
    let body = json!({"name": "", "type": "telegram", "settings": {"bot_token": "a/b"}, "severities": ["bad", 1],
        "tags": "x", "repeat_minutes": -1, "enabled": "yes", "notify_recovery": 1});
    let faults = [
        ("body", "name", "value_error.any_str.min_length"),
        ("body", "settings.bot_token", "value_error.str.regex"),
        ("body", "settings.chat_id", "value_error.missing"),
        ("body", "severities.0", "type_error.enum"),
        ("body", "severities.1", "type_error.str"),
        ("body", "tags", "type_error.list"),
        ("body", "repeat_minutes", "value_error.number.not_ge"),
        ("body", "enabled", "type_error.bool"),
        ("body", "notify_recovery", "type_error.bool"),
    ];
    create(body).expect_faults(422, &faults).await;
    let of = |kind: &str, settings: Value| json!({"name": "ops", "type": kind, "settings": settings});
    let cases = [
        (of("pigeon", json!({})), ("type", "type_error.enum")),
        (of("slack", json!([])), ("settings", "type_error.dict")),
        (of("slack", json!({})), ("settings.url", "value_error.missing")),
        (of("slack", json!({"url": 1})), ("settings.url", "type_error.str")),
        (of("slack", json!({"url": "ftp://hooks.invalid/x"})), ("settings.url", "value_error.url")),
        (of("slack", json!({"url": "hooks"})), ("settings.url", "value_error.url")),
        (of("slack", json!({"url": "https://u:p@hooks.invalid/"})), ("settings.url", "value_error.url")),
        (of("webhook", json!({"url": URL, "secret": "short"})), ("settings.secret", "value_error.any_str.min_length")),
        (of("gotify", json!({"url": URL})), ("settings.token", "value_error.missing")),
        (of("ntfy", json!({"url": "https://ntfy.invalid/<a topic>"})), ("settings.url", "value_error.url")),
        (of("ntfy", json!({"url": "https://ntfy.invalid/"})), ("settings.url", "value_error.url")),
        (of("email", json!({"to": []})), ("settings.to", "value_error.list.min_items")),
        (of("email", json!({"to": ["ada"]})), ("settings.to.0", "value_error.email")),
        (of("email", json!({"to": vec!["a@b.cd"; 11]})), ("settings.to", "value_error.list.max_items")),
    ];
    for (body, (field, kind)) in cases {
        create(body).expect_faults(422, &[("body", field, kind)]).await;
    }
    let empty = json!({"name": "ops", "type": "slack", "settings": {"url": URL}, "severities": []});
    create(empty).expect_faults(422, &[("body", "severities", "value_error.list.min_items")]).await;
    assert_eq!(service.channels(&account).await, json!([]));
}

#[actix_web::test]
async fn a_change_names_what_changes() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let made = service.new_channel(&account, webhook()).expect(201).await;
    let id = &made["id"];

    let body = json!({"name": "on call", "severities": ["critical", "warning", "critical"], "tags": ["db"],
        "repeat_minutes": 30, "enabled": false, "notify_recovery": false});
    let changed = service.change(&account, id, body).expect(200).await;
    let kept = service.change(&account, id, json!({})).expect(200).await;

    let expected = json!({"name": "on call", "type": "webhook", "severities": ["warning", "critical"], "tags": ["db"],
        "repeat_minutes": 30, "enabled": false, "notify_recovery": false, "destination": "hooks.invalid"});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!((&changed[field], &kept[field]), (value, value), "{field}");
    }
    let cleared = service.change(&account, id, json!({"severities": null, "tags": null})).expect(200).await;
    assert_eq!(cleared["severities"], json!(["info", "warning", "critical"]));
    assert_eq!(cleared["tags"], json!([]));
}

#[actix_web::test]
async fn settings_are_replaced_whole_and_a_webhook_keeps_its_secret() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let made = service.new_channel(&account, webhook()).expect(201).await;
    let id = &made["id"];
    let change = |body: Value| service.change(&account, id, body);

    let other = change(json!({"settings": {"url": "https://other.invalid/x"}})).expect(200).await;
    assert_eq!((&other["destination"], other.get("secret")), (&json!("other.invalid"), None));
    change(json!({"type": "gotify"})).expect_faults(422, &[("body", "settings", "value_error.missing")]).await;
    let fault = [("body", "settings.token", "value_error.missing")];
    change(json!({"type": "gotify", "settings": {"url": URL}})).expect_faults(422, &fault).await;
    let gotify = json!({"type": "gotify", "settings": {"url": "https://gotify.invalid", "token": "abc"}});
    assert_eq!(change(gotify).expect(200).await["type"], "gotify");
    // No secret is left to keep, and a change shows none.
    let fault = [("body", "settings.secret", "value_error.missing")];
    change(json!({"type": "webhook", "settings": {"url": URL}})).expect_faults(422, &fault).await;
    let own = json!({"type": "webhook", "settings": {"url": URL, "secret": "a-secret-of-my-own"}});
    assert_eq!(change(own).expect(200).await["type"], "webhook");
}

#[actix_web::test]
async fn e_mail_needs_a_server_and_leads_to_oneself() {
    let without = TestService::start().await;
    let with = TestService::start_with(with_smtp).await;
    let to = |address: &str| json!({"name": "mail", "type": "email", "settings": {"to": [address]}});

    let alice = without.register("alice").await;
    without.new_channel(&alice, to("alice@example.com")).expect_error(400, "bad_request").await;
    let (admin, bob) = (with.register("admin").await, with.register("bob").await);
    with.new_channel(&admin, to("anybody@example.com")).expect(201).await;
    with.new_channel(&bob, to("anybody@example.com")).expect_error(403, "forbidden").await;
    let made = with.new_channel(&bob, to("Bob@example.com")).expect(201).await;
    let body = json!({"settings": {"to": ["bob@example.com", "admin@example.com"]}});
    with.change(&bob, &made["id"], body).expect_error(403, "forbidden").await;

    assert_eq!(with.channels(&bob).await[0]["destination"], "Bob@example.com");
}

#[actix_web::test]
async fn another_users_channel_does_not_exist() {
    let service = TestService::start().await;
    let alice = service.register("alice").await;
    let bob = service.register("bob").await;
    let made = service.new_channel(&alice, webhook()).expect(201).await;

    for id in [made["id"].clone(), json!(Uuid::now_v7())] {
        let path = path_of(&id);
        service.client.get(&path).bearer(&bob.token).expect_error(404, "not_found").await;
        service.change(&bob, &id, json!({"name": "mine"})).expect_error(404, "not_found").await;
        service.client.delete(&path).bearer(&bob.token).expect_error(404, "not_found").await;
        service.client.post(format!("{path}/test")).bearer(&bob.token).expect_error(404, "not_found").await;
    }
    service.client.get("/notifications/channels").expect_refusal(401).await;
    service.client.get("/notifications/deliveries").expect_refusal(401).await;

    assert_eq!(service.channels(&bob).await, json!([]));
    assert_eq!(service.channels(&alice).await[0]["name"], "ops");
}

#[actix_web::test]
async fn a_deleted_channel_is_gone() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let made = service.new_channel(&account, webhook()).expect(201).await;
    let path = path_of(&made["id"]);

    let answer = service.client.delete(&path).bearer(&account.token).expect(200).await;

    assert_eq!((&answer["data"], &answer["message"]), (&Value::Null, &json!("Channel deleted")));
    service.client.delete(&path).bearer(&account.token).expect_error(404, "not_found").await;
    assert_eq!(service.channels(&account).await, json!([]));
}

#[actix_web::test]
async fn nobody_has_more_than_fifty_channels() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    for _ in 0..50 {
        service.new_channel(&account, webhook()).expect(201).await;
    }

    service.new_channel(&account, webhook()).expect_error(400, "quota_exceeded").await;

    assert_eq!(service.channels(&account).await.as_array().unwrap().len(), 50);
}

#[actix_web::test]
async fn a_test_that_fails_says_so_and_stands_in_the_log() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let bob = service.register("bob").await;
    let made = service.new_channel(&account, webhook()).expect(201).await;
    let path = path_of(&made["id"]);
    let log = || service.client.get("/notifications/deliveries").bearer(&account.token);

    let tested = service.client.post(format!("{path}/test")).bearer(&account.token).expect(200).await;

    assert_eq!(keys_of(&tested), ["delivered", "detail"]);
    assert_eq!(tested["delivered"], false);
    let entry = log().expect(200).await[0].clone();
    let fields = "alert_id attempted_at attempts channel_id channel_name created_at error event finished_at id \
                  message_id next_attempt_at outcome recipients status subject";
    assert_eq!(keys_of(&entry), fields.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&entry["channel_id"], &entry["channel_name"]), (&made["id"], &json!("ops")));
    assert_eq!((&entry["event"], &entry["status"]), (&json!("test"), &json!("failed")));
    assert_eq!((&entry["attempts"], &entry["error"]), (&json!(1), &tested["detail"]));
    assert_eq!(tested["detail"], "hooks.invalid cannot be found");
    assert_eq!((&entry["outcome"], &entry["recipients"]), (&json!("not_delivered"), &json!([])));
    assert_eq!((&entry["alert_id"], &entry["next_attempt_at"]), (&Value::Null, &Value::Null));
    assert_timestamp(&entry["finished_at"]);
    let count = async |query: &[(&str, &str)]| log().query(query).expect(200).await.as_array().unwrap().len();
    let id = text_of(&made["id"]);
    assert_eq!(count(&[("channel_id", &id), ("status", "failed")]).await, 1);
    assert_eq!(count(&[("status", "sent")]).await, 0);
    assert_eq!(count(&[("channel_id", &Uuid::now_v7().to_string())]).await, 0);
    assert_eq!(count(&[("alert_id", &Uuid::now_v7().to_string())]).await, 0);
    log().query(&[("status", "lost")]).expect_faults(422, &[("query", "status", "type_error.enum")]).await;
    let others = service.client.get("/notifications/deliveries").bearer(&bob.token).expect(200).await;
    assert_eq!(others, json!([]));
}

#[actix_web::test]
async fn a_channel_is_tested_now_and_then() {
    let long = std::time::Duration::from_secs(3_600);
    let service = TestService::start_with(|config| config.timing.notify.test_pause = long).await;
    let account = service.register("alice").await;
    let made = service.new_channel(&account, webhook()).expect(201).await;
    let other = service.new_channel(&account, webhook()).expect(201).await;
    let test = |id: &Value| service.client.post(format!("{}/test", path_of(id))).bearer(&account.token);

    test(&made["id"]).expect(200).await;

    test(&made["id"]).expect_error(400, "bad_request").await;
    test(&other["id"]).expect(200).await;
}

#[actix_web::test]
async fn the_audit_log_has_channels_and_no_secret() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let made = service.new_channel(&account, webhook()).expect(201).await;
    let secret = text_of(&made["secret"]);
    let path = path_of(&made["id"]);
    let body = json!({"name": "on call", "settings": {"url": "https://other.invalid/very-secret-path"}});
    service.change(&account, &made["id"], body).expect(200).await;
    service.client.post(format!("{path}/test")).bearer(&account.token).expect(200).await;
    service.client.delete(&path).bearer(&account.token).expect(200).await;

    let audit = service.client.get("/audit").bearer(&account.token).query(&[("action", "channel.")]);
    let answer = audit.expect_answer(200).await;

    let entries = answer.json();
    let actions: Vec<String> = entries.as_array().unwrap().iter().map(|entry| text_of(&entry["action"])).collect();
    assert_eq!(actions, ["channel.delete", "channel.test", "channel.test", "channel.update", "channel.create"]);
    assert_eq!(entries[2]["outcome"], "started");
    assert!(text_of(&entries[1]["outcome"]).starts_with("failed: "));
    let detail = json!({"name": {"from": "ops", "to": "on call"}, "settings": "replaced",
        "destination": {"from": "hooks.invalid", "to": "other.invalid"}});
    assert_eq!(entries[3]["detail"], detail);
    assert_eq!(entries[4]["detail"], json!({"name": "ops", "type": "webhook", "destination": "hooks.invalid"}));
    assert!(entries.as_array().unwrap().iter().all(|entry| entry["target"] == made["id"]));
    assert!(!answer.text.contains("very-secret-path") && !answer.text.contains(&secret), "{answer}");
}

#[actix_web::test]
async fn where_a_channel_leads_is_stored_for_nobody_to_read() {
    // Always on SQLite, where stored data can be read.
    let service = TestService::start_with(|config| config.database_url = None).await;
    let account = service.register("alice").await;
    let made = service.new_channel(&account, webhook()).expect(201).await;
    let secret = text_of(&made["secret"]);
    let path = path_of(&made["id"]);
    service.client.post(format!("{path}/test")).bearer(&account.token).expect(200).await;

    let storage = service.stop().await;

    let files = std::fs::read_dir(storage.path()).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let stored = files.collect::<Vec<_>>().concat();
    let is_stored = |text: &str| stored.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(is_stored("hooks.invalid"));
    for hidden in [secret.as_str(), "very-secret-path", URL] {
        assert!(!is_stored(hidden), "{hidden}");
    }
}

#[actix_web::test]
async fn another_key_is_reported_as_a_problem() {
    let service = TestService::start().await;
    let account = service.register("alice").await;
    let made = service.new_channel(&account, webhook()).expect(201).await;
    let storage = service.stop().await;
    std::fs::remove_file(storage.path().join("encryption-key")).unwrap();

    let service = TestService::start_on(storage, |_| {}).await;

    let told = service.channels(&account).await[0].clone();
    assert!(text_of(&told["problem"]).contains("another key"), "{told}");
    let path = path_of(&made["id"]);
    let tested = service.client.post(format!("{path}/test")).bearer(&account.token).expect(200).await;
    assert_eq!(tested["delivered"], false);
    let body = json!({"settings": {"url": URL, "secret": "a-secret-of-my-own"}});
    let cured = service.change(&account, &made["id"], body).expect(200).await;
    assert_eq!(cured["problem"], Value::Null);
}
