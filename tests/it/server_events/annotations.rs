//! Deploys and notes: what people and programs write on servers.

use serde_json::{Value, json};
use signalbox::store::{MAX_ANNOTATIONS, NewServerEvent};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::rest::Call;
use crate::support::site::Site;
use crate::support::{Account, keys_of, text_of, uuid_of};

const MINUTE_MS: i64 = 60_000;

impl Site {
    fn write_as(&self, account: &Account, path: &str, body: Value) -> Call {
        self.service.client.post(path).bearer(&account.token).json(body)
    }

    fn write(&self, path: &str, body: Value) -> Call {
        self.write_as(&self.owner, path, body)
    }

    fn events_path(&self) -> String {
        format!("/servers/{}/events", self.server_id)
    }

    fn delete_as(&self, account: &Account, event: &Value) -> Call {
        let path = format!("{}/{}", self.events_path(), text_of(&event["id"]));
        self.service.client.delete(path).bearer(&account.token)
    }
}

fn note(text: &str) -> Value {
    json!({ "kind": "note", "text": text })
}

#[actix_web::test]
async fn a_deploy_is_an_event_of_its_server_at_its_time() {
    let site = Site::start().await;
    let at = Timestamp::now().plus_millis(-90 * MINUTE_MS).to_string();
    let url = "https://git.example.com/shop/pipelines/4711?tab=log";
    let deploy = json!({ "kind": "deploy", "text": "Shop", "version": "2.14.0", "url": url, "at": at });

    let made = site.write(&site.events_path(), deploy).expect(201).await;

    assert_eq!(keys_of(&made), ["at", "detail", "id", "kind", "server_id"]);
    assert_eq!(
        (&made["kind"], &made["at"], uuid_of(&made["server_id"])),
        (&json!("deploy"), &json!(at), site.server_id)
    );
    let detail = json!({ "text": "Shop", "version": "2.14.0", "url": url, "username": site.owner.username });
    assert_eq!(made["detail"], detail);
    assert_eq!(site.events("kind=deploy").await, std::slice::from_ref(&made));
    assert_eq!(site.read("/events?kind=deploy").await, json!([made]));
    let entries = site.read("/audit?action=event.").await;
    assert_eq!(
        (&entries[0]["action"], &entries[0]["target"], uuid_of(&entries[0]["server_id"])),
        (&json!("event.create"), &made["id"], site.server_id)
    );
    // The address of a page may contain a secret.
    assert_eq!(entries[0]["detail"], json!({ "kind": "deploy", "text": "Shop", "version": "2.14.0" }));
}

#[actix_web::test]
async fn a_note_without_a_time_is_of_now() {
    let site = Site::start().await;
    let before = Timestamp::now();

    let made = site.write(&site.events_path(), note("Moved to the new rack")).expect(201).await;

    let at = Timestamp::parse(&text_of(&made["at"])).unwrap();
    assert!(at >= before && at <= Timestamp::now(), "{made}");
    let detail = json!({ "text": "Moved to the new rack", "username": site.owner.username });
    assert_eq!(made["detail"], detail);
}

