//! What others may do to the servers of an enrolment, and what its owner must prove before.

use std::time::Duration;

use sea_orm::{ConnectionTrait, Database};
use serde_json::{Value, json};
use signalbox::audit::Actor;
use signalbox::config::Quotas;
use signalbox::store::{GrantScope, GrantSubject, NewGrant, NewServer, Rights, Role};
use signalbox_protocol::Timestamp;

use super::Scene;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::storage::direct;
use crate::support::{Account, PASSWORD, TestService, text_of};

impl Scene {
    async fn seen_by(&self, account: &Account) -> Vec<(String, String)> {
        let servers = self.service.client.get("/servers").bearer(&account.token).expect(200).await;
        servers.as_array().unwrap().iter().map(|one| (text_of(&one["name"]), text_of(&one["role"]))).collect()
    }
}

fn pair(name: &str, role: &str) -> (String, String) {
    (name.to_owned(), role.to_owned())
}

#[actix_web::test]
async fn each_server_has_the_grants_of_its_enrolment() {
    let scene = Scene::start().await;
    let (bob, eve) = (scene.service.register("bob").await, scene.service.register("eve").await);
    let team =
        scene.service.client.post("/teams").bearer(&scene.owner.token).json(json!({"name": "ops"})).expect(201).await;
    let path = format!("/teams/{}/members/{}", text_of(&team["id"]), eve.id);
    scene.service.client.put(path).bearer(&scene.owner.token).expect(200).await;
    let grants = json!([
        {"subject": {"username": "bob"}, "role": "operator", "rights": ["logs"]},
        {"subject": {"team_id": team["id"]}, "role": "viewer"},
    ]);
    let enrolment = scene.enrolment(json!({"grants": grants})).await;

    let enrolled = scene.enrol(&enrolment.token, "web").expect(201).await;

    assert_eq!(scene.seen_by(&bob).await, [pair("web", "operator")]);
    assert_eq!(scene.seen_by(&eve).await, [pair("web", "viewer")]);
    let shown = scene.shown(&enrolment).await;
    let subject = json!({"user_id": bob.id, "username": "bob", "team_id": null, "team_name": null});
    assert_eq!(shown["grants"][0], json!({"subject": subject, "role": "operator", "rights": ["logs"]}));
    assert_eq!(shown["grants"][1]["subject"]["team_name"], "ops");
    let grants = scene.read("/grants").await;
    let all = grants.as_array().unwrap();
    assert!(all.len() == 2 && all.iter().all(|one| one["scope"]["server_id"] == enrolled["server_id"]), "{grants}");
}

#[actix_web::test]
async fn a_grant_for_a_tag_of_the_enrolment_reaches_each_server() {
    let scene = Scene::start().await;
    let bob = scene.service.register("bob").await;
    let enrolment = scene.enrolment(json!({"tags": ["web"]})).await;
    let grant = json!({"subject": {"user_id": bob.id}, "scope": {"tag": "web"}, "role": "responder"});
    scene.service.client.post("/grants").bearer(&scene.owner.token).json(grant).expect(201).await;

    scene.enrol(&enrolment.token, "web").expect(201).await;

    assert_eq!(scene.seen_by(&bob).await, [pair("web", "responder")]);
}

#[actix_web::test]
async fn grants_follow_the_rules_of_grants() {
    let service = TestService::start().await;
    // Who sees every team.
    service.register("administrator").await;
    let scene = Scene::of(service).await;
    let bob = scene.service.register("bob").await;
    let team = scene.service.client.post("/teams").bearer(&bob.token).json(json!({"name": "ops"})).expect(201).await;
    let with = |grant: Value| scene.create(json!({"name": "x", "uses": 1, "grants": [grant]}));
    let cases = [
        (json!({"subject": {"user_id": scene.owner.id}, "role": "viewer"}), "grants.0.subject", "value_error.owner"),
        (
            json!({"subject": {"username": "nobody"}, "role": "viewer"}),
            "grants.0.subject",
            "value_error.unknown_subject",
        ),
        (
            json!({"subject": {"team_id": team["id"]}, "role": "viewer"}),
            "grants.0.subject",
            "value_error.unknown_subject",
        ),
        (
            json!({"subject": {"user_id": uuid::Uuid::now_v7()}, "role": "viewer"}),
            "grants",
            "value_error.unknown_subject",
        ),
        (json!({"subject": {}, "role": "viewer"}), "grants.0.subject", "value_error.subject"),
        (
            json!({"subject": {"username": "bob"}, "role": "viewer", "rights": ["logs"]}),
            "grants.0.rights",
            "value_error.rights",
        ),
        (json!({"subject": {"username": "bob"}, "role": "owner"}), "grants.0.role", "*"),
    ];

    for (grant, field, kind) in cases {
        with(grant).expect_faults(422, &[("body", field, kind)]).await;
    }
    assert_eq!(scene.read("/enrolments").await, json!([]));
}