#[actix_web::test]
async fn one_request_writes_on_chosen_servers_on_those_of_a_tag_or_on_all() {
    let site = Site::start().await;
    let tagged = json!({ "name": "web-2", "host": "203.0.113.2", "tags": ["web"] });
    let web = uuid_of(&site.write("/servers", tagged).expect(201).await["id"]);
    let stranger = site.service.register("stranger").await;
    site.service.server(&stranger, "theirs").await;
    let of = |list: &Value| -> Vec<Uuid> {
        let mut ids: Vec<Uuid> = list.as_array().unwrap().iter().map(|event| uuid_of(&event["server_id"])).collect();
        ids.sort();
        ids
    };
    let both = {
        let mut both = vec![site.server_id, web];
        both.sort();
        both
    };
    let deploy = |more: Value| {
        let mut body = json!({ "kind": "deploy", "text": "Shop" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        site.write("/events", body)
    };

    let named = deploy(json!({ "server_ids": [site.server_id, web, web] })).expect(201).await;
    let of_tag = deploy(json!({ "tag": "web" })).expect(201).await;
    let of_all = deploy(json!({ "all": true })).expect(201).await;

    assert_eq!((of(&named), of(&of_tag), of(&of_all)), (both.clone(), vec![web], both));
    deploy(json!({})).expect_error(400, "bad_request").await;
    deploy(json!({ "tag": "nobody" })).expect_error(400, "bad_request").await;
    deploy(json!({ "all": false })).expect_error(400, "bad_request").await;
    // One entry stands for each request.
    let entries = site.read("/audit?action=event.create").await;
    assert_eq!(entries.as_array().map(Vec::len), Some(3));
    assert_eq!((&entries[0]["server_id"], &entries[0]["detail"]["servers"]), (&Value::Null, &json!(2)));
    assert_eq!((uuid_of(&entries[1]["server_id"]), &entries[1]["target"]), (web, &of_tag[0]["id"]));
}

#[actix_web::test]
async fn what_is_faulty_is_refused_by_field() {
    let site = Site::start().await;
    let days = |days: i64| Timestamp::now().plus_millis(days * 24 * 60 * MINUTE_MS).to_string();
    let long = "x".repeat(201);
    let faulty = [
        (json!({ "text": "x" }), ("body", "kind", "value_error.missing")),
        (json!({ "kind": "offline", "text": "x" }), ("body", "kind", "type_error.enum")),
        (json!({ "kind": "note" }), ("body", "text", "value_error.missing")),
        (note(" "), ("body", "text", "value_error.any_str.blank")),
        (note("a\nb"), ("body", "text", "value_error.str.control")),
        (note(&long), ("body", "text", "value_error.any_str.max_length")),
        (json!({ "kind": "note", "text": "x", "at": days(1) }), ("body", "at", "value_error.range")),
        (json!({ "kind": "note", "text": "x", "at": days(-401) }), ("body", "at", "value_error.range")),
        (json!({ "kind": "note", "text": "x", "url": "javascript:alert(1)" }), ("body", "url", "value_error.url")),
        (json!({ "kind": "note", "text": "x", "url": "/pipelines/1" }), ("body", "url", "value_error.url")),
        (
            json!({ "kind": "note", "text": "x", "url": "https://ada:secret@git.example" }),
            ("body", "url", "value_error.url"),
        ),
        (json!({ "kind": "note", "text": "x", "version": "" }), ("body", "version", "value_error.any_str.min_length")),
    ];

    for (body, fault) in faulty {
        site.write(&site.events_path(), body).expect_faults(422, &[fault]).await;
    }
    // The clock of a writer may be a little ahead.
    let ahead = json!({ "kind": "note", "text": "x", "at": Timestamp::now().plus_millis(MINUTE_MS / 2).to_string() });
    let made = site.write(&site.events_path(), ahead).expect(201).await;
    assert!(Timestamp::parse(&text_of(&made["at"])).unwrap() <= Timestamp::now(), "{made}");
    assert_eq!(site.events("").await.len(), 1);
}

#[actix_web::test]
async fn strangers_neither_write_nor_delete() {
    let site = Site::start().await;
    let made = site.write(&site.events_path(), note("mine")).expect(201).await;
    let stranger = site.service.register("stranger").await;
    let mut for_many = note("theirs");
    for_many["server_ids"] = json!([site.server_id]);

    site.write_as(&stranger, &site.events_path(), note("theirs")).expect_error(404, "not_found").await;
    site.write_as(&stranger, "/events", for_many.clone()).expect_error(404, "not_found").await;
    site.delete_as(&stranger, &made).expect_error(404, "not_found").await;
    site.service.client.post("/events").json(for_many).expect(401).await;
    site.service.client.post(site.events_path()).json(note("x")).expect(401).await;

    assert_eq!(site.events("").await, [made]);
}

#[actix_web::test]
async fn annotations_can_be_deleted_and_other_events_cannot() {
    let site = Site::start().await;
    let reboot = NewServerEvent::new(site.server_id, "reboot", Timestamp::now(), json!({}));
    site.service.state.store.record_events(&[reboot]).await.unwrap();
    let reboot = site.events("").await[0].clone();
    let made = site.write(&site.events_path(), note("wrong server")).expect(201).await;
    let (other, _) = site.other_server().await;
    let elsewhere = format!("/servers/{other}/events/{}", text_of(&made["id"]));

    site.delete_as(&site.owner, &reboot).expect_error(404, "not_found").await;
    site.service.client.delete(elsewhere).bearer(&site.owner.token).expect_error(404, "not_found").await;
    site.delete_as(&site.owner, &made).expect(200).await;
    site.delete_as(&site.owner, &made).expect_error(404, "not_found").await;

    assert_eq!(site.events("").await, [reboot]);
    let entries = site.read("/audit?action=event.delete").await;
    assert_eq!(entries.as_array().map(Vec::len), Some(1));
    assert_eq!((&entries[0]["target"], &entries[0]["detail"]["text"]), (&made["id"], &json!("wrong server")));
}

#[actix_web::test]
async fn an_account_that_writes_without_end_is_refused_and_a_server_keeps_the_newest() {
    let site = Site::start().await;
    let mut all = note("");
    all["all"] = json!(true);
    let old = Timestamp::now().plus_millis(-MINUTE_MS).to_string();

    // The first one is about the newest time: what was written first goes first.
    all["text"] = json!("first");
    site.write("/events", all.clone()).expect(201).await;
    all["at"] = json!(old);
    for number in 1..1_000 {
        all["text"] = json!(number.to_string());
        site.write("/events", all.clone()).expect(201).await;
    }
    // While they are written, one more becomes free every 3.6 s.
    let refused = loop {
        let answer = site.write("/events", all.clone()).send().await;
        if answer.status != 201 {
            break answer;
        }
    };
    let status = refused.status;
    let refused = refused.json();
    assert_eq!((status, &refused["code"]), (400, &json!("quota_exceeded")));
    let extra = NewServerEvent::new(site.server_id, "note", Timestamp::now(), json!({ "text": "extra" }));
    let actor = signalbox::audit::Actor::command_line();
    let entry = signalbox::audit::Entry::new("event.create", Uuid::nil(), actor);
    site.service.state.store.annotate(vec![extra], vec![entry]).await.unwrap();

    assert!(text_of(&refused["detail"]).contains("1000"), "{refused}");
    let kept = site.service.client.get(format!("{}?limit=1", site.events_path())).bearer(&site.owner.token);
    let kept = kept.expect_answer(200).await;
    assert_eq!(kept.header("x-total-count"), MAX_ANNOTATIONS.to_string());
    assert_eq!(kept.json()[0]["detail"]["text"], "extra");
}