#[actix_web::test]
async fn a_grant_for_an_account_that_was_deleted_is_left_out() {
    let scene = Scene::start().await;
    let bob = scene.service.register("bob").await;
    let grants = json!([{"subject": {"username": "bob"}, "role": "viewer"}]);
    let enrolment = scene.enrolment(json!({"grants": grants})).await;
    let delete = scene.service.client.delete("/auth/me").bearer(&bob.token).json(json!({"password": PASSWORD}));
    delete.expect(200).await;

    scene.enrol(&enrolment.token, "web").expect(201).await;

    assert_eq!(scene.read("/grants").await, json!([]));
    assert_eq!(scene.shown(&enrolment).await["grants"][0]["subject"]["username"], Value::Null);
}

/// What is stored here without the service's knowledge is what a commit leaves whose answer is lost.
#[actix_web::test]
async fn after_an_error_servers_and_grants_are_read_again() {
    let scene = Scene::start().await;
    let bob = scene.service.register("bob").await;
    scene.service.server(&scene.owner, "db").await;
    let enrolment = scene.enrolment(json!({})).await;
    let path = "/api/v1/ws/fleet";
    let mut dashboard =
        Dashboard::open(scene.service.address, path, Pass::Header(&scene.owner.token), &[]).await.unwrap();
    dashboard.expect("fleet").await;
    let (store, owner_id) = (&scene.service.state.store, scene.owner.id);
    let web = NewServer {
        owner_id,
        name: "web".to_owned(),
        host: "192.0.2.10".to_owned(),
        port: 22,
        description: String::new(),
        tags: Vec::new(),
    };
    let web = store.create_server(web, Actor::command_line()).await.unwrap().record.id;
    let grant = NewGrant {
        owner_id,
        giver_id: owner_id,
        subject: GrantSubject::User(bob.id),
        scope: GrantScope::Server(web),
        role: Role::Viewer,
        rights: Rights::NONE,
    };
    store.create_grant(grant, Actor::command_line()).await.unwrap();
    assert_eq!(scene.seen_by(&bob).await, []);
    let database = Database::connect(direct(&scene.service.state.config.database_url())).await.unwrap();
    database.execute_unprepared("ALTER TABLE enrolled_servers RENAME TO away").await.unwrap();

    let body = json!({"hostname": "web-2", "request_id": "6b1f0c5e9a3d4e7f8a2b1c0d9e8f7a6b"});
    scene.service.client.post("/enrol").bearer(&enrolment.token).json(body).expect(500).await;

    database.execute_unprepared("ALTER TABLE away RENAME TO enrolled_servers").await.unwrap();
    database.close().await.unwrap();
    assert_eq!(scene.seen_by(&bob).await, [pair("web", "viewer")]);
    while !dashboard.until("fleet").await.to_string().contains(&web.to_string()) {}
    assert_eq!((scene.server_names().await.len(), &scene.shown(&enrolment).await["uses_left"]), (2, &json!(1_000)));
}

#[actix_web::test]
async fn grants_beyond_the_quota_make_no_server() {
    let quotas = Quotas { grants: 1, ..Quotas::default() };
    let scene = Scene::of(TestService::start_with(|config| config.quotas = quotas).await).await;
    scene.service.register("bob").await;
    let grants = json!([{"subject": {"username": "bob"}, "role": "viewer"}]);
    let enrolment = scene.enrolment(json!({"grants": grants})).await;
    scene.enrol(&enrolment.token, "web").expect(201).await;

    let refused = scene.enrol(&enrolment.token, "web").expect_error(400, "quota_exceeded").await;

    assert!(text_of(&refused["detail"]).contains("--quota-grants"), "{refused}");
    assert_eq!((scene.server_names().await.len(), &scene.shown(&enrolment).await["uses_left"]), (1, &json!(999)));
}

#[actix_web::test]
async fn with_step_up_an_enrolment_needs_a_recent_proof_and_its_machines_need_none() {
    let scene = Scene::start().await;
    let long_ago = Timestamp::now().plus_millis(-16 * 60_000).as_millis();
    let enrolment = scene.enrolment(json!({"tags": ["web"]})).await;
    let storage = scene.service.stop().await;
    storage.execute(&[&format!("UPDATE logins SET proved_at = {long_ago}")]).await;
    let step_up = Duration::from_secs(15 * 60);
    let service = TestService::start_on(storage, |config| config.step_up = Some(step_up)).await;
    let scene = Scene { service, owner: scene.owner };
    let path = format!("/enrolments/{}", enrolment.id);
    let revoke = || scene.service.client.delete(&path).bearer(&scene.owner.token);

    scene.create(json!({"name": "x", "uses": 1})).expect_error(403, "step_up_required").await;
    revoke().expect_error(403, "step_up_required").await;

    scene.enrol(&enrolment.token, "web").expect(201).await;
    let proof = json!({"password": PASSWORD});
    scene.service.client.post("/auth/step-up").bearer(&scene.owner.token).json(proof).expect(200).await;
    scene.create(json!({"name": "x", "uses": 1})).expect(201).await;
    revoke().expect(200).await;
}
